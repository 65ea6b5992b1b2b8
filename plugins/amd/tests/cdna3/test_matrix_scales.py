"""Products with scales, two words of which one loads the scales: values against NumPy, text and bytes against LLVM, refusals."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from served import CHIPS

from cdna3.agreement import differences
from cdna3.format_matrices import WAVES, gather_sums, operands, product, spread, spread_sums, values
from cdna3.lanes import WAVE, lanes, meaning, registers, stacked
from cdna3.llvm import needs_llvm
from cdna3.random_inst import random_inst
from tilefw.api.errors import CodeError, UnsupportedError
from tilefw_amd.isa.encoding.decode import decode, decode_all
from tilefw_amd.isa.encoding.encode import encode
from tilefw_amd.isa.meaning.binding import Site, bind
from tilefw_amd.isa.meaning.formats import SCALED_SHAPES, FormatShape
from tilefw_amd.isa.row import Mode
from tilefw_amd.isa.set import instruction_set
from tilefw_amd.isa.text.parser import parse

CHIP = next(chip for chip in CHIPS if chip.generation >= 4)
ISA = instruction_set(CHIP)
ONE = 127  # the code of 2^0
GLUED = "000bacd3010502100008aed304210204"  # bits 8 to 10 of the first word mean nothing


def of(a: str, b: str, m: int) -> FormatShape:
    return next(shape for shape in SCALED_SHAPES if (shape.a, shape.b, shape.m) == (a, b, m))


def scale_words(codes: np.ndarray, byte: int, rng: np.random.Generator) -> np.ndarray:
    """Scales [waves, m, k/32] as words [1, waves, lanes]: block lane // m of row lane % m, the other bytes at random."""
    waves, m, _ = codes.shape
    words = rng.integers(0, 1 << 32, (waves, WAVE), np.uint64).astype(np.uint32) & ~np.uint32(0xFF << 8 * byte)
    for lane in range(WAVE):
        words[:, lane] |= codes[:, lane % m, lane // m].astype(np.uint32) << np.uint32(8 * byte)
    return words[None]


def multiply(
    shape: FormatShape, a: np.ndarray, b: np.ndarray, c: np.ndarray, scales: Sequence[np.ndarray],
    bytes_: tuple[int, int] = (0, 0), hardware: bool = False,
) -> np.ndarray:  # fmt: skip
    rng = np.random.default_rng(7)
    words = [*map(registers, (spread(shape.a, a), spread(shape.b, b), spread_sums(c)))]
    factors = [scale_words(codes, byte, rng) for codes, byte in zip(scales, bytes_, strict=True)]
    low, high = tuple(byte & 1 for byte in bytes_), tuple(byte >> 1 for byte in bytes_)
    result = meaning(shape.name, chip=CHIP, op_sel=low, op_sel_hi=high)(lanes(WAVES, hardware), *words, *factors)
    return gather_sums(stacked(result), shape.m)


def scaled(element: str, codes: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """The values of a row of A or of B transposed, each times the power of two of its 32."""
    return values(element, codes) * np.ldexp(1.0, np.repeat(scales.astype(np.int64), 32, axis=2) - ONE)


@pytest.mark.parametrize("shape", SCALED_SHAPES, ids=lambda shape: shape.name)
def test_every_pair_of_formats_multiplies_with_the_scales_of_its_blocks(shape: FormatShape) -> None:
    a, b, c = operands(shape)
    rng = np.random.default_rng(1)
    scales = tuple(rng.integers(ONE - 2, ONE + 3, (WAVES, shape.m, shape.k // 32), np.uint8) for _ in range(2))
    wanted = product(scaled(shape.a, a, scales[0]), scaled(shape.b, b, scales[1]), c)
    number = SCALED_SHAPES.index(shape)
    assert np.array_equal(multiply(shape, a, b, c, scales, (number % 4, number // 4 % 4)), wanted)


@pytest.mark.parametrize(("first", "second", "wanted"), [
    (0, 254, 1.0), (0, ONE, 2.0**-127), (254, ONE, 2.0**127), (254, 254, np.inf), (0, 0, 0.0), (255, ONE, np.nan),
])  # fmt: skip
def test_scales_reach_from_the_least_to_the_largest_and_255_is_not_a_number(first: int, second: int, wanted: float) -> None:
    shape = of("fp4", "fp8", 16)
    a, b = (np.zeros((WAVES, 16, 128), np.uint8) for _ in range(2))
    a[:, :, 40], b[:, :, 40] = 2, 0x38  # 1.0
    scales = (np.full((WAVES, 16, 4), first, np.uint8), np.full((WAVES, 16, 4), second, np.uint8))
    with np.errstate(all="ignore"):
        got = multiply(shape, a, b, np.zeros((WAVES, 16, 16), np.float32), scales)
        assert np.array_equal(got, np.full_like(got, wanted), equal_nan=True)


def test_hardware_numerics_are_refused_as_no_model_is_public() -> None:
    shape = of("fp8", "fp8", 16)
    scales = tuple(np.full((WAVES, 16, 4), ONE, np.uint8) for _ in range(2))
    with pytest.raises(UnsupportedError, match=shape.mnemonic):
        multiply(shape, *operands(shape), scales, hardware=True)


@needs_llvm
def test_text_and_bytes_are_those_of_llvm() -> None:
    forms = [form for form in ISA.forms if form.row.mnemonic.endswith(("_f8f6f4", "ld_scale_b32"))]
    assert len(forms) == 2 * len(SCALED_SHAPES) + 1
    drawn = [random_inst(form, random.Random(f"{form.row.name} {n}")) for form in forms for n in range(8)]
    assert differences(ISA, drawn) == []


def test_a_product_with_scales_is_sixteen_bytes_and_takes_the_half_before_it() -> None:
    inst = parse(ISA, "v_mfma_scale_f32_32x32x64_f8f6f4 v[0:15], v[4:11], v[16:23], v[0:15], v1, v2 op_sel:[1,0] op_sel_hi:[0,1]")
    code = encode(inst)
    assert (len(code), inst.size) == (16, 16)
    assert [(at, i.form.mnemonic) for at, i in decode_all(ISA, code + code[:8])] == [
        (0, "v_mfma_scale_f32_32x32x64_f8f6f4"), (16, "v_mfma_ld_scale_b32"),
    ]  # fmt: skip
    apart = bytearray(code)
    apart[9] &= ~0x08  # the product says by this bit that scales are before it
    assert [i.form.mnemonic for _, i in decode_all(ISA, bytes(apart))] == ["v_mfma_ld_scale_b32", "v_mfma_f32_32x32x64_f8f6f4"]
    with pytest.raises(CodeError, match="undefined encoding"):
        decode(ISA, code[8:])


def test_bits_of_the_first_half_that_mean_nothing_are_not_looked_at() -> None:
    assert decode(ISA, bytes.fromhex(GLUED)) == decode(ISA, encode(decode(ISA, bytes.fromhex(GLUED))))


def test_scales_without_a_product_are_refused_where_they_are_executed() -> None:
    inst = parse(ISA, "v_mfma_ld_scale_b32 v1, v2")
    with pytest.raises(ValueError, match="first half of v_mfma_scale"):
        meaning("v_mfma_ld_scale_b32", chip=CHIP)
    said: list[str] = []
    bound = bind(inst, Mode(), Site(0), "v_mfma_ld_scale_b32 v1, v2")  # which raises nothing: nobody executes it yet
    assert bound.meaning is not None
    bound.meaning(type("Lanes", (), {"trap": staticmethod(said.append)}))
    assert "no product with scales is behind it" in said[0]


@pytest.mark.parametrize(("modifiers", "message"), [
    ("op_sel:[2,0,0]", "op_sel + 2 op_sel_hi is the byte, 0 to 3"), ("op_sel_hi:[0,1,1]", "0 to 3, of the scales of A and of B"),
    ("op_sel_hi:[0,0,0] cbsz:5", "'cbsz:5' names no format of A"), ("neg_lo:[1,0]", "has no modifier 'neg_lo'"),
])  # fmt: skip
def test_selectors_out_of_range_are_refused_by_name(modifiers: str, message: str) -> None:
    with pytest.raises(CodeError) as caught:
        parse(ISA, f"v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[16:23], v[0:3], v30, v31 {modifiers}")
    assert message in str(caught.value)


@pytest.mark.parametrize("scale", ["s4", "a4", "1.0", "v[2:3]"])
def test_scales_are_vector_registers(scale: str) -> None:
    with pytest.raises(CodeError, match="operand scale_b: expected a VGPR"):
        parse(ISA, f"v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[16:23], v[0:3], v30, {scale}")
