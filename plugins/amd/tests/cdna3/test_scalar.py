"""Scalar rows against Python's exact integers, SCC included, on random and special values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from served import ROWS

from tilefw.api.sim import PRIMITIVES, trace
from tilefw.sim.algebra.integer import IntegerLanes
from tilefw_amd.isa.row import Mode, Modifiers, Row
from tilefw_amd.isa.rows import control, scalar, scalar_bits, scalar_memory

SCALAR = [r for r in ROWS.values() if r.build.__module__ in {m.__name__ for m in (control, scalar, scalar_bits, scalar_memory)}]

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
SPECIAL = [0, 1, 2, 15, 31, 32, 33, 63, 64, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, M32 - 1, M32, 1 << 63, M64, 0x1F0003]
UNSIGNED = {1: np.bool_, 32: np.uint32, 64: np.uint64}


def signed(x: int, bits: int) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> bits - 1 else x


def s32(x: int) -> int:
    return signed(x, 32)


def first(bits: str, wanted: str) -> int:
    return bits.find(wanted)


def up(x: int, bits: int) -> str:
    """The bits of x from the lowest."""
    return f"{x:0{bits}b}"[::-1]


def quads(x: int, bits: int) -> list[bool]:
    return [bool(x >> i & 15) for i in range(0, bits, 4)]


def unlike_sign(x: int, bits: int) -> int:
    text = f"{x:0{bits}b}"
    return first(text, "1" if text[0] == "0" else "0")


def field(x: int, b: int, bits: int, with_sign: bool) -> int:
    """s_bfe: bit by bit, bits above the source being its sign or zeros."""
    low, size = b & bits - 1, b >> 16 & 0x7F
    source = signed(x, bits) if with_sign else x
    value = source >> low & (1 << size) - 1
    return signed(value, size) if with_sign and 0 < size <= bits else value


def sum_overflows(total: int) -> bool:
    return not -(1 << 31) <= total < 1 << 31


Result = tuple[int | None, bool | None]  # the destination's value and SCC; None: not written
Reference = Callable[..., Result]


def plain(function: Callable[..., int]) -> Reference:
    return lambda *sources: (function(*sources), None)


def with_scc(function: Callable[..., int], bits: int = 32) -> Reference:
    def reference(*sources: int) -> Result:
        value = function(*sources) & (1 << bits) - 1
        return value, value != 0

    return reference


def condition(function: Callable[..., bool]) -> Reference:
    return lambda *sources: (None, function(*sources))


LOGIC: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "andn2": lambda a, b: a & ~b,
    "orn2": lambda a, b: a | ~b, "nand": lambda a, b: ~(a & b), "nor": lambda a, b: ~(a | b), "xnor": lambda a, b: ~(a ^ b),
    "andn1": lambda a, b: ~a & b, "orn1": lambda a, b: ~a | b,
}
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b, "lg": lambda a, b: a != b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
}


def by_width(bits: int) -> dict[str, Reference]:
    """The references of the rows that exist for 32 and for 64 bits; sources in the order of the pattern."""
    top, b = (1 << bits) - 1, bits - 1
    rows: dict[str, Reference] = {f"s_{n}_b{bits}": with_scc(f, bits) for n, f in LOGIC.items() if n not in ("andn1", "orn1")}
    return rows | {
        f"s_mov_b{bits}": plain(lambda a: a),
        f"s_cmov_b{bits}": plain(lambda a, scc, old: a if scc else old),
        f"s_cselect_b{bits}": plain(lambda x, y, scc: x if scc else y),
        f"s_not_b{bits}": with_scc(lambda a: ~a, bits),
        f"s_wqm_b{bits}": with_scc(lambda a: sum(15 << 4 * i for i, on in enumerate(quads(a, bits)) if on), bits),
        f"s_quadmask_b{bits}": with_scc(lambda a: sum(1 << i for i, on in enumerate(quads(a, bits)) if on), bits),
        f"s_brev_b{bits}": plain(lambda a: int(up(a, bits), 2)),
        f"s_bcnt0_i32_b{bits}": with_scc(lambda a: bits - a.bit_count()),
        f"s_bcnt1_i32_b{bits}": with_scc(lambda a: a.bit_count()),
        f"s_ff0_i32_b{bits}": plain(lambda a: first(up(a, bits), "0")),
        f"s_ff1_i32_b{bits}": plain(lambda a: first(up(a, bits), "1")),
        f"s_flbit_i32_b{bits}": plain(lambda a: first(f"{a:0{bits}b}", "1")),
        f"s_bitset0_b{bits}": plain(lambda a, old: old & ~(1 << (a & b))),
        f"s_bitset1_b{bits}": plain(lambda a, old: old | 1 << (a & b)),
        f"s_bitcmp0_b{bits}": condition(lambda x, y: not x >> (y & b) & 1),
        f"s_bitcmp1_b{bits}": condition(lambda x, y: bool(x >> (y & b) & 1)),
        f"s_lshl_b{bits}": with_scc(lambda x, y: x << (y & b), bits),
        f"s_lshr_b{bits}": with_scc(lambda x, y: x >> (y & b), bits),
        f"s_ashr_i{bits}": with_scc(lambda x, y: signed(x, bits) >> (y & b), bits),
        f"s_bfm_b{bits}": plain(lambda x, y: ((1 << (x & b)) - 1) << (y & b) & top),
        f"s_bfe_u{bits}": with_scc(lambda x, y: field(x, y, bits, False), bits),
        f"s_bfe_i{bits}": with_scc(lambda x, y: field(x, y, bits, True), bits),
    }


REFERENCES: dict[str, Reference] = {
    **by_width(32),
    **by_width(64),
    "s_flbit_i32": plain(lambda a: unlike_sign(a, 32)),
    "s_flbit_i32_i64": plain(lambda a: unlike_sign(a, 64)),
    "s_sext_i32_i8": plain(lambda a: signed(a, 8)),
    "s_sext_i32_i16": plain(lambda a: signed(a, 16)),
    "s_bitreplicate_b64_b32": plain(lambda a: int("".join(c * 2 for c in f"{a:032b}"), 2)),
    "s_add_u32": lambda a, b: (a + b, a + b > M32),
    "s_sub_u32": lambda a, b: (a - b, a < b),
    "s_addc_u32": lambda a, b, scc: (a + b + scc, a + b + scc > M32),
    "s_subb_u32": lambda a, b, scc: (a - b - scc, a < b + scc),
    "s_add_i32": lambda a, b: (a + b, sum_overflows(s32(a) + s32(b))),
    "s_sub_i32": lambda a, b: (a - b, sum_overflows(s32(a) - s32(b))),
    "s_abs_i32": with_scc(lambda a: abs(s32(a))),
    "s_absdiff_i32": with_scc(lambda a, b: abs(s32(a - b))),
    "s_mul_i32": plain(lambda a, b: a * b),
    "s_mul_hi_u32": plain(lambda a, b: a * b >> 32),
    "s_mul_hi_i32": plain(lambda a, b: s32(a) * s32(b) >> 32),
    "s_min_i32": lambda a, b: (min(s32(a), s32(b)), s32(a) < s32(b)),
    "s_min_u32": lambda a, b: (min(a, b), a < b),
    "s_max_i32": lambda a, b: (max(s32(a), s32(b)), s32(a) >= s32(b)),
    "s_max_u32": lambda a, b: (max(a, b), a >= b),
    "s_pack_ll_b32_b16": plain(lambda a, b: a & 0xFFFF | (b & 0xFFFF) << 16),
    "s_pack_lh_b32_b16": plain(lambda a, b: a & 0xFFFF | b >> 16 << 16),
    "s_pack_hh_b32_b16": plain(lambda a, b: a >> 16 | b >> 16 << 16),
    "s_cmp_eq_u64": condition(lambda a, b: a == b),
    "s_cmp_lg_u64": condition(lambda a, b: a != b),
    **{f"s_lshl{n}_add_u32": (lambda a, b, n=n: ((a << n) + b, (a << n) + b > M32)) for n in (1, 2, 3, 4)},
    **{f"s_cmp_{n}_i32": condition(lambda a, b, f=f: f(s32(a), s32(b))) for n, f in COMPARE.items()},
    **{f"s_cmp_{n}_u32": condition(lambda a, b, f=f: f(a, b)) for n, f in COMPARE.items()},
}


def words(seed: int, bits: int, count: int = 400) -> np.ndarray:
    """Random patterns of every magnitude, special ones among them, as values of a frame with so many lanes."""
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 1 << 64, count, dtype=np.uint64) >> rng.integers(0, 64, count, dtype=np.uint64)
    if bits == 1:
        return (raw & np.uint64(1)).astype(np.bool_).reshape(1, 1, -1)
    special = np.array(SPECIAL, np.uint64)
    raw[: 4 * len(special)] = np.roll(np.tile(special, 4), seed * 7)
    raw[4 * len(special) : 6 * len(special)] = ~raw[: 2 * len(special)]
    return raw.astype(UNSIGNED[bits]).reshape(1, 1, -1)


def source_widths(name: str) -> list[int]:
    """Widths of the sources of a row, in the order its meaning gets them."""
    operands = ROWS[name].operands
    widths = [o.type.bits if o.type else 1 for o in operands if o.role in ("source", "implicit source")]
    return widths + [o.type.bits for o in operands if o.role == "destination" and o.read and o.type]


def meaning(name: str, mode: Mode | None = None, **immediates: int) -> Callable[..., Any]:
    m = Modifiers(immediates)
    m.mode = mode or Mode()
    return ROWS[name].build(m)


def results(name: str, *sources: np.ndarray, **immediates: int) -> list[np.ndarray]:
    """The destinations' values, in order."""
    with np.errstate(all="ignore"):
        found = meaning(name, **immediates)(IntegerLanes(), *sources)
    return list(found) if isinstance(found, tuple) else [found]


