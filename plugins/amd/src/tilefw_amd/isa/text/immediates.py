"""Immediates of SOPK, SOPP and SOPC that have a syntax of their own: s_waitcnt's counts, hwreg, sendmsg, gpr_idx.

Each way of writing is a pair of functions in `IMMEDIATES`, by the name that a form's operand has in `immediate`: number to
text, as LLVM prints it. Names and numbers: LLVM's `AMDGPUAsmUtils.cpp` and `SIDefines.h`, CDNA3 ISA "SOPP", "Hardware registers".
"""

from __future__ import annotations

from collections.abc import Callable

from tilefw_amd.isa.constants import number_text

# S_WAITCNT: name -> pieces of the counter, lowest first (CDNA3 ISA, section "SOPP").
WAIT_COUNTERS: dict[str, tuple[tuple[int, int], ...]] = {
    "vmcnt": ((0, 4), (14, 2)),
    "expcnt": ((4, 3),),
    "lgkmcnt": ((8, 4),),
}
HARDWARE_REGISTERS = {
    1: "HW_REG_MODE", 2: "HW_REG_STATUS", 3: "HW_REG_TRAPSTS", 4: "HW_REG_HW_ID", 5: "HW_REG_GPR_ALLOC", 6: "HW_REG_LDS_ALLOC",
    7: "HW_REG_IB_STS", 15: "HW_REG_SH_MEM_BASES", 16: "HW_REG_TBA_LO", 17: "HW_REG_TBA_HI", 18: "HW_REG_TMA_LO",
    19: "HW_REG_TMA_HI", 20: "HW_REG_XCC_ID", 21: "HW_REG_SQ_PERF_SNAPSHOT_DATA", 22: "HW_REG_SQ_PERF_SNAPSHOT_DATA1",
    23: "HW_REG_SQ_PERF_SNAPSHOT_PC_LO", 24: "HW_REG_SQ_PERF_SNAPSHOT_PC_HI",
}  # fmt: skip
MESSAGES = {
    1: "MSG_INTERRUPT", 2: "MSG_GS", 3: "MSG_GS_DONE", 4: "MSG_SAVEWAVE", 5: "MSG_STALL_WAVE_GEN", 6: "MSG_HALT_WAVES",
    7: "MSG_ORDERED_PS_DONE", 8: "MSG_EARLY_PRIM_DEALLOC", 9: "MSG_GS_ALLOC_REQ", 10: "MSG_GET_DOORBELL", 15: "MSG_SYSMSG",
}  # fmt: skip
GS_OPERATIONS = ("GS_OP_NOP", "GS_OP_CUT", "GS_OP_EMIT", "GS_OP_EMIT_CUT")
SYSTEM_OPERATIONS = {
    1: "SYSMSG_OP_ECC_ERR_INTERRUPT",
    2: "SYSMSG_OP_REG_RD",
    4: "SYSMSG_OP_TTRACE_PC",
}
GPR_INDEX_MODES = ("SRC0", "SRC1", "SRC2", "DST")


def counter(immediate: int, name: str) -> int:
    value = shift = 0
    for low, width in WAIT_COUNTERS[name]:
        value |= (immediate >> low & (1 << width) - 1) << shift
        shift += width
    return value


def with_counter(immediate: int, name: str, value: int) -> int:
    """The immediate of S_WAITCNT with one counter set."""
    for low, width in WAIT_COUNTERS[name]:
        mask = (1 << width) - 1
        immediate = immediate & ~(mask << low) | (value & mask) << low
        value >>= width
    return immediate


def highest(name: str) -> int:
    """The count that waits for nothing."""
    return (1 << sum(width for _, width in WAIT_COUNTERS[name])) - 1


NO_WAIT = sum(((1 << width) - 1) << low for pieces in WAIT_COUNTERS.values() for low, width in pieces)


def waitcnt(immediate: int) -> str:
    """Counts that wait for nothing are left out, unless all are."""
    counts = {name: counter(immediate, name) for name in WAIT_COUNTERS}
    some = {name: value for name, value in counts.items() if value != highest(name)}
    return " ".join(f"{name}({value})" for name, value in (some or counts).items())


