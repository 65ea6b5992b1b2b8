"""The floating-point mode in force at each instruction, from the kernel descriptor through the writes to the MODE register.

The meaning of a float instruction is made once, so its mode must be known before it runs: a flow of known bits over the control
flow graph. Where two paths bring different bits, those are not known behind the join; an instruction that asks for them stops the
launch with TFW0822. MODE: CDNA3 ISA, section "Mode register"; its first value: AMDGPUUsage, "compute_pgm_rsrc1".
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tilefw.api.errors import CodeError, Place
from tilefw_amd.isa.meaning.operand_values import pattern
from tilefw_amd.isa.model import InlineConstant, Literal32, MCInst
from tilefw_amd.isa.row import Mode
from tilefw_amd.isa.rows.control import MODE, hardware_register
from tilefw_amd.isa.types import TYPES

CODE = "TFW0822"
# Fields that meanings ask for: name -> (lowest bit, width).
FIELDS = {
    "round32": (0, 2), "round64": (2, 2), "flush32": (4, 2), "flush64": (6, 2), "dx10_clamp": (8, 1), "ieee": (9, 1),
    "fp16_overflow": (23, 1),
}
TRACKED = sum(((1 << width) - 1) << low for low, width in FIELDS.values())
_ROUNDING = ("rn", "rp", "rm", "rz")
_FLUSH, _KEEP = 0, 3  # subnormals of sources and results


class ModeError(CodeError):
    """An instruction asks for a part of the mode that is not the same on all ways to it, or that is not served."""


class Bits(NamedTuple):
    """MODE as far as it is known: `value` where `known` is set."""

    value: int
    known: int

    def joined(self, other: Bits) -> Bits:
        """What is known whichever of the two came."""
        known = self.known & other.known & ~(self.value ^ other.value)
        return Bits(self.value & known, known)

    def with_field(self, low: int, width: int, value: int | None) -> Bits:
        """After a write of some bits; None: the value is not known."""
        mask = ((1 << width) - 1) << low & TRACKED
        if value is None:
            return Bits(self.value & ~mask, self.known & ~mask)
        return Bits(self.value & ~mask | value << low & mask, self.known | mask)


class UnknownMode(Mode):
    """A mode of which not all is known or served: asking for that part raises ModeError with the instruction's place."""

    __slots__ = ("_bits", "_place")

    def __init__(self, bits: Bits, place: Place | None) -> None:
        object.__setattr__(self, "_bits", bits)
        object.__setattr__(self, "_place", place)

    def __getattribute__(self, name: str) -> Any:
        if name not in FIELDS:
            return object.__getattribute__(self, name)
        value = _field(object.__getattribute__(self, "_bits"), name)
        if isinstance(value, str) and value not in _ROUNDING:
            raise ModeError(f"the floating-point mode {value} ({name})", CODE, object.__getattribute__(self, "_place"))
        return value


def mode(bits: Bits, place: Place | None) -> Mode:
    """The mode for an instruction at `place`."""
    made = _known(bits)
    return UnknownMode(bits, place) if made is None else made


@functools.lru_cache(maxsize=256)
def _known(bits: Bits) -> Mode | None:
    fields = {name: _field(bits, name) for name in FIELDS}
    problems = [v for v in fields.values() if isinstance(v, str) and v not in _ROUNDING]
    return None if problems else Mode(**fields)


def _field(bits: Bits, name: str) -> Any:
    """A field's value for `Mode`, or a sentence why there is none."""
    low, width = FIELDS[name]
    mask = ((1 << width) - 1) << low
    if bits.known & mask != mask:
        return "differs between the ways that lead here, or is computed"
    value = (bits.value & mask) >> low
    if name.startswith("round"):
        return _ROUNDING[value]
    if not name.startswith("flush"):
        return bool(value)
    if value not in (_FLUSH, _KEEP):
        return "flushes subnormals of sources only, or of results only, which is not served"
    return value == _FLUSH


@dataclass(frozen=True, slots=True)
class FlowStep:
    """One decoded instruction for the flow: `targets` are the instructions that may come next, `jump` that it goes to a computed
    address. `inst` is None for bytes that mean nothing."""

    inst: MCInst | None
    targets: tuple[int, ...]
    jump: bool = False


def first(descriptor: Mapping[str, int]) -> Bits:
    """MODE as a kernel finds it."""
    value = (
        descriptor.get("float_round_mode_32", 0) | descriptor.get("float_round_mode_16_64", 0) << 2
        | descriptor.get("float_denorm_mode_32", 0) << 4 | descriptor.get("float_denorm_mode_16_64", 0) << 6
        | descriptor.get("dx10_clamp", 0) << 8 | descriptor.get("ieee_mode", 0) << 9 | descriptor.get("fp16_overflow", 0) << 23
    )
    return Bits(value, TRACKED)


def modes(steps: Sequence[FlowStep], start: Bits, landings: Sequence[int]) -> list[Bits]:
    """The mode at each instruction, of which the first is the entry. `landings` are where a computed jump may go: behind calls, and
    the starts of functions."""
    known: dict[int, Bits] = {0: start}
    open_ = [0] if steps else []
    while open_:
        place = open_.pop()
        after = _after(steps[place].inst, known[place])
        for target in (*steps[place].targets, *(landings if steps[place].jump else ())):
            before = known.get(target)
            joined = after if before is None else before.joined(after)
            if joined != before:
                known[target] = joined
                open_.append(target)
    return [known.get(i, start) for i in range(len(steps))]


def _after(inst: MCInst | None, bits: Bits) -> Bits:
    if inst is None or "setreg" not in inst.form.row.facts:
        return bits
    given = {o.name: v for o, v in zip(inst.form.operands, inst.operands, strict=True)}
    immediate = next(v for v in given.values() if isinstance(v, int))
    number, low, width = hardware_register(immediate)
    if number != MODE:
        return bits
    source = next((v for v in given.values() if isinstance(v, InlineConstant | Literal32)), None)
    return bits.with_field(low, width, None if source is None else pattern(source, TYPES["b32"]) & (1 << width) - 1)
