"""Immediates from text: counts of s_waitcnt, hwreg, sendmsg, gpr_idx, the patterns of ds_swizzle, and plain numbers.

The other way stands in `immediates`, whose tables of names both use. Sources: LLVM's AMDGPUOperandSyntax.rst and
AMDGPUModifierSyntax.rst; CDNA3 ISA, sections "SOPP" and "DS_SWIZZLE_B32".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from tilefw_amd.isa.model import FormModifier, FormOperand
from tilefw_amd.isa.text.immediates import (
    GPR_INDEX_MODES,
    GS_OPERATIONS,
    HARDWARE_REGISTERS,
    MESSAGES,
    NO_WAIT,
    SYSTEM_OPERATIONS,
    WAIT_COUNTERS,
    highest,
    with_counter,
)
from tilefw_amd.isa.text.parsed_operand import OperandCall, Written

OPTIONAL = frozenset({"optional", "optional hex"})
"""Immediates that need not be written."""


class Misfit(ValueError):
    """Why a call is not such an immediate; `start` and `end` are the call's, as far as they are known."""

    def __init__(self, message: str, call: OperandCall) -> None:
        super().__init__(message)
        self.start, self.end = call.start, call.end


def _waitcnt(calls: Sequence[OperandCall]) -> int:
    found = NO_WAIT
    for call in calls:
        name = call.name.removesuffix("_sat")
        value = call.arguments[0] if len(call.arguments) == 1 else ""
        if not isinstance(value, int):
            raise Misfit(f"{call.name} takes one number", call)
        most = highest(name)
        if call.name.endswith("_sat"):
            value = min(value, most)
        if not 0 <= value <= most:
            raise Misfit(f"{name} counts from 0 to {most}, not {value}", call)
        found = with_counter(found, name, value)
    return found


def _one(calls: Sequence[OperandCall], most: int) -> tuple[str | int, ...]:
    call = calls[0]
    if not call.arguments and call.name != "gpr_idx":
        raise Misfit(f"{call.name} takes an argument", call)
    if len(calls) > 1:
        raise Misfit(f"{call.name} is written alone", calls[1])
    if len(call.arguments) > most:
        raise Misfit(f"{call.name} takes at most {most} arguments", call)
    return call.arguments


def _named(value: str | int, names: Mapping[int, str], what: str, most: int, call: OperandCall) -> int:
    if isinstance(value, str):
        found = next((number for number, name in names.items() if name == value), None)
        if found is None:
            raise Misfit(f"there is no {what} {value}", call)
        return found
    if not 0 <= value <= most:
        raise Misfit(f"the {what} is {value}; it goes from 0 to {most}", call)
    return value


def _number(value: str | int, what: str, low: int, high: int, call: OperandCall) -> int:
    if isinstance(value, str) or not low <= value <= high:
        raise Misfit(f"the {what} is {value}; it goes from {low} to {high}", call)
    return value


def _hwreg(calls: Sequence[OperandCall]) -> int:
    arguments, call = _one(calls, 3), calls[0]
    if len(arguments) == 2:
        raise Misfit("hwreg takes a register, or a register, the first bit and the number of bits", call)
    register = _named(arguments[0], HARDWARE_REGISTERS, "hardware register", 63, call)
    first, bits = arguments[1:] or (0, 32)
    offset = _number(first, "first bit", 0, 31, call)
    return register | offset << 6 | _number(bits, "number of bits", 1, 32, call) - 1 << 11


def _sendmsg(calls: Sequence[OperandCall]) -> int:
    arguments, call = _one(calls, 3), calls[0]
    message = _named(arguments[0], MESSAGES, "message", 15, call)
    name = MESSAGES.get(message, "")
    operations = _OPERATIONS.get(name, {})
    if isinstance(arguments[0], str) and name != "MSG_GS_DONE" and bool(operations) != (len(arguments) > 1):
        raise Misfit(f"{name} is said {'with its' if operations else 'without an'} operation", call)
    operation = _named(arguments[1], operations, "operation", 7, call) if len(arguments) > 1 else 0
    stream = _number(arguments[2], "stream", 0, 3, call) if len(arguments) > 2 else 0
    return message | operation << 4 | stream << 8


_OPERATIONS = {
    "MSG_GS": dict(enumerate(GS_OPERATIONS)), "MSG_GS_DONE": dict(enumerate(GS_OPERATIONS)), "MSG_SYSMSG": SYSTEM_OPERATIONS,
}


def _gpr_idx(calls: Sequence[OperandCall]) -> int:
    call = calls[0]
    _one(calls, len(GPR_INDEX_MODES))
    found = 0
    for mode in call.arguments:
        if mode not in GPR_INDEX_MODES:
            raise Misfit(f"{mode} is not an operand that gpr_idx names: {', '.join(GPR_INDEX_MODES)}", call)
        bit = 1 << GPR_INDEX_MODES.index(mode)
        if found & bit:
            raise Misfit(f"{mode} occurs twice", call)
        found |= bit
    return found


