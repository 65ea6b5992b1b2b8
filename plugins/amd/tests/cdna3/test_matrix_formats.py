"""Products whose formats cbsz and blgp name: every pair against NumPy in the published layout, text, bytes, passes."""

from __future__ import annotations

import numpy as np
import pytest
from served import CHIPS

from cdna3.format_matrices import ELEMENTS, WAVES, gather_sums, operands, product, spread, spread_sums, values
from cdna3.lanes import lanes, meaning, registers, stacked
from tilefw.api.errors import CodeError, UnsupportedError
from tilefw_amd.isa.encoding.decode import decode
from tilefw_amd.isa.meaning.formats import SHAPES, FormatShape
from tilefw_amd.isa.row import Mode
from tilefw_amd.isa.set import instruction_set
from tilefw_amd.isa.text.parser import parse

CHIP = next(chip for chip in CHIPS if chip.generation >= 4)
ISA = instruction_set(CHIP)
LIMITED = Mode(fp16_overflow=True)


def by_name(shape: FormatShape) -> str:
    return shape.name


def multiply(
    shape: FormatShape, a: np.ndarray, b: np.ndarray, c: np.ndarray, hardware: bool = False, mode: Mode | None = None
) -> np.ndarray:
    words = map(registers, (spread(shape.a, a), spread(shape.b, b), spread_sums(c)))
    result = meaning(shape.name, mode, CHIP)(lanes(WAVES, hardware), *words)
    return gather_sums(stacked(result), shape.m)


@pytest.mark.parametrize("shape", SHAPES, ids=by_name)
def test_every_pair_of_formats_multiplies_in_the_published_layout(shape: FormatShape) -> None:
    a, b, c = operands(shape)
    assert np.array_equal(multiply(shape, a, b, c), product(values(shape.a, a), values(shape.b, b), c))


@pytest.mark.parametrize("element", ELEMENTS)
def test_every_code_of_a_format_is_read(element: str) -> None:
    shape = next(s for s in SHAPES if (s.a, s.b, s.m) == (element, "fp8", 16))
    codes = np.arange(1 << ELEMENTS[element][0], dtype=np.uint8)
    for first in range(0, len(codes), 16):
        a = np.zeros((WAVES, 16, shape.k), np.uint8)
        a[:, :, 5] = codes[first : first + 16]
        b = np.zeros((WAVES, 16, shape.k), np.uint8)
        b[:, :, 5] = 0x38  # 1.0
        got = multiply(shape, a, b, np.zeros((WAVES, 16, 16), np.float32))
        assert np.array_equal(got[0, :, 0].astype(np.float64), values(element, codes[first : first + 16]), equal_nan=True)


def test_sums_are_rounded_once() -> None:
    shape = next(s for s in SHAPES if (s.a, s.b, s.m) == ("bf8", "bf8", 16))
    a, b = (np.zeros((WAVES, 16, shape.k), np.uint8) for _ in range(2))
    a[:, :, :3], b[:, :, :3] = (0x74, 0x28, 0xF4), (0x74, 0x28, 0x74)  # 2^14 * 2^14 + 2^-5 * 2^-5 - 2^14 * 2^14
    assert (multiply(shape, a, b, np.ones((WAVES, 16, 16), np.float32)) == 1 + 2.0**-10).all()


def test_hardware_numerics_are_refused_where_no_model_is_public() -> None:
    for shape in SHAPES:
        a, b, c = operands(shape)
        if {shape.a, shape.b} <= {"fp8", "bf8"}:
            wanted = product(values(shape.a, a), values(shape.b, b), c)
            assert np.allclose(multiply(shape, a, b, c, hardware=True), wanted, rtol=1e-4, atol=1e-2)
            continue
        with pytest.raises(UnsupportedError, match=shape.mnemonic):
            multiply(shape, a, b, c, hardware=True)


def test_where_the_mode_limits_sums_finite_ones_are_as_ever() -> None:
    shape = next(s for s in SHAPES if (s.a, s.b, s.m) == ("fp8", "bf8", 16))
    a, b, c = operands(shape)
    assert np.array_equal(multiply(shape, a, b, c, mode=LIMITED), multiply(shape, a, b, c))


def test_passes_double_when_an_operand_has_eight_bits() -> None:
    for shape in SHAPES:
        eight = "fp8" in (shape.a, shape.b) or "bf8" in (shape.a, shape.b)
        assert ISA.rows[shape.name].passes == {16: 4, 32: 8}[shape.m] * (2 if eight else 1)



def text_of(a: str, b: str, modifiers: str) -> str:
    return f"v_mfma_f32_16x16x128_f8f6f4 v[0:3], {a}, {b}, v[0:3] {modifiers}"


@pytest.mark.parametrize(("modifiers", "message"), [
    ("cbsz:5", "'cbsz:5' names no format of A"), ("cbsz:7 blgp:1", "'cbsz:7' names no format of A"), ("blgp:6", "of B"),
])  # fmt: skip
def test_reserved_codes_of_formats_are_refused_by_name(modifiers: str, message: str) -> None:
    with pytest.raises(CodeError, match=message) as caught:
        parse(ISA, text_of("v[4:11]", "v[16:23]", modifiers))
    assert caught.value.code == "TFW0722" and "4 fp4" in str(caught.value)


def test_reserved_codes_of_formats_are_no_encoding() -> None:
    for byte, value in ((1, 5), (7, 0xC4)):
        code = bytearray.fromhex("0000add304210204")
        code[byte] = value
        with pytest.raises(CodeError, match="undefined encoding"):
            decode(ISA, bytes(code))


@pytest.mark.parametrize(("a", "b", "modifiers", "wanted"), [
    ("v[4:11]", "v[16:23]", "cbsz:4", "operand a: expected a VGPR quad"),
    ("v[4:7]", "v[16:23]", "", "operand a: expected a VGPR tuple of 8"),
    ("v[4:11]", "v[16:23]", "blgp:2", "operand b: expected a VGPR tuple of 6"),
])  # fmt: skip
def test_registers_are_as_many_as_the_format_takes(a: str, b: str, modifiers: str, wanted: str) -> None:
    with pytest.raises(CodeError, match=wanted):
        parse(ISA, text_of(a, b, modifiers))


def test_a_format_may_be_written_though_it_is_the_first() -> None:
    assert parse(ISA, text_of("v[4:11]", "v[16:23]", "cbsz:0 blgp:0")) == parse(ISA, text_of("v[4:11]", "v[16:23]", ""))
