"""Meanings of the rows against Python's exact integers and NumPy, on random and special values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from isa import hopper
from isa.machine import run

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
SPECIAL = [
    0,
    1,
    2,
    31,
    32,
    33,
    63,
    64,
    127,
    128,
    255,
    256,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0x80000001,
    M32 - 1,
    M32,
]


def s32(x: int) -> int:
    return (x & M32) - (1 << 32) if x & 0x80000000 else x & M32


def words(seed: int, bits: int = 32, count: int = 600) -> np.ndarray:
    """Random patterns of every magnitude, with the special ones among them."""
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 1 << 64, count, dtype=np.uint64) >> rng.integers(0, 64, count, dtype=np.uint64)
    special = np.array(SPECIAL, np.uint64)
    raw[: 3 * len(special)] = np.roll(np.tile(special, 3), seed * 7)
    return raw.astype(f"u{bits // 8}")


def field(x: int, low: int, length: int, signed: bool, bits: int = 32) -> int:
    """bfe, bit by bit, as the manual's pseudocode writes it."""
    low, length = low & 255, length & 255
    msb = bits - 1
    sign = 0 if not signed or length == 0 else x >> min(low + length - 1, msb) & 1
    result = 0
    for i in range(bits):
        bit = x >> (low + i) & 1 if i < length and low + i <= msb else sign
        result |= bit << i
    return result


def insert(a: int, b: int, low: int, length: int) -> int:
    """bfi, bit by bit, as the manual's pseudocode writes it."""
    for i in range(32):
        if i < (length & 255) and (low & 255) + i <= 31:
            place = (low & 255) + i
            b = b & ~(1 << place) | (a >> i & 1) << place
    return b


def permute(a: int, b: int, selector: int) -> int:
    pool = (b << 32 | a).to_bytes(8, "little")
    result = 0
    for i in range(4):
        nibble = selector >> 4 * i & 15
        byte = pool[nibble & 7]
        result |= (255 * (byte >> 7) if nibble & 8 else byte) << 8 * i
    return result


def funnel(a: int, b: int, n: int, left: bool, wrap: bool) -> int:
    n = n & 31 if wrap else min(n, 32)
    both = b << 32 | a
    return both << n >> 32 & M32 if left else both >> n & M32


