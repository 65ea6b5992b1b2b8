"""Gathers and scatters agree with plain Python, byte by byte, for any addresses, widths and masks."""

import resource
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import run

from tilefw.api.errors import LaunchError
from tilefw.sim.memory.atomics import perform
from tilefw.sim.memory.regions import ALIGNMENT, GUARD_BYTES, GlobalMemory, Region, gather, gather_poison, scatter

WIDTHS = [1, 2, 4, 8, 16]


@settings(max_examples=60, deadline=None)
@given(width=st.sampled_from(WIDTHS), data=st.data())
def test_gather_reads_the_bytes_at_each_offset(width, data):
    region = Region(0, 100)
    region.initialise(0, bytes(range(100)))
    step = data.draw(st.sampled_from([1, width]))
    offsets = data.draw(st.lists(st.integers(0, (100 - width) // step).map(lambda i: i * step), min_size=1, max_size=20))
    got = gather(region, np.array(offsets, np.int64), width)
    assert got.tobytes() == b"".join(bytes(range(o, o + width)) for o in offsets)


@settings(max_examples=60, deadline=None)
@given(width=st.sampled_from(WIDTHS), data=st.data())
def test_scatter_writes_in_order_so_that_the_last_stays(width, data):
    region = Region(0, 96)
    step = data.draw(st.sampled_from([1, width]))
    offsets = data.draw(st.lists(st.integers(0, (96 - width) // step).map(lambda i: i * step), min_size=1, max_size=20))
    values = data.draw(st.binary(min_size=width * len(offsets), max_size=width * len(offsets)))
    want = bytearray(96)
    for place, offset in enumerate(offsets):
        want[offset : offset + width] = values[place * width : (place + 1) * width]
    elements = np.frombuffer(values, dtype=region.view(width).dtype)
    scatter(region.data, region.view(width), np.array(offsets, np.int64), elements, width)
    assert region.data[:96].tobytes() == bytes(want)


def test_poison_goes_bit_by_bit_and_settles_when_all_is_written():
    region = Region(0, 20)
    region.initialise(0, bytes(10))
    assert gather_poison(region, np.array([8]), 4).tolist() == [0xFFFF0000]
    region.initialise(10, bytes(10))
    region.settle()
    assert region.poison is None


def test_allocations_stand_apart_and_are_found_by_address():
    memory = GlobalMemory()
    first, second = memory.allocate(100, label="a"), memory.allocate(50, label="b")
    a, b = memory.region(first), memory.region(second)
    assert b.base - (a.base + a.size) >= GUARD_BYTES and a.base % 512 == b.base % 512 == 0
    assert memory.find(a.base + 99) is a and memory.find(b.base) is b and memory.find(0) is None
    assert memory.nearest(b.base - 4) is b and memory.nearest(a.base + 104) is a
    memory.free(first)
    assert memory.find(b.base) is b and memory.used == 50
    with pytest.raises(LaunchError):
        memory.region(first)


def test_memory_has_an_end():
    memory = GlobalMemory(limit=1000)
    memory.allocate(900)
    with pytest.raises(LaunchError, match="out of simulated memory"):
        memory.allocate(200)
    with pytest.raises(LaunchError):
        memory.allocate(-1)


def _sequential(op: str, old: int, operands: tuple[int, ...]) -> int:
    signed = [v - 2**32 if v >= 2**31 else v for v in (old, operands[0])]
    b = operands[0]
    return {
        "add": (old + b) % 2**32, "and": old & b, "or": old | b, "xor": old ^ b, "exchange": b, "min_u": min(old, b),
        "max_u": max(old, b), "min_s": min(signed) % 2**32, "max_s": max(signed) % 2**32, "inc": 0 if old >= b else old + 1,
        "dec": b if old == 0 or old > b else old - 1, "compare_exchange": operands[-1] if old == b else old,
        "sub_from": (b - old) % 2**32, "mask_or": old & ~b | operands[-1],
        "wrap": old - b if old >= b else (old + operands[-1]) % 2**32,
    }[op]


OPS = ["add", "and", "or", "xor", "exchange", "min_u", "max_u", "min_s", "max_s", "inc", "dec", "compare_exchange"]
OPS += ["sub_from", "mask_or", "wrap"]


@pytest.mark.parametrize("op", OPS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_atomics_are_one_after_the_other(op, data):
    count = data.draw(st.integers(1, 40))
    words = st.one_of(st.integers(0, 5), st.integers(0, 2**32 - 1))
    index = [4 * data.draw(st.integers(0, 3)) for _ in range(count)]
    alike = data.draw(st.booleans())  # all lanes with one lane's operands, as those that wait for a lock
    number = 2 if op in ("compare_exchange", "mask_or", "wrap") else 1
    operands = [[data.draw(words)] * count if alike else [data.draw(words) for _ in range(count)] for _ in range(number)]
    start = [data.draw(words) for _ in range(4)]
    region = Region(0, 16)
    region.initialise(0, np.array(start, np.uint32).tobytes())
    arrays = [np.array(o, np.uint32) for o in operands]
    got, changed = perform(region, np.array(index, np.int64), 4, op, arrays, "", None)
    memory, want = list(start), []
    for lane in range(count):
        place = index[lane] // 4
        want.append(memory[place])
        memory[place] = _sequential(op, memory[place], tuple(o[lane] for o in operands))
    assert got.tolist() == want and region.data[:16].view(np.uint32).tolist() == memory
    assert changed == (memory != start)


def test_float_atomics_add_one_after_the_other():
    values = np.random.default_rng(0).standard_normal(100).astype(np.float32)
    for count in (3, 100):
        region = Region(0, 16)
        region.initialise(0, bytes(16))
        perform(region, np.zeros(count, np.int64), 4, "fadd", [values[:count].view(np.uint32)], "f32", None)
        total = np.float32(0)
        for v in values[:count]:
            total = np.float32(total + v)
        assert region.data[:4].view(np.float32)[0] == total


def test_a_float_compare_exchange_compares_values():
    region = Region(0, 16)
    region.initialise(0, np.array([-0.0, np.nan], np.float32).tobytes() + bytes(8))
    expected, new = np.array([0.0, np.nan], np.float32), np.array([5.0, 6.0], np.float32)
    perform(region, np.array([0, 4]), 4, "compare_exchange", [expected.view(np.uint32), new.view(np.uint32)], "f32", None)
    assert region.data[:4].view(np.float32)[0] == 5 and np.isnan(region.data[4:8].view(np.float32)[0])


def test_packed_halves_add_each_half():
    region = Region(0, 16)
    region.initialise(0, np.array([1, 2], np.float16).tobytes() + bytes(12))
    perform(region, np.zeros(2, np.int64), 4, "fadd", [np.array([3, 4, 5, 6], np.float16).view(np.uint32)], "f16x2", None)
    assert region.data[:4].view(np.float16).tolist() == [9, 12]


@settings(max_examples=20, deadline=None)
@given(block=st.integers(1, 40), limit=st.integers(0, 40), grid=st.integers(1, 3))
def test_any_block_and_mask_stores_exactly_its_lanes(block, limit, grid):
    out = run(f"""
        param a0, arg0
        mul r0, group, {block}
        add r0, r0, tid
        index a1, a0, r0
        lt p0, tid, {limit}
        @p0 store a1, r0
        end""", np.full(block * grid, 999, np.uint32), block=block, grid=grid)
    want = [g * block + t if t < limit else 999 for g in range(grid) for t in range(block)]
    assert out.report.findings == () and out.arrays[0].tolist() == want


def test_each_thread_has_local_memory_of_its_own():
    out = run("""
        param a0, arg0
        sstore local, tid
        sload r1, local
        index a1, a0, tid
        store a1, r1
        end""", np.zeros(40, np.uint32), block=40, local=16)
    assert out.report.findings == () and out.arrays[0].tolist() == list(range(40))


@settings(max_examples=20, deadline=None)
@given(size=st.integers(1, 20), inside=st.integers(0, 20), guarded=st.integers(0, 20))
def test_an_access_with_a_predicate_touches_only_where_it_holds(size, inside, guarded):
    """Lanes from `inside` on would be out of bounds; the guard takes more lanes away."""
    inside = min(inside, size)
    out = run(f"""
        param a0, arg0
        param a2, arg1
        lt p0, tid, {inside}
        lt p1, tid, {guarded}
        index a1, a0, tid
        mov r0, 7
        mov r1, 7
        @p1 load_where r0, p0, a1
        @p1 store_where p0, a1, 1000
        @p1 atomadd_where r1, p0, a1, tid
        index a3, a2, tid
        add r0, r0, r1
        store a3, r0
        end""", np.arange(size, dtype=np.uint32), np.zeros(20, np.uint32), block=20)
    assert out.report.findings == ()
    touched = [t < inside and t < guarded for t in range(20)]
    assert out.arrays[0].tolist() == [1000 + t if touched[t] else t for t in range(size)]
    assert out.arrays[1].tolist() == [t + 1000 if touched[t] else 0 if t < guarded else 14 for t in range(20)]


def test_the_predicate_of_an_access_must_be_defined():
    out = run("""
        param a0, arg0
        undef r0
        eq p0, r0, 0
        load_where r1, p0, a0
        end""", np.zeros(4, np.uint32))
    assert "whether a lane accesses memory" in out.finding("initialisation").message


def test_large_memory_takes_room_only_where_it_is_touched() -> None:
    """Copies in skip pages that are zero: a gigabyte and a half of nothing is neither written nor poisoned."""
    host = np.zeros((3 << 30) // 2, np.uint8)
    host[-1], host[5 << 20] = 7, 9
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    region = Region(0, host.size)
    region.initialise(0, memoryview(host))
    assert region.poison is None
    assert (region.data[-1], region.data[5 << 20], region.data[0]) == (7, 9, 0)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10  # KiB
    region.initialise(5 << 20, bytes(1))
    assert region.data[5 << 20] == 0


def test_memory_that_is_written_in_part_keeps_its_poison() -> None:
    region = Region(0, 32)
    region.initialise(8, bytes(4))
    assert region.poison is not None
    assert region.poison[8:12].max() == 0 and region.poison[:8].min() == 0xFF == region.poison[12:32].min()


def test_addresses_of_a_small_address_space_are_given_again_when_it_is_used_up():
    memory = GlobalMemory(first=1 << 28, end=1 << 32)
    kept = memory.allocate(1000)
    for _ in range(200):
        memory.free(memory.allocate(64 << 20))
    assert memory.region(kept).base == 1 << 28
    handles = [memory.allocate(100 << 20) for _ in range(8)]
    regions = sorted((memory.region(h) for h in (kept, *handles)), key=lambda region: region.base)
    for below, above in pairwise(regions):
        assert below.base + below.size + GUARD_BYTES <= above.base
    assert regions[-1].base + regions[-1].size <= 1 << 32
    assert all(memory.find(region.base) is region for region in regions)


def test_more_than_a_small_address_space_is_refused():
    memory = GlobalMemory(first=1 << 28, end=1 << 29)
    with pytest.raises(LaunchError, match="out of simulated memory"):
        memory.allocate(1 << 28)
    with pytest.raises(LaunchError, match="out of simulated memory"):
        memory.allocate(1 << 30)


@pytest.mark.parametrize("first", [0, 1, 7, 511, 512, 4097, 0xF0000001])
def test_allocations_are_aligned_wherever_memory_begins_and_never_null(first: int) -> None:
    memory = GlobalMemory(first=first, end=1 << 32)
    bases = [memory.region(memory.allocate(size)).base for size in (3, 0, 700)]
    assert len(bases) == 3 and min(bases) >= max(first, 1) and not any(base % ALIGNMENT for base in bases)


def test_memory_below_what_is_allocated_can_be_placed_and_leaves_allocations_where_they_go() -> None:
    memory = GlobalMemory(first=1 << 28, end=1 << 29)
    low = memory.region(memory.place(0x0E705144, 64))
    first = memory.allocate(1 << 20)
    assert memory.region(first).base == 1 << 28 and memory.find(low.base + 63) is low
    for address in (low.base + 32, (1 << 28) - 8):  # the second reaches into what was allocated
        with pytest.raises(LaunchError, match="are taken"):
            memory.place(address, 16)
    memory.allocate((1 << 28) - (1 << 21))
    memory.free(first)
    assert memory.region(memory.allocate(1 << 20)).base == 1 << 28  # a gap, as there is no room behind the last one


def test_lanes_that_agree_in_a_value_may_differ_in_what_of_it_is_undefined():
    """All read one place that was never written, and store what they have read to the place of their wave."""
    text = """
        mov r1, wave
        mul r1, r1, 4
        wide a1, r1
        wide a2, 20
        lload r2, a2
        add r3, r1, r2
        sub r3, r3, r1
        lstore a1, r3
        end
    """
    out = run(text, block=16, shared=64, grid=2)
    assert [f for f in out.report.findings if f.check not in ("leftovers", "races")] == []
