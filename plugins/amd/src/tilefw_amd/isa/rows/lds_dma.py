"""Loads from memory to LDS that pass by the registers: `global_load_lds_dword`, `buffer_load_dword … lds`.

Lane i of the wave writes the dword at LDS address M0[15:0] + instruction offset + 4*i (CDNA3 ISA, "Memory buffer load to LDS"; the
offset applies to both addresses: LLVM `IntrinsicsAMDGPU.td`, `global.load.lds`). The bytes land when the wait on vmcnt covers
the load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilefw_amd.isa.row import Modifiers
from tilefw_amd.isa.rows.accesses import BufferSpace, Space, lane_place

if TYPE_CHECKING:
    from tilefw.api.sim import Algebra, Value

# End of the mnemonic: opcode in the flat encoding, bytes read, whether the sign is extended.
DMA_LOADS = {
    "ubyte": (0x26, 1, False),
    "sbyte": (0x27, 1, True),
    "ushort": (0x28, 2, False),
    "sshort": (0x29, 2, True),
    "dword": (0x2A, 4, False),
}


def dma(space: Space, size: int, signed: bool, m: Modifiers) -> Any:
    """The dword of each lane in LDS = what stands at its address, zero-extended; 0 where a buffer ends before."""
    if signed:
        return refuse("sign-extending loads to LDS")
    offset = m.offset

    def run(lanes: Algebra, at: Any, m0: Value) -> None:
        target = lane_place(lanes, m0, offset)
        address, amount = at, lanes.const(size, 32) if size < 4 else None
        if isinstance(space, BufferSpace):
            address, (inside,) = at
            amount = lanes.select(inside, lanes.const(size, 32), lanes.const(0, 32))
        lanes.copy_async("shared", target, space.name, address, 4, amount)

    return run


def refuse(what: str) -> Any:
    """A meaning for what the simulator does not know: it stops the launch at this instruction."""
    return lambda lanes, *operands: lanes.trap(f"{what} are not simulated")