def lut(a: int, b: int, c: int, table: int) -> int:
    return sum((table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i for i in range(32))


def find(x: int) -> int:
    return x.bit_length() - 1 & M32


def dot4(a: int, b: int, c: int) -> int:
    return c + sum((a >> 8 * i & 255) * ((b >> 8 * i & 255) - ((b >> 8 * i & 128) << 1)) for i in range(4)) & M32


def bytepairs(a: int, b: int, signs: str, operation: Callable[[int, int], int], letter: str = "B") -> list[int]:
    """The operation on the bytes (letter B) or halves (H) of two words, each word's signed (s) or unsigned (u)."""
    left, right = (
        np.array([word], np.uint32).view(np.dtype(letter.lower() if sign == "s" else letter)).tolist()
        for word, sign in zip((a, b), signs, strict=True)
    )
    return [operation(x, y) for x, y in zip(left, right, strict=True)]


def bytewise(a: int, b: int, signs: str, operation: Callable[[int, int], int], letter: str = "B") -> int:
    bits = 8 if letter == "B" else 16
    return sum((value & (1 << bits) - 1) << bits * place for place, value in enumerate(bytepairs(a, b, signs, operation, letter)))


def average(x: int, y: int) -> int:
    """Rounded away from zero."""
    return (x + y + 1 if x + y >= 0 else x + y) >> 1


THREE: list[tuple[str, Callable[[int, int, int], int]]] = [
    ("add.u32 %r10, %r0, %r1;", lambda a, b, c: a + b),
    ("add.sat.s32 %r10, %r0, %r1;", lambda a, b, c: min(max(s32(a) + s32(b), -(1 << 31)), (1 << 31) - 1)),
    ("sub.sat.s32 %r10, %r0, %r1;", lambda a, b, c: min(max(s32(a) - s32(b), -(1 << 31)), (1 << 31) - 1)),
    ("mul.lo.s32 %r10, %r0, %r1;", lambda a, b, c: a * b),
    ("mul.hi.u32 %r10, %r0, %r1;", lambda a, b, c: a * b >> 32),
    ("mul.hi.s32 %r10, %r0, %r1;", lambda a, b, c: s32(a) * s32(b) >> 32),
    ("mad.lo.u32 %r10, %r0, %r1, %r2;", lambda a, b, c: a * b + c),
    ("mad.hi.s32 %r10, %r0, %r1, %r2;", lambda a, b, c: (s32(a) * s32(b) >> 32) + c),
    ("mul24.lo.u32 %r10, %r0, %r1;", lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF)),
    ("mul24.hi.u32 %r10, %r0, %r1;", lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) >> 16),
    ("sad.u32 %r10, %r0, %r1, %r2;", lambda a, b, c: c + abs(a - b)),
    ("sad.s32 %r10, %r0, %r1, %r2;", lambda a, b, c: c + abs(s32(a) - s32(b))),
    ("min.s32 %r10, %r0, %r1;", lambda a, b, c: min(s32(a), s32(b))),
    ("max.u32 %r10, %r0, %r1;", lambda a, b, c: max(a, b)),
    ("abs.s32 %r10, %r0;", lambda a, b, c: abs(s32(a))),
    ("shl.b32 %r10, %r0, %r1;", lambda a, b, c: a << min(b, 32)),
    ("shr.u32 %r10, %r0, %r1;", lambda a, b, c: a >> min(b, 32)),
    ("shr.s32 %r10, %r0, %r1;", lambda a, b, c: s32(a) >> min(b, 32)),
    ("shf.l.wrap.b32 %r10, %r0, %r1, %r2;", lambda a, b, c: funnel(a, b, c, True, True)),
    ("shf.r.wrap.b32 %r10, %r0, %r1, %r2;", lambda a, b, c: funnel(a, b, c, False, True)),
    ("shf.l.clamp.b32 %r10, %r0, %r1, %r2;", lambda a, b, c: funnel(a, b, c, True, False)),
    ("shf.r.clamp.b32 %r10, %r0, %r1, %r2;", lambda a, b, c: funnel(a, b, c, False, False)),
    ("bfe.u32 %r10, %r0, %r1, %r2;", lambda a, b, c: field(a, b, c, False)),
    ("bfe.s32 %r10, %r0, %r1, %r2;", lambda a, b, c: field(a, b, c, True)),
    ("bfi.b32 %r10, %r0, %r1, %r2, 7;", lambda a, b, c: insert(a, b, c, 7)),
    ("bfi.b32 %r10, %r0, %r1, 5, %r2;", lambda a, b, c: insert(a, b, 5, c)),
    ("prmt.b32 %r10, %r0, %r1, %r2;", permute),
    ("prmt.b32.f4e %r10, %r0, %r1, %r2;", lambda a, b, c: (b << 32 | a) >> 8 * (c & 3)),
    ("prmt.b32.rc16 %r10, %r0, %r1, %r2;", lambda a, b, c: (a >> 16 * (c & 1) & 0xFFFF) * 0x10001),
    ("lop3.b32 %r10, %r0, %r1, %r2, 0xCA;", lambda a, b, c: lut(a, b, c, 0xCA)),
    ("lop3.b32 %r10, %r0, %r1, %r2, 0x96;", lambda a, b, c: a ^ b ^ c),
    ("clz.b32 %r10, %r0;", lambda a, b, c: 32 - a.bit_length()),
    ("popc.b32 %r10, %r0;", lambda a, b, c: a.bit_count()),
    ("brev.b32 %r10, %r0;", lambda a, b, c: int(f"{a:032b}"[::-1], 2)),
    ("bfind.u32 %r10, %r0;", lambda a, b, c: find(a)),
    ("bfind.s32 %r10, %r0;", lambda a, b, c: find(a ^ M32 if a >> 31 else a)),
    ("bfind.shiftamt.u32 %r10, %r0;", lambda a, b, c: 31 - find(a) if a else M32),
    ("dp4a.u32.s32 %r10, %r0, %r1, %r2;", dot4),
    ("vabsdiff4.u32.u32.u32 %r10, %r0, %r1, %r2;", lambda a, b, c: bytewise(a, b, "uu", lambda x, y: abs(x - y))),
    ("vabsdiff4.u32.s32.u32.add %r10, %r0, %r1, %r2;", lambda a, b, c: c + sum(bytepairs(a, b, "su", lambda x, y: abs(x - y)))),
    ("vadd4.s32.s32.s32.sat %r10, %r0, %r1, %r2;", lambda a, b, c: bytewise(a, b, "ss", lambda x, y: min(max(x + y, -128), 127))),
    ("vsub4.u32.u32.u32.sat %r10, %r0, %r1, %r2;", lambda a, b, c: bytewise(a, b, "uu", lambda x, y: max(x - y, 0))),
    ("vavrg4.s32.s32.s32 %r10, %r0, %r1, %r2;", lambda a, b, c: bytewise(a, b, "ss", average)),
    ("vmax4.s32.s32.u32 %r10, %r0, %r1, %r2;", lambda a, b, c: bytewise(a, b, "su", max)),
    ("vset4.u32.s32.lt %r10, %r0, %r1, %r2;", lambda a, b, c: bytewise(a, b, "us", lambda x, y: int(x < y))),
    ("vset4.u32.u32.ge.add %r10, %r0, %r1, %r2;", lambda a, b, c: c + sum(bytepairs(a, b, "uu", lambda x, y: int(x >= y)))),
    ("vmin2.u32.u32.s32 %r10, %r0, %r1, %r2;", lambda a, b, c: bytewise(a, b, "us", min, "H")),
    ("vadd2.u32.u32.u32 %r10, %r0, %r1, %r2;", lambda a, b, c: bytewise(a, b, "uu", lambda x, y: x + y, "H")),
    ("cnot.b32 %r10, %r0;", lambda a, b, c: int(a == 0)),
    ("bmsk.clamp.b32 %r10, %r0, %r1;", lambda a, b, c: ((1 << min(b, 32)) - 1) << min(a, 32)),
    ("szext.wrap.s32 %r10, %r0, %r1;", lambda a, b, c: s32((a << 32 - (b & 31)) & M32) >> 32 - (b & 31)),
    ("slct.u32.s32 %r10, %r0, %r1, %r2;", lambda a, b, c: a if s32(c) >= 0 else b),
    ("set.lt.u32.s32 %r10, %r0, %r1;", lambda a, b, c: -(s32(a) < s32(b))),
    ("set.hi.f32.u32 %r10, %r0, %r1;", lambda a, b, c: 0x3F800000 * (a > b)),
    ("setp.ne.xor.b32 %p1|%p2, %r0, %r1, 1;\nselp.b32 %r10, 3, %r2, %p1;", lambda a, b, c: 3 if a == b else c),
    ("setp.ls.u32 %p1|%p2, %r0, %r1;\nselp.b32 %r10, %r0, %r2, %p2;", lambda a, b, c: a if a > b else c),
]


