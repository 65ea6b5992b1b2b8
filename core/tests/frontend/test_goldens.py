"""Golden text: the IR of small kernels, one per feature, and the rendering of every kind of mistake."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tilefw
from tilefw.api.errors import KernelError
from tilefw.frontend import build_module

ROOT = Path(tilefw.__file__).parent


def ir(case: Any) -> str:
    module = build_module(case.kernel(), case.signature, case.constexprs)
    module.verify()
    return "\n".join(line[2:] for line in str(module).splitlines()[1:-1])


def error(case: Any) -> str:
    try:
        module = build_module(case.kernel(), case.signature, case.constexprs)
    except KernelError as caught:
        return str(caught)
    return f"no error:\n{module}"


@pytest.mark.parametrize(("file", "made"), [("ir.txt", ir), ("errors.txt", error)])
def test_goldens_are_what_the_front_end_makes(file: str, made: Callable[[Any], str], goldens: Any) -> None:
    results = goldens.check(file, made)
    if goldens.updating:
        pytest.skip("golden files were written anew: review the difference")
    for case, result in results:
        assert result == case.expected, f"case {case.name!r} of {file}"


def test_golden_names_are_unique(goldens: Any) -> None:
    for file in ("ir.txt", "errors.txt"):
        names = [case.name for case in goldens.read(file)]
        assert len(names) == len(set(names))


def test_every_golden_error_has_place_carets_and_an_explained_code(goldens: Any) -> None:
    for case in goldens.read("errors.txt"):
        first, second, *rest = case.expected.splitlines()
        code = first[6:13]
        page = ROOT / "explanations" / f"{code}.md"
        assert page.read_text().startswith(f"# {code}: "), case.name
        if code in ("TFW0119", "TFW0120"):
            continue  # signatures have no place in the source
        assert "--> kernel.py:" in second, case.name
        assert any(set(line.split("|")[-1].strip()) == {"^"} for line in rest), case.name


def test_every_code_of_the_front_end_has_a_golden_error(goldens: Any) -> None:
    used: set[str] = set()
    for path in (ROOT / "frontend").rglob("*.py"):
        used |= {word for word in path.read_text().split('"') if word.startswith("TFW0") and len(word) == 7}
    shown = {case.expected[6:13] for case in goldens.read("errors.txt")}
    assert used - {"TFW0101"} <= shown, f"codes without a golden: {sorted(used - shown)}"  # TFW0101: test_source.py
