"""Sources: kernels in files, classes, closures, text; places with the columns that an editor shows; what cannot be found."""

from __future__ import annotations

import importlib.util
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.errors import CompileError, KernelError
from tilefw.frontend import build_module

SIGNATURE = {"x_ptr": "*fp32", "n": "i32"}


class Holder:
    @staticmethod
    @tilefw.jit
    def method(x_ptr, n):
        """A docstring
that reaches the margin.
        """
        # comment
        tl.store(x_ptr, n +
   n)


def closure(factor: Any) -> Any:
    scale = tl.constexpr(factor)

    @tilefw.jit
    def kernel(x_ptr, n):
        tl.store(x_ptr, n * scale)

    return kernel


def ops(kernel: Any) -> str:
    return str(build_module(kernel, SIGNATURE, {}))


def test_kernels_in_classes_keep_their_continuation_lines_and_strings() -> None:
    assert "tile.addi" in ops(Holder.method)


def test_kernels_read_constexprs_of_their_closure() -> None:
    assert "tile.constant 3 : i32" in ops(closure(3))
    assert "tile.constant 4 : i32" in ops(closure(4))


def test_a_plain_closure_value_is_refused() -> None:
    factor = 3

    @tilefw.jit
    def kernel(x_ptr, n):
        tl.store(x_ptr, n * factor)

    with pytest.raises(CompileError, match="cannot read the global `factor`, a plain int") as caught:
        build_module(kernel, SIGNATURE, {})
    assert caught.value.code == "TFW0105"


def test_places_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("import tilefw\nimport tilefw.language as tl\n\n\n" + textwrap.dedent("""\
        class A:
            if True:
                @tilefw.heuristics({"BLOCK": lambda args: 8})
                @tilefw.jit
                def kernel(x_ptr, n, BLOCK: tl.constexpr):
                    é = 1
                    tl.store(x_ptr, é + missing)
        """))
    spec = importlib.util.spec_from_file_location("mine", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(KernelError) as caught:
        build_module(module.A.kernel.fn, SIGNATURE, {"BLOCK": 8})
    place = caught.value.place
    assert place is not None
    assert (place.file, place.line, place.column, place.end_column) == (str(path), 11, 33, 40)
    assert place.text == "            tl.store(x_ptr, é + missing)"
    assert place.function == "kernel"


def test_source_may_be_given_as_text() -> None:
    text = "\n\ndef kernel(x_ptr, n):\n    tl.store(x_ptr, nn)\n"
    names: dict[str, Any] = {"tl": tl}
    exec(text, names)
    kernel = tilefw.jit(source=text)(names["kernel"])
    with pytest.raises(CompileError) as caught:
        build_module(kernel, SIGNATURE, {})
    assert caught.value.place is not None
    assert (caught.value.place.file, caught.value.place.line) == ("<string>", 4)


def test_a_kernel_without_any_source_says_how_to_give_it() -> None:
    names: dict[str, Any] = {"tl": tl}
    exec("def kernel(x_ptr, n):\n    tl.store(x_ptr, n)\n", names)
    with pytest.raises(CompileError, match="cannot be found") as caught:
        build_module(tilefw.jit(names["kernel"]), SIGNATURE, {})
    assert caught.value.code == "TFW0101"
    assert "source=text" in (caught.value.help or "")


def test_a_lambda_is_no_kernel() -> None:
    with pytest.raises(CompileError) as caught:
        build_module(tilefw.jit(lambda x_ptr, n: tl.store(x_ptr, n)), SIGNATURE, {})
    assert caught.value.code == "TFW0101"


@pytest.mark.parametrize("value", [3, "kernel", len, type("C", (), {}), closure(3)])
def test_jit_takes_functions_only(value: Any) -> None:
    with pytest.raises(CompileError, match="takes a function"):
        tilefw.jit(value)


def test_a_file_changed_after_its_import_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "changing.py"
    path.write_text("import tilefw\n@tilefw.jit\ndef kernel(x_ptr, n):\n    pass\n")
    spec = importlib.util.spec_from_file_location("changing", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path.write_text("import tilefw\n@tilefw.jit\ndef kernel(x_ptr, m, k):\n    pass  # longer\n")
    with pytest.raises(CompileError, match="has changed since it was imported"):
        build_module(module.kernel, SIGNATURE, {})


def test_deep_nesting_is_an_error_of_the_kernel(refused: Callable[..., KernelError]) -> None:
    text = "@tilefw.jit\ndef kernel(x_ptr, n):\n    y = " + "+".join(["n"] * 900) + "\n"
    assert refused(text, SIGNATURE).code == "TFW0112"


def test_names_that_ir_cannot_spell_are_fine_for_locals_and_refused_for_kernels(
    module_of: Callable[..., Any], refused: Callable[..., KernelError]
) -> None:
    module_of("@tilefw.jit\ndef kernel(x_ptr, größe):\n    näme = größe + 1\n    for ï in range(näme):\n        näme += ï\n",
              {"x_ptr": "*fp32", "größe": "i32"})
    names: dict[str, Any] = {"tl": tl}
    text = "def kérnel(x_ptr, n):\n    pass\n"
    exec(text, names)
    with pytest.raises(CompileError, match="not ASCII"):
        build_module(tilefw.jit(source=text)(names["kérnel"]), SIGNATURE, {})
