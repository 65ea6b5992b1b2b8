"""Sources of a meaning: how each is made of the registers that the kit reads.

The stages, in the order of the hardware (CDNA3 ISA, chapter "Vector ALU operations"): the registers of a tuple side by side; SDWA's
part of a register; the half that op_sel says; absolute value and sign. Lanes of DPP come before all, in `binding`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tilefw.api.sim import Immediate
from tilefw_amd.isa.encoding.modifiers import DWORD
from tilefw_amd.isa.meaning import operand_modifiers, sdwa
from tilefw_amd.isa.meaning.operand_modifiers import Adapter, half, low_byte
from tilefw_amd.isa.meaning.operand_values import EXECZ, IMPLICIT, SCC_SLOT, SCC_VALUE, VCCZ, pattern, read_only, slots
from tilefw_amd.isa.meaning.reader import SourceCollector
from tilefw_amd.isa.model import FormOperand, InlineConstant, Literal32, RegisterTuple
from tilefw_amd.isa.model import Operand as Given
from tilefw_amd.isa.row import Operand
from tilefw_amd.isa.types import TYPES, Type


class MeaningArgument(NamedTuple):
    """`function(lanes, *sources at places)` is what the meaning gets; without one it is the one source itself."""

    places: tuple[int, ...]
    function: Callable[..., Any] | None = None


def argument(reader: SourceCollector, form_operand: FormOperand | None, operand: Operand, given: Given) -> MeaningArgument:
    """The argument for one operand of the row; `form_operand` None: it is not written. Raises ValueError for what is not served."""
    kind = operand.type
    assert kind is not None
    words: Callable[..., Any] | None = None
    number = -1 if form_operand is None or operand.role == "destination" else form_operand.source
    if isinstance(given, InlineConstant | Literal32):
        if kind.registers == 2 and kind.kind not in ("fragment", "mask") and not kind.packed:
            stages = [s for s in _parts(reader, kind, number) if s is not None]
            return MeaningArgument(reader.read(Immediate(pattern(given, kind), 64)), _chain(stages))
        places = _constant(reader, given, _mixed(reader, number) if "mixed" in reader.row.facts else kind)
    elif isinstance(given, RegisterTuple) and _is_special(given):
        places, words = _special(reader, given, kind.registers)
    elif isinstance(given, RegisterTuple):
        # The register that DPP fetches from other lanes is a source by itself, though another operand may name it too.
        apart = number == 0 and "dpp_ctrl" in reader.modifiers
        places = reader.read_apart(*slots(given)) if apart else reader.read(*slots(given))
    else:
        raise ValueError(f"{reader.form.mnemonic}: the operand {operand.name} is missing")
    if reader.elementwise:
        return MeaningArgument(places, _of_words(words, _elements(reader, kind, number)))
    stages = [s for s in (_whole(kind, kind.registers if words else len(places)), *_parts(reader, kind, number)) if s is not None]
    return MeaningArgument(places, _of_words(words, _chain(stages)))


def _constant(reader: SourceCollector, given: InlineConstant | Literal32, kind: Type) -> tuple[int, ...]:
    """A constant as words of 32 bits; in a fragment it stands for every element."""
    if kind.kind != "fragment":
        bits = pattern(given, kind)
    else:
        element = Type(kind.format or "element", "float" if kind.format else "bits", kind.element_bits, kind.format)
        each = pattern(given, element) & (1 << kind.element_bits) - 1
        bits = sum(each << i * kind.element_bits for i in range(kind.elements))
    return reader.read(*(Immediate(bits >> 32 * i & 0xFFFFFFFF, 32) for i in range(kind.registers)))


def _mixed(reader: SourceCollector, number: int) -> Type:
    """The type of a constant in an instruction of mixed precision."""
    return TYPES["f16" if _bit(reader.modifiers.get("op_sel_hi"), number) else "f32"]


def _is_special(given: RegisterTuple) -> bool:
    return given.file == "s" and given.index >= 128


def _special(reader: SourceCollector, given: RegisterTuple, registers: int) -> tuple[tuple[int, ...], Callable[..., Any] | None]:
    """Scalar operands that are not registers (CDNA3 ISA, table "Scalar operands"): apertures, and conditions as numbers.

    Places, and a function that makes the words of so many registers of what is read there (None: these words are read)."""
    value = read_only(given.index, 32 * registers)
    if value is not None:
        return reader.read(*(Immediate(value.value >> 32 * i & 0xFFFFFFFF, 32) for i in range(registers))), None
    if given.index == SCC_VALUE:
        return reader.read(SCC_SLOT), lambda lanes, scc: _number(lanes, scc, registers)
    tested = {VCCZ: "vcc", EXECZ: "exec"}.get(given.index)
    if tested is None:
        raise ValueError(f"{reader.form.mnemonic} reads a scalar operand that the simulator does not have (code {given.index})")

    def is_zero(lanes: Any, low: Any, high: Any) -> tuple[Any, ...]:
        return _number(lanes, lanes.compare(lanes.or_(low, high), lanes.const(0, 32), "eq", False), registers)

    return reader.read(*slots(IMPLICIT[tested])), is_zero


def _number(lanes: Any, condition: Any, registers: int) -> tuple[Any, ...]:
    """0 or 1 in so many registers."""
    return lanes.zero_extend(condition, 32), *(lanes.const(0, 32) for _ in range(1, registers))


def _of_words(words: Callable[..., Any] | None, function: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """`function` of the words that `words` makes; without a function there is one word."""
    if words is None:
        return function
    if function is None:
        return lambda lanes, *values: words(lanes, *values)[0]
    return lambda lanes, *values: function(lanes, *words(lanes, *values))


def _whole(kind: Type, registers: int) -> Callable[..., Any] | None:
    """Registers side by side: one value up to 64 bits, a tuple of registers beyond and for fragments."""
    if kind.kind == "mask":
        return lambda lanes, low, high: lanes.unballot(low, high)
    if kind.kind == "fragment" or registers > 2:
        return lambda lanes, *values: values
    return (lambda lanes, low, high: lanes.join((low, high))) if registers == 2 else None


def _parts(reader: SourceCollector, kind: Type, number: int) -> list[Adapter | None]:
    """What modifiers take of a value and do to it, then the width of the type."""
    if kind.kind in ("mask", "fragment") or kind.bits > 64:
        return []
    modifiers = reader.modifiers
    stages: list[Adapter | None] = []
    selector = modifiers.get(f"src{number}_sel", DWORD)
    if selector != DWORD:
        stages.append(sdwa.source(selector, _bit(modifiers.get("sext"), number)))
    if kind.bits == 16:
        stages.append(half(_bit(modifiers.get("op_sel"), number)))
    elif kind.bits == 8:
        stages.append(low_byte)
    if not kind.packed:
        stages.append(operand_modifiers.source(kind, _bit(modifiers.get("neg"), number), _bit(modifiers.get("abs"), number)))
    return stages


def _elements(reader: SourceCollector, kind: Type, number: int) -> Callable[..., Any]:
    """The elements of a packed source, each from the half that op_sel or op_sel_hi says, with the sign of neg_lo or neg_hi."""
    modifiers = reader.modifiers
    # Encodings without the fields (v_pk_fmac_f16), and old values of destinations, have each element in its place.
    selected = "op_sel_hi" in modifiers and number >= 0
    chosen = (_bit(modifiers.get("op_sel"), number), _bit(modifiers.get("op_sel_hi"), number)) if selected else (0, 1)
    signs = [
        operand_modifiers.source(Type(kind.format, "float", kind.element_bits, kind.format), _bit(modifiers.get(name), number), 0)
        if kind.format else None
        for name in ("neg_lo", "neg_hi")
    ]
    halves = tuple(half(high) for high in chosen) if kind.element_bits == 16 else None

    def elements(lanes: Any, *registers: Any) -> tuple[Any, ...]:
        if halves is None:
            values = [registers[high] for high in chosen]
        else:
            values = [take(lanes, registers[0]) for take in halves]
        return tuple(v if sign is None else sign(lanes, v) for v, sign in zip(values, signs, strict=True))

    return elements


def _bit(bits: Any, number: int) -> int:
    """The bit of a modifier that has one for each source."""
    return bits[number] if isinstance(bits, tuple) and 0 <= number < len(bits) else 0


def _chain(stages: list[Callable[..., Any]]) -> Callable[..., Any] | None:
    if len(stages) < 2:
        return stages[0] if stages else None
    first, *rest = stages

    def chained(lanes: Any, *values: Any) -> Any:
        value = first(lanes, *values)
        for stage in rest:
            value = stage(lanes, value)
        return value

    return chained
