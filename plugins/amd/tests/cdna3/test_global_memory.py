"""Flat, global and scratch accesses: address forms, widths at any byte, halves, atomics, loads to LDS, what each wait covers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cdna3.memory_machine import BASE, LDS_BYTES, SCRATCH_WINDOW, SHARED_WINDOW, Outcome, inst, run, s, v

RNG = np.random.default_rng(11)
LANES = np.arange(64)
EXEC = RNG.random(64) < 0.7
OLD = RNG.integers(0, 1 << 32, 64, np.uint64).astype(np.uint32)
MEMORY = RNG.integers(0, 1 << 32, 512, np.uint64).astype(np.uint32)


def clean(out: Outcome) -> Outcome:
    assert out.findings == (), out.findings
    return out


def wide(address: Any) -> np.ndarray:
    """64-bit addresses as pairs of registers."""
    address = np.broadcast_to(np.asarray(address, np.uint64), 64)
    return np.stack([address & 0xFFFFFFFF, address >> np.uint64(32)]).astype(np.uint32)


WIDTHS = [("dword", 1), ("dwordx2", 2), ("dwordx3", 3), ("dwordx4", 4)]


@pytest.mark.parametrize("prefix", ["global", "flat"])
@pytest.mark.parametrize(("name", "count"), WIDTHS)
def test_loads_take_any_byte(prefix: str, name: str, count: int) -> None:
    at = RNG.integers(64, 1500, 64)
    offset = 9 if prefix == "flat" else -9
    held = {v(2, 2): wide(BASE + at)} | {v(4 + i): OLD for i in range(count)}
    load = inst(f"{prefix}_load_{name}", {"d": v(4, count), "vaddr": v(2, 2)}, offset=offset)
    out = clean(run(load, held, (v(4, count),), exec_lanes=EXEC, memory=MEMORY))
    for lane in range(64):
        place = int(at[lane]) + offset
        want = np.frombuffer(MEMORY.tobytes()[place : place + 4 * count], np.uint32).tolist()
        assert [int(r[lane]) for r in out.registers] == (want if EXEC[lane] else [int(OLD[lane])] * count)


def test_a_scalar_base_takes_an_unsigned_register_and_a_signed_offset() -> None:
    """`global_load_dword v1, v0, s[2:3] offset:-4096` with a register of more than 2 GB."""
    far = 0x90000000
    at = LANES * 8 + 4096 + far
    held = {v(0): at, s(2, 2): [(BASE - far) & 0xFFFFFFFF, (BASE - far) >> 32]}
    load = inst("global_load_dword", {"d": v(1), "vaddr": v(0), "saddr": s(2, 2)}, offset=-4096)
    out = clean(run(load, held, (v(1),), memory=MEMORY))
    assert out.registers[0].tolist() == MEMORY[LANES * 2].tolist()


NARROW = [("ubyte", 1, False, ""), ("sbyte", 1, True, ""), ("ushort", 2, False, ""), ("sshort", 2, True, "")] + [
    (f"{name}{half}", size, signed, half)
    for name, size, signed in (("ubyte", 1, False), ("sbyte", 1, True), ("short", 2, False))
    for half in ("_d16", "_d16_hi")
]


@pytest.mark.parametrize(("name", "size", "signed", "half"), NARROW)
def test_narrow_loads_extend_or_fill_a_half(name: str, size: int, signed: bool, half: str) -> None:
    at = RNG.integers(0, 2000, 64)
    load = inst(f"global_load_{name}", {"d": v(4), "vaddr": v(2, 2)})
    out = clean(run(load, {v(2, 2): wide(BASE + at), v(4): OLD}, (v(4),), exec_lanes=EXEC, memory=MEMORY))
    for lane in range(64):
        value = int.from_bytes(MEMORY.tobytes()[at[lane] : at[lane] + size], "little", signed=signed)
        old = int(OLD[lane])
        want = {"": value % 2**32, "_d16": old & 0xFFFF0000 | value % 2**16, "_d16_hi": old & 0xFFFF | value % 2**16 << 16}[half]
        assert int(out.registers[0][lane]) == (want if EXEC[lane] else old)


@pytest.mark.parametrize("prefix", ["global", "flat"])
@pytest.mark.parametrize(
    ("name", "size", "shift"),
    [("byte", 1, 0), ("byte_d16_hi", 1, 2), ("short", 2, 0), ("short_d16_hi", 2, 2), *((n, 4 * c, 0) for n, c in WIDTHS)],
)
def test_stores_write_their_bytes_and_no_others(prefix: str, name: str, size: int, shift: int) -> None:
    registers = max(1, size // 4)
    data = RNG.integers(0, 1 << 32, (registers, 64), np.uint64).astype(np.uint32)
    at = RNG.permutation(64) * 30 + 1
    held = {v(2, 2): wide(BASE + at), v(4, registers): data if registers > 1 else data[0]}
    out = clean(run(inst(f"{prefix}_store_{name}", {"vaddr": v(2, 2), "a": v(4, registers)}), held, exec_lanes=EXEC, memory=MEMORY))
    want = bytearray(MEMORY.tobytes())
    for lane in np.flatnonzero(EXEC):
        want[at[lane] : at[lane] + size] = data[:, lane].tobytes()[shift : shift + size]
    assert out.memory.tobytes() == bytes(want)


def test_flat_addresses_go_through_the_apertures() -> None:
    """A third of the lanes each to LDS, to scratch and to memory."""
    lds = RNG.integers(0, 1 << 32, LDS_BYTES // 4, np.uint64).astype(np.uint32)
    base = np.where(LANES % 3 == 0, SHARED_WINDOW, np.where(LANES % 3 == 1, SCRATCH_WINDOW, BASE)).astype(np.uint64)
    at = base + (LANES * 4).astype(np.uint64)
    held = {v(2, 2): wide(at), v(4): OLD}
    out = clean(run(inst("flat_store_dword", {"vaddr": v(2, 2), "a": v(4)}), held, memory=MEMORY, lds=lds))
    assert out.memory[:64].tolist() == np.where(LANES % 3 == 2, OLD, MEMORY[:64]).tolist()
    assert out.lds[:64].tolist() == np.where(LANES % 3 == 0, OLD, lds[:64]).tolist()


@pytest.mark.parametrize(
    ("operands", "held"),
    [
        ({"vaddr": v(0), "saddr": s(4)}, {v(0): 8, s(4): 12}),
        ({"vaddr": v(0)}, {v(0): 20}),
        ({"saddr": s(4)}, {s(4): 20}),
        ({}, {}),
    ],
    ids=["both", "vector", "scalar", "none"],
)
@pytest.mark.parametrize(("name", "count"), WIDTHS)
def test_scratch_is_each_lanes_own(operands: dict[str, Any], held: dict[Any, Any], name: str, count: int) -> None:
    data = np.stack([OLD + i for i in range(count)])
    common = {v(4, count): data if count > 1 else data[0]} | held
    offset = 4 if operands else 24
    store = inst(f"scratch_store_{name}", {"a": v(4, count), **operands}, offset=offset)
    load = inst(f"scratch_load_{name}", {"d": v(8, count), **operands}, offset=offset)
    out = clean(run([store, load], common, (v(8, count),)))
    assert [r.tolist() for r in out.registers] == data.tolist()


def test_scratch_beyond_the_lanes_part_is_a_finding() -> None:
    out = run(inst("scratch_store_dword", {"a": v(4), "vaddr": v(0)}), {v(4): 1, v(0): 300})
    assert [f.check for f in out.findings] == ["bounds"]


def test_memory_out_of_bounds_is_a_finding_with_lane_and_address() -> None:
    at = BASE + LANES * 4 + 4 * (512 - 40)
    out = run(inst("global_load_dword", {"d": v(4), "vaddr": v(2, 2)}), {v(2, 2): wide(at)}, memory=MEMORY)
    (finding,) = out.findings
    assert (finding.check, finding.lane) == ("bounds", 40)


# --- atomics -----------------------------------------------------------------------------------------------------------------

ATOMICS = {
    "swap": lambda m, a: a,
    "add": lambda m, a: m + a,
    "sub": lambda m, a: m - a,
    "umin": min,
    "umax": max,
    "and": lambda m, a: m & a,
    "or": lambda m, a: m | a,
    "xor": lambda m, a: m ^ a,
    "inc": lambda m, a: 0 if m >= a else m + 1,
    "dec": lambda m, a: a if m == 0 or m > a else m - 1,
}


def _signed_choice(choose: Any, bits: int) -> Any:
    return lambda m, a: choose(m, a, key=lambda x: x - (1 << bits) if x >> bits - 1 else x)


@pytest.mark.parametrize("prefix", ["global", "flat", "buffer"])
@pytest.mark.parametrize("name", [*ATOMICS, "smin", "smax"])
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("returns", [False, True])
def test_integer_atomics(prefix: str, name: str, bits: int, returns: bool) -> None:
    act = ATOMICS.get(name) or _signed_choice({"smin": min, "smax": max}[name], bits)
    word, n = (np.uint32, 1) if bits == 32 else (np.uint64, 2)
    rng = np.random.default_rng([bits, len(name)])
    cells = rng.choice(np.array([0, 1, 5, 2**bits - 1, 2 ** (bits - 1)], np.uint64), 8).astype(word)
    data, cell = rng.choice(np.array([0, 1, 2, 4, 2**bits - 3], np.uint64), 64).astype(word), rng.integers(0, 8, 64)
    memory = np.concatenate([cells, np.zeros(8, word)])
    parts = data if n == 1 else np.stack([data & 0xFFFFFFFF, data >> np.uint64(32)]).astype(np.uint32)
    held: dict[Any, Any] = {v(4, n): parts}
    step = _atomic(prefix, name + "_x2" * (n - 1), n, n, cell * bits // 8, held, returns)
    result = v(4 if prefix == "buffer" else 8, n)
    out = clean(run(step, held, (result,) if returns else (), exec_lanes=EXEC, memory=memory))
    want, old = [int(c) for c in cells], np.zeros(64, word)
    for lane in np.flatnonzero(EXEC):
        old[lane] = want[cell[lane]]
        want[cell[lane]] = act(want[cell[lane]], int(data[lane])) % 2**bits
    assert out.memory[:8].tolist() == want
    if returns:
        assert _joined(out.registers)[EXEC].tolist() == old[EXEC].tolist()


def _joined(registers: list[np.ndarray]) -> np.ndarray:
    return registers[0] if len(registers) == 1 else registers[0] + (registers[1].astype(np.uint64) << np.uint64(32))


def _atomic(prefix: str, name: str, results: int, data: int, at: np.ndarray, held: dict[Any, Any], returns: bool) -> Any:
    """The instruction; `held` gets the registers of its address."""
    returning = {"sc0": 1} if returns else {"sc0": 0}
    if prefix == "buffer":
        held |= {v(0): at, s(8, 4): descriptor(), s(12): 0}
        place = {"vaddr": v(0), "srsrc": s(8, 4), "soffset": s(12)}
        return inst(f"buffer_atomic_{name}", {"d": v(4, data), **place}, offen=1, **returning)
    held[v(2, 2)] = wide(BASE + at)
    given = {"vaddr": v(2, 2), "a": v(4, data)} | ({"d": v(8, results)} if returns else {})
    return inst(f"{prefix}_atomic_{name}", given, **returning)


def descriptor(records: int = 4096, stride: int = 0, base: int = BASE, last: int = 0x27000) -> list[int]:
    return [base & 0xFFFFFFFF, base >> 32 | stride << 16, records, last]


@pytest.mark.parametrize("prefix", ["global", "flat", "buffer"])
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("returns", [False, True])
def test_compare_and_swap_has_the_new_value_first(prefix: str, bits: int, returns: bool) -> None:
    n, word = bits // 32, np.uint32 if bits == 32 else np.uint64
    memory = np.arange(64, dtype=word)
    expected = np.where(LANES % 2, LANES, 77).astype(np.uint64)
    new = (LANES + 1000).astype(np.uint64)
    words = [part for value in (new, expected) for part in ([value] if n == 1 else [value, value >> np.uint64(32)])]
    held: dict[Any, Any] = {v(4, 2 * n): np.stack(words).astype(np.uint32)}
    step = _atomic(prefix, "cmpswap" + "_x2" * (n - 1), n, 2 * n, LANES * bits // 8, held, returns)
    kept = prefix == "buffer"
    out = clean(run(step, held, (v(4, 2 * n) if kept else v(8, n),) if returns or kept else (), memory=memory))
    assert out.memory.tolist() == np.where(LANES % 2, new, LANES).tolist()
    if returns:
        assert _joined(out.registers[:n]).tolist() == LANES.tolist()
    if kept:
        assert _joined(out.registers[n:]).tolist() == expected.tolist()
    if kept and not returns:
        assert _joined(out.registers[:n]).tolist() == new.tolist()


@pytest.mark.parametrize(("name", "dtype", "start", "data", "want"), [
    ("add_f32", np.float32, 1.0, 0.5, 33.0), ("add_f64", np.float64, 1.0, 0.25, 17.0), ("min_f64", np.float64, 1.0, -2.0, -2.0),
    ("max_f64", np.float64, 1.0, 8.0, 8.0), ("pk_add_f16", np.float16, 1.0, 0.5, 33.0),
])  # fmt: skip
@pytest.mark.parametrize("prefix", ["global", "flat", "buffer"])
def test_float_atomics(prefix: str, name: str, dtype: Any, start: float, data: float, want: float) -> None:
    n = 2 if dtype is np.float64 else 1
    memory = np.full(8, start, dtype)
    pattern = np.array([data, data], dtype).view(np.uint32)[:n]
    held: dict[Any, Any] = {v(4, n): pattern[0] if n == 1 else np.repeat(pattern[:, None], 64, axis=1)}
    out = clean(run(_atomic(prefix, name, n, n, LANES * 0, held, False), held, memory=memory))
    changed = 2 if dtype is np.float16 else 1
    assert out.memory.tolist() == [want] * changed + [start] * (8 - changed)


def test_bf16_pairs_add() -> None:
    held: dict[Any, Any] = {v(4): 0x40003F80}
    step = _atomic("global", "pk_add_bf16", 1, 1, LANES * 0, held, False)
    assert clean(run(step, held, memory=np.zeros(4, np.uint32))).memory.tolist() == [0x43004280, 0, 0, 0]


# --- to LDS ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "size"), [("dword", 4), ("ushort", 2), ("ubyte", 1)])
def test_a_load_to_lds_puts_a_dword_for_each_lane_behind_m0(name: str, size: int) -> None:
    at = RNG.integers(0, 400, 64) * 4
    lds = np.full(LDS_BYTES // 4, 5, np.uint32)
    load = inst(f"global_load_lds_{name}", {"vaddr": v(2, 2)}, offset=4)
    out = clean(run(load, {v(2, 2): wide(BASE + at), s(124): 0x40}, exec_lanes=EXEC, memory=MEMORY, lds=lds))
    want = lds.copy()
    want[17 + np.flatnonzero(EXEC)] = MEMORY[at[EXEC] // 4 + 1] & (2 ** (8 * size) - 1)
    assert out.lds.tolist() == want.tolist()


@pytest.mark.parametrize("name", ["sbyte", "sshort"])
def test_sign_extending_loads_to_lds_are_refused(name: str) -> None:
    out = run(inst(f"global_load_lds_{name}", {"vaddr": v(2, 2)}), {v(2, 2): wide(BASE), s(124): 0}, memory=MEMORY)
    assert [f.message for f in out.findings] == ["sign-extending loads to LDS are not simulated"]


def test_what_a_load_to_lds_brings_is_pending_before_its_wait() -> None:
    held = {v(2, 2): wide(BASE + LANES * 4), s(124): 0, v(0): LANES * 4}
    steps = [inst("global_load_lds_dword", {"vaddr": v(2, 2)}), inst("ds_read_b32", {"d": v(1), "addr": v(0)})]
    out = run(steps, held, (v(1),), memory=MEMORY, lds=np.zeros(LDS_BYTES // 4, np.uint32))
    assert "pending" in [f.check for f in out.findings]


# --- what waits cover -------------------------------------------------------------------------------------------------------------

PENDING: list[tuple[str, dict[str, Any], dict[str, int], tuple[str, ...]]] = [
    ("global_load_dword", {"d": v(8), "vaddr": v(2, 2)}, {}, ("vmcnt",)),
    ("global_load_ubyte_d16", {"d": v(8), "vaddr": v(2, 2)}, {}, ("vmcnt",)),
    ("flat_load_dword", {"d": v(8), "vaddr": v(2, 2)}, {}, ("vmcnt", "lgkmcnt")),
    ("scratch_load_dword", {"d": v(8), "vaddr": v(0)}, {}, ("vmcnt",)),
    ("ds_read_b32", {"d": v(8), "addr": v(0)}, {}, ("lgkmcnt",)),
    ("ds_bpermute_b32", {"d": v(8), "addr": v(0), "a": v(4)}, {}, ("lgkmcnt",)),
    ("global_atomic_add", {"d": v(8), "vaddr": v(2, 2), "a": v(4)}, {"sc0": 1}, ("vmcnt",)),
    ("buffer_load_dword", {"d": v(8), "vaddr": v(0), "srsrc": s(8, 4), "soffset": s(12)}, {"offen": 1}, ("vmcnt",)),
    ("buffer_atomic_add", {"d": v(8), "vaddr": v(0), "srsrc": s(8, 4), "soffset": s(12)}, {"offen": 1, "sc0": 1}, ("vmcnt",)),
]


@pytest.mark.parametrize(("name", "operands", "modifiers", "queues"), PENDING, ids=[p[0] for p in PENDING])
def test_a_result_is_pending_until_its_counters_are_zero(
    name: str, operands: dict[str, Any], modifiers: dict[str, int], queues: tuple[str, ...]
) -> None:
    held = {v(2, 2): wide(BASE), v(0): 0, v(4): 1, v(8): 0, s(8, 4): descriptor(), s(12): 0}
    checks = frozenset({"pending"})
    for left_out in (*queues, ""):
        waited = tuple(q for q in queues if q != left_out)
        out = run(inst(name, operands, **modifiers), held, (v(8),), memory=MEMORY, lds=MEMORY, waits=waited, checks=checks)
        assert [f.code for f in out.findings] == (["TFW0820"] if left_out else [])


def test_the_data_of_a_buffer_atomic_without_result_is_not_pending() -> None:
    held = {v(0): 0, v(8): 0, s(8, 4): descriptor(), s(12): 0}
    step = inst("buffer_atomic_add", {"d": v(8), "vaddr": v(0), "srsrc": s(8, 4), "soffset": s(12)}, offen=1)
    clean(run(step, held, (v(8),), memory=MEMORY, waits=()))
