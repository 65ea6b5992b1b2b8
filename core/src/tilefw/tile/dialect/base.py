"""The base of the hand-written tile ops: an xDSL Operation without IRDL, with typed access to its properties.

IRDL's verifier costs some 20 µs an op and its constructor three times `Operation.create`; these ops check themselves.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, Self, TypeVar

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    Signedness,
    StringAttr,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, OpTraits, Region, SSAValue, SSAValues, Use
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilefw.tile import types

Value = SSAValue | Operation


PURE = OpTraits(lambda: (Pure(),))
_NOTHING: Mapping[str, Attribute] = MappingProxyType({})


@lru_cache(maxsize=4096)
def _unpacked(packed: bytes, width: int, unsigned: bool) -> tuple[int, ...]:
    """The elements of a dense array of integers. xDSL takes a hundred steps to unpack one, and accesses ask for theirs often."""
    kind = IntegerType(width, Signedness.UNSIGNED if unsigned else Signedness.SIGNLESS)
    return tuple(kind.unpack(packed, len(packed) // kind.size))


class OpClass(ABCMeta):
    """Classes of ops: none is another's by registration, so `isinstance` need not go through ABCMeta's, which takes eight times as
    long, and passes ask it some twenty thousand times for one kernel."""

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


class LeanResult(OpResult):
    """A result that is compared and hashed as any object of Python is. xDSL's says the same by methods, which take ten times as
    long, and values are the keys of most tables."""

    __eq__ = object.__eq__  # type: ignore[assignment]
    __hash__ = object.__hash__


_ValueT = TypeVar("_ValueT", bound=SSAValue)
_VALUES = frozenset({LeanResult, OpResult, BlockArgument})


class LeanValues(SSAValues[_ValueT]):
    """Values that are taken by their index as from any tuple; xDSL's asks first if it is one."""

    __getitem__ = tuple.__getitem__  # type: ignore[assignment]


class LeanOp(Operation, metaclass=OpClass):
    """An op of ours. xDSL's constructor sets what most ops do not have through properties, which takes twice as long."""

    __eq__ = object.__eq__  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __init__(
        self, *, operands: Sequence[SSAValue] = (), result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute] = _NOTHING, attributes: Mapping[str, Attribute] = _NOTHING,
        location: LocationAttr | None = None, successors: Sequence[Block] = (), regions: Sequence[Region] = (),
    ) -> None:
        if operands:
            self._operands = LeanValues(operands)
            self._operand_uses = tuple([Use(self, index) for index in range(len(operands))])
            for operand, use in zip(operands, self._operand_uses, strict=True):
                operand.add_use(use)
        self.results = LeanValues([LeanResult(type, self, index) for index, type in enumerate(result_types)])
        self.properties = dict(properties)
        self.attributes = dict(attributes)
        self.location = UNKNOWN_LOC if location is None else location
        if successors:
            self.successors = successors
        for region in regions:
            self.add_region(region)

    @classmethod
    def create(cls, **parts: Any) -> Self:
        """An op of these parts, as they are: what xDSL's parser and `clone` call, and what takes no class's own arguments."""
        op = cls.__new__(cls)
        LeanOp.__init__(op, **parts)
        return op


def value_of(given: Value) -> SSAValue:
    """A value, or the only result of an op: xDSL's `SSAValue.get`, which asks Python's abstract base classes first."""
    return given if given.__class__ in _VALUES else SSAValue.get(given)  # type: ignore[return-value]


