"""Loads from memory to LDS that pass by the registers: `global_load_lds_dword`, `buffer_load_dword … lds`.

Lane i of the wave writes at LDS address M0 + instruction offset + 4*i (CDNA3 ISA, "Memory buffer load to LDS"; the offset applies
to both addresses: LLVM `IntrinsicsAMDGPU.td`, `global.load.lds`); loads of 12 and 16 bytes at 12*i and 16*i. The bytes land when
the wait on vmcnt covers the load.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilefw_amd.isa.row import Modifiers
from tilefw_amd.isa.rows.accesses import BufferSpace, Space, further, lane_address

if TYPE_CHECKING:
    from tilefw.api.sim import Algebra, Value

# End of the mnemonic: opcode in the flat encoding and in that of buffers, bytes read, whether the sign is extended.
DMA_LOADS = {
    "ubyte": (0x26, 0x10, 1, False),
    "sbyte": (0x27, 0x11, 1, True),
    "ushort": (0x28, 0x12, 2, False),
    "sshort": (0x29, 0x13, 2, True),
    "dword": (0x2A, 0x14, 4, False),
}
# Since the fourth generation.
WIDE_DMA_LOADS: dict[str, tuple[int, int, int, bool]] = {"dwordx3": (0x7E, 0x16, 12, False), "dwordx4": (0x7D, 0x17, 16, False)}


def dma_facts(size: int) -> str:
    """The facts of a row that loads `size` bytes a lane."""
    return "load, lds dma" + {12: ", three dwords", 16: ", four dwords"}.get(size, "")


def dma(space: Space, size: int, signed: bool, m: Modifiers) -> Any:
    """The dwords of each lane in LDS = what stands at its address, a byte or two zero-extended; 0 where a buffer ends before."""
    if signed:
        return refuse("sign-extending loads to LDS")
    offset, width = m.offset, max(size, 4)

    def run(lanes: Algebra, at: Any, m0: Value) -> None:
        target = lane_address(lanes, m0, offset, m.chip, width)
        address, amount = at, lanes.const(size, 32) if size < 4 else None
        if isinstance(space, BufferSpace):
            address, inside = at
            amount = _bytes_inside(lanes, inside, min(size, 4))
        _copy(lanes, target, space.name, address, width, amount)

    return run


def _bytes_inside(lanes: Algebra, inside: Sequence[Value], each: int) -> Value:
    """How many bytes of an access are in range: dwords are, from the first on, up to the end of the buffer."""
    zero, total = lanes.const(0, 32), lanes.const(0, 32)
    for p in inside:
        total = lanes.add(total, lanes.select(p, lanes.const(each, 32), zero))
    return total


def _copy(lanes: Algebra, target: Value, space: Any, address: Value, width: int, amount: Value | None) -> None:
    """One copy; of 12 bytes three, as copies are of powers of two."""
    if width != 12:
        lanes.copy_async("shared", target, space, address, width, amount)
        return
    for first in (0, 4, 8):
        part = None
        if amount is not None:
            rest = lanes.sub(lanes.max(amount, lanes.const(first, 32), False), lanes.const(first, 32))
            part = lanes.min(rest, lanes.const(4, 32), False)
        place, source = further(lanes, target, 32, first), further(lanes, address, 64, first)
        lanes.copy_async("shared", place, space, source, 4, part)


def refuse(what: str) -> Any:
    """A meaning for what the simulator does not know: it stops the launch at this instruction."""
    return lambda lanes, *operands: lanes.trap(f"{what} are not simulated")
