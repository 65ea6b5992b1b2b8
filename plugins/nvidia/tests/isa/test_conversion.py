"""cvt against ml_dtypes and exact arithmetic: every pattern of the small formats, chosen and random ones of the large."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from chips_here import EVERYTHING

from isa.machine import run

HALVES = np.arange(1 << 16, dtype=np.uint16)
NUMPY = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
BITS = {"f16": np.uint16, "bf16": np.uint16, "f32": np.uint32, "f64": np.uint64}


# Casts of NaN patterns are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def same(got: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Equal bits, or both NaN: a NaN's payload is not specified."""
    kind = BITS[{2: "f16", 4: "f32", 8: "f64"}[wanted.dtype.itemsize]]
    return (got.view(kind) == wanted.view(kind)) | (np.isnan(got.astype(np.float64)) & np.isnan(wanted.astype(np.float64)))


def floats(count: int = 20_000) -> np.ndarray:
    """f32 patterns: random ones, and all those next to a tie, an overflow or a subnormal bound of the 16-bit formats."""
    rng = np.random.default_rng(3)
    random = rng.integers(0, 1 << 32, count, dtype=np.uint64).astype(np.uint32)
    near = np.concatenate([HALVES.view(kind).astype(np.float32).view(np.uint32)[::7] for kind in (np.float16, ml_dtypes.bfloat16)])
    ties = np.concatenate([near + np.uint32(step) for step in (0, 0xFFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001, 0xFFFFFFFF)])
    return np.concatenate([random, ties]).view(np.float32)


@pytest.mark.parametrize("source", ["f16", "bf16"])
def test_widening_is_exact_for_every_pattern(source: str) -> None:
    (got,) = run(f"cvt.f32.{source} %r10, %h0;", [HALVES], [np.float32])
    assert same(got, HALVES.view(NUMPY[source]).astype(np.float32)).all()


@pytest.mark.parametrize(("source", "target"), [("f16", "bf16"), ("bf16", "f16")])
def test_between_halves_no_mode_is_to_nearest(source: str, target: str) -> None:
    text = f"cvt.{target}.{source} %h10, %h0; cvt.rn.{target}.{source} %h11, %h0;"
    plain, rounded = run(text, [HALVES], [np.uint16] * 2, "sm_90")
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = HALVES.view(NUMPY[source]).astype(np.float32).astype(NUMPY[target])
    assert np.array_equal(plain, rounded) and same(plain.view(NUMPY[target]), wanted).all()


@pytest.mark.parametrize(("mode", "meaning"), [("rni", np.rint), ("rzi", np.trunc), ("rmi", np.floor), ("rpi", np.ceil)])
def test_bf16_is_rounded_to_integral_values(mode: str, meaning: np.ufunc) -> None:
    (got,) = run(f"cvt.{mode}.bf16.bf16 %h10, %h0;", [HALVES], [np.uint16], "sm_90")
    wanted = meaning(HALVES.view(NUMPY["bf16"]).astype(np.float32)).astype(NUMPY["bf16"])
    assert same(got.view(NUMPY["bf16"]), wanted).all()


@pytest.mark.parametrize("target", ["f16", "bf16"])
def test_narrowing_rounds_to_nearest_even(target: str) -> None:
    values = floats()
    (got,) = run(f"cvt.rn.{target}.f32 %h10, %r0;", [values], [np.uint16])
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = values.astype(NUMPY[target])
    assert same(got.view(NUMPY[target]), wanted).all()


@pytest.mark.parametrize("rounding", ["rz", "rm", "rp"])
def test_directed_roundings_give_the_neighbour_on_their_side(rounding: str) -> None:
    """The result is on the right side of the exact value, and the next f16 beyond it is not."""
    values = floats()
    values = values[np.isfinite(values) & (np.abs(values) < 65504)]
    (got,) = run(f"cvt.{rounding}.f16.f32 %h10, %r0;", [values], [np.uint16])
    got, exact = got.view(np.float16), values.astype(np.float64)
    down = {"rz": exact > 0, "rm": np.ones(exact.shape, bool), "rp": np.zeros(exact.shape, bool)}[rounding]
    beyond = np.where(down, np.nextafter(got, np.float16(np.inf)), np.nextafter(got, np.float16(-np.inf))).astype(np.float64)
    got = got.astype(np.float64)
    right_side = np.where(down, got <= exact, got >= exact)
    nearest = np.where(down, beyond > exact, beyond < exact)
    assert (right_side & (nearest | (got == exact))).all()


def test_a_pair_puts_its_first_source_high() -> None:
    a, b = floats(500), floats(500)[::-1].copy()
    (pair,) = run("cvt.rn.f16x2.f32 %r10, %r0, %r1;", [a, b], [np.uint32])
    (high,) = run("cvt.rn.f16.f32 %h10, %r0;", [a], [np.uint16])
    (low,) = run("cvt.rn.f16.f32 %h10, %r0;", [b], [np.uint16])
    assert np.array_equal(pair >> 16, high)
    assert np.array_equal(pair & 0xFFFF, low)


