"""Placement: no buffer loses bytes that are still to be read, buffers of different times share them, too much is told by name."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from shared_programs import MACHINE, Access, Loop, Scratch, build, programs
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp, IfOp
from xdsl.ir import Block

from tilefw.api.errors import CapacityError, UnsupportedError
from tilefw.simt import lane
from tilefw.simt.shared_memory.placement import SharedMemory, place_shared, shared_memory
from tilefw.tile.dialect.base import integer_attr

LIMIT = 1 << 20


def executed(block: Block, rng: random.Random) -> Iterator[lane.MemoryOp]:
    """The accesses of one way through a block."""
    for op in block.ops:
        if isinstance(op, lane.MemoryOp):
            yield op
        elif isinstance(op, ForOp):
            for _ in range(rng.randrange(4)):
                yield from executed(op.body.block, rng)
        elif isinstance(op, IfOp):
            yield from executed(op.regions[rng.randrange(2)].block, rng)


def allocations(function: FuncOp) -> dict[int, lane.AllocOp]:
    return {op.id: op for op in function.walk() if isinstance(op, lane.AllocOp)}


@settings(max_examples=100, deadline=None, derandomize=True)
@given(programs(), st.randoms(use_true_random=False))
def test_what_is_read_is_what_the_buffer_was_given(statements: tuple[Any, ...], rng: random.Random) -> None:
    function = build(statements)
    if function is None:
        reject()
    for buffer in allocations(function).values():
        buffer.properties |= {"bytes": integer_attr(rng.randrange(1, 200)), "align": integer_attr(1 << rng.randrange(6))}
    place_shared(function, LIMIT)
    placed, total = allocations(function), shared_memory(function).bytes
    assert total <= sum(b.bytes + b.align for b in placed.values())
    for _ in range(20):
        owner = [-1] * total
        for op in executed(function.body.block, rng):
            buffer = placed[op.buffer]
            assert buffer.offset is not None and buffer.offset % buffer.align == 0
            span = slice(buffer.offset, buffer.offset + buffer.bytes)
            if isinstance(op, lane.StoreOp):
                owner[span] = [op.buffer] * buffer.bytes
            assert set(owner[span]) == {op.buffer}


@pytest.mark.parametrize(
    ("statements", "buffers"),
    [
        ((Scratch(), Scratch(), Scratch()), 1),
        ((Access(0, False), Scratch(), Scratch(), Access(0, False)), 2),
        ((Access(0, False), Loop((Scratch(), Scratch())), Scratch()), 1),
        ((Loop((Scratch(), Access(0, False))), Scratch()), 2),
    ],
)
def test_buffers_of_different_times_share_bytes(statements: tuple[Any, ...], buffers: int) -> None:
    function = build(statements)
    assert function is not None
    place_shared(function, LIMIT)
    assert shared_memory(function) == SharedMemory(buffers * 4 * MACHINE.threads, 16)


def test_what_nobody_touches_takes_nothing() -> None:
    function = build((Access(0, False),))
    assert function is not None
    place_shared(function, LIMIT)
    assert list(allocations(function)) == [0]


def test_too_much_is_told_with_all_that_is_alive() -> None:
    function = build((Access(0, False), Access(1, False), Access(0, False), Scratch()))
    assert function is not None
    for buffer, label in zip(allocations(function).values(), ("queries", "keys"), strict=False):
        buffer.properties["label"] = StringAttr(label)
    with pytest.raises(CapacityError) as caught:
        place_shared(function, 1000)
    error = caught.value
    assert (error.code, error.resource, error.needed, error.available) == ("TFW0651", "shared memory", 1024, 1000)
    assert "needs 1024 bytes of shared memory at once; a workgroup has at most 1000" in caught.value.message
    assert caught.value.note == "512 bytes for queries; 512 bytes for keys"


def test_a_chip_without_shared_memory_is_told_apart() -> None:
    function = build((Access(0, False),))
    assert function is not None
    with pytest.raises(UnsupportedError, match="needs 512 bytes of shared memory, and the chip has none"):
        place_shared(function, 0)
