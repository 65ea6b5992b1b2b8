"""Accesses through a buffer descriptor: addresses, what is out of range, refused descriptors, loads to LDS, typed accesses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cdna3.memory_machine import BASE, LDS_BYTES, Outcome, constant, inst, run, s, v
from cdna3.test_global_memory import descriptor

RNG = np.random.default_rng(17)
LANES = np.arange(64)
OLD = RNG.integers(0, 1 << 32, 64, np.uint64).astype(np.uint32)
MEMORY = RNG.integers(0, 1 << 32, 512, np.uint64).astype(np.uint32)
WIDTHS = [("dword", 1), ("dwordx2", 2), ("dwordx3", 3), ("dwordx4", 4)]


def clean(out: Outcome) -> Outcome:
    assert out.findings == (), out.findings
    return out


def place(**given: Any) -> dict[str, Any]:
    return {"srsrc": s(8, 4), "soffset": s(12), **given}


@pytest.mark.parametrize(("indexed", "has_offset"), [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("stride", [0, 20])
def test_the_address_is_base_offsets_and_stride_times_index(indexed: bool, has_offset: bool, stride: int) -> None:
    index, offset = LANES % 8, LANES // 8 * 4
    vectors = ([index] if indexed else []) + ([offset] if has_offset else [])
    held: dict[Any, Any] = {s(8, 4): descriptor(records=512, stride=stride), s(12): 40}
    operands = {"d": v(4), **place()}
    if vectors:
        operands["vaddr"] = v(0, len(vectors))
        held[v(0, len(vectors))] = np.stack(vectors) if len(vectors) > 1 else vectors[0]
    load = inst("buffer_load_dword", operands, idxen=int(indexed), offen=int(has_offset), offset=12)
    out = clean(run(load, held, (v(4),), memory=MEMORY))
    want = 40 + 12 + (offset if has_offset else 0) + (stride * index if indexed else 0) + LANES * 0
    assert out.registers[0].tolist() == MEMORY[want // 4].tolist()


def in_range(offset: int, soffset: int, records: int) -> bool:
    return offset + soffset < records


@pytest.mark.parametrize(("name", "count"), WIDTHS)
@pytest.mark.parametrize("soffset", [0, 16])
def test_each_dword_of_a_load_is_checked_by_itself(name: str, count: int, soffset: int) -> None:
    """Behind the range stands nothing readable: an access there would be a finding."""
    records = 52 * 4
    offset = np.where(LANES == 63, 0xFFFFFFFC, LANES * 4)
    held = {v(0): offset, s(8, 4): descriptor(records), s(12): soffset} | {v(4 + i): OLD for i in range(count)}
    load = inst(f"buffer_load_{name}", {"d": v(4, count), "vaddr": v(0), **place()}, offen=1, offset=8)
    out = clean(run(load, held, (v(4, count),), memory=MEMORY[:52]))
    for i in range(count):
        at = offset.astype(np.int64) + 8 + 4 * i
        want = [int(MEMORY[(a + soffset) // 4]) if in_range(a, soffset, records) else 0 for a in at.tolist()]
        assert out.registers[i].tolist() == want


@pytest.mark.parametrize(("name", "count"), WIDTHS)
def test_each_dword_of_a_store_is_checked_by_itself(name: str, count: int) -> None:
    records = 37 * 4
    data = np.stack([OLD + i for i in range(count)])
    held = {v(0): LANES * 16, s(8, 4): descriptor(records), v(4, count): data if count > 1 else data[0]}
    store = inst(f"buffer_store_{name}", {"a": v(4, count), "vaddr": v(0), **place(soffset=constant(0))}, offen=1)
    out = clean(run(store, held, memory=MEMORY[:37]))
    want = MEMORY[:37].copy()
    for lane in range(64):
        for i in range(count):
            if 16 * lane + 4 * i < records:
                want[4 * lane + i] = data[i][lane]
    assert out.memory.tolist() == want.tolist()


@pytest.mark.parametrize("name", ["ubyte", "sbyte", "ushort", "sshort", "ubyte_d16", "sbyte_d16_hi", "short_d16", "short_d16_hi"])
def test_narrow_loads_out_of_range_give_zero(name: str) -> None:
    held = {v(0): LANES, v(4): OLD, s(8, 4): descriptor(32), s(12): 0}
    load = inst(f"buffer_load_{name}", {"d": v(4), "vaddr": v(0), **place()}, offen=1)
    out = clean(run(load, held, (v(4),), memory=MEMORY))
    size, signed = 1 if "byte" in name else 2, name.startswith(("sbyte", "sshort"))
    for lane in range(64):
        value = int.from_bytes(MEMORY.tobytes()[lane : lane + size], "little", signed=signed) if lane < 32 else 0
        old, half = int(OLD[lane]), value % 2**16
        want = old & 0xFFFF | half << 16 if "_hi" in name else old & 0xFFFF0000 | half if "_d16" in name else value
        assert int(out.registers[0][lane]) == want % 2**32


NARROW_STORES = [("byte", 0, 1), ("byte_d16_hi", 2, 1), ("short", 0, 2), ("short_d16_hi", 2, 2)]


@pytest.mark.parametrize(("name", "shift", "size"), NARROW_STORES)
def test_narrow_stores_out_of_range_are_dropped(name: str, shift: int, size: int) -> None:
    held = {v(0): LANES * 2, v(4): OLD, s(8, 4): descriptor(32), s(12): 0}
    out = clean(run(inst(f"buffer_store_{name}", {"a": v(4), "vaddr": v(0), **place()}, offen=1), held, memory=MEMORY))
    want = bytearray(MEMORY.tobytes())
    for lane in range(16):
        want[2 * lane : 2 * lane + size] = OLD[lane].tobytes()[shift : shift + size]
    assert out.memory.tobytes() == bytes(want)


def test_with_an_index_and_a_stride_records_are_counted() -> None:
    held = {v(0): LANES, s(8, 4): descriptor(records=40, stride=8), s(12): 0}
    load = inst("buffer_load_dwordx2", {"d": v(4, 2), "vaddr": v(0), **place()}, idxen=1)
    out = clean(run(load, held, (v(4, 2),), memory=MEMORY))
    assert out.registers[1].tolist() == np.where(LANES < 40, MEMORY[np.minimum(2 * LANES + 1, 511)], 0).tolist()


def test_a_stride_of_the_cache_does_not_move_addresses() -> None:
    """Bit 62 of the descriptor and a stride without an index: Triton's and MLIR's cache swizzle."""
    held = {v(0): LANES * 4, s(8, 4): descriptor(records=128, stride=0x4000 | 64), s(12): 0}
    out = clean(run(inst("buffer_load_dword", {"d": v(4), "vaddr": v(0), **place()}, offen=1), held, (v(4),), memory=MEMORY))
    assert out.registers[0].tolist() == np.where(LANES < 32, MEMORY[LANES], 0).tolist()


def test_an_atomic_out_of_range_does_nothing_and_gives_zero() -> None:
    held = {v(0): LANES * 4, v(4): OLD, s(8, 4): descriptor(40), s(12): 0}
    step = inst("buffer_atomic_add", {"d": v(4), "vaddr": v(0), **place()}, offen=1, sc0=1)
    out = clean(run(step, held, (v(4),), memory=MEMORY))
    inside = LANES < 10
    assert out.registers[0].tolist() == np.where(inside, MEMORY[:64], 0).tolist()
    assert out.memory[:64].tolist() == np.where(inside, MEMORY[:64] + OLD, MEMORY[:64]).tolist()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (descriptor(stride=0x8000 | 16), "a swizzled buffer descriptor is not simulated"),
        (descriptor(last=0x27000 | 1 << 23), "a buffer descriptor that adds the lane's number is not simulated"),
        (descriptor(last=0x80027000), "a descriptor whose type is not buffer's"),
    ],
    ids=["swizzled", "adds the lane", "an image"],
)
def test_unusual_descriptors_stop_the_launch(words: list[int], message: str) -> None:
    out = run(inst("buffer_load_dword", {"d": v(4), **place()}), {s(8, 4): words, s(12): 0}, (), memory=MEMORY)
    assert [f.message for f in out.findings] == [message]


@pytest.mark.parametrize(("name", "size"), [("dword", 4), ("ushort", 2), ("ubyte", 1)])
def test_a_load_to_lds_fills_zeros_beyond_the_range(name: str, size: int) -> None:
    lds = np.full(LDS_BYTES // 4, 5, np.uint32)
    held = {v(0): LANES * 4, s(8, 4): descriptor(100), s(12): 0, s(124): 0x100}
    load = inst(f"buffer_load_{name}_lds", {"vaddr": v(0), **place()}, offen=1, lds=1, offset=4)
    out = clean(run(load, held, memory=MEMORY, lds=lds))
    want = lds.copy()
    want[65 : 65 + 64] = np.where(4 * LANES + 4 < 100, MEMORY[LANES + 1] & (2 ** (8 * size) - 1), 0)
    assert out.lds.tolist() == want.tolist() and load.form.mnemonic == f"buffer_load_{name}"


TYPED = ["load_format_x", "load_format_xyzw", "load_format_d16_xy", "store_format_xyz", "store_format_d16_hi_x"]


@pytest.mark.parametrize("name", TYPED)
def test_typed_accesses_are_refused_by_name(name: str) -> None:
    load = name.startswith("load")
    registers = 1 if "d16" in name else len(name.rsplit("_", 1)[1])
    operands = {"d" if load else "a": v(4, registers), **place()}
    held = {s(8, 4): descriptor(), s(12): 0} | {v(4 + i): 0 for i in range(registers)}
    out = run(inst(f"buffer_{name}", operands), held, (), memory=MEMORY)
    assert [f.message for f in out.findings] == [f"buffer_{name}: typed buffer accesses are not simulated"]


@pytest.mark.parametrize("soffset", [0, 8, 64])
@pytest.mark.parametrize(("name", "count"), [("dword", 1), ("dwordx2", 2), ("dwordx4", 4), ("dwordx8", 8), ("dwordx16", 16)])
@pytest.mark.parametrize("stride", [0, 16])
def test_scalar_buffers_count_strides_and_drop_the_low_bits(soffset: int, name: str, count: int, stride: int) -> None:
    held = {s(8, 4): descriptor(records=20 * 4 // (stride or 1), stride=stride, base=BASE), s(12): soffset + 3}
    load = inst(f"s_buffer_load_{name}", {"d": s(32, count), "sbase": s(8, 4), "soffset": s(12)})
    out = clean(run(load, held, (s(32, count),), memory=MEMORY[:20]))
    first = soffset // 4
    assert [int(r[0]) for r in out.registers] == [int(MEMORY[first + i]) if first + i < 20 else 0 for i in range(count)]