_CALLS: dict[str, tuple[frozenset[str], Callable[[Sequence[OperandCall]], int]]] = {
    "waitcnt": (frozenset(WAIT_COUNTERS) | {f"{name}_sat" for name in WAIT_COUNTERS}, _waitcnt),
    "hwreg": (frozenset({"hwreg"}), _hwreg),
    "sendmsg": (frozenset({"sendmsg"}), _sendmsg),
    "gpr_idx": (frozenset({"gpr_idx"}), _gpr_idx),
}
_HELP = {
    "waitcnt": "s_waitcnt vmcnt(N) expcnt(N) lgkmcnt(N), each at most once; N is how many operations may be unfinished",
    "hwreg": f"hwreg(REGISTER, FIRST_BIT, BITS); registers are {', '.join(HARDWARE_REGISTERS.values())}",
    "sendmsg": f"sendmsg(MESSAGE, OPERATION, STREAM); messages are {', '.join(MESSAGES.values())}",
    "gpr_idx": f"gpr_idx with any of {', '.join(GPR_INDEX_MODES)}",
}


def is_call(immediate: str, name: str) -> bool:
    """Whether an operand of this immediate may be written as a call of that name."""
    return immediate in _CALLS and name in _CALLS[immediate][0]


def call(immediate: str, calls: Sequence[OperandCall]) -> int | None:
    """The immediate that the calls write; None where they do not fit."""
    try:
        return _CALLS[immediate][1](calls)
    except Misfit:
        return None


BITS = {"gpr_idx": len(GPR_INDEX_MODES)}
"""How many bits a plain number has where the field has room for more."""


def number(value: int, width: int, signed: bool) -> int | None:
    """A plain number as the content of `width` bits; of 16 and 32 bits both signs may be written, as in LLVM."""
    if signed:
        return value if -(1 << (width - 1)) <= value < 1 << (width - 1) else None
    low = -(1 << (width - 1)) if width in (16, 32) else 0
    return value & ((1 << width) - 1) if low <= value < 1 << width else None


def objection(operand: FormOperand, written: Written) -> tuple[str, tuple[int, int]]:
    """Why what was written is not such an immediate, and where (0, 0 where that is not known)."""
    if written.kind == "call":
        names = {c.name for c in written.value}
        if not all(is_call(operand.immediate, name) for name in names):
            return f"{', '.join(sorted(names))} is not allowed here", (0, 0)
        try:
            _CALLS[operand.immediate][1](written.value)
        except Misfit as misfit:
            return str(misfit), (misfit.start, misfit.end)
    width = sum(bits for _, bits in operand.pieces)
    return f"{written.value} does not fit into the {width} bits of {operand.name}", (0, 0)


def help_for(immediate: str) -> str | None:
    return _HELP.get(immediate)


def values(modifier: FormModifier) -> str:
    """The values of a modifier, in words."""
    spelling = modifier.spelling
    if spelling.values:
        return spelling.values
    if spelling.kind == "choice":
        texts = list(spelling.choices.values())
        return f"its values are {', '.join(texts[:8])}" + (" …" if len(texts) > 8 else "")
    if spelling.kind == "bits":
        return f"it is a list of {modifier.count} bits, as {spelling.word}:[{','.join('0' * modifier.count)}]"
    width = sum(bits for _, bits in modifier.pieces)
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if modifier.signed else (0, (1 << width) - 1)
    return f"{spelling.word} goes from {low} to {high}"


# --- ds_swizzle ------------------------------------------------------------------------------------------------------

_SWIZZLE = re.compile(r"swizzle\((\w+),(.*)\)$")
_QUAD, _ROTATE, _FFT = 0x8000, 0xC000, 0xE000
_BITMASK = {"0": (0, 0, 0), "1": (0, 1, 0), "p": (1, 0, 0), "i": (1, 0, 1)}  # and, or, xor of a bit of the lane's number


def swizzle(text: str) -> int | None:
    """The offset that `swizzle(QUAD_PERM,0,1,2,3)` and its kin write; None where it is none."""
    match = _SWIZZLE.match(text)
    if match is None:
        return None
    kind, rest = match[1], match[2].split(",")
    if kind == "BITMASK_PERM":
        return _bitmask(match[2])
    if not all(part.isdecimal() and len(part) < 4 for part in rest):
        return None
    return _numbered(kind, [int(part) for part in rest])


def _bitmask(text: str) -> int | None:
    """`"01pip"`, the highest bit first: 0 and 1 are set so, p is kept, i inverted."""
    bits = text.strip('"')
    if len(bits) != 5 or any(b not in _BITMASK for b in bits):
        return None
    masks = [sum(_BITMASK[b][which] << (4 - i) for i, b in enumerate(bits)) for which in range(3)]
    return masks[0] | masks[1] << 5 | masks[2] << 10


def _numbered(kind: str, numbers: Sequence[int]) -> int | None:
    match kind, list(numbers):
        case "QUAD_PERM", [a, b, c, d] if max(a, b, c, d) < 4:
            return _QUAD | a | b << 2 | c << 4 | d << 6
        case "BROADCAST", [size, lane] if size in (2, 4, 8, 16, 32) and lane < size:
            return 32 - size | lane << 5
        case "SWAP", [size] if size in (1, 2, 4, 8, 16):
            return 31 | size << 10
        case "REVERSE", [size] if size in (2, 4, 8, 16, 32):
            return 31 | size - 1 << 10
        case "FFT", [pattern] if pattern < 32:
            return _FFT | pattern
        case "ROTATE", [direction, lanes] if direction < 2 and lanes < 32:
            return _ROTATE | direction << 10 | lanes << 5
    return None
