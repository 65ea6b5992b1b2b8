"""One statement's operands bound to one form's pattern: registers checked against types, constants encoded, widths adapted.

Where a register is wider than the type, or a constant is added to an address, or a predicate negated, the meaning is wrapped
once, here; a row's meaning always sees values of exactly the widths that its pattern states.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tilefw.api.floats import float_bits, float_value
from tilefw.api.sim import Immediate, Sink, Symbol
from tilefw_nvidia.isa.meaning.names import Names
from tilefw_nvidia.isa.model import Form, Modifiers, OperandItem
from tilefw_nvidia.isa.text import syntax
from tilefw_nvidia.isa.types import TYPES, Type, agrees

Adapter = Callable[[Any, Any], Any]
# Instructions whose sources may be special registers ("Special Registers" are read by mov and cvt).
_READS_SPECIALS = ("mov", "cvt")
# Instructions that may take the address of a variable as a value.
_TAKES_ADDRESSES = ("mov", "cvta")


class MismatchError(ValueError):
    """The operands do not fit the form. `fit` counts the operands that did, so that the nearest form can be reported."""

    def __init__(self, message: str, fit: int, undeclared: bool = False) -> None:
        super().__init__(message)
        self.fit = fit
        self.undeclared = undeclared


class Binding:
    """The result: sources and destinations for the kit, the modifiers completed, and the adapters that wrap the meaning."""

    def __init__(self, form: Form, modifiers: Modifiers, names: Names, scope: syntax.PtxScope) -> None:
        self.form = form
        self.names = names
        self.scope = scope
        self.modifiers = Modifiers(modifiers)
        self.sources: list[Any] = []
        self.destinations: list[Any] = []
        self.source_adapters: dict[int, Adapter] = {}
        self.destination_adapters: dict[int, Adapter] = {}
        self.given: list[str] = []
        self.constants: dict[str, int] = {}
        self._fit = 0

    def bind(self, operands: tuple[syntax.Operand, ...]) -> Binding:
        """Bind all operands; raises MismatchError."""
        left = list(operands)
        for item in self.form.operands:
            if item.kind == "carry":
                (self.destinations if item.destination else self.sources).append(self.names.carry())
                continue
            if not left:
                if item.optional:
                    break
                raise self._mismatch(f"an operand is missing: the form is `{self.form.pattern}`")
            getattr(self, f"_{item.kind}")(item, left.pop(0))
            self.given.append(item.name)
            self._fit += 1
        if left:
            raise self._mismatch(f"{len(left)} operand{'s' if len(left) > 1 else ''} too many: the form is `{self.form.pattern}`")
        self.modifiers.update(given=frozenset(self.given), constants=self.constants)
        return self

    def _mismatch(self, message: str) -> MismatchError:
        return MismatchError(message, self._fit)

    def _type(self, item: OperandItem) -> Type:
        return TYPES[self.modifiers[item.typed_by] if item.typed_by else item.type]

    # --- one method for each kind of operand ------------------------------------------------------------------------

    def _value(self, item: OperandItem, operand: syntax.Operand) -> None:
        self._one(item, operand, self._type(item))

    def _pair(self, item: OperandItem, operand: syntax.Operand) -> None:
        kind = self._type(item)
        two = isinstance(operand, syntax.PairOperand)
        if item.second == "both" and not two:
            raise self._mismatch("two destinations are needed: `p|q`")
        self.modifiers["two"] = two
        self._one(item, operand.first if two else operand, kind)
        if two:
            self._one(item, operand.second, TYPES["pred"])

    def _vector(self, item: OperandItem, operand: syntax.Operand) -> None:
        count = self._count(item)
        kind = self._type(item)
        written = isinstance(operand, syntax.VectorOperand)
        if count == 1 and not written:
            return self._one(item, operand, kind)
        parts = operand.items if written else (operand,)
        if len(parts) != count:
            raise self._mismatch(f"{item.name} takes {count} register{'s' if count > 1 else ''}, not {len(parts)} in braces")
        for part in parts:
            self._one(item, part, kind)
        return None

    def _count(self, item: OperandItem) -> int:
        if item.count.isdigit():
            return int(item.count)
        if item.count in self.form.counts:
            return self.form.counts[item.count](self.modifiers)
        word = self.modifiers.get(item.count, "x1")
        return int(word[1:])

    def _pack(self, item: OperandItem, operand: syntax.Operand) -> None:
        kind = self._type(item)
        if not isinstance(operand, syntax.VectorOperand):
            raise self._mismatch(f"{item.name} takes registers in braces")
        pieces = len(operand.items)
        part = TYPES.get(f"b{kind.bits // pieces}") if pieces in (2, 4) else None
        if part is None:
            raise self._mismatch(f"{pieces} registers cannot make up .{kind.name}")
        self.modifiers["pieces"] = pieces
        for each in operand.items:
            self._one(item, each, part)

    def _address(self, item: OperandItem, operand: syntax.Operand) -> None:
        if not isinstance(operand, syntax.AddressOperand):
            raise self._mismatch(f"{item.name} must be an address in brackets")
        wanted = int(self.modifiers[item.count][0]) if item.count else 0
        if len(operand.coordinates) != wanted:
            raise self._mismatch(f"{item.name} takes {wanted} coordinates, not {len(operand.coordinates)}")
        self._place(item, operand)
        for coordinate in operand.coordinates:
            self._one(item, coordinate, self._type(item))

    def _sink(self, item: OperandItem, operand: syntax.Operand) -> None:
        if not isinstance(operand, syntax.SinkOperand):
            raise self._mismatch("the destination must be `_`: nothing comes back")

    def _place(self, item: OperandItem, operand: syntax.AddressOperand) -> None:
        if operand.base is None:
            self.sources.append(Immediate(operand.offset % (1 << 64), 64))
            return
        found = self.names.register(operand.base, self.scope)
        if found is None:
            return self._variable_address(operand, item.name.rpartition("_")[2])
        if self.form.base == "st" and self.modifiers.space and self.modifiers.space.startswith("param"):
            raise self._mismatch(f"st.param takes a .param variable of a call, not the address in {operand.base}")
        register, kind = found
        if register.bits not in (32, 64) or kind.kind == "float":
            raise self._mismatch(f"{operand.base} is .{kind.name}; an address has 32 or 64 bits")
        if operand.offset:
            offset, bits = operand.offset, register.bits
            self.source_adapters[len(self.sources)] = lambda lanes, a: lanes.add(a, lanes.const(offset, bits))
        self.sources.append(register)
        return None

    def _variable_address(self, operand: syntax.AddressOperand, stated: str) -> None:
        variable = self.names.variable(operand.base or "", self.scope)
        if variable is None:
            raise MismatchError(f"{operand.base} is not declared", self._fit, undeclared=True)
        space = "param" if isinstance(variable, syntax.PtxParameter) else variable.space
        if self.form.base == "st" and isinstance(variable, syntax.PtxParameter):
            raise self._mismatch(f"{operand.base} is a parameter of the entry, which is only read")
        # The first address of cp.async lies in shared memory, its second in global memory; others are as the modifier says.
        wanted = (self.modifiers.space or "").partition("::")[0]
        if stated in ("shared", "global"):
            wanted = stated
        elif self.form.base == "cp" and len(self.sources) == 1 and not wanted.startswith("shared"):
            wanted = "global"
        if not wanted and not self.modifiers.get("global"):
            self.modifiers["space"] = space
        elif wanted and wanted != space:
            raise self._mismatch(f"{operand.base} lies in .{space}, the access is to .{wanted}")
        if isinstance(variable, syntax.PtxVariable) and space == "param":
            self.modifiers["space"] = "local"  # what a call passes is memory of the thread
        self.sources.append(Symbol(variable.name, operand.offset))

    def _constant(self, item: OperandItem, operand: syntax.Operand) -> None:
        if not isinstance(operand, syntax.Integer):
            raise self._mismatch(f"{item.name} must be an integer constant")
        self.modifiers[item.name] = operand.value

    def _label(self, item: OperandItem, operand: syntax.Operand) -> None:
        target = self.scope.label(operand.text) if isinstance(operand, syntax.Name) else None
        if target is None:
            written = operand.text if isinstance(operand, syntax.Name) else "this"
            raise MismatchError(f"{written} is not a label here", self._fit, undeclared=True)
        self.modifiers[item.name] = target

    def _table(self, item: OperandItem, operand: syntax.Operand) -> None:
        labels = self.scope.table(operand.text) if isinstance(operand, syntax.Name) else None
        if labels is None:
            raise self._mismatch("the last operand must name a .branchtargets list")
        targets = [self.scope.label(label) for label in labels]
        if None in targets:
            raise MismatchError(f"{labels[targets.index(None)]} is not a label here", self._fit, undeclared=True)
        self.modifiers[item.name] = tuple(targets)

    # --- one register or constant -----------------------------------------------------------------------------------

    def _one(self, item: OperandItem, operand: syntax.Operand, kind: Type) -> None:
        if isinstance(operand, syntax.Name):
            found = self.names.register(operand.text, self.scope) if not operand.offset else None
            if found is not None:
                return self._register(item, operand, found[0], found[1], kind)
        if item.destination:
            if (
                isinstance(operand, syntax.Name)
                and self.names.variable(operand.text, self.scope) is None
                and operand.text not in self.names.specials
            ):
                raise MismatchError(f"{operand.text} is not declared", self._fit, undeclared=True)
            if not isinstance(operand, syntax.SinkOperand) or item.tied:
                raise self._mismatch(f"{item.name} is a destination: it takes a register")
            self.destinations.append(Sink(kind.bits))
            return None
        self.sources.append(self._source(item, operand, kind))
        return None

    def _register(self, item: OperandItem, operand: syntax.Name, register: Any, declared: Type, kind: Type) -> None:
        if not agrees(declared, kind, item.wider):
            raise self._mismatch(f"{operand.text} is .{declared.name}; {item.name} must be .{kind.name}")
        if operand.negated and (item.destination or kind.kind != "predicate"):
            raise self._mismatch("only a predicate source can be negated")
        if item.destination:
            if register.bits > kind.bits:
                wide, signed = register.bits, kind.signed
                self.destination_adapters[len(self.destinations)] = lambda lanes, a: (
                    lanes.sign_extend(a, wide) if signed else lanes.zero_extend(a, wide)
                )
            self.destinations.append(register)
            if item.tied:
                self.sources.append(register)
            return
        if operand.negated:
            self.source_adapters[len(self.sources)] = lambda lanes, a: lanes.not_(a)
        elif register.bits > kind.bits:
            narrow = kind.bits
            self.source_adapters[len(self.sources)] = lambda lanes, a: lanes.truncate(a, narrow)
        self.sources.append(register)

    def _source(self, item: OperandItem, operand: syntax.Operand, kind: Type) -> Any:
        if isinstance(operand, syntax.Integer):
            return self._integer(item, operand, kind)
        if isinstance(operand, syntax.Float):
            return Immediate(self._float(operand, kind), kind.bits)
        if isinstance(operand, syntax.Name):
            return self._named(operand, kind)
        raise self._mismatch(f"{item.name} takes one register or constant")

    def _integer(self, item: OperandItem, operand: syntax.Integer, kind: Type) -> Immediate:
        if kind.kind == "float":
            raise self._mismatch(f"{item.name} is .{kind.name}: a float constant is written 0f3F800000 or 1.0")
        self.constants[item.name] = operand.value
        if kind.kind == "predicate":
            return Immediate(int(operand.value != 0), 1)
        return Immediate(operand.value % (1 << kind.bits), kind.bits)

    def _named(self, operand: syntax.Name, kind: Type) -> Any:
        special = self.names.specials.get(operand.text)
        if special is not None:
            if self.form.base not in _READS_SPECIALS:
                raise self._mismatch(f"special registers are read by mov and cvt, not by {self.form.base}")
            if special.bits != kind.bits:
                raise self._mismatch(f"{operand.text} has {special.bits} bits, not {kind.bits}")
            return special
        if operand.text == "WARP_SZ":
            return Immediate(32, kind.bits)
        variable = self.names.variable(operand.text, self.scope)
        if variable is None:
            raise MismatchError(f"{operand.text} is not declared", self._fit, undeclared=True)
        if isinstance(variable, syntax.PtxVariable) and variable.space == "param":
            raise self._mismatch(f"the address of {operand.text} is taken, which is not supported yet for arguments of a call")
        if self.form.base not in _TAKES_ADDRESSES or kind.bits not in (32, 64) or kind.kind == "float":
            raise self._mismatch(f"{operand.text} is a variable; its address is taken by mov.u64 or mov.u32")
        return Symbol(variable.name, operand.offset, kind.bits)

    def _float(self, operand: syntax.Float, kind: Type) -> int:
        """A float constant's pattern in the type. Hexadecimal ones are bits too ("Floating-Point Constants")."""
        if kind.kind == "bits" and kind.bits == operand.bits and not operand.decimal:
            return operand.pattern
        if kind.name not in ("f32", "f64"):
            raise self._mismatch(f"a float constant does not fit .{kind.name}")
        if kind.bits == operand.bits:
            return operand.pattern
        value = float_value(operand.pattern, f"f{operand.bits}")
        try:
            return float_bits(value, kind.name)
        except OverflowError:
            return float_bits(math.copysign(math.inf, value), kind.name)


def adapted(meaning: Callable[..., Any], sources: dict[int, Adapter], destinations: dict[int, Adapter]) -> Callable[..., Any]:
    """`meaning` with the adapters around it."""
    if not sources and not destinations:
        return meaning
    before, after = tuple(sources.items()), tuple(destinations.items())

    def wrapped(lanes: Any, *values: Any) -> Any:
        if before:
            given = list(values)
            for index, adapter in before:
                given[index] = adapter(lanes, given[index])
            values = tuple(given)
        result = meaning(lanes, *values)
        if not after:
            return result
        results = list(result) if isinstance(result, tuple) else [result]
        for index, adapter in after:
            results[index] = adapter(lanes, results[index])
        return tuple(results)

    return wrapped