@pytest.mark.parametrize(("code", "meaning"), THREE, ids=[code.split(" ")[0] + f"-{i}" for i, (code, _) in enumerate(THREE)])
def test_integers(code: str, meaning: Callable[[int, int, int], int]) -> None:
    a, b, c = words(1), words(2), words(3)
    (got,) = run(code, [a, b, c], [np.uint32])
    assert got.tolist() == [meaning(*map(int, row)) & M32 for row in zip(a, b, c, strict=True)]


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        ("mul.wide.u32 %d10, %r0, %r1;", lambda a, b: a * b),
        ("mul.wide.s32 %d10, %r0, %r1;", lambda a, b: s32(a) * s32(b)),
        ("mad.wide.s32 %d10, %r0, %r1, -7;", lambda a, b: s32(a) * s32(b) - 7),
        ("mov.b64 %d10, {%r0, %r1};", lambda a, b: b << 32 | a),
        ("mov.b64 %d1, {%r0, %r1};\nmov.b64 {%r2, %r3}, %d1;\nmov.b64 %d10, {%r3, %r2};", lambda a, b: a << 32 | b),
        ("add.cc.u32 %r2, %r0, %r1;\naddc.u32 %r3, 0, 0;\nmov.b64 %d10, {%r2, %r3};", lambda a, b: a + b),
        ("sub.cc.u32 %r2, %r0, %r1;\nsubc.u32 %r3, 0, 0;\nmov.b64 %d10, {%r2, %r3};", lambda a, b: a - b),
        ("mad.lo.cc.u32 %r2, %r0, %r1, %r1;\nmadc.hi.u32 %r3, %r0, %r1, 0;\nmov.b64 %d10, {%r2, %r3};", lambda a, b: a * b + b),
    ],
)
def test_wide_results(code: str, meaning: Callable[[int, int], int]) -> None:
    a, b = words(4), words(5)
    (got,) = run(code, [a, b], [np.uint64])
    assert got.tolist() == [meaning(int(x), int(y)) & M64 for x, y in zip(a, b, strict=True)]


