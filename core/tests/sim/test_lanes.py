"""Integer, cross-lane and matrix primitives against plain Python; meanings traced on symbols."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import MEANINGS

from tilefw.sim.algebra.integer import IntegerLanes
from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.algebra.primitives import PRIMITIVES
from tilefw.sim.algebra.recording import trace
from tilefw.sim.floats import UNSIGNED
from tilefw.sim.matrix.fragments import Accumulation, BitMap, Fragment
from tilefw.sim.matrix.layout import rearrange
from tilefw.sim.matrix.unit import MatrixUnit

LANES = IntegerLanes()


def signed(v: int, bits: int) -> int:
    return v - (1 << bits) if v >> (bits - 1) else v


def divided(a: int, b: int, sign: bool, bits: int) -> tuple[int, int]:
    if b == 0:
        return (1 << bits) - 1, a
    x, y = (signed(a, bits), signed(b, bits)) if sign else (a, b)
    quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    return quotient % (1 << bits), (x - quotient * y) % (1 << bits)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_integers_are_those_of_two_complement(bits, data):
    top = 1 << bits
    words = st.one_of(st.integers(0, top - 1), st.sampled_from([0, 1, top - 1, top // 2, top // 2 - 1]))
    a, b, amount = data.draw(words), data.draw(words), data.draw(st.integers(0, 2 * bits))
    x, y = (np.array([v], UNSIGNED[bits]) for v in (a, b))
    n = np.array([amount, 0], np.uint32)[:1]
    sa, sb = signed(a, bits), signed(b, bits)

    def check(got, want):
        assert int(got[0]) == want % top

    with np.errstate(all="ignore"):
        check(LANES.add(x, y), a + b)
        check(LANES.sub(x, y), a - b)
        check(LANES.mul(x, y), a * b)
        check(LANES.abs(x), abs(sa))
        for sign, p, q in ((False, a, b), (True, sa, sb)):
            low, high = (-top // 2, top // 2 - 1) if sign else (0, top - 1)
            check(LANES.div(x, y, sign), divided(a, b, sign, bits)[0])
            check(LANES.rem(x, y, sign), divided(a, b, sign, bits)[1])
            check(LANES.min(x, y, sign), min(p, q))
            check(LANES.max(x, y, sign), max(p, q))
            check(LANES.add_saturate(x, y, sign), max(low, min(high, p + q)))
            check(LANES.sub_saturate(x, y, sign), max(low, min(high, p - q)))
            check(LANES.shr(x, n, sign), p >> amount)
            assert bool(LANES.compare(x, y, "lt", sign)[0]) == (p < q)
            if bits >= 16:
                check(LANES.mul_high(x, y, sign), (p * q) >> bits)
            if bits <= 32:
                assert int(LANES.mul_wide(x, y, sign)[0]) == p * q % (1 << 2 * bits)
        check(LANES.shl(x, n), a << amount)
        total, carry = LANES.add_carry(x, y, np.array([True]))
        assert (int(total[0]), bool(carry[0])) == ((a + b + 1) % top, a + b + 1 >= top)
        total, borrow = LANES.sub_borrow(x, y, np.array([True]))
        assert (int(total[0]), bool(borrow[0])) == ((a - b - 1) % top, a - b - 1 < 0)


@settings(max_examples=60, deadline=None)
@given(a=st.integers(0, 2**32 - 1), b=st.integers(0, 2**32 - 1), c=st.integers(0, 2**32 - 1), table=st.integers(0, 255))
def test_bit_operations_go_bit_by_bit(a, b, c, table):
    x, y, z = (np.array([v], np.uint32) for v in (a, b, c))
    want = sum((table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i for i in range(32))
    assert int(LANES.lookup3(x, y, z, table)[0]) == want
    assert int(LANES.popcount(x)[0]) == a.bit_count()
    assert int(LANES.leading_zeros(x)[0]) == 32 - a.bit_length()
    assert int(LANES.reverse_bits(x)[0]) == int(f"{a:032b}"[::-1], 2)
    pool = a.to_bytes(4, "little") + b.to_bytes(4, "little")
    picked = [pool[c >> 4 * i & 7] for i in range(4)]
    picked = [(0xFF if byte & 0x80 else 0) if c >> 4 * i & 8 else byte for i, byte in enumerate(picked)]
    assert int(LANES.permute_bytes(x, y, z).item()) == int.from_bytes(bytes(picked), "little")


def test_join_and_split_are_inverse():
    parts = [np.array([i + 1], np.uint16).reshape(1, 1, 1) for i in range(4)]
    joined = LANES.join(parts)
    assert int(joined.flat[0]) == 0x0004_0003_0002_0001
    assert [int(p.flat[0]) for p in LANES.split(joined, 16)] == [1, 2, 3, 4]
    wide = LANES.join([np.full((1, 1, 4), v, np.uint64) for v in (5, 6)])
    assert [p.tolist() for p in LANES.split(wide, 64)] == [[[[5] * 4]], [[[6] * 4]]]


F16_A = Fragment("f16", rows=("l2", "l3", "l4", "r0"), columns=("e0", "l0", "l1", "r1"))
F16_B = Fragment("f16", rows=("e0", "l0", "l1", "r0"), columns=("l2", "l3", "l4"))
F32_C = Fragment("f32", rows=("l2", "l3", "l4", "r1"), columns=("r0", "l0", "l1"))
SUM = Accumulation("f32", block=8, fraction_bits=24)


def spread(matrix: np.ndarray, fragment: Fragment) -> list[np.ndarray]:
    """Registers [1, 1, 32] of a matrix, element by element, from the fragment's own words."""
    bits = matrix.dtype.itemsize * 8
    per = 32 // bits
    registers = np.zeros((matrix.size // 32 // per, 32, per), matrix.dtype)
    for row in range(matrix.shape[0]):
        for column in range(matrix.shape[1]):
            place = {"e": 0, "l": 0, "r": 0}
            for names, number in ((fragment.rows, row), (fragment.columns, column)):
                for i, name in enumerate(names):
                    place[name[0]] |= (number >> i & 1) << int(name[1:])
            registers[place["r"], place["l"], place["e"]] = matrix[row, column]
    return [r.reshape(-1).view(np.uint32).reshape(1, 1, 32) for r in registers]


@pytest.mark.parametrize("hardware", [False, True])
def test_matrix_products_follow_their_fragments(hardware):
    rng = np.random.default_rng(0)
    a, b = rng.integers(-8, 8, (16, 16)).astype(np.float16), rng.integers(-8, 8, (16, 8)).astype(np.float16)
    c = rng.integers(-8, 8, (16, 8)).astype(np.float32)
    operands = tuple(spread(m, f) for m, f in ((a, F16_A), (b, F16_B), (c, F32_C)))
    got = MatrixUnit(hardware).multiply((1, 1, 32), operands, (F16_A, F16_B, F32_C, F32_C), SUM)
    want = spread(a.astype(np.float32) @ b.astype(np.float32) + c, F32_C)
    assert all((g == w).all() for g, w in zip(got, want, strict=True))


def test_hardware_sums_cut_small_terms_at_the_largest():
    """2**24 + 1 + 1 keeps nothing of the ones when 24 bits below the largest are all that is kept, by truncation."""
    a, b = np.zeros((16, 16), np.float16), np.zeros((16, 8), np.float16)
    a[0, :3], b[:3, 0] = (4096, 0.25, 0.25), (4096, 0.5, 0.5)
    operands = tuple(spread(m, f) for m, f in ((a, F16_A), (b, F16_B), (np.zeros((16, 8), np.float32), F32_C)))
    cut = Accumulation("f32", block=16, fraction_bits=23)
    got = MatrixUnit(True).multiply((1, 1, 32), operands, (F16_A, F16_B, F32_C, F32_C), cut)
    assert got[0].view(np.float32)[0, 0, 0] == 2.0**24


def test_integer_products_wrap_or_clamp():
    a_map = Fragment("s8", rows=("l2", "l3", "l4", "r0"), columns=("e0", "e1", "l0", "l1", "r1"))
    b_map = Fragment("s8", rows=("e0", "e1", "l0", "l1", "r0"), columns=("l2", "l3", "l4"))
    c_map = Fragment("s32", rows=("l2", "l3", "l4", "r1"), columns=("r0", "l0", "l1"))
    a, b = np.full((16, 32), -128, np.int8), np.full((32, 8), -128, np.int8)
    c = np.full((16, 8), 2**31 - 1, np.int32)
    operands = tuple(spread(m, f) for m, f in ((a, a_map), (b, b_map), (c, c_map)))
    maps = (a_map, b_map, c_map, c_map)
    wrapped = MatrixUnit(False).multiply((1, 1, 32), operands, maps, Accumulation("s32"))
    clamped = MatrixUnit(False).multiply((1, 1, 32), operands, maps, Accumulation("s32", saturate=True))
    assert int(wrapped[0].flat[0]) == (2**31 - 1 + 32 * 16384) % 2**32 and int(clamped[0].flat[0]) == 2**31 - 1


def test_elements_move_by_their_bit_map():
    """Rows of four words loaded one a lane become 8x8 matrices, one a register (PTX ISA, "ldmatrix")."""
    words = np.arange(128, dtype=np.uint32).reshape(32, 4)
    values = [words[:, i].reshape(1, 1, 32) for i in range(4)]
    mapping = BitMap.of(l0="r0", l1="r1", l2="l0", l3="l1", l4="l2", r0="l3", r1="l4")
    moved = rearrange(values, 32, mapping)
    assert [m.reshape(-1).tolist() for m in moved] == [list(range(32 * i, 32 * i + 32)) for i in range(4)]
    first = rearrange(values, 32, BitMap.of(l0="r0", l1="r1", l2="l0", l3="l1", l4="l2"))
    assert len(first) == 1 and first[0].reshape(-1).tolist() == list(range(32))


def test_every_primitive_is_executed_by_the_numpy_form():
    from tilefw.sim.algebra.primitives import Algebra

    assert [n for n in PRIMITIVES if getattr(NumpyLanes, n) is getattr(Algebra, n)] == []


def test_every_toy_meaning_is_traced_on_symbols():
    widths = {
        "mov": (32,), "select": (1, 32, 32), "index": (64, 32), "wide": (32,), "param": (64,), "load": (64,), "load4": (64,),
        "store": (64, 32), "store8": (64, 32), "lload": (64,), "lstore": (64, 32), "sload": (64,), "sstore": (64, 32),
        "load_where": (1, 64), "store_where": (1, 64, 32), "atomadd_where": (1, 64, 32),
        "atomadd": (64, 32), "atomcas": (64, 32, 32), "release": (64, 32), "release_near": (64, 32),
        "acquire": (64,), "acquire_near": (64,), "copy": (64, 64),
        "lr": (64,), "sc": (64, 32), "padload": (64,), "padstore": (64, 32), "push": (1,), "anylane": (1,),
        "fetch": (32, 64, 32, 32), "put": (64, 32, 32),
    }
    none = {"commit", "wait", "wait1", "undef", "trap", "pop", "group", "drained", "views", "fence"}
    for name, (count, meaning) in MEANINGS.items():
        steps, results = trace(meaning, () if name in none else widths.get(name, (32, 32)))
        assert len(results) == count, name
        assert steps or name == "mov"


def test_a_meaning_that_looks_into_a_value_is_refused():
    for bad in (lambda x, a: x.not_(a) if a else a, lambda x, a: list(a), lambda x, a: x.const(a == 3, 32), lambda x, a: a + a):
        with pytest.raises(TypeError):
            trace(bad, (32,))
