"""Element types: names, widths and questions, for every type of the one table."""

from __future__ import annotations

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.dtypes import DTYPES
from tilefw.api.errors import CompileError

log_2 = tl.standard._log2
TYPES = {name: tl.dtype(name) for name in DTYPES}


@pytest.mark.parametrize("name", DTYPES)
def test_every_type_of_the_table_is_a_name_of_the_language(name: str) -> None:
    found = getattr(tl, TYPES[name].codegen_name())
    assert found == TYPES[name] and hash(found) == hash(TYPES[name])
    assert str(found) == name
    assert eval(repr(found), {"tilefw": __import__("tilefw.language")}) == found


@pytest.mark.parametrize("name", DTYPES)
def test_widths_and_kinds_are_those_of_the_table(name: str) -> None:
    found, format = TYPES[name], DTYPES[name]
    assert found.primitive_bitwidth == format.bits
    assert found.itemsize * 8 == format.storage_bits
    assert found.is_floating() == format.is_float and found.is_int() == (not format.is_float)
    assert found.scalar is found and not found.is_ptr() and not found.is_block() and not found.is_const()
    if found.is_int():
        assert found.is_int_signed() == format.is_signed != found.is_int_unsigned()
        assert found.get_int_max_value() - found.get_int_min_value() == 2**format.bits - 1
    else:
        assert (found.fp_mantissa_width, found.exponent_bias) == (format.mantissa_bits, format.bias)


def test_questions_answer_for_exactly_one_type() -> None:
    for name in ("fp8e4nv", "fp8e4b8", "fp8e4b15", "fp8e5", "fp8e5b16", "fp16", "bf16", "fp32", "fp64", "int1", "int8", "int16",
                 "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        assert [n for n, type in TYPES.items() if getattr(type, f"is_{name}")()] == [name]


def test_kinds_order_bool_int_float() -> None:
    assert tl.int1.kind().value < tl.uint8.kind().value == tl.int64.kind().value < tl.float16.kind().value


def test_pointers_compare_by_what_they_point_to() -> None:
    assert tl.pointer_type(tl.float32) == tl.pointer_type(tl.constexpr(tl.float32)) != tl.pointer_type(tl.float16)
    assert tl.pointer_type(tl.float32, const=True) != tl.pointer_type(tl.float32)
    assert tl.pointer_type(tl.int8).element_ty == tl.int8
    assert str(tl.pi32_t) == "pointer<int32>"
    with pytest.raises(CompileError):
        tl.pointer_type(3)  # type: ignore[arg-type]


def test_tiles_know_shape_and_bytes() -> None:
    tile = tl.block_type(tl.float16, [4, 8])
    assert tile.is_block() and tile.scalar == tl.float16 and tile.shape == (4, 8) and tile.numel == 32 and tile.nbytes == 64
    assert tile.with_element_ty(tl.int1) == tl.block_type(tl.int1, (4, 8)) != tile


def test_unknown_types_are_refused() -> None:
    with pytest.raises(CompileError, match="no element type named 'fp33'"):
        tl.dtype("fp33")


def test_types_agree_with_triton() -> None:
    language = pytest.importorskip("triton.language", reason="Triton is not installed")
    for name in language.dtype.SINT_TYPES + language.dtype.UINT_TYPES + language.dtype.FP_TYPES:
        theirs, found = language.dtype(name), TYPES[name]
        assert theirs.primitive_bitwidth == found.primitive_bitwidth
        for question in ("is_floating", "is_standard_floating", "is_int_signed", "is_int_unsigned", "is_int", "is_bool", "is_fp8"):
            assert getattr(theirs, question)() == getattr(found, question)(), (name, question)
        if found.is_floating():
            assert (theirs.fp_mantissa_width, theirs.exponent_bias) == (found.fp_mantissa_width, found.exponent_bias)


def test_constexpr_computes_on_the_host() -> None:
    three = tl.constexpr(3)
    assert (three + 4).value == 7 and (10 - three).value == 7 and (three**2).value == 9 and (2**three).value == 8
    assert (7 // three).value == 2 and (three / 2).value == 1.5 and (three << 1).value == 6 and (-three).value == -3
    assert (three == 3).value is True and (three < 2).value is False and bool(three) and range(5)[three] == 3
    assert tl.constexpr(three).value == 3 and repr(three) == "constexpr[3]"


@tilefw.jit
def bits_of(x_ptr, out_ptr, N: tl.constexpr):
    kind = tl.core.get_int_dtype(bitwidth=tl.core._unwrap_if_constexpr(N), signed=x_ptr.dtype.element_ty.is_floating())
    tl.static_assert(kind == tl.int32 and tl.core.get_int_dtype(8, False) == tl.uint8 and tl.core.get_int_dtype(1, True) == tl.int1)
    places: tl.constexpr = log_2(N)
    at = tl.arange(0, 2**places)
    tl.store(out_ptr + at, tl.load(x_ptr + at).to(kind, bitcast=True) >> places)


def test_functions_on_types_and_sizes_run_while_a_kernel_is_compiled() -> None:
    x, out = np.ones(32, np.float32), np.zeros(32, np.int32)
    bits_of[(1,)](x, out, N=32)
    np.testing.assert_array_equal(out, 0x3F800000 >> 5)
    with pytest.raises(ValueError, match="no signed integer type of 24 bits"):
        tl.core.get_int_dtype(24, True)
    assert [tl.standard._log2(n) for n in (0, 1, 5, 8, 1 << 40)] == [0, 0, 2, 3, 40]