def test_division_truncates() -> None:
    a, b = words(6), words(7)
    b[b == 0] = 3
    quotient, rest = run("div.s32 %r10, %r0, %r1;\nrem.s32 %r11, %r0, %r1;", [a, b], [np.uint32, np.uint32])
    for x, y, q, r in zip(a, b, quotient, rest, strict=True):
        whole = abs(s32(int(x))) // abs(s32(int(y))) * (1 if (s32(int(x)) < 0) == (s32(int(y)) < 0) else -1)
        assert (int(q), int(r)) == (whole & M32, s32(int(x)) - whole * s32(int(y)) & M32)


FLOATS = np.array(
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        1.5,
        3.4e38,
        -3.4e38,
        1e-45,
        -1e-45,
        1.1754944e-38,
        1e-39,
        np.inf,
        -np.inf,
        np.nan,
        2.0**24,
        16777217.0,
        0.1,
    ],
    np.float32,
)


def floats(seed: int, kind: type = np.float32) -> np.ndarray:
    rng = np.random.default_rng(seed)
    special = rng.permutation(np.tile(FLOATS, 20))
    return np.concatenate([special, (rng.standard_normal(400) * 2.0 ** rng.integers(-30, 30, 400)).astype(np.float32)]).astype(kind)


def equal(got: np.ndarray, wanted: np.ndarray) -> bool:
    bits = f"u{wanted.dtype.itemsize}"
    return bool(((got.view(bits) == wanted.view(bits)) | (np.isnan(got) & np.isnan(wanted))).all())


