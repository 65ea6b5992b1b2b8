"""The argument block of a launch: the caller's arguments, those that the runtime adds, and the dispatch packet behind them.

Hidden arguments: LLVM's AMDGPUUsage, "Code Object V5 Metadata", `.value_kind`. Dispatch packet: HSA runtime specification,
`hsa_kernel_dispatch_packet_t`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from tilefw.api.errors import LaunchError
from tilefw_amd.code_object import ObjectKernel
from tilefw_amd.isa.meaning.operand_values import APERTURES
from tilefw_amd.simulate.initial_state import dispatch_offset

DISPATCH_PACKET = struct.Struct("<HH HHHH III II QQQQ")
_SETUP_AXES = 3  # the packet always describes three axes
# Arguments that are addresses of services (printing, host calls, heaps, queues) that the simulator does not have.
_NULL = frozenset({
    "hidden_none", "hidden_printf_buffer", "hidden_hostcall_buffer", "hidden_multigrid_sync_arg", "hidden_heap_v1",
    "hidden_default_queue", "hidden_completion_action", "hidden_queue_ptr",
})


def block(kernel: ObjectKernel, given: bytes, grid: Sequence[int], workgroup: Sequence[int], dynamic_shared: int) -> bytes:
    """The kernel arguments, `given` first, and the dispatch packet. Raises LaunchError for an argument that a runtime would add and
    that is not known here."""
    size = max(kernel.descriptor.kernarg_size, kernel.metadata.kernarg_size, len(given))
    data = bytearray(dispatch_offset(size))
    data[: len(given)] = given
    grid = [*grid, 1, 1][:3]
    for argument in kernel.metadata.arguments:
        if argument.hidden:
            value = hidden(argument.kind, grid, workgroup, dynamic_shared)
            if value is None:
                raise LaunchError(
                    f"{kernel.name} wants the argument {argument.kind}, which the simulator cannot fill", code="TFW0347"
                )
            data[argument.offset : argument.offset + argument.size] = value.to_bytes(argument.size, "little")
    return bytes(data) + packet(kernel, grid, workgroup, dynamic_shared)


def hidden(kind: str, grid: Sequence[int], workgroup: Sequence[int], dynamic_shared: int) -> int | None:
    """The value of a hidden argument, or None for a kind that is not known."""
    if kind in _NULL:
        return 0
    name, _, axis = kind.rpartition("_")
    if axis in ("x", "y", "z"):
        place = "xyz".index(axis)
        # Grids are whole workgroups here, so nothing remains, and they begin at 0.
        values = {
            "hidden_block_count": grid[place], "hidden_group_size": workgroup[place], "hidden_remainder": 0,
            "hidden_global_offset": 0,
        }
        return values.get(name)
    axes = max((i + 1 for i in range(3) if grid[i] * workgroup[i] > 1), default=1)
    return {
        "hidden_grid_dims": axes, "hidden_dynamic_lds_size": dynamic_shared,
        "hidden_private_base": APERTURES["local"] >> 32, "hidden_shared_base": APERTURES["shared"] >> 32,
    }.get(kind)


def packet(kernel: ObjectKernel, grid: Sequence[int], workgroup: Sequence[int], dynamic_shared: int) -> bytes:
    """The dispatch packet that a kernel may look at: sizes in work-items. The addresses in it are null."""
    items = [(n * w) % (1 << 32) for n, w in zip(grid, workgroup, strict=True)]
    shared = kernel.descriptor.group_segment_fixed_size + dynamic_shared
    return DISPATCH_PACKET.pack(
        0, _SETUP_AXES, *workgroup, 0, *items, kernel.descriptor.private_segment_fixed_size, shared, 0, 0, 0, 0
    )
