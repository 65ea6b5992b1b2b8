"""Results of a meaning: how each becomes the registers that hold it.

The stages, in the order of the hardware: omod and clamp; the part of the register that SDWA or op_sel says, beside what stays of
the old value; words of 32 bits. Lanes that DPP leaves out come last, in `binding`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tilefw_amd.isa.encoding.modifiers import DWORD
from tilefw_amd.isa.meaning import operand_modifiers, sdwa
from tilefw_amd.isa.meaning.reader import SourceCollector
from tilefw_amd.isa.row import Mode, Operand
from tilefw_amd.isa.types import Type

Finish = Callable[[Any, Any, Any], tuple[Any, ...]]
"""(lanes, result, sources of the kit) to the words that are written."""


class MeaningResult(NamedTuple):
    """`finish` None: the result is the one word."""

    operand: Operand
    finish: Finish | None = None


def result(reader: SourceCollector, operand: Operand, registers: tuple[Any, ...]) -> MeaningResult:
    """The result for one destination, held in `registers` of the kit."""
    kind = operand.type
    if kind is None:  # SCC
        return MeaningResult(operand)
    modified = _modified(reader, kind)
    if reader.elementwise:
        return MeaningResult(operand, _packed(kind, modified))
    placed = _narrow_result(reader, kind, registers)
    words = _words(kind)
    if modified is None and placed is None:
        return MeaningResult(operand, None if words is None else lambda lanes, value, sources: words(lanes, value))

    def finish(lanes: Any, value: Any, sources: Any) -> tuple[Any, ...]:
        if modified is not None:
            value = modified(lanes, value)
        if placed is not None:
            value = placed(lanes, value, sources)
        return (value,) if words is None else words(lanes, value)

    return MeaningResult(operand, finish)


def _modified(reader: SourceCollector, kind: Type) -> operand_modifiers.Adapter | None:
    modifiers, mode = reader.modifiers, reader.mode
    if kind.kind != "float":
        return None
    made = operand_modifiers.result(kind, modifiers.get("clamp", 0), modifiers.get("omod", 0), mode)
    if made is None and kind.format == "f16" and mode.fp16_overflow:
        return _without_overflow
    return made


def _without_overflow(lanes: Any, a: Any) -> Any:
    """With FP16_OVFL an overflow gives the largest number, an infinite operand infinity; which it was, the result does not say."""
    infinite = lanes.fclass(a, "infinite", "f16")
    lanes.require(lanes.not_(infinite), "an infinite f16 result while MODE.FP16_OVFL is set: this case is not supported")
    return a


def limited_sums(mode: Mode, name: str, multiply: Callable[..., Any]) -> Callable[..., Any]:
    """A product into sums of f32. FP16_OVFL limits them (CDNA3 ISA 7.3, the table of dense products); what then becomes of an
    infinite operand is not said, so that a sum that is infinite stops the launch."""
    if not mode.fp16_overflow:
        return multiply

    def meaning(lanes: Any, *operands: Any) -> Any:
        sums = multiply(lanes, *operands)
        for value in sums if isinstance(sums, tuple) else (sums,):
            finite = lanes.not_(lanes.fclass(value, "infinite", "f32"))
            lanes.require(finite, f"an infinite sum of {name} while MODE.FP16_OVFL is set: this case is not supported")
        return sums

    return meaning


def _words(kind: Type) -> Callable[[Any, Any], tuple[Any, ...]] | None:
    """A value as words of 32 bits."""
    if kind.kind == "mask":
        return lambda lanes, value: lanes.ballot(value)
    if kind.kind == "fragment" or kind.bits > 64:
        return lambda lanes, value: value
    return (lambda lanes, value: lanes.split(value, 32)) if kind.bits == 64 else None


def _narrow_result(reader: SourceCollector, kind: Type, registers: tuple[Any, ...]) -> Finish | None:
    """A result narrower than a register, or one that SDWA puts into a part of it."""
    if kind.kind in ("mask", "fragment") or kind.bits > 32:
        return None
    modifiers = reader.modifiers
    selector, unused = modifiers.get("dst_sel", DWORD), modifiers.get("dst_unused", sdwa.PAD)
    if selector != DWORD:
        place = reader.read(*registers)[0] if unused == sdwa.PRESERVE else None
        put = sdwa.destination(selector, unused)
        assert put is not None
        return lambda lanes, value, sources: put(lanes, _word(lanes, value, kind), None if place is None else sources[place])
    if kind.bits == 32:
        return None
    high = _high_half(reader)
    if kind.bits == 16 and (high or "keeps half" in reader.row.facts):
        place = reader.read(*registers)[0]
        return lambda lanes, value, sources: _beside(lanes, value, sources[place], high)
    return lambda lanes, value, sources: _word(lanes, value, kind)


def _high_half(reader: SourceCollector) -> bool:
    """The last bit of op_sel is the destination's."""
    bits = reader.modifiers.get("op_sel")
    return isinstance(bits, tuple) and len(bits) == len(reader.row.sources) + 1 and bool(bits[-1])


def _word(lanes: Any, value: Any, kind: Type) -> Any:
    return lanes.zero_extend(value, 32) if kind.bits < 32 else value


def _beside(lanes: Any, value: Any, old: Any, high: bool) -> Any:
    """16 bits in one half of a register, the other half as it was."""
    low_old, high_old = lanes.split(old, 16)
    return lanes.join((low_old, value) if high else (value, high_old))


def _packed(kind: Type, modified: operand_modifiers.Adapter | None) -> Finish:
    """Elements, lowest first, as the registers of a packed destination."""

    def finish(lanes: Any, value: Any, sources: Any) -> tuple[Any, ...]:
        elements = value if modified is None else tuple(modified(lanes, v) for v in value)
        return elements if kind.element_bits == 32 else (lanes.join(elements),)

    return finish