def agree(
    name: str, got: list[np.ndarray], sources: list[np.ndarray], wanted: Callable[..., tuple[int | bool | None, ...]]
) -> None:
    """Each destination that the reference gives equals it, at each place, in its own width."""
    columns = [[int(x) for x in s.ravel()] for s in sources]
    for place, values in enumerate(zip(*columns, strict=True)):
        expected = [v for v in wanted(*values) if v is not None]
        found = [int(np.broadcast_to(g, sources[0].shape).ravel()[place]) for g in got]
        assert len(found) == len(expected), name
        for g, want, value in zip(got, expected, found, strict=True):
            bits = 1 if g.dtype == np.bool_ else 8 * g.dtype.itemsize
            assert value == int(want) & (1 << bits) - 1, (name, [hex(v) for v in values])


@pytest.mark.parametrize("name", REFERENCES)
def test_arithmetic_and_logic(name: str) -> None:
    sources = [words(7 * i + 1, bits) for i, bits in enumerate(source_widths(name))]
    agree(name, results(name, *sources), sources, REFERENCES[name])


# Rows of SOPK: the immediate's meaning on (immediate as signed, immediate as unsigned, sources).
IMMEDIATE: dict[str, Callable[..., Result]] = {
    "s_movk_i32": lambda i, u, x: (i, None),
    "s_cmovk_i32": lambda i, u, scc, old: (i if scc else old, None),
    "s_addk_i32": lambda i, u, old: (old + i, sum_overflows(s32(old) + i)),
    "s_mulk_i32": lambda i, u, old: (old * i, None),
    **{f"s_cmpk_{n}_i32": (lambda i, u, a, f=f: (None, f(s32(a), i))) for n, f in COMPARE.items()},
    **{f"s_cmpk_{n}_u32": (lambda i, u, a, f=f: (None, f(a, u))) for n, f in COMPARE.items()},
}


