"""LDS: every width at any byte, two offsets, halves of registers, atomics, moves between lanes; with lanes off."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from served import ISA

from cdna3.memory_machine import LDS_BYTES, Outcome, inst, run, s, v
from tilefw_amd.isa.row import Mode, Modifiers

RNG = np.random.default_rng(3)
LANES = np.arange(64)
EXEC = RNG.random(64) < 0.7
OLD = RNG.integers(0, 1 << 32, 64, np.uint64).astype(np.uint32)


def filled() -> np.ndarray:
    return np.random.default_rng(5).integers(0, 1 << 32, LDS_BYTES // 4, np.uint64).astype(np.uint32)


def words_at(raw: bytes, address: int, count: int) -> list[int]:
    return np.frombuffer(raw[address : address + 4 * count], np.uint32).tolist()


def clean(out: Outcome) -> Outcome:
    assert out.findings == (), out.findings
    return out


@pytest.mark.parametrize(("name", "count"), [("ds_read_b32", 1), ("ds_read_b64", 2), ("ds_read_b96", 3), ("ds_read_b128", 4)])
def test_wide_loads_take_any_byte(name: str, count: int) -> None:
    lds, at = filled(), RNG.integers(0, LDS_BYTES - 32, 64)
    held = {v(2): at} | {v(4 + i): OLD for i in range(count)}
    out = clean(run(inst(name, {"d": v(4, count), "addr": v(2)}, offset=7), held, (v(4, count),), exec_lanes=EXEC, lds=lds))
    raw = lds.tobytes()
    for lane in range(64):
        want = words_at(raw, int(at[lane]) + 7, count) if EXEC[lane] else [int(OLD[lane])] * count
        assert [int(r[lane]) for r in out.registers] == want


HALVES = ("", "_d16", "_d16_hi")
NARROW = [(f"{k}{8 * n}{h}", n, k == "i", h) for k in "iu" for n in (1, 2) for h in HALVES if not (k == "i" and n == 2 and h)]


@pytest.mark.parametrize(("kind", "size", "signed", "half"), NARROW)
def test_narrow_loads_extend_or_fill_a_half(kind: str, size: int, signed: bool, half: str) -> None:
    lds, at = filled(), RNG.integers(0, LDS_BYTES - 2, 64)
    out = clean(run(inst(f"ds_read_{kind}", {"d": v(3), "addr": v(2)}), {v(2): at, v(3): OLD}, (v(3),), exec_lanes=EXEC, lds=lds))
    raw = lds.tobytes()
    for lane in range(64):
        value = int.from_bytes(raw[at[lane] : at[lane] + size], "little", signed=signed)
        old = int(OLD[lane])
        want = {
            "": value % 2**32, "_d16": old & 0xFFFF0000 | value % 2**16, "_d16_hi": old & 0xFFFF | value % 2**16 << 16,
        }[half]
        assert int(out.registers[0][lane]) == (want if EXEC[lane] else old)


STORES = [("b8", 1, 0), ("b16", 2, 0), ("b8_d16_hi", 1, 16), ("b16_d16_hi", 2, 16)] + [(f"b{8 * n}", n, 0) for n in (4, 8, 12, 16)]


@pytest.mark.parametrize(("kind", "size", "shift"), STORES)
def test_stores_write_their_bytes_and_no_others(kind: str, size: int, shift: int) -> None:
    lds, registers = filled(), max(1, size // 4)
    data = RNG.integers(0, 1 << 32, (registers, 64), np.uint64).astype(np.uint32)
    at = RNG.permutation(64) * 60 + 1
    out = clean(run(inst(f"ds_write_{kind}", {"addr": v(1), "a": v(2, registers)}, offset=2), {v(1): at, v(2, registers): data},
                    exec_lanes=EXEC, lds=lds))
    want = bytearray(lds.tobytes())
    for lane in np.flatnonzero(EXEC):
        place = at[lane] + 2
        want[place : place + size] = (data[:, lane].tobytes()[shift // 8 :])[:size]
    assert out.lds.tobytes() == bytes(want)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize(("infix", "scale"), [("2", 1), ("2st64", 64)])
def test_two_offsets_count_elements(bits: int, infix: str, scale: int) -> None:
    lds, n = filled(), bits // 32
    at, first, second = RNG.integers(0, 64, 64), 0, 3
    load = inst(f"ds_read{infix}_b{bits}", {"d": v(4, 2 * n), "addr": v(1)}, offset0=first, offset1=second)
    out = clean(run(load, {v(1): at}, (v(4, 2 * n),), lds=lds))
    for lane in range(64):
        places = [int(at[lane]) + offset * scale * bits // 8 for offset in (first, second)]
        assert [int(r[lane]) for r in out.registers] == [w for p in places for w in words_at(lds.tobytes(), p, n)]


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize(("infix", "scale"), [("2", 1), ("2st64", 64)])
@pytest.mark.parametrize("exchange", [False, True])
def test_two_stores_or_exchanges(bits: int, infix: str, scale: int, exchange: bool) -> None:
    lds, n = filled(), bits // 32
    at, second = LANES * bits // 8, 2 if scale == 64 else 100
    a, b = (RNG.integers(0, 1 << 32, (n, 64), np.uint64).astype(np.uint32) for _ in range(2))
    name, results = (f"ds_wrxchg{infix}_rtn_b{bits}", {"d": v(8, 2 * n)}) if exchange else (f"ds_write{infix}_b{bits}", {})
    step = inst(name, {**results, "addr": v(1), "a": v(2, n), "b": v(4, n)}, offset0=0, offset1=second)
    held = {v(1): at, v(2, n): a if n > 1 else a[0], v(4, n): b if n > 1 else b[0]}
    out = clean(run(step, held, tuple(results.values()), lds=lds))
    want = lds.copy()
    for lane in range(64):
        for data, offset in ((a, 0), (b, second * scale)):
            place = (int(at[lane]) + offset * bits // 8) // 4
            want[place : place + n] = data[:, lane]
    assert out.lds.tolist() == want.tolist()
    if exchange:
        places = [offset // 4 + word for offset in (0, second * scale * bits // 8) for word in range(n)]
        for register, place in zip(out.registers, places, strict=True):
            assert register.tolist() == [int(lds[at[lane] // 4 + place]) for lane in range(64)]


@pytest.mark.parametrize("bits", [32, 64])
def test_a_store_to_one_place_twice_takes_the_first_data(bits: int) -> None:
    lds, n = filled(), bits // 32
    a, b = (RNG.integers(0, 1 << 32, (n, 64), np.uint64).astype(np.uint32) for _ in range(2))
    held = {v(1): LANES * bits // 8, v(2, n): a if n > 1 else a[0], v(4, n): b if n > 1 else b[0]}
    out = clean(run(inst(f"ds_write2_b{bits}", {"addr": v(1), "a": v(2, n), "b": v(4, n)}, offset0=1, offset1=1), held, lds=lds))
    want = lds.copy()
    want[n : n + 64 * n] = a.T.reshape(-1)
    assert out.lds.tolist() == want.tolist()


@pytest.mark.parametrize("name", ["ds_read2_b32", "ds_read2st64_b64", "ds_wrxchg2_rtn_b32"])
def test_two_results_of_one_place_are_refused(name: str) -> None:
    modifiers = Modifiers(offset0=3, offset1=3)
    modifiers.mode = Mode()
    with pytest.raises(ValueError, match="both offsets are 3"):
        ISA.rows[name].build(modifiers)


def test_addresses_by_lane_begin_at_m0() -> None:
    lds = filled()
    held = {s(124): 0xABCD0040, v(2): OLD}
    out = clean(run(inst("ds_read_addtid_b32", {"d": v(1)}, offset=8), held, (v(1),), lds=lds))
    assert out.registers[0].tolist() == lds[18 : 18 + 64].tolist()
    out = clean(run(inst("ds_write_addtid_b32", {"a": v(2)}, offset=8), held, exec_lanes=EXEC, lds=lds))
    assert out.lds[18 : 18 + 64].tolist() == np.where(EXEC, OLD, lds[18 : 18 + 64]).tolist()


def test_beyond_the_workgroups_lds_is_a_finding() -> None:
    out = run(inst("ds_read_b32", {"d": v(1), "addr": v(2)}), {v(2): LDS_BYTES - 3}, (), lds=filled())
    assert [f.check for f in out.findings] == ["bounds"]


# --- atomics -----------------------------------------------------------------------------------------------------------------


def _signed(x: int, bits: int) -> int:
    return x - (1 << bits) if x >> bits - 1 else x


def _floats(bits: int) -> tuple[Callable[[int], Any], Callable[[Any], int]]:
    kind, word = (np.float32, np.uint32) if bits == 32 else (np.float64, np.uint64)
    return lambda x: np.array([x], word).view(kind)[0], lambda y: int(np.array([y], kind).view(word)[0])


def _sequential(name: str, kind: str, bits: int) -> Callable[..., int]:
    """The pseudocode of the CDNA3 ISA on Python's integers."""
    value, pattern = _floats(bits)
    top = 1 << bits
    if kind == "f":
        return {
            "add": lambda m, a: pattern(value(m) + value(a)), "min": lambda m, a: pattern(min(value(m), value(a))),
            "max": lambda m, a: pattern(max(value(m), value(a))), "cmpst": lambda m, a, b: b if value(m) == value(a) else m,
        }[name]
    order = (lambda x: _signed(x, bits)) if kind == "i" else (lambda x: x)
    return {
        "add": lambda m, a: (m + a) % top, "sub": lambda m, a: (m - a) % top, "rsub": lambda m, a: (a - m) % top,
        "inc": lambda m, a: 0 if m >= a else m + 1, "dec": lambda m, a: a if m == 0 or m > a else m - 1,
        "min": lambda m, a: min(m, a, key=order), "max": lambda m, a: max(m, a, key=order), "and": lambda m, a: m & a,
        "or": lambda m, a: m | a, "xor": lambda m, a: m ^ a, "wrxchg": lambda m, a: a, "mskor": lambda m, a, b: m & ~a | b,
        "cmpst": lambda m, a, b: b if m == a else m, "wrap": lambda m, a, b: m - a if m >= a else (m + b) % top,
    }[name]


