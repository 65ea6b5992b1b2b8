"""`tl.inline_asm_elementwise` before any target: constraints and registers are counted, mistakes are told at the call's line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.errors import CompileError, KernelError, UnsupportedError
from tilefw.api.ir import parse
from tilefw.frontend import build_module
from tilefw.passes.manager import PassManager
from tilefw.passes.pipeline import default_passes
from tilefw.runtime.plugins.loader import find_target
from tilefw.tile.dialect.asm_constraints import AsmConstraints, parse_constraints, register_count


@tilefw.jit
def kernel(x_ptr, TEXT: tl.constexpr, CONSTRAINTS: tl.constexpr, DTYPE: tl.constexpr, PACK: tl.constexpr):
    at = tl.arange(0, 64)
    x = tl.load(x_ptr + at)
    y = tl.inline_asm_elementwise(TEXT, CONSTRAINTS, [x], DTYPE, True, PACK)
    tl.store(x_ptr + at, y)


def built(constraints: Any = "=r,r", dtype: Any = tl.int32, pack: Any = 1, text: Any = 'say "$0"; {$1};') -> Any:
    known = {"TEXT": text, "CONSTRAINTS": constraints, "DTYPE": dtype, "PACK": pack}
    made: Any = kernel
    return build_module(made, {"x_ptr": "*i32:16"}, known)


def test_constraints_are_read_as_llvm_writes_them() -> None:
    assert parse_constraints("=r, =&l,r,0,~{memory},~{cc}") == AsmConstraints(("r", "l"), ("r", 0))


@pytest.mark.parametrize(("bits", "pack", "count"), [(8, 1, 1), (8, 2, 1), (8, 4, 1), (8, 8, 2), (16, 4, 2), (64, 2, 2)])
def test_small_elements_stand_together(bits: int, pack: int, count: int) -> None:
    assert register_count(bits, pack) == count


def test_text_of_tile_ir_reads_back() -> None:
    text = str(built())
    assert "tile.inline_asm pure " in text and '"=r,r" pack 1(' in text
    assert str(parse(text)) == text


@tilefw.jit
def twice(x_ptr, PURE: tl.constexpr):
    at = tl.arange(0, 64)
    x = tl.load(x_ptr + at)
    y = tl.inline_asm_elementwise("say $0, $1;", "=r,r", [x], tl.int32, PURE, 1)
    z = tl.inline_asm_elementwise("say $0, $1;", "=r,r", [x], tl.int32, PURE, 1)
    tl.inline_asm_elementwise("ask $0, $1;", "=r,r", [x], tl.int32, PURE, 1)
    tl.store(x_ptr + at, y + z)


@pytest.mark.parametrize(("pure", "count"), [(True, 1), (False, 3)])
def test_pure_text_is_run_once_and_only_for_a_reader(pure: bool, count: int) -> None:
    made: Any = twice
    module = build_module(made, {"x_ptr": "*i32:16"}, {"PURE": pure})
    PassManager(default_passes()).run(module)
    assert str(module).count("tile.inline_asm") == count


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"constraints": "r,r"}, "no result"),
        ({"constraints": "r,=r"}, "stands behind an operand"),
        ({"constraints": "=r,1"}, "'1' names no result"),
        ({"constraints": "=r,*m"}, r"'\*m' is no register"),
        ({"constraints": "=r,r,r"}, "take 1 and 1 registers with pack=1, but the constraints '=r,r,r' name 1 and 2"),
        ({"pack": 2}, "take 2 and 2 registers with pack=2"),
        ({"pack": 3}, "pack is a power of two"),
        ({"dtype": tl.int1}, "an int1 stands in no register"),
        ({"dtype": 5}, "dtype of tl.inline_asm_elementwise is an element type"),
        ({"text": 5}, "asm of tl.inline_asm_elementwise is a string"),
    ],
)
def test_mistakes_are_told(given: dict[str, Any], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        built(**given)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("reference", "the reference reads no machine's assembly language"),
        ("spatial-sdm1", "does not serve inline_asm"),
    ],
)
def test_targets_without_it_say_so(target: str, message: str) -> None:
    try:
        find_target(target)
    except KernelError:
        pytest.skip(f"{target} is not installed")
    with pytest.raises(UnsupportedError, match=message) as caught:
        kernel[(1,)](np.zeros(64, np.int32), "mov.b32 $0, $1;", "=r,r", tl.int32, 1, target=target)
    assert caught.value.place is not None