class TileOp(LeanOp):
    """An op of the tile dialect. Subclasses say how many operands and results they have and verify the rest."""

    operand_count: int | None = None
    result_count: int | None = 1
    property_names: frozenset[str] = frozenset()
    traits = OpTraits(lambda: ())

    @property
    def result(self) -> SSAValue:
        """The one result; raises IndexError on ops without any."""
        return self.results[0]

    def verify_(self) -> None:
        """Raise VerifyException for a wrong number of operands or results, an unknown property, or a `problem`."""
        if self.operand_count is not None and len(self._operands) != self.operand_count:
            raise VerifyException(f"{self.name} takes {self.operand_count} operands, got {len(self._operands)}")
        if self.result_count is not None and len(self.results) != self.result_count:
            raise VerifyException(f"{self.name} has {self.result_count} results, got {len(self.results)}")
        unknown = self.properties.keys() - self.property_names
        if unknown:
            raise VerifyException(f"{self.name} has no property {', '.join(sorted(unknown))}")
        try:
            problem = self.problem()
        except (AttributeError, IndexError, TypeError) as error:  # generic text can leave out what the accessors read
            problem = f"operands or properties are malformed ({error})"
        if problem is not None:
            raise VerifyException(f"{self.name}: {problem}")

    def problem(self) -> str | None:
        """What is wrong with the op's types and properties, in words; None when nothing is."""
        return None

    def result_problem(self, wanted: Attribute) -> str | None:
        """What is wrong with the type of the one result, in words."""
        found = self.results[0].type
        return None if found == wanted else f"the result is {found}, expected {wanted}"

    def integer(self, name: str) -> int:
        """An integer property; raises VerifyException when it is missing or no integer."""
        attribute = self.properties.get(name)
        if not isinstance(attribute, IntegerAttr):
            raise VerifyException(f"{self.name} needs the integer property {name}")
        return attribute.value.data

    def integers(self, name: str) -> tuple[int, ...]:
        """A property that is a dense array of integers; raises VerifyException when it is missing or none."""
        attribute = self.properties.get(name)
        if not isinstance(attribute, DenseArrayBase) or not isinstance(attribute.elt_type, IntegerType):
            raise VerifyException(f"{self.name} needs the property {name}, an array of integers")
        kind = attribute.elt_type
        return _unpacked(attribute.data.data, kind.width.data, kind.signedness.data is Signedness.UNSIGNED)

    def word(self, name: str, default: str = "") -> str:
        """A string property, `default` when it is missing; raises VerifyException when it is not a string."""
        attribute = self.properties.get(name)
        if attribute is None:
            return default
        if not isinstance(attribute, StringAttr):
            raise VerifyException(f"the property {name} of {self.name} is a string")
        return attribute.data

    def words(self, name: str) -> tuple[str, ...]:
        """A property that is an array of strings; raises VerifyException when it is missing or none."""
        attribute = self.properties.get(name)
        found = attribute.data if isinstance(attribute, ArrayAttr) else (None,)
        texts = tuple(item.data for item in found if isinstance(item, StringAttr))
        if len(texts) != len(found):
            raise VerifyException(f"{self.name} needs the property {name}, an array of strings")
        return texts


@cache
def integer_attr(value: int) -> IntegerAttr:
    """`value : i64`, made once."""
    return IntegerAttr(value, types.i64)


@lru_cache(maxsize=4096)
def count_attr(value: int) -> IntAttr:
    """A number without a type, such as a line's, made once while it is asked for."""
    return IntAttr(value)


@cache
def string_attr(value: str) -> StringAttr:
    """A string attribute, made once."""
    return StringAttr(value)


@cache
def dense_i64(values: tuple[int, ...]) -> DenseArrayBase:
    """`array<i64: …>`, made once."""
    return DenseArrayBase.from_list(types.i64, values)


@cache
def dense_i32(values: tuple[int, ...]) -> DenseArrayBase:
    """`array<i32: …>`, made once: the form of `operandSegmentSizes`."""
    return DenseArrayBase.from_list(types.i32, values)


def literal_attr(value: int | float, type: Attribute) -> IntegerAttr | FloatAttr:
    """A constant's value as an attribute: integers as signed i64 of the type's range (i1 as 0 or 1), floats as f64.

    Every float format of tile IR is a subset of f64, so the f64 is exact; the caller rounds first.
    """
    if types.is_float(type):
        return FloatAttr(float(value), types.f64)
    bits = types.dtype_of(type).bits
    value = int(value) & ((1 << bits) - 1)
    return integer_attr(value - (1 << bits) if bits > 1 and value >> (bits - 1) else value)
