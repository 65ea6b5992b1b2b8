"""What an operand is when it is read: registers as sources of the simulator kit, constants as bit patterns of the operand's type.

CDNA3 ISA, table "Scalar operands" and section "Literal constants"; of packed types LLVM's `AMDGPUBaseInfo.cpp` says what an
inline constant is (`getInlineEncodingV2F16`, `getInlineEncodingV2I16`).
"""

from __future__ import annotations

import functools

from tilefw.api.sim import Immediate, Register
from tilefw_amd.isa.constants import INTEGERS, bits, literal_bits
from tilefw_amd.isa.model import InlineConstant, Literal32, RegisterTuple
from tilefw_amd.isa.registers import EXEC, EXEC_MASK, M0, SCC, VCC, number
from tilefw_amd.isa.types import TYPES, Type

EXEC_LANES = Register(EXEC_MASK, 1)
SCC_SLOT = Register(SCC, 1)


@functools.lru_cache(maxsize=4096)
def slots(register: RegisterTuple) -> tuple[Register, ...]:
    """The kit's registers of 32 bits that a register names, lowest first."""
    return tuple(Register(n, 32) for n in number(register))


def pattern(operand: InlineConstant | Literal32, kind: Type) -> int:
    """The bits that a constant stands for in an operand of the type, as many as its registers hold.

    Packed integers see an inline float as f32; packed halves as f16 in the low half, and zero in the high one.
    """
    if isinstance(operand, Literal32):
        return literal_bits(operand.bits, kind)
    if operand.code in INTEGERS:
        return INTEGERS[operand.code] % (1 << 32 * kind.registers)
    return bits(operand.code, _HALF if kind.packed and kind.format == "f16" else kind)


_HALF = TYPES["f16"]

# Where generic addresses mean LDS and scratch. The apertures are 4 GB, set by the driver; only their high halves are seen.
APERTURES = {"shared": 1 << 56, "local": 2 << 56}
APERTURE_BYTES = 1 << 32
_READ_ONLY = {
    235: APERTURES["shared"], 236: APERTURES["shared"] + APERTURE_BYTES - 1,
    237: APERTURES["local"], 238: APERTURES["local"] + APERTURE_BYTES - 1,
}
VCCZ, EXECZ, SCC_VALUE = 251, 252, 253

IMPLICIT = {"vcc": VCC, "exec": EXEC, "m0": M0}
"""The registers behind the names of unwritten operands; `scc` and `pc` are none of 32 bits."""


def read_only(index: int, bits: int) -> Immediate | None:
    """A scalar operand that is an aperture's base or limit: 64 bits, of which a read of 32 gives the high half."""
    value = _READ_ONLY.get(index)
    return None if value is None else Immediate(value if bits == 64 else value >> 32, bits)