@pytest.mark.parametrize("immediate", [0, 1, 0x7FFF, 0x8000, 0xFFFF])
@pytest.mark.parametrize("name", IMMEDIATE)
def test_immediates_of_16_bits(name: str, immediate: int) -> None:
    sources = [words(3 * i + immediate % 5, bits) for i, bits in enumerate(source_widths(name))]
    got = results(name, *sources, simm16=immediate)
    columns = sources or [words(1, 32)]
    agree(name, got, columns, lambda *values: IMMEDIATE[name](signed(immediate, 16), immediate, *values))


@pytest.mark.parametrize("name", LOGIC)
def test_the_mask_of_lanes_is_saved_and_replaced(name: str) -> None:
    a, exec_ = words(1, 64), words(2, 64)

    def wanted(a: int, e: int) -> tuple[int, int, bool]:
        return e, LOGIC[name](a, e), LOGIC[name](a, e) & M64 != 0

    agree(name, results(f"s_{name}_saveexec_b64", a, exec_), [a, exec_], wanted)


@pytest.mark.parametrize("name", ["andn1", "andn2"])
def test_the_mask_of_lanes_is_written_to_both(name: str) -> None:
    a, exec_ = words(1, 64), words(2, 64)

    def wanted(a: int, e: int) -> tuple[int, int, bool]:
        new = LOGIC[name](a, e)
        return new, new, new & M64 != 0

    agree(name, results(f"s_{name}_wrexec_b64", a, exec_), [a, exec_], wanted)


BRANCHES = {
    "s_cbranch_scc0": lambda x: not x, "s_cbranch_scc1": lambda x: bool(x), "s_cbranch_vccz": lambda x: x == 0,
    "s_cbranch_vccnz": lambda x: x != 0, "s_cbranch_execz": lambda x: x == 0, "s_cbranch_execnz": lambda x: x != 0,
}


@pytest.mark.parametrize("name", BRANCHES)
def test_conditions_of_branches(name: str) -> None:
    (width,) = source_widths(name)
    values = words(5, width)
    _, condition_of = meaning(name, target=7)
    agree(name, [condition_of(IntegerLanes(), values)], [values], lambda x: (BRANCHES[name](x),))