INTEGERS = [("add", "u"), ("sub", "u"), ("rsub", "u"), ("inc", "u"), ("dec", "u"), ("min", "i"), ("max", "i"), ("min", "u"),
            ("max", "u"), ("and", "b"), ("or", "b"), ("xor", "b"), ("wrxchg", "b"), ("mskor", "b"), ("cmpst", "b")]  # fmt: skip
FLOATS = [("add", "f"), ("min", "f"), ("max", "f"), ("cmpst", "f")]
CASES = [(n, k, b) for b in (32, 64) for n, k in INTEGERS + FLOATS] + [("wrap", "b", 32)]


ATOMICS = [(*case, returns) for case in CASES for returns in (False, True) if returns or case[0] not in ("wrxchg", "wrap")]


@pytest.mark.parametrize(("name", "kind", "bits", "returns"), ATOMICS, ids=[f"{n}{'_rtn' * r}_{k}{b}" for n, k, b, r in ATOMICS])
def test_atomics_act_lane_by_lane(name: str, kind: str, bits: int, returns: bool) -> None:
    rng, n, step = random.Random(f"{name}{kind}{bits}"), bits // 32, bits // 8
    word, (_, pattern) = np.uint32 if bits == 32 else np.uint64, _floats(bits)

    def sample() -> int:
        return pattern(rng.choice([-2.0, 0.5, 1.0, 3.0])) if kind == "f" else rng.choice([0, 1, 2, rng.getrandbits(bits)])

    cells = np.array([sample() for _ in range(8)], word)
    at = np.array([rng.randrange(8) * step for _ in range(64)])
    data = [np.array([sample() for _ in range(64)], word) for _ in range(2 if name in ("mskor", "cmpst", "wrap") else 1)]
    operands = {"addr": v(0)} | {o: v(2 + 2 * i, n) for i, o in enumerate("ab"[: len(data)])}
    held = {v(0): at} | {v(2 + 2 * i, n): d if n == 1 else d.view(np.uint32).reshape(64, 2).T for i, d in enumerate(data)}
    full = f"ds_{name}_{'rtn_' if returns else ''}{kind}{bits}"
    lds = np.zeros(LDS_BYTES // 4, np.uint32)
    lds[: 8 * n] = cells.view(np.uint32)
    out = clean(run(inst(full, ({"d": v(8, n)} if returns else {}) | operands), held, (v(8, n),) if returns else (),
                    exec_lanes=EXEC, lds=lds))
    act, old = _sequential(name, kind, bits), np.zeros(64, word)
    for lane in np.flatnonzero(EXEC):
        cell = at[lane] // step
        old[lane] = cells[cell]
        cells[cell] = act(int(cells[cell]), *(int(d[lane]) for d in data))
    assert out.lds[: 8 * n].tolist() == cells.view(np.uint32).tolist()
    if returns:
        got = np.stack(out.registers, axis=1).copy().view(word)[:, 0]
        assert got[EXEC].tolist() == old[EXEC].tolist()


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_packed_halves_add_by_half(element: str) -> None:
    one_two = {"f16": np.array([1, 2], np.float16).view(np.uint32)[0], "bf16": np.uint32(0x40003F80)}[element]
    lds = np.zeros(LDS_BYTES // 4, np.uint32)
    out = clean(run(inst(f"ds_pk_add_{element}", {"addr": v(0), "a": v(1)}), {v(0): 0, v(1): one_two}, lds=lds))
    want = {"f16": np.array([64, 128], np.float16).view(np.uint32)[0], "bf16": np.uint32(0x43004280)}[element]
    assert out.lds[0] == want


def test_a_conditional_exchange_takes_words_with_their_top_bit() -> None:
    lds = np.zeros(LDS_BYTES // 4, np.uint32)
    lds[2:4] = 7, 9
    held = {v(0): 12, v(2, 2): [0x80000005, 0x6]}
    only = LANES == 20
    step = inst("ds_condxchg32_rtn_b64", {"d": v(4, 2), "addr": v(0), "a": v(2, 2)})
    out = clean(run(step, held, (v(4, 2),), exec_lanes=only, lds=lds))
    assert out.lds[2:4].tolist() == [5, 9] and [int(r[20]) for r in out.registers] == [7, 9]


def test_atomics_must_be_aligned() -> None:
    out = run(inst("ds_add_u32", {"addr": v(0), "a": v(1)}), {v(0): 2, v(1): 1}, lds=filled())
    assert "alignment" in [f.check for f in out.findings]


@pytest.mark.parametrize(("name", "sign"), [("ds_append", 1), ("ds_consume", -1)])
def test_counters_of_lanes_move_once_a_wave(name: str, sign: int) -> None:
    lds = np.full(LDS_BYTES // 4, 100, np.uint32)
    out = clean(run(inst(name, {"d": v(1)}, offset=4), {s(124): 16}, (v(1),), exec_lanes=EXEC, lds=lds))
    assert out.lds[5] == 100 + sign * int(EXEC.sum()) and out.lds.sum() == 100 * len(lds) + sign * int(EXEC.sum())
    assert set(out.registers[0][EXEC].tolist()) == {100}


# --- between lanes -------------------------------------------------------------------------------------------------------------


def test_bpermute_reads_from_lanes_that_are_on() -> None:
    at = RNG.integers(0, 1 << 32, 64, np.uint64).astype(np.uint32)
    step = inst("ds_bpermute_b32", {"d": v(3), "addr": v(1), "a": v(2)}, offset=4)
    out = clean(run(step, {v(1): at, v(2): OLD, v(3): 1}, (v(3),), exec_lanes=EXEC))
    source = (at.astype(np.uint64) + 4) // 4 % 64
    assert out.registers[0].tolist() == np.where(EXEC, np.where(EXEC[source], OLD[source], 0), 1).tolist()


def test_permute_sends_and_the_highest_sender_wins() -> None:
    at = RNG.integers(0, 1 << 32, 64, np.uint64).astype(np.uint32) & 0xFFFFFF7F  # half of the lanes get nothing
    step = inst("ds_permute_b32", {"d": v(3), "addr": v(1), "a": v(2)}, offset=8)
    out = clean(run(step, {v(1): at, v(2): OLD, v(3): 1}, (v(3),), exec_lanes=EXEC))
    want = np.zeros(64, np.uint32)
    for lane in np.flatnonzero(EXEC):
        want[(int(at[lane]) + 8) % 2**32 // 4 % 64] = OLD[lane]
    assert out.registers[0].tolist() == np.where(EXEC, want, 1).tolist()


def _swizzled(offset: int, lane: int) -> int:
    """The pseudocode of DS_SWIZZLE_B32 (Vega and CDNA ISA documents)."""
    low, group = lane & 31, lane & 32
    mask = offset & 31
    if offset >= 0xE000:
        j = int(f"{low:05b}"[::-1], 2) >> mask.bit_count()
        return j | low & mask | group
    if offset >= 0xC000:
        turn = offset >> 5 & 31
        moved = low + (-turn if offset >> 10 & 1 else turn)
        return low & mask | moved & ~mask & 31 | group
    if offset >> 15:
        return lane & ~3 | offset >> 2 * (lane & 3) & 3
    return ((low & mask | offset >> 5 & 31) ^ offset >> 10 & 31) | group


SWIZZLES = [0x801F, 0x041F, 0x7C00, 0x03E0, 0x5555, 0x80E4, 0x801B, 0xC020, 0xC423, 0xC7E7, 0xE000, 0xE010, 0xE01F, 0xE00A]


@pytest.mark.parametrize("offset", SWIZZLES)
def test_swizzles(offset: int) -> None:
    step = inst("ds_swizzle_b32", {"d": v(3), "addr": v(2)}, offset=offset)
    out = clean(run(step, {v(2): OLD, v(3): 1}, (v(3),), exec_lanes=EXEC))
    source = np.array([_swizzled(offset, lane) for lane in range(64)])
    assert out.registers[0].tolist() == np.where(EXEC, np.where(EXEC[source], OLD[source], 0), 1).tolist()


def test_the_ffts_first_pattern_is_the_manuals() -> None:
    """CDNA ISA, DS_SWIZZLE_B32, offset 0x00 and 0x10; lanes counted from 1."""
    first = [1, 17, 9, 25, 5, 21, 13, 29, 3, 19, 11, 27, 7, 23, 15, 31, 2, 18, 10, 26, 6, 22, 14, 30, 4, 20, 12, 28, 8, 24, 16, 32]
    assert [_swizzled(0xE000, lane) + 1 for lane in range(32)] == first
    half = [1, 9, 5, 13, 3, 11, 7, 15, 2, 10, 6, 14, 4, 12, 8, 16]
    assert [_swizzled(0xE010, lane) + 1 for lane in range(32)] == half + [x + 16 for x in half]
