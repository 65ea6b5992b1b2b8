"""Where values wait for a register: integers in float registers that are free, then everything in the lane's private memory."""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.api.machine import MEMORY, WHOLE, Inst, Location, Operand, Slice, SpillModel, SpillSlotClass
from tilefw_rook.isa import ROWS
from tilefw_rook.target import R1

_LOAD, _STORE = {"x": "lw.p", "f": "flw.p"}, {"x": "sw.p", "f": "fsw.p"}


def _store(value: Slice, place: Slice | None, index: int) -> list[Inst]:
    if place is not None:
        return [Inst("fmv.f", [place.part(i)], [value.part(i)]) for i in range(value.count)]
    return [Inst(_STORE[value.reg.cls], (), [index + 4 * i, value.part(i)]) for i in range(value.count)]


def _load(value: Slice, place: Slice | None, index: int) -> list[Inst]:
    if place is not None:
        return [Inst("fmv.x", [value.part(i)], [place.part(i)]) for i in range(value.count)]
    return [Inst(_LOAD[value.reg.cls], [value.part(i)], [index + 4 * i]) for i in range(value.count)]


def copied(inst: Inst) -> Sequence[tuple[Location, Location]] | None:
    """What an instruction copies from one location to another, if it does nothing else (see `SpillModel`)."""
    if inst.opcode in ("fmv.f", "fmv.x", "lw.p", "flw.p"):
        return [(_location(inst.defs[0]), _location(inst.uses[0]))]
    return [(_location(inst.uses[0]), _location(inst.uses[1]))] if inst.opcode in ("sw.p", "fsw.p") else None


def _location(operand: Operand) -> Location:
    return (operand.reg.cls, operand.first, WHOLE) if isinstance(operand, Slice) else (MEMORY, int(operand), WHOLE)


_PRIVATE = SpillSlotClass(MEMORY, 1, ROWS["lw.p"].latency, _store, _load)
MODEL = SpillModel(
    {"x": (SpillSlotClass("f", 1, ROWS["fmv.x"].latency, _store, _load), _PRIVATE), "f": (_PRIVATE,)},
    lambda inst, reg, cls: False,  # no instruction takes an operand in the other file
    copied, R1.limits["private_bytes"],
)
