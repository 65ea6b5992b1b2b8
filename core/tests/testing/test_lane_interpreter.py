"""The lane interpreter computes what the kernel says, and reports what a lowering must not do."""

from __future__ import annotations

import numpy as np
import pytest

from tilefw.kernels import spec
from tilefw.simt.description import ChipDescription, LaneMachine
from tilefw.testing.lane_memory import LaneFault, LaneGlobalMemory, LaneSharedMemory
from tilefw.testing.lane_target import verify

CHIP = ChipDescription("plain", lanes=32, pointer_bits=64, access_bytes=16, shared_bytes=49152, shuffles=True)
WAVES = np.array([0, 0, 1, 1])


@pytest.mark.parametrize("name", ["vector_add", "rope", "swiglu", "embedding", "integer_mix"])
def test_pointwise_kernels_agree_with_the_reference(name: str) -> None:
    compared = verify(spec.load(name), {}, LaneMachine(CHIP, 4))
    assert compared and not any(c.wrong for c in compared.values()), compared


def test_reading_what_another_wave_wrote_needs_a_barrier() -> None:
    memory = LaneSharedMemory(16)
    memory.write(np.arange(4) * 4, np.arange(16, dtype=np.uint8).reshape(4, 4), WAVES)
    with pytest.raises(LaneFault, match="another wave wrote"):
        memory.read(np.array([12, 8, 4, 0]), 4, WAVES)
    memory.barrier()
    assert memory.read(np.array([12, 8, 4, 0]), 4, WAVES)[0].tolist() == [12, 13, 14, 15]


def test_writing_what_another_wave_read_needs_a_barrier() -> None:
    memory = LaneSharedMemory(16)
    memory.write(np.arange(4) * 4, np.zeros((4, 4), np.uint8), WAVES)
    memory.barrier()
    memory.read(np.array([0]), 4, np.array([1]))
    with pytest.raises(LaneFault, match="another wave read"):
        memory.write(np.array([0]), np.ones((1, 4), np.uint8), np.array([0]))


def test_bytes_that_two_waves_read_are_nobodys() -> None:
    memory = LaneSharedMemory(4)
    memory.write(np.array([0]), np.zeros((1, 4), np.uint8), np.array([0]))
    memory.barrier()
    memory.read(np.array([0, 0]), 4, np.array([0, 1]))
    with pytest.raises(LaneFault, match="another wave read"):
        memory.write(np.array([0]), np.ones((1, 4), np.uint8), np.array([1]))


def test_two_waves_may_write_the_same_bytes_but_not_different_ones() -> None:
    memory = LaneSharedMemory(4)
    memory.write(np.array([0, 0]), np.ones((2, 4), np.uint8), np.array([0, 1]))
    with pytest.raises(LaneFault, match="two waves write"):
        LaneSharedMemory(4).write(np.array([0, 0]), np.arange(8, dtype=np.uint8).reshape(2, 4), np.array([0, 1]))


def test_a_copy_may_be_read_after_its_wait_only() -> None:
    memory = LaneSharedMemory(4)
    memory.begin_copy(np.array([0]), 4, np.array([0]))
    with pytest.raises(LaneFault, match="before the wait"):
        memory.read(np.array([0]), 4, np.array([0]))
    memory.end_copy(np.array([0]), np.ones((1, 4), np.uint8), np.array([0]))
    assert memory.read(np.array([0]), 4, np.array([0])).tolist() == [[1, 1, 1, 1]]


def test_shared_memory_begins_unwritten() -> None:
    with pytest.raises(LaneFault, match="never written"):
        LaneSharedMemory(4).read(np.array([0]), 4, np.array([0]))


@pytest.mark.parametrize("address, message", [(-4, "belongs to no buffer"), (8, "of buffer 0, which has 8"), (2, "not aligned")])
def test_global_accesses_stay_in_their_buffer(address: int, message: str) -> None:
    memory = LaneGlobalMemory([np.zeros(8, np.uint8)], 40)
    with pytest.raises(LaneFault, match=message):
        memory.read(np.array([memory.address(0) + address]), 4)