def hwreg(immediate: int) -> str:
    number, low, width = immediate & 63, immediate >> 6 & 31, (immediate >> 11) + 1
    name = HARDWARE_REGISTERS.get(number, str(number))
    return f"hwreg({name})" if (low, width) == (0, 32) else f"hwreg({name}, {low}, {width})"


def sendmsg(immediate: int) -> str:
    """By name where message, operation and stream go together, whatever the bits beyond them; else by number."""
    message, operation, stream = immediate & 15, immediate >> 4 & 7, immediate >> 8 & 3
    words = _message_words(MESSAGES.get(message, ""), operation, stream)
    if words:
        return f"sendmsg({', '.join(words)})"
    whole = message | operation << 4 | stream << 8
    return f"sendmsg({message}, {operation}, {stream})" if immediate == whole else str(immediate)


def _message_words(name: str, operation: int, stream: int) -> list[str]:
    """Empty when there is no such message."""
    if name in ("MSG_GS", "MSG_GS_DONE"):
        if operation == 0:
            return [name, GS_OPERATIONS[0]] if name == "MSG_GS_DONE" and not stream else []
        return [name, GS_OPERATIONS[operation], str(stream)] if operation < len(GS_OPERATIONS) else []
    if stream or not name:
        return []
    if name == "MSG_SYSMSG":
        return [name, SYSTEM_OPERATIONS[operation]] if operation in SYSTEM_OPERATIONS else []
    return [] if operation else [name]


def gpr_index(immediate: int) -> str:
    if immediate >= 1 << len(GPR_INDEX_MODES):
        return f"{immediate:#x}"
    return f"gpr_idx({','.join(name for bit, name in enumerate(GPR_INDEX_MODES) if immediate >> bit & 1)})"


def swizzle(offset: int) -> str:
    """The pattern of DS_SWIZZLE_B32 (CDNA3 ISA, "DS_SWIZZLE_B32"): bits 15 to 13 say which kind it is; others are plain numbers."""
    if offset >> 13 == 0b111:
        return f"swizzle(FFT,{offset & 31})"
    if offset >> 13 == 0b110:
        return f"swizzle(ROTATE,{offset >> 10 & 1},{offset >> 5 & 31})"
    if offset >> 8 == 0b10000000:
        return f"swizzle(QUAD_PERM,{','.join(str(offset >> 2 * lane & 3) for lane in range(4))})"
    if offset >> 15:
        return str(offset)
    return _masked_swizzle(offset & 31, offset >> 5 & 31, offset >> 10 & 31)


def _masked_swizzle(and_mask: int, or_mask: int, xor_mask: int) -> str:
    """Lane i reads lane ((i & and) | or) ^ xor."""
    if and_mask == 31 and not or_mask and xor_mask.bit_count() == 1:
        return f"swizzle(SWAP,{xor_mask})"
    if and_mask == 31 and not or_mask and xor_mask and (xor_mask + 1).bit_count() == 1:
        return f"swizzle(REVERSE,{xor_mask + 1})"
    group = 32 - and_mask
    if not xor_mask and group > 1 and group.bit_count() == 1 and or_mask < group:
        return f"swizzle(BROADCAST,{group},{or_mask})"
    return f'swizzle(BITMASK_PERM,"{"".join(_mask_letter(and_mask, or_mask, xor_mask, bit) for bit in range(4, -1, -1))}")'


def _mask_letter(and_mask: int, or_mask: int, xor_mask: int, bit: int) -> str:
    """What becomes of one bit of the lane's number: 0, 1, p as it was, i inverted."""
    of_zero, of_one = (((lane & and_mask) | or_mask) ^ xor_mask for lane in (0, 31))
    if (of_zero ^ of_one) >> bit & 1:
        return "i" if of_zero >> bit & 1 else "p"
    return str(of_zero >> bit & 1)


def short(value: int) -> str:
    """Numbers up to 64 in decimal, others in hexadecimal."""
    return str(value) if value <= 64 else f"{value:#x}"


IMMEDIATES: dict[str, Callable[[int], str]] = {
    "waitcnt": waitcnt, "hwreg": hwreg, "sendmsg": sendmsg, "gpr_idx": gpr_index, "hex": hex, "short": short,
    "unsigned": hex, "optional": str, "optional hex": hex, "literal": number_text,
}  # fmt: skip
