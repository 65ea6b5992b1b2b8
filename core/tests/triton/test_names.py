"""`import triton` means tilefw: which names there are, and that they are tilefw's own."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
import tilefw.triton
from tilefw.api.errors import UnsupportedError, UsageError
from tilefw.triton.names import NAMES, WHOLE

# Public names of Triton 3.9's host modules that have no meaning here: what compiles beside the program.
ABSENT = {
    "triton": {"AsyncCompileMode", "FutureKernel"},
    "triton.runtime": {"RedisRemoteCacheBackend", "RemoteCacheBackend"},
    "triton.compiler": {"IRSource", "LazyDict", "get_cache_key"},
}


def test_every_name_of_the_table_is_there(installed: None) -> None:
    for module, names in NAMES.items():
        for name in names:
            assert getattr(importlib.import_module(module), name) is not None, f"{module}.{name}"
    for module in WHOLE:
        assert importlib.import_module(module) is sys.modules[module]


def test_names_are_the_same_objects_under_both_spellings(installed: None) -> None:
    import triton
    import triton.language as language
    import triton.language.core as core
    from triton.language.extra.cuda import libdevice
    from triton.runtime.jit import JITFunction

    assert triton.jit is tilefw.jit and language is tl and core.load is tl.load and libdevice is tl.extra.libdevice
    assert isinstance(triton.jit(lambda_free), JITFunction)
    assert triton.CompilationError is tilefw.CompileError and triton.OutOfResources is tilefw.CapacityError
    active: Any = triton.runtime.driver.active
    assert triton.__version__ == "3.9.0" and active.get_current_device() == 0


def lambda_free(x_ptr):
    pass


@pytest.mark.parametrize("module", sorted(ABSENT))
def test_public_names_of_triton_are_served_or_known_to_be_absent(module: str) -> None:
    spec = importlib.util.find_spec("triton")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("Triton is not installed")
    file = Path(spec.submodule_search_locations[0]).joinpath(*module.split(".")[1:], "__init__.py")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    public = next(
        ast.literal_eval(node.value) for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
    )
    served = set(NAMES[module]) | {name.rpartition(".")[2] for name in [*NAMES, *WHOLE] if name.rpartition(".")[0] == module}
    assert set(public) - served == ABSENT[module]


def test_a_module_that_is_absent_is_told_by_name(installed: None) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"tilefw has no module triton\.experimental\.gsan in Triton's place"):
        importlib.import_module("triton.experimental.gsan")
    import triton

    with pytest.raises(AttributeError, match=r"tilefw serves no triton\.FutureKernel$"):
        _ = triton.FutureKernel


def test_names_of_gluon_are_imported_and_told_where_they_are_used(installed: None) -> None:
    from triton.experimental import gluon
    from triton.experimental.gluon import language as gl

    barrier = importlib.import_module("triton.experimental.gluon.language.chip.family").barrier

    assert gl is importlib.import_module("triton.experimental.gluon.language") and gl.constexpr(4).value == 4
    assert gluon.constexpr_function(lambda n: n + 1)(2) == 3

    @gluon.jit
    def kernel(layout: gl.AutoLayout | None) -> None:
        gl.arange(0, 16, layout)

    for use in (lambda: kernel[(1,)](None), lambda: gl.BlockedLayout([1], [32], [4], [0]), barrier.wait):
        with pytest.raises(UnsupportedError, match="tilefw has no Gluon") as told:
            use()
        assert told.value.code == "TFW0103"


def test_gluon_kernels_are_tuned_and_told_where_they_are_launched(installed: None) -> None:
    import triton
    from triton._C.libtriton.gluon_ir import make_cga_layout
    from triton.experimental import gluon

    @triton.autotune([triton.Config({"BLOCK": 16})], key=["n"])
    @triton.heuristics({"EVEN": lambda args: args["n"] % 2 == 0})
    @gluon.jit
    def kernel(x_ptr, n, BLOCK, EVEN):
        pass

    assert kernel.arg_names == ["x_ptr", "n", "BLOCK", "EVEN"]
    for use in (lambda: kernel[(1,)](None, 4), lambda: make_cga_layout()):
        with pytest.raises(UnsupportedError, match="tilefw has no Gluon"):
            use()


def test_functions_that_extend_tritons_compiler_are_told_where_a_kernel_calls_them(installed: None) -> None:
    @tl.core.builtin
    def pairs(x, _semantic=None):
        return x

    @tl.core.extern
    def other(x, _semantic=None):
        return x

    @tilefw.jit
    def kernel(x_ptr):
        tl.store(x_ptr, pairs(1))

    with pytest.raises(UnsupportedError, match=r"`pairs` extends Triton's compiler") as told:
        kernel[(1,)](np.zeros(1, np.int32))
    assert told.value.place is not None and "pairs(1)" in told.value.place.text
    with pytest.raises(UnsupportedError, match="`other` extends"):
        other(1)


def test_testing_has_the_runtime_that_tritons_imports(installed: None) -> None:
    from triton.testing import runtime

    assert runtime.driver.active is importlib.import_module("triton.runtime").driver.active


def test_an_element_type_prints_as_the_program_spells_it(installed: None) -> None:
    import triton.language

    assert eval(repr(tl.bfloat16), {"triton": triton}) is tl.bfloat16
    tilefw.triton.uninstall()
    assert eval(repr(tl.bfloat16), {"tilefw": tilefw}) is tl.bfloat16


def test_uninstalling_frees_the_name(installed: None) -> None:
    assert tilefw.triton.installed()
    tilefw.triton.uninstall()
    assert not tilefw.triton.installed() and "triton" not in sys.modules
    tilefw.triton.uninstall()


def test_triton_that_was_imported_first_is_an_error(installed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    tilefw.triton.uninstall()
    monkeypatch.setitem(sys.modules, "triton", sys)
    with pytest.raises(UsageError, match="imported before") as caught:
        tilefw.triton.install()
    assert caught.value.code == "TFW0918"