def test_tf32_is_nearest_with_ties_away() -> None:
    values = floats()
    values = values[np.isfinite(values) & (np.abs(values) < 1e38) & (np.abs(values) > 1e-37)]
    (got,) = run("cvt.rna.tf32.f32 %r10, %r0;", [values], [np.uint32])
    wanted = (values.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    assert np.array_equal(got, wanted)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(("name", "kind"), [("e4m3x2", ml_dtypes.float8_e4m3fn), ("e5m2x2", ml_dtypes.float8_e5m2)])
def test_bytes_saturate_and_come_back(name: str, kind: type, relu: bool) -> None:
    """Every f16 goes to a byte, clamped to the largest finite value; every byte comes back exactly."""
    pairs = HALVES.astype(np.uint32) | (HALVES[::-1].astype(np.uint32) << 16)
    (got,) = run(f"cvt.rn.satfinite{'.relu' if relu else ''}.{name}.f16x2 %h10, %r0;", [pairs], [np.uint16], "sm_89")
    largest = float(ml_dtypes.finfo(kind).max)
    halves = HALVES.view(np.float16).astype(np.float32)
    clipped = np.clip(halves, 0.0 if relu else -largest, largest).astype(kind)
    clipped = np.where(np.isnan(halves), np.nan, clipped.astype(np.float32))
    low = (got & 0xFF).astype(np.uint8).view(kind).astype(np.float32)
    assert ((low == clipped) | (np.isnan(low) & np.isnan(clipped))).all()
    every = np.arange(256, dtype=np.uint16)
    (back,) = run(f"cvt.rn.f16x2.{name} %r10, %h0;", [every | (every << 8)], [np.uint32], "sm_89")
    wanted = every.astype(np.uint8).view(kind).astype(np.float16)
    assert same((back & 0xFFFF).astype(np.uint16).view(np.float16), wanted).all()
    assert np.array_equal(back >> 16, back & 0xFFFF)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize(("mode", "integral"), [("rni", np.rint), ("rzi", np.trunc), ("rmi", np.floor), ("rpi", np.ceil)])
def test_float_to_integer_clamps_and_takes_nan_to_zero(bits: int, signed: bool, mode: str, integral) -> None:
    extra = np.array(
        [
            0.5,
            1.5,
            2.5,
            -0.5,
            -1.5,
            127.5,
            128,
            -128.5,
            255.5,
            2.0**31,
            2.0**32,
            2.0**63,
            2.0**64,
            -(2.0**63),
            np.inf,
            -np.inf,
            np.nan,
            -0.0,
        ],
        np.float32,
    )
    values = np.concatenate([floats(3000)[:3000], extra])
    letter, width = ("s" if signed else "u"), max(16, bits)
    register = {16: "%h10", 32: "%r10", 64: "%d10"}[width]
    (got,) = run(f"cvt.{mode}.{letter}{bits}.f32 {register}, %r0;", [values], [f"u{width // 8}"])
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    with np.errstate(invalid="ignore"):
        whole = integral(values.astype(np.float64))
    wanted = [
        0 if math.isnan(w) else min(max(int(w), low), high) if math.isfinite(w) else (high if w > 0 else low)
        for w in whole.tolist()
    ]
    assert [int(g) for g in got] == [w % (1 << width) for w in wanted]


@pytest.mark.parametrize("source", ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("target", ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("saturate", [False, True])
def test_integer_to_integer(source: str, target: str, saturate: bool) -> None:
    from tilefw_nvidia import isa

    opcode = f"cvt{'.sat' if saturate else ''}.{target}.{source}"
    a_bits, d_bits = int(source[1:]), int(target[1:])
    rng = np.random.default_rng(5)
    width_a, width_d = max(16, a_bits), max(16, d_bits)
    patterns = rng.integers(0, 1 << 64, 300, dtype=np.uint64) >> rng.integers(0, 64, 300, dtype=np.uint64)
    patterns = np.concatenate(
        [patterns, np.array([0, 1, 127, 128, 255, 256, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)]
    )
    patterns = patterns.astype(f"u{width_a // 8}")
    low_a = [int(p) % (1 << a_bits) for p in patterns]
    values = [v - (1 << a_bits) if source[0] == "s" and v >> (a_bits - 1) else v for v in low_a]
    low, high = (-(1 << (d_bits - 1)), (1 << (d_bits - 1)) - 1) if target[0] == "s" else (0, (1 << d_bits) - 1)
    fits = low <= (-(1 << (a_bits - 1)) if source[0] == "s" else 0) and ((1 << (a_bits - (source[0] == "s"))) - 1) <= high
    if saturate and fits:
        assert not isa.instruction_set(EVERYTHING).opcode(opcode).exists
        return
    registers = {16: "%h{}", 32: "%r{}", 64: "%d{}"}
    code = f"{opcode} {registers[width_d].format(10)}, {registers[width_a].format(0)};"
    (got,) = run(code, [patterns], [f"u{width_d // 8}"])
    cut = [min(max(v, low), high) if saturate else v for v in values]
    kept = [v % (1 << d_bits) for v in cut]
    extended = [v - (1 << d_bits) if target[0] == "s" and v >> (d_bits - 1) else v for v in kept]
    assert [int(g) for g in got] == [v % (1 << width_d) for v in extended]


@pytest.mark.parametrize("source", ["u32", "s32", "u64", "s64"])
def test_integer_to_float_rounds_once(source: str) -> None:
    bits = int(source[1:])
    rng = np.random.default_rng(6)
    patterns = rng.integers(0, 1 << 64, 2000, dtype=np.uint64) >> rng.integers(0, 64, 2000, dtype=np.uint64)
    integers = patterns.astype(f"u{bits // 8}").view(f"{'i' if source[0] == 's' else 'u'}{bits // 8}")
    (got,) = run(f"cvt.rn.f32.{source} %r10, {'%r0' if bits == 32 else '%d0'};", [integers], [np.float32])
    assert np.array_equal(got, integers.astype(np.float32))
