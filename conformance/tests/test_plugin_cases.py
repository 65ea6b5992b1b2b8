"""What a plugin brings to the suite: kernels of its own, cases about them, and mistakes in both that are told by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tilefw.api.errors import CodeError, KernelError, PluginError, UsageError
from tilefw.kernels.spec import load
from tilefw.runtime.plugins import entry_points, loader
from tilefw.runtime.plugins.loader import Target, find_target
from tilefw_conformance import runner, suite
from tilefw_conformance.case_files import collect
from tilefw_conformance.subject import contradiction, spec_of

HOOKS = """
@hookimpl
def tilefw_register_kernels():
    return {"twice": "bringer_kernels:TWICE", "missing": "bringer_kernels:NOTHING", "misnamed": "bringer_kernels:MISNAMED"}

@hookimpl
def tilefw_conformance():
    return {"cases": ["bringer_package:cases"]}
"""
KERNELS = """
import dataclasses
import numpy as np
from tilefw.api.kernels import Buffer, KernelInfo, KernelSpec, Launch, ParameterInfo, draw, empty, jit, tl

@jit
def twice(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)

def prepare(p, rng):
    arguments = {"x_ptr": draw(rng, "normal", (p["n"],), "fp32"), "out_ptr": empty((p["n"],), "fp32"), "n": p["n"]}
    return Launch(arguments, {"BLOCK": 64}, (1, 1, 1), ("out_ptr",))

def expected(p, launch):
    return {"out_ptr": launch.buffer("x_ptr").array.astype(np.float64) * 2}

INFO = KernelInfo("bringer:twice", "out = 2 x", (ParameterInfo("n", 50, "elements"),))
TWICE = KernelSpec("bringer:twice", twice, prepare, expected, own=INFO)
MISNAMED = dataclasses.replace(TWICE, name="twice")
"""
CASES = """
group: bringer_twice
kernel: "bringer:twice"
since: "0.1"
requires: [float.mul.fp32]
notes:
  tail: {bugType: MASK, description: a tile that is not full, effect: elements are lost}
cases:
  - {id: sizes, level: core, flags: [tail], params: {n: [1, 64]}}
"""


@pytest.fixture
def bring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renamed_reference: Callable[[str], str]) -> Callable[[str], Target]:
    """Installs the plugin with this text of its case file, and finds its target."""
    def make(cases: str) -> Target:
        hooks = renamed_reference("bringer-x") + HOOKS
        for name, text in (("bringer_hooks.py", hooks), ("bringer_kernels.py", KERNELS), ("bringer_package/__init__.py", "")):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        (tmp_path / "bringer_package" / "cases").mkdir()
        (tmp_path / "bringer_package" / "cases" / "twice.yaml").write_text(cases)
        info = tmp_path / "bringer-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bringer\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[tilefw.backends]\nbringer = bringer_hooks\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setattr(loader, "_registry", loader.Registry())
        entry_points._scan_distributions.cache_clear()
        return find_target("bringer-x")

    return make


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """No module of the made plugin outlives its test."""
    yield
    for name in [name for name in sys.modules if name.startswith("bringer_")]:
        del sys.modules[name]
    entry_points._scan_distributions.cache_clear()


def test_cases_of_a_plugin_run_its_own_kernels(bring: Callable[[str], Target]) -> None:
    target = bring(CASES)
    cases = suite.cases_of(target)
    assert [case.id for case in cases] == ["bringer_twice/sizes/n=1", "bringer_twice/sizes/n=64"]
    assert spec_of(cases[0]).name == "bringer:twice"
    assert [runner.run(case, target).outcome for case in cases] == ["pass", "pass"]


@pytest.mark.parametrize(("old", "new", "code", "said"), [
    ("group: bringer_twice", "group: twice", "TFW0961", "bringer_twice"),
    ('"bringer:twice"', '"bringer:thrice"', "TFW0952", "brings no kernel called 'thrice'"),
    ('"bringer:twice"', '"brinjer:twice"', "TFW0952", "did you mean 'bringer'"),
    ('"bringer:twice"', '"bringer:missing"', "TFW0952", "cannot be had"),
    ("n: [1, 64]", "m: [1, 64]", "TFW0952", "no parameter 'm'"),
    ("float.mul.fp32", "float.mull.fp32", "TFW0952", "did you mean 'float.mul.fp32'"),
])
def test_a_mistake_in_them_is_told(bring: Callable[[str], Target], old: str, new: str, code: str, said: str) -> None:
    target = bring(CASES.replace(old, new))
    with pytest.raises(CodeError) as caught:
        suite.cases_of(target)
    assert caught.value.code == code and said in str(caught.value)


@pytest.mark.parametrize(("name", "kind", "said"), [
    ("bringer:misnamed", PluginError, "is called 'twice'"), ("bringer:missing", PluginError, "cannot be had"),
    ("bringer:other", UsageError, "brings no kernel"), ("nobody:twice", UsageError, "no plugin is called 'nobody'"),
])
def test_a_kernel_that_cannot_be_had_is_told(bring: Callable[[str], Target], name: str, kind: type[KernelError], said: str) -> None:
    bring(CASES)
    with pytest.raises(kind, match=said):
        load(name)


def test_a_case_that_does_not_need_what_its_file_says_is_an_error() -> None:
    text = CASES.replace('"bringer:twice"', "vector_add").replace("bringer_twice", "sums")
    (case, _) = collect([("a.yaml", text)])
    result = runner.run(case, find_target("reference"))
    assert result.outcome == "error" and "does not need float.mul.fp32" in result.message()
    assert contradiction(case, {"float.mul.fp32", "memory.load.fp32"}) is None