@pytest.mark.parametrize(
    ("immediate", "limits"),
    [
        (0xCF7F, {}),  # all at their highest
        (0x0F71, {"vmcnt": 1}),
        (0x4F70, {"vmcnt": 16}),
        (0xCF6F, {"expcnt": 6}),
        (0xC07F, {"lgkmcnt": 0}),
        (0x0000, {"vmcnt": 0, "expcnt": 0, "lgkmcnt": 0}),
        (0x8275, {"vmcnt": 37, "lgkmcnt": 2}),
    ],
)
def test_counts_of_a_wait(immediate: int, limits: dict[str, int]) -> None:
    assert control.wait_limits(immediate) == limits
    assert dict(meaning("s_waitcnt", waitcnt=immediate).limits) == limits


def test_the_mode_register_is_read_as_far_as_it_is_known() -> None:
    mode = Mode(round32="rz", round64="rm", flush32=True, flush64=False, dx10_clamp=True, ieee=False)
    read = meaning("s_getreg_b32", mode, hwreg=1 | 9 << 11)  # MODE, from bit 0, 10 bits
    assert int(read(IntegerLanes()).item()) == 0b01_1100_1011
    field = meaning("s_getreg_b32", mode, hwreg=1 | 4 << 6 | 3 << 11)  # the four bits of subnormals
    assert int(field(IntegerLanes()).item()) == 0b1100


def given(row: Row) -> list[tuple[int, ...]]:
    """Widths of what a meaning gets, one tuple for each value: those of several words, and of addresses in buffers, are tuples."""
    words = next((o.type.registers for o in row.operands if o.role in ("source", "destination") and o.type), 1)
    found: list[tuple[int, ...]] = []
    for operand in row.operands:
        if operand.role == "address":
            found.append((64, *(1,) * words) if "buffer" in row.facts else (64,))
        elif operand.role in ("source", "implicit source"):
            found.append(_parts(operand.type.bits if operand.type else 1))
    return found + [_parts(o.type.bits) for o in row.destinations if o.read and o.type]


def _parts(bits: int) -> tuple[int, ...]:
    return (bits,) if bits <= 64 else (32,) * (bits // 32)


def written(row: Row) -> list[int]:
    """Widths of the results, those of several words one by one."""
    operands = [o for o in row.operands if o.role in ("destination", "implicit destination")]
    return [bits for o in operands for bits in _parts(o.type.bits if o.type else 1)]


@pytest.mark.parametrize("row", SCALAR, ids=[row.name for row in SCALAR])
def test_a_meaning_is_a_function_of_the_algebra_and_gives_the_widths_of_its_pattern(row: Row) -> None:
    assert row.doc and row.section and row.wave
    built = meaning(row.name, glc=1)
    leading: list[int] = []
    if row.flow:
        flow, built = built if isinstance(built, tuple) else (built, None)
        leading = [64 if type(flow).__name__ == "Jump" else 1]
    if built is None or row.name == "s_waitcnt":
        return
    shapes = given(row)

    def flat(lanes: Any, *symbols: Any) -> Any:
        """The meaning on values made of single words."""
        left, values = list(symbols), []
        for shape in shapes:
            taken, left = left[: len(shape)], left[len(shape) :]
            buffer = len(shape) > 1 and shape[0] == 64
            values.append((taken[0], tuple(taken[1:])) if buffer else taken[0] if len(taken) == 1 else tuple(taken))
        return built(lanes, *values)

    steps, results = trace(flat, [bits for shape in shapes for bits in shape], 64)
    assert {step.name for step in steps} <= set(PRIMITIVES)
    assert list(results) == leading + written(row)


@pytest.mark.parametrize("glc", [0, 1])
def test_a_scalar_atomic_returns_the_old_value_only_when_asked(glc: int) -> None:
    """Else the register keeps its data."""
    lanes = Memory(7)
    data = np.full((1, 1, 1), 5, np.uint32)
    built = meaning("s_atomic_sub", glc=glc)
    assert int(built(lanes, np.zeros((1, 1, 1), np.uint64), data).item()) == (7 if glc else 5)
    assert lanes.asked == [("add", [M32 - 4])]


@pytest.mark.parametrize("glc", [0, 1])
def test_a_scalar_compare_and_swap_takes_the_new_value_first(glc: int) -> None:
    lanes = Memory(7)
    data = np.full((1, 1, 1), 5 | 9 << 32, np.uint64)  # new 5, expected 9
    result = meaning("s_atomic_cmpswap", glc=glc)(lanes, np.zeros((1, 1, 1), np.uint64), data)
    assert int(result.item()) == (7 | 9 << 32 if glc else 5 | 9 << 32)
    assert lanes.asked == [("compare_exchange", [9, 5])]


class Memory(IntegerLanes):
    """One place in memory, which only says what it was asked for."""

    def __init__(self, old: int) -> None:
        self.old = old
        self.asked: list[tuple[str, list[int]]] = []

    def atomic(self, space: str, address: Any, op: str, operands: Any, fmt: str = "", **how: Any) -> Any:
        self.asked.append((op, [int(o.item()) for o in operands]))
        return np.full((1, 1, 1), self.old, operands[0].dtype)