def flushed(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("flush", [False, True])
@pytest.mark.parametrize(
    ("opcode", "meaning"),
    [("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div.rn", np.divide), ("div.full", np.divide)],
)
def test_f32_arithmetic_is_ieee(opcode: str, meaning: np.ufunc, flush: bool) -> None:
    a, b = floats(1), floats(2)
    (got,) = run(f"{opcode}{'.ftz' if flush else ''}.f32 %r10, %r0, %r1;", [a, b], [np.float32])
    wanted = flushed(meaning(flushed(a), flushed(b))) if flush else meaning(a, b)
    assert equal(got, wanted)


@pytest.mark.parametrize("opcode", ["min", "max"])
@pytest.mark.parametrize("nan", [False, True])
def test_extremes_of_magnitudes_have_the_sign_of_the_product(opcode: str, nan: bool) -> None:
    a, b = floats(11), floats(12)
    text = f"{opcode}{'.NaN' if nan else ''}.xorsign.abs.f32 %r10, %r0, %r1;"
    (got,) = run(text, [a, b], [np.float32], target="sm_86")
    of = {("min", True): np.minimum, ("min", False): np.fmin, ("max", True): np.maximum, ("max", False): np.fmax}[opcode, nan]
    assert equal(got, np.copysign(of(np.abs(a), np.abs(b)), np.where(np.signbit(a) ^ np.signbit(b), -1, 1).astype(np.float32)))


@pytest.mark.parametrize("opcode", ["min", "max"])
def test_extremes_of_packed_integers_and_those_above_zero(opcode: str) -> None:
    a, b = words(21), words(22)
    of = getattr(np, f"{opcode}imum")
    packed, signed, relu = run(
        f"{opcode}.u16x2 %r10, %r0, %r1; {opcode}.s16x2 %r11, %r0, %r1; {opcode}.relu.s32 %r12, %r0, %r1;", [a, b],
        [np.uint32] * 3, target="sm_90",
    )
    assert np.array_equal(packed.view(np.uint16), of(a.view(np.uint16), b.view(np.uint16)))
    assert np.array_equal(signed.view(np.int16), of(a.view(np.int16), b.view(np.int16)))
    assert np.array_equal(relu.view(np.int32), np.maximum(of(a.view(np.int32), b.view(np.int32)), 0))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_fma_rounds_once() -> None:
    """f32: the product is exact in f64, and so is the sum to far below f32's last place except at double-rounding ties, which
    a sum with an exact remainder tells apart; here by Python's exact fractions."""
    from fractions import Fraction

    a, b, c = (x[np.isfinite(x)][:500] for x in (floats(3), floats(4), floats(5)))
    count = min(map(len, (a, b, c)))
    a, b, c = a[:count], b[:count], c[:count]
    (got,) = run("fma.rn.f32 %r10, %r0, %r1, %r2;", [a, b, c], [np.float32])
    for x, y, z, g in zip(a, b, c, got, strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        if not np.isfinite(g):
            assert abs(exact) >= Fraction(float(np.finfo(np.float32).max))
            continue
        neighbours = [np.nextafter(g, np.float32(side), dtype=np.float32) for side in (-np.inf, np.inf)]
        error = abs(Fraction(float(g)) - exact)
        assert all(error <= abs(Fraction(float(n)) - exact) for n in neighbours if np.isfinite(n))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("opcode", "meaning"),
    [
        ("rcp", lambda x: 1 / x),
        ("rsqrt", lambda x: 1 / np.sqrt(x)),
        ("sqrt", np.sqrt),
        ("ex2", np.exp2),
        ("lg2", np.log2),
        ("sin", np.sin),
        ("cos", np.cos),
        ("tanh", np.tanh),
    ],
)
def test_approximations_lie_within_an_ulp(opcode: str, meaning: Callable[[np.ndarray], np.ndarray]) -> None:
    a = floats(8)
    (got,) = run(f"{opcode}.approx.f32 %r10, %r0;", [a], [np.float32])
    exact = meaning(a.astype(np.float64))
    rounded = exact.astype(np.float32)
    finite = np.isfinite(rounded) & np.isfinite(exact)
    assert (np.abs(got[finite].astype(np.float64) - exact[finite]) <= np.spacing(np.abs(rounded[finite]))).all()
    assert equal(got[~finite], rounded[~finite])


@pytest.mark.parametrize("op", ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"])
def test_float_comparisons_with_nan(op: str) -> None:
    a, b = floats(9), floats(10)
    (got,) = run(f"setp.{op}.f32 %p1, %r0, %r1;\nselp.b32 %r10, 1, 0, %p1;", [a, b], [np.uint32])
    nan = np.isnan(a) | np.isnan(b)
    table = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b, "num": ~nan, "nan": nan}
    ordered = table[op] if op in table else table[op[:2]]
    wanted = ordered if op in ("num", "nan") else (ordered | nan if op not in table else ordered & ~nan)
    assert np.array_equal(got.astype(bool), wanted)


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("clamp", [0x1F, 0x00, 0x181F, 0x1C07, 0x0F])
@pytest.mark.parametrize("distance", [0, 1, 4, 16, 31])
def test_shuffles_follow_the_manuals_pseudocode(mode: str, clamp: int, distance: int) -> None:
    lanes = np.arange(32, dtype=np.uint32)
    values, inside = run(
        f"shfl.sync.{mode}.b32 %r10|%p1, %r0, {distance}, {clamp}, -1;\nselp.b32 %r11, 1, 0, %p1;",
        [lanes * 100],
        [np.uint32, np.uint32],
    )
    for lane in range(32):
        segment, c = clamp >> 8 & 31, clamp & 31
        low = lane & segment
        last = low | (c & ~segment)
        j = {"up": lane - distance, "down": lane + distance, "bfly": lane ^ distance, "idx": low | (distance & ~segment)}[mode]
        there = j >= last if mode == "up" else j <= last
        assert (int(values[lane]), int(inside[lane])) == ((j if there else lane) * 100, int(there))


def test_votes_matches_and_reductions() -> None:
    values = np.array([lane % 5 for lane in range(32)], np.uint32)
    code = (
        "setp.lt.u32 %p1, %r0, 2;\nvote.sync.ballot.b32 %r10, %p1, -1;\n"
        "vote.sync.any.pred %p2, %p1, -1;\nselp.b32 %r11, 1, 0, %p2;\n"
        "match.any.sync.b32 %r12, %r0, -1;\nredux.sync.max.u32 %r13, %r0, -1;\n"
        "redux.sync.xor.b32 %r14, %r0, -1;\nactivemask.b32 %r15;"
    )
    ballot, any_, match, largest, parity, active = run(code, [values], [np.uint32] * 6)
    wanted = sum(1 << lane for lane in range(32) if values[lane] < 2)
    assert set(ballot) == {wanted}
    assert set(any_) == {1}
    assert [int(m) for m in match] == [sum(1 << lane for lane in range(32) if values[lane] == v) for v in values]
    assert set(largest) == {4}
    assert set(parity) == {int(np.bitwise_xor.reduce(values))}
    assert set(active) == {M32}


@pytest.mark.parametrize("groups", [(0x0000FFFF, 0xFFFF0000), (0x11111111, 0xEEEEEEEE)], ids=["halves", "strided"])
def test_groups_of_lanes_with_masks_of_their_own_step_at_once(groups: tuple[int, int]) -> None:
    """As cooperative groups have it: each is reduced, matched and asked by itself."""
    values = np.random.default_rng(4).integers(0, 3, 32).astype(np.uint32)
    masks = np.array([next(mask for mask in groups if mask >> lane & 1) for lane in range(32)], np.uint32)
    code = (
        "redux.sync.add.u32 %r10, %r0, %r1;\nredux.sync.min.s32 %r11, %r0, %r1;\nmatch.any.sync.b32 %r12, %r0, %r1;\n"
        "setp.eq.u32 %p1, %r0, 1;\nvote.sync.ballot.b32 %r13, %p1, %r1;"
    )
    got = run(code, [values, masks], [np.uint32] * 4)
    for lane in range(32):
        of = [other for other in range(32) if int(masks[lane]) >> other & 1]
        wanted = (
            sum(int(values[other]) for other in of), min(int(values[other]) for other in of),
            sum(1 << other for other in of if values[other] == values[lane]), sum(1 << other for other in of if values[other] == 1),
        )
        assert tuple(int(result[lane]) for result in got) == wanted


@pytest.mark.parametrize("value", ["%r0", "%r20", "%r22"], ids=["loaded", "of the lane", "one for all"])
def test_groups_may_be_told_from_the_lane_alone(value: str) -> None:
    """Their masks are then the same in all waves of a launch, and held once."""
    values = np.random.default_rng(4).integers(0, 3, 64).astype(np.uint32)
    code = (
        "mov.u32 %r20, %laneid; mov.u32 %r22, 3; setp.lt.u32 %p1, %r20, 8; selp.b32 %r21, 0x000000FF, 0xFFFFFF00, %p1;\n"
        f"redux.sync.add.u32 %r10, {value}, %r21; match.any.sync.b32 %r11, {value}, %r21;"
    )
    summed, matched = (got.reshape(2, 32) for got in run(code, [values], [np.uint32] * 2))
    held = {"%r0": values.reshape(2, 32), "%r20": np.tile(np.arange(32), (2, 1)), "%r22": np.full((2, 32), 3)}[value]
    for group in (range(8), range(8, 32)):
        for lane in group:
            assert summed[:, lane].tolist() == [int(wave[list(group)].sum()) for wave in held]
            assert matched[:, lane].tolist() == [sum(1 << other for other in group if wave[other] == wave[lane]) for wave in held]


@pytest.mark.parametrize(
    ("first", "second", "found"), [("0xFFFF", "0xFFFF0000", set()), ("-1", "-1", {"TFW0803"})], ids=["halves", "all lanes"]
)
@pytest.mark.parametrize("operation", ["redux.sync.add.u32", "match.any.sync.b32"])
def test_lanes_without_a_value_count_in_their_own_group_alone(operation: str, first: str, second: str, found: set[str]) -> None:
    """The first half of a warp has nothing in shared memory; a branch of the other half takes what it has computed."""
    body = f"""
        setp.lt.u32 %p1, %r0, 16; selp.b32 %r4, {first}, {second}, %p1; shl.b32 %r3, %r0, 2; add.u32 %r3, %r3, %r1;
        @!%p1 st.shared.u32 [%r3], %r0;
        ld.shared.u32 %r5, [%r3]; {operation} %r10, %r5, %r4; setp.gt.u32 %p3, %r10, 5;
        @%p1 ret;
        @%p3 st.global.u32 [%d0], 1;
    """
    findings = hopper.run(body, [np.zeros(1, np.uint32)])[1]
    assert {finding.code for finding in findings} == found
