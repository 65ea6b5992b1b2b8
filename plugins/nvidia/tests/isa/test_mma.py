"""mma.sync, ldmatrix: the documented fragments against NumPy, and the hardware's rounding against MMA-Sim bit for bit."""

from __future__ import annotations

import importlib.util
import itertools

import ml_dtypes
import numpy as np
import pytest
from chips_here import OLDEST

from isa.machine import launch
from tilefw_nvidia.chips import Chip, named
from tilefw_nvidia.isa.meaning.fragments import SHAPES, MatrixShape

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8, "s4": 4, "u4": 4, "b1": 1}
NUMPY = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f64": np.float64, "f32": np.float32, "s32": np.int32,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
}
CASES = [
    pytest.param(
        shape, dict(zip(shape.types.choices, picked, strict=True)), id=f"{shape.name}{shape.types.modifiers}-{'-'.join(picked)}"
    )
    for shape in SHAPES
    for picked in itertools.product(*(words.split() for words in shape.types.choices.values()))
]


def spread(matrix: np.ndarray, bits: int, double: bool = False) -> np.ndarray:
    """The registers [register, lane] of an operand whose rows run along k, by the manual's description: blocks of 8 rows by four
    32-bit words (64-bit for f64), lane 4*row + word; first down the rows, then along k. `matrix` holds bit patterns."""
    rows, columns = matrix.shape
    each = (64 if double else 32) // bits
    words = np.zeros((rows, columns // each), np.uint64)
    for place in range(each):
        words |= matrix[:, place::each].astype(np.uint64) << np.uint64(place * bits)
    blocks = words.reshape(rows // 8, 8, -1, 4).transpose(2, 0, 1, 3)
    return blocks.reshape(-1, 32).astype(np.uint64 if double else np.uint32)


def spread_accumulator(matrix: np.ndarray, bits: int) -> np.ndarray:
    """C and D: lane 4*row + column//2; two columns to a lane, packed (16 bits) or in two registers; then 8 rows further down."""
    pairs = matrix.reshape(-1, 8, 4, 2)
    if bits == 16:
        packed = pairs[..., 0].astype(np.uint32) | pairs[..., 1].astype(np.uint32) << 16
        return packed.reshape(-1, 32)
    return pairs.transpose(0, 3, 1, 2).reshape(-1, 32)


def gather_accumulator(registers: np.ndarray, bits: int) -> np.ndarray:
    """The inverse of `spread_accumulator`."""
    if bits == 16:
        blocks = registers.reshape(-1, 8, 4)
        return np.stack([blocks & 0xFFFF, blocks >> 16], -1).reshape(-1, 8).astype(np.uint16)
    return registers.reshape(-1, 2, 8, 4).transpose(0, 2, 3, 1).reshape(-1, 8)


def kernel(shape: MatrixShape, chosen: dict[str, str], satfinite: bool) -> str:
    """A warp that loads its registers one by one, multiplies, and stores them."""
    wide = shape.types.elements == "f64"
    size, kind = (8, "f64") if wide else (4, "b32")
    modifiers = shape.types.modifiers.replace("{.satfinite}", ".satfinite" if satfinite else "")
    for name, word in chosen.items():
        modifiers = modifiers.replace(f".{name}", f".{word}")
    lines = ["mov.u32 %t, %tid.x;"]
    names: dict[str, list[str]] = {}
    for index, (operand, count) in enumerate((("a", shape.a), ("b", shape.b), ("c", shape.c), ("d", shape.d))):
        names[operand] = [f"%{operand}{i}" for i in range(count)]
        lines += [f"ld.param.u64 %p{index}, [a{index}];", f"mad.wide.u32 %p{index}, %t, {size}, %p{index};"]
        if operand != "d":
            lines += [f"ld.global.{kind} {r}, [%p{index} + {32 * size * i}];" for i, r in enumerate(names[operand])]
    vectors = ", ".join("{" + ", ".join(names[operand]) + "}" for operand in "dabc")
    lines.append(f"mma.sync.aligned.{shape.name}.row.col{modifiers} {vectors};")
    lines += [f"st.global.{kind} [%p3 + {32 * size * i}], {r};" for i, r in enumerate(names["d"])]
    registers = f".reg .b32 %t; .reg .b64 %p<4>; .reg .{kind} %a<8>, %b<8>, %c<8>, %d<8>;"
    parameters = ", ".join(f".param .u64 a{i}" for i in range(4))
    body = "\n".join(lines)
    head = f".version 8.7\n.target sm_{max(80, shape.since)}\n.address_size 64\n"
    return f"{head}.visible .entry k({parameters})\n{{\n{registers}\n{body}\nret;\n}}\n"


def patterns(values: np.ndarray) -> np.ndarray:
    return values.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[values.dtype.itemsize])


def multiply(
    shape: MatrixShape, chosen: dict[str, str], a: np.ndarray, b: np.ndarray, c: np.ndarray, satfinite: bool = False, **options
) -> np.ndarray:
    """D, where a (m x k), b (k x 8) hold bit patterns, and c is of the accumulator's type."""
    bits, double = BITS[shape.types.elements], shape.types.elements == "f64"
    c_bits, d_type = c.dtype.itemsize * 8, NUMPY[result(shape)]
    d_bits = np.dtype(d_type).itemsize * 8
    registers = [spread(a, bits, double), spread(b.T, bits, double), spread_accumulator(patterns(c), c_bits)]
    width = np.uint64 if double else np.uint32
    arrays = [np.ascontiguousarray(r.astype(width)) for r in registers] + [np.zeros((shape.d, 32), width)]
    buffers, findings = launch(kernel(shape, chosen, satfinite), arrays, 1, 32, **options)
    assert findings == ()
    d = gather_accumulator(np.frombuffer(buffers[3], width).reshape(shape.d, 32), d_bits)
    return np.ascontiguousarray(d).astype({16: np.uint16, 32: np.uint32, 64: np.uint64}[d_bits]).view(d_type)


def result(shape: MatrixShape) -> str:
    return {"b32": "f16"}.get(shape.types.d_register, shape.types.d_register)


def decode(pattern: np.ndarray, kind: str) -> np.ndarray:
    """Bit patterns as exact numbers."""
    bits = BITS[kind]
    if kind in NUMPY:
        values = pattern.astype({8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[bits]).view(NUMPY[kind])
        return values.astype(np.float64)
    signed = kind[0] == "s"
    return (pattern.astype(np.int64) ^ (1 << (bits - 1))) - (1 << (bits - 1)) if signed else pattern.astype(np.int64)


def random_operand(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> np.ndarray:
    if kind in NUMPY:
        values = rng.standard_normal(shape).astype(NUMPY[kind])
        return patterns(values) & np.uint32(0xFFFFE000) if kind == "tf32" else patterns(values)
    return rng.integers(0, 1 << BITS[kind], shape).astype(np.uint32)


@pytest.mark.parametrize(("shape", "chosen"), CASES)
def test_every_shape_and_type_multiplies(shape: MatrixShape, chosen: dict[str, str]) -> None:
    """Integers and f64 of small integers are exact; floats lie within the error of summing k + 1 terms in the result's format."""
    rng = np.random.default_rng(7)
    kinds = [chosen.get(name, shape.types.elements) for name in ("atype", "btype")]
    a = random_operand(rng, kinds[0], (shape.m, shape.k))
    b = random_operand(rng, kinds[1], (shape.k, 8))
    x, y = decode(a, kinds[0]), decode(b, kinds[1])
    d_type = NUMPY[result(shape)]
    if d_type is np.int32:
        c = rng.integers(-1000, 1000, (shape.m, 8)).astype(np.int32)
        wanted = x @ y if chosen.get("op") != "xor" else (x[:, :, None] ^ y[None]).sum(1)
        assert np.array_equal(multiply(shape, chosen, a, b, c), wanted + c)
        return
    c = rng.standard_normal((shape.m, 8)).astype(NUMPY[{"b32": "f16"}.get(shape.types.c_register, shape.types.c_register)])
    got = multiply(shape, chosen, a, b, c).astype(np.float64)
    wanted = x @ y + c.astype(np.float64)
    bound = (np.abs(x) @ np.abs(y) + np.abs(c.astype(np.float64))) * float(np.finfo(d_type).eps) * (shape.k + 1)
    assert (np.abs(got - wanted) <= bound).all()


def test_satfinite_clamps() -> None:
    shape = next(s for s in SHAPES if s.types.elements == "s8" and s.k == 32)
    chosen = {"atype": "s8", "btype": "s8"}
    a, b = np.full((16, 32), 0x7F, np.uint32), np.full((32, 8), 0x7F, np.uint32)
    c = np.full((16, 8), 2**31 - 100, np.int32)
    total = 127 * 127 * 32 + 2**31 - 100
    assert (multiply(shape, chosen, a, b, c, satfinite=True) == 2**31 - 1).all()
    assert (multiply(shape, chosen, a, b, c) == total - 2**32).all()


# --- the hardware's own rounding ------------------------------------------------------------------------------------------

# MMA-Sim's name of a chip's matrix unit, and the products that are asked of it: those that no chip before it has.
UNITS = [("Ampere", OLDEST), ("Ada Lovelace", named("sm_89")), ("Hopper", named("sm_90a"))]
FLOATS = [
    pytest.param(unit, chip, shape, choice, id=f"{unit}-{shape.opcode(choice).removeprefix('mma.sync.aligned.')}")
    for unit, chip in UNITS
    for shape in SHAPES
    if shape.since <= chip.architecture.number
    if shape.types.elements in chip.sums and shape.types.elements in ("f16", "bf16", "tf32", "f64", "e4m3")
    for choice in shape.types.each()
]


@pytest.mark.skipif(importlib.util.find_spec("mmasim") is None, reason="mmasim is not installed: pip install torch==2.13.0 mmasim")
@pytest.mark.parametrize(("unit", "chip", "shape", "choice"), FLOATS)
@pytest.mark.parametrize("spread_of_exponents", [0, 4, 12])
def test_hardware_numerics_agree_with_mmasim_bit_for_bit(
    unit: str, chip: Chip, shape: MatrixShape, choice: dict[str, str], spread_of_exponents: int
) -> None:
    import torch
    from mmasim.nv_ptx import MMA

    rng = np.random.default_rng(shape.k + spread_of_exponents)
    model = MMA(unit, shape.opcode(choice).removeprefix("mma.sync.aligned.").replace(".row.col", ""))
    kinds = [choice.get(name, shape.types.elements) for name in ("atype", "btype")]
    c_type = NUMPY[{"b32": "f16"}.get(shape.types.c_register, shape.types.c_register)]

    def sample(size: tuple[int, int], numpy_type: type) -> np.ndarray:
        scale = 2.0 ** rng.integers(-spread_of_exponents, spread_of_exponents + 1, size)
        limit = 6 if np.dtype(numpy_type).itemsize <= 2 and numpy_type is not ml_dtypes.bfloat16 else 40
        return (rng.standard_normal(size) * np.clip(scale, 2.0**-limit, 2.0**limit)).astype(numpy_type)

    for _ in range(4):
        a, b = sample((shape.m, shape.k), NUMPY[kinds[0]]), sample((shape.k, 8), NUMPY[kinds[1]])
        c = sample((shape.m, 8), c_type)
        got = multiply(shape, choice, patterns(a), patterns(b), c, chip=chip, numerics="hw")
        tensors = [
            torch.from_numpy(patterns(np.ascontiguousarray(m)).view(_signed(m)).copy()).view(_torch(torch, m)) for m in (a, b, c)
        ]
        wanted = model(*tensors)
        expected = (
            wanted.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[wanted.element_size()]).numpy().view(patterns(got).dtype)
        )
        assert np.array_equal(patterns(got), expected)


def _signed(matrix: np.ndarray) -> type:
    return {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}[matrix.dtype.itemsize]


def _torch(torch, matrix: np.ndarray):
    return {
        "float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64,
        "float8_e4m3fn": torch.float8_e4m3fn, "float8_e5m2": torch.float8_e5m2,
    }[matrix.dtype.name]


# --- ldmatrix, movmatrix --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_ldmatrix_gives_each_matrix_as_a_fragment(count: int, transposed: bool) -> None:
    data = np.arange(8 * count * 8, dtype=np.uint16).reshape(count, 8, 8)
    registers = ", ".join(f"%r{i}" for i in range(count))
    stores = "\n".join(f"st.global.b32 [%d1 + {128 * i}], %r{i};" for i in range(count))
    text = f""".version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a0, .param .u64 a1)
{{
.reg .b32 %r<12>; .reg .b64 %d<4>; .reg .pred %p;
.shared .align 16 .b8 rows[512];
mov.u32 %r9, %tid.x;
ld.param.u64 %d0, [a0]; ld.param.u64 %d1, [a1];
mad.wide.u32 %d0, %r9, 16, %d0;
mad.wide.u32 %d1, %r9, 4, %d1;
mov.u32 %r10, rows;
mad.lo.u32 %r10, %r9, 16, %r10;
setp.lt.u32 %p, %r9, {8 * count};
@%p ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [%d0];
@%p st.shared.v4.b32 [%r10], {{%r0, %r1, %r2, %r3}};
bar.sync 0;
ldmatrix.sync.aligned.m8n8.x{count}{".trans" if transposed else ""}.shared.b16 {{{registers}}}, [%r10];
{stores}
ret;
}}
"""
    buffers, findings = launch(text, [data, np.zeros((count, 32), np.uint32)], 1, 32)
    assert findings == ()
    got = np.frombuffer(buffers[1], np.uint16).reshape(count, 8, 8)
    assert np.array_equal(got, data.transpose(0, 2, 1) if transposed else data)
