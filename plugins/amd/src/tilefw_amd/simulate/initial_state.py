"""What registers hold when a wave starts, from the kernel descriptor.

LLVM's AMDGPUUsage, section "Initial Kernel Execution State": user SGPRs in the order of the descriptor's
bits, preloaded kernel arguments behind them, then the workgroup's ids; the work-item's ids packed in v0; EXEC the lanes that there
are. Scratch is architected on this chip (no SGPR describes it). What stands nowhere here is undefined.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilefw.api.sim import Immediate, Source, Special
from tilefw_amd.code_object.descriptor import USER_SGPRS, Descriptor
from tilefw_amd.isa.meaning.operand_values import EXEC_LANES, slots
from tilefw_amd.isa.model import RegisterTuple
from tilefw_amd.isa.registers import EXEC

DISPATCH_ALIGNMENT = 64
ID_BITS = 10  # of each work-item id in v0


def dispatch_offset(kernarg_size: int) -> int:
    """Where the dispatch packet stands in the argument block: behind the kernel arguments."""
    return kernarg_size + -kernarg_size % DISPATCH_ALIGNMENT


def initial(descriptor: Descriptor) -> tuple[tuple[int, Source], ...]:
    """`Program.initial` of a kernel with this descriptor."""
    found: list[tuple[int, Source]] = []
    place = 0
    for name, count in USER_SGPRS:
        if getattr(descriptor, name):
            found += _words(place, _user_value(name, descriptor), count)
            place += count
    for dword in range(descriptor.user_sgpr_kernarg_preload_length):
        found += _words(place, _preloaded(descriptor.user_sgpr_kernarg_preload_offset + dword), 1)
        place += 1
    place = max(place, descriptor.user_sgpr_count)
    for axis, letter in enumerate("xyz"):
        if getattr(descriptor, f"system_sgpr_workgroup_id_{letter}"):
            found.append((_sgpr(place), Special(f"workgroup_id_{letter}", 32, lambda lanes, axis=axis: lanes.workgroup_id(axis))))
            place += 1
    low, high = slots(EXEC)
    found += [
        (low.index, Special("exec_lo", 32, lambda lanes: _lanes_that_are(lanes)[0])),
        (high.index, Special("exec_hi", 32, lambda lanes: _lanes_that_are(lanes)[1])),
        (EXEC_LANES.index, Special("exec", 1, lambda lanes: lanes.unballot(*_lanes_that_are(lanes)))),
        (slots(RegisterTuple("v", 0))[0].index, Special("work-item ids", 32, _work_item(descriptor.system_vgpr_workitem_id))),
    ]
    return tuple(found)


def _sgpr(place: int) -> int:
    return slots(RegisterTuple("s", place))[0].index


def _user_value(name: str, descriptor: Descriptor) -> Any:
    """A function of the algebra for the 64 (or 32) bits of a user SGPR; None: nothing that the simulator has."""
    if name == "user_sgpr_kernarg_segment_ptr":
        return lambda lanes: lanes.argument_address()
    if name == "user_sgpr_dispatch_ptr":
        offset = dispatch_offset(descriptor.kernarg_size)
        return lambda lanes: lanes.add(lanes.argument_address(), lanes.const(offset, 64))
    if name == "user_sgpr_dispatch_id":
        return lambda lanes: lanes.const(0, 64)
    if name == "user_sgpr_private_segment_size":
        return descriptor.private_segment_fixed_size
    return None


def _preloaded(dword: int) -> Any:
    def value(lanes: Any) -> Any:
        address = lanes.add(lanes.argument_address(), lanes.const(4 * dword, 64))
        return lanes.load("global", address, 32)[0]

    return value


def _words(place: int, value: Any, count: int) -> Iterator[tuple[int, Source]]:
    """The SGPRs from `place` on that hold a value."""
    if value is None:
        return
    if isinstance(value, int):
        yield _sgpr(place), Immediate(value, 32)
    elif count == 1:
        yield _sgpr(place), Special("kernel argument", 32, value)
    else:
        for part in range(2):
            yield _sgpr(place + part), Special("address", 32, lambda lanes, part=part: lanes.split(value(lanes), 32)[part])


def _work_item(axes: int) -> Any:
    """v0: x, and as many further ids as the descriptor asks for, 10 bits each."""

    def ids(lanes: Any) -> Any:
        packed = lanes.thread_id(0)
        for axis in range(1, min(axes, 2) + 1):
            packed = lanes.or_(packed, lanes.shl(lanes.thread_id(axis), lanes.const(ID_BITS * axis, 32)))
        return packed

    return ids


def _lanes_that_are(lanes: Any) -> tuple[Any, Any]:
    """EXEC of a new wave: a bit for each of its work-items (the last wave may have fewer than 64)."""
    threads = lanes.mul(lanes.mul(lanes.workgroup_size(0), lanes.workgroup_size(1)), lanes.workgroup_size(2))
    left = lanes.sub(threads, lanes.mul(lanes.wave_id(), lanes.const(lanes.wave_size, 32)))
    one, half = lanes.const(1, 32), lanes.const(32, 32)
    low = lanes.sub(lanes.shl(one, left), one)  # a shift by 32 or more leaves nothing: all ones
    above = lanes.sub(lanes.max(left, half, False), half)
    return low, lanes.sub(lanes.shl(one, above), one)
