"""Products whose formats cbsz and blgp name: every pair against NumPy in the published layout, text, bytes, passes."""

from __future__ import annotations

import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from served import CHIPS

from cdna3.agreement import differences
from cdna3.lanes import WAVE, lanes, meaning, registers, stacked
from cdna3.llvm import needs_llvm
from cdna3.random_inst import random_inst
from tilefw.api.errors import CodeError, UnsupportedError
from tilefw_amd.isa.encoding.decode import decode
from tilefw_amd.isa.meaning.formats import SHAPES, FormatShape
from tilefw_amd.isa.row import Mode
from tilefw_amd.isa.set import instruction_set
from tilefw_amd.isa.text.parser import parse

CHIP = next(chip for chip in CHIPS if chip.generation >= 4)
ISA = instruction_set(CHIP)
# Bits of an element and NumPy's type of its codes.
ELEMENTS: dict[str, tuple[int, Any]] = {
    "fp8": (8, ml_dtypes.float8_e4m3fn), "bf8": (8, ml_dtypes.float8_e5m2), "fp6": (6, ml_dtypes.float6_e2m3fn),
    "bf6": (6, ml_dtypes.float6_e3m2fn), "fp4": (4, ml_dtypes.float4_e2m1fn),
}  # fmt: skip
WAVES = 2


def by_name(shape: FormatShape) -> str:
    return shape.name


def values(element: str, codes: np.ndarray) -> np.ndarray:
    return codes.view(ELEMENTS[element][1]).astype(np.float64)


def drawn(element: str, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Codes of the format whose sums of products are exact in f64."""
    codes = np.arange(1 << ELEMENTS[element][0], dtype=np.uint8)
    size_of = np.abs(values(element, codes))
    return rng.choice(codes[(size_of == 0) | ((size_of >= 2.0**-8) & (size_of <= 2.0**8))], size)


def k_of(element: str, lane: int, place: int, m: int, k: int) -> int:
    """Which k the element at `place` of a lane is."""
    group = lane // m
    if ELEMENTS[element][0] == 8:
        return 16 * group + place % 16 + place // 16 * (k // 2)
    return 32 * group + place


def spread(element: str, codes: np.ndarray) -> np.ndarray:
    """Rows [waves, m, k] of codes as words [waves, registers, lanes], element behind element."""
    waves, m, k = codes.shape
    bits = ELEMENTS[element][0]
    held = np.zeros((waves, WAVE, 32), np.uint8)
    for lane in range(WAVE):
        for place in range(32):
            held[:, lane, place] = codes[:, lane % m, k_of(element, lane, place, m, k)]
    stream = (held[..., None] >> np.arange(bits, dtype=np.uint8) & 1).reshape(waves, WAVE, 32 * bits)
    return np.packbits(stream, axis=2, bitorder="little").view(np.uint32).transpose(0, 2, 1)


def spread_sums(c: np.ndarray) -> np.ndarray:
    """C [waves, m, m]: column lane % m, row 4 * (lane // m) + register % 4, and further rows in further registers."""
    waves, m, _ = c.shape
    out = np.zeros((waves, m * m // WAVE, WAVE), np.float32)
    for lane in range(WAVE):
        for register in range(out.shape[1]):
            out[:, register, lane] = c[:, _row(lane, register, m), lane % m]
    return out.view(np.uint32)


def gather_sums(words: np.ndarray, m: int) -> np.ndarray:
    out = np.zeros((len(words), m, m), np.float32)
    for lane in range(WAVE):
        for register in range(words.shape[1]):
            out[:, _row(lane, register, m), lane % m] = np.ascontiguousarray(words).view(np.float32)[:, register, lane]
    return out


def _row(lane: int, register: int, m: int) -> int:
    return register // 4 * (4 * WAVE // m) + lane // m * 4 + register % 4


def operands(shape: FormatShape, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes of A [waves, m, k] and of B transposed, values of C."""
    rng = np.random.default_rng(seed)
    a, b = (drawn(element, (WAVES, shape.m, shape.k), rng) for element in (shape.a, shape.b))
    return a, b, rng.integers(-64, 65, (WAVES, shape.m, shape.m)).astype(np.float32)


def multiply(shape: FormatShape, a: np.ndarray, b: np.ndarray, c: np.ndarray, hardware: bool = False) -> np.ndarray:
    words = map(registers, (spread(shape.a, a), spread(shape.b, b), spread_sums(c)))
    result = meaning(shape.name, chip=CHIP)(lanes(WAVES, hardware), *words)
    return gather_sums(stacked(result), shape.m)


def product(shape: FormatShape, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return (values(shape.a, a) @ values(shape.b, b).swapaxes(1, 2) + c).astype(np.float32)


@pytest.mark.parametrize("shape", SHAPES, ids=by_name)
def test_every_pair_of_formats_multiplies_in_the_published_layout(shape: FormatShape) -> None:
    a, b, c = operands(shape)
    assert np.array_equal(multiply(shape, a, b, c), product(shape, a, b, c))


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
            assert np.allclose(multiply(shape, a, b, c, hardware=True), product(shape, a, b, c), rtol=1e-4, atol=1e-2)
            continue
        with pytest.raises(UnsupportedError, match=shape.mnemonic):
            multiply(shape, a, b, c, hardware=True)


def test_a_mode_that_the_sums_model_leaves_out_is_refused() -> None:
    with pytest.raises(ValueError, match="FP16_OVFL"):
        meaning(SHAPES[0].name, Mode(fp16_overflow=True), CHIP)


def test_passes_double_when_an_operand_has_eight_bits() -> None:
    for shape in SHAPES:
        eight = "fp8" in (shape.a, shape.b) or "bf8" in (shape.a, shape.b)
        assert ISA.rows[shape.name].passes == {16: 4, 32: 8}[shape.m] * (2 if eight else 1)


@needs_llvm
def test_text_and_bytes_are_those_of_llvm() -> None:
    forms = [form for form in ISA.forms if form.row.mnemonic.endswith("_f8f6f4")]
    assert len(forms) >= len(SHAPES)
    drawn = [random_inst(form, random.Random(f"{form.row.name} {n}")) for form in forms for n in range(8)]
    assert differences(ISA, drawn) == []


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
