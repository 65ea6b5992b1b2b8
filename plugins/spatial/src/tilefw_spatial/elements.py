"""Element types that the chip lacks, made of those that it has: 64-bit integers are pairs of words, small formats are their codes.

A graph goes in and one comes out whose values all have the machine's element types. Memory stays as it was: the words of a 64-bit
integer are loaded and stored apart, a format of a byte and less as that byte. Elementwise rows are core's expansions, built of
values of the graph; what moves elements moves each part of them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tilefw.api import DTYPES, Place, UnsupportedError
from tilefw.api.expand import CASTS, RULES, TYPES, Legal
from tilefw_spatial import isa
from tilefw_spatial.graph import (
    AccessMap,
    Constant,
    Dot,
    Elementwise,
    Gather,
    Graph,
    Join,
    Load,
    Reduce,
    ReductionKind,
    Rename,
    Store,
    Value,
    operands_of,
)

_WORD = 1 << 32
_BITWISE = (ReductionKind.AND, ReductionKind.OR, ReductionKind.XOR)


def on_machine_types(graph: Graph) -> Graph:
    """The same stores on the machine's element types; the graph itself where it has no others. Raises UnsupportedError (TFW0680)
    for fp64, and for what neither expansions nor moves are."""
    values = graph.values()
    if all(value.dtype in isa.TYPES for value in values):
        return graph
    made: dict[int, ElementParts] = {}
    for value in values:
        made[id(value)] = _converted(value, [made[id(operand)] for operand in operands_of(value.op)])
    return Graph([new for store in graph.stores for new in _stores(store, made)], graph.checks)


@dataclass(frozen=True, slots=True)
class ElementParts:
    """A value of `type` (tile IR's spelling): itself, the low and the high word of a 64-bit integer, or the byte of a code."""

    type: str
    values: tuple[Value, ...]

    @property
    def one(self) -> Value:
        return self.values[0]


def _part_types(dtype: str, place: Place | None) -> tuple[str, ...]:
    if dtype in isa.TYPES:
        return (dtype,)
    if dtype in ("int64", "uint64"):
        return ("int32", "int32")
    if DTYPES[dtype].storage_bits == 8:
        return ("int8",)
    raise UnsupportedError(f"the chip has no elements of type {dtype}, and nothing to make them of", code="TFW0680", place=place)


# --- values ----------------------------------------------------------------------------------------------------------------


def _converted(value: Value, operands: list[ElementParts]) -> ElementParts:
    type_ = DTYPES[value.dtype].ir
    types = _part_types(value.dtype, value.place)
    match value.op:
        case Load(access_map=access_map, fill=fill):
            ops = [Load(_scaled(access_map, k, len(types)), fill >> 32 * k & _WORD - 1) for k in range(len(types))]
        case Constant(data=data):
            ops = [Constant(part) for part in _constant_parts(data, value.dtype)]
        case Elementwise() as op:
            return _elementwise(value, op, operands)
        case Rename() as op:
            ops = [replace(op, operand=part) for part in operands[0].values]
        case Gather() as op:  # an index lies within its axis: its low word says all
            ops = [replace(op, table=part, index=operands[1].values[0]) for part in operands[0].values]
        case Join() as op:
            ops = [replace(op, operands=parts) for parts in zip(*(found.values for found in operands), strict=True)]
        case Reduce() as op if len(types) == 1 == len(operands[0].values) or op.kind in _BITWISE:
            initial = operands[1].values if len(operands) > 1 else (None,) * len(types)
            ops = [replace(op, operand=part, initial=start) for part, start in zip(operands[0].values, initial, strict=True)]
        case Dot() as op if value.dtype in isa.TYPES and all(len(found.values) == 1 for found in operands):
            a, b, *sums = (found if _plain(found) else _as_numbers(found, value) for found in operands)
            ops = [replace(op, a=a.one, b=b.one, accumulator=sums[0].one if sums else None)]
        case op:
            what = f"{type(op).__name__.lower()} of {value.dtype}"
            raise UnsupportedError(f"the chip has no way to a {what}", code="TFW0680", place=value.place)
    return ElementParts(type_, tuple(Value(op, value.axes, t, value.place) for op, t in zip(ops, types, strict=True)))


def _as_numbers(codes: ElementParts, like: Value) -> ElementParts:
    """Codes of a float of a byte as the numbers of fp16 that they are: it has all of them."""
    made = Value(like.op, codes.one.axes, "fp16", like.place)
    return Legal(_PartsBuilder(made, False), RULES)("castf", codes, to="f16")


def _scaled(access_map: AccessMap, word: int, words: int) -> AccessMap:
    """The access of one word of each element, in units of words."""
    along = tuple(replace(part, offsets=part.offsets * words) for part in access_map.along)
    joint = tuple(replace(part, offsets=part.offsets * words) for part in access_map.joint)
    return replace(access_map, base=access_map.base * words + word, along=along, joint=joint)


def _constant_parts(data: NDArray[np.generic], dtype: str) -> list[NDArray[np.generic]]:
    if dtype in isa.TYPES:
        return [data]
    if DTYPES[dtype].bits == 64:
        words = np.ascontiguousarray(data).reshape(*np.shape(data), 1).view(np.int32)  # low first: hosts are little-endian
        return [words[..., 0], words[..., 1]]
    codes = np.asarray(data).view(np.uint8) & np.uint8((1 << DTYPES[dtype].bits) - 1)
    return [codes.view(np.int8)]


def _elementwise(value: Value, op: Elementwise, operands: list[ElementParts]) -> ElementParts:
    to = DTYPES[value.dtype].ir
    if value.dtype in isa.TYPES and all(map(_plain, operands)):
        parts = tuple(found.one for found in operands)
        return ElementParts(to, (Value(replace(op, operands=parts), value.axes, value.dtype, value.place),))
    row = "castf_rtz" if op.row == "castf" and op.rounding == "rtz" else op.row
    if row in CASTS and operands[0].type == to:
        return operands[0]
    try:
        return Legal(_PartsBuilder(value, op.fusion), RULES)(row, *operands, to=to if row in CASTS else None)
    except UnsupportedError as error:
        raise UnsupportedError(f"the chip has no way to {row} of {value.dtype}", code="TFW0680", place=value.place) from error


def _plain(parts: ElementParts) -> bool:
    """Whether a value is as it was, and no code of another type."""
    return DTYPES[parts.one.dtype].ir == parts.type


# --- stores ----------------------------------------------------------------------------------------------------------------


def _stores(store: Store, made: dict[int, ElementParts]) -> Iterable[Store]:
    parts = made[id(store.value)]
    if store.accumulate is not None and not _plain(parts):
        raise UnsupportedError(f"the chip adds up no {store.value.dtype} in memory", code="TFW0680", place=store.place)
    mask = None if store.mask is None else made[id(store.mask)].one
    count = len(parts.values)
    for k, part in enumerate(parts.values):
        yield replace(store, value=part, access_map=_scaled(store.access_map, k, count), mask=mask)


# --- what the expansions build on ------------------------------------------------------------------------------------------


class _MachineRows(Container[str]):
    """Every row whose types the machine has: later stages expand what its vector unit lacks."""

    def __contains__(self, spelled: object) -> bool:
        row, _, types = str(spelled).partition(".")
        if row not in CASTS:
            return _on_machine(types)
        return any(types.startswith(f"{t}.") and _on_machine(t) and _on_machine(types.removeprefix(f"{t}.")) for t in TYPES)


def _on_machine(type_: str) -> bool:
    return type_ in TYPES and TYPES[type_].name in isa.TYPES


class _PartsBuilder:
    """`tilefw.api.expand.ExpansionBuilder` over values of the graph, all over the axes of the value that they make."""

    rows: Container[str] = _MachineRows()

    def __init__(self, made: Value, fusion: bool) -> None:
        self._made, self._fusion = made, fusion

    def op(self, row: str, operands: tuple[ElementParts, ...], result: str) -> ElementParts:
        name, rounding = ("castf", "rtz") if row == "castf_rtz" else (row, "rtne")
        op = Elementwise(name, tuple(operand.one for operand in operands), self._fusion, rounding)
        return ElementParts(result, (Value(op, self._made.axes, TYPES[result].name, self._made.place),))

    def const(self, pattern: int, type_: str) -> ElementParts:
        name = TYPES[type_].name
        words = [pattern >> 32 * k & _WORD - 1 for k in range(len(_part_types(name, self._made.place)))]
        values = (Value(Constant(_scalar(word, part)), (), part, self._made.place)
                  for word, part in zip(words, _part_types(name, self._made.place), strict=True))
        return ElementParts(type_, tuple(values))

    def type_of(self, value: ElementParts) -> str:
        return value.type

    def bits(self, value: ElementParts) -> ElementParts:
        dtype = TYPES[value.type]
        if dtype.bits == 32:
            return self.op("bitcast", (value,), "i32")
        if not _plain(value):
            code = self.op("extu", (ElementParts("i8", value.values),), "i32")
            return code if dtype.bits == 8 else self.op("andi", (code, self.const((1 << dtype.bits) - 1, "i32")), "i32")
        code = self.op("bitcast", (value,), f"i{dtype.bits}") if dtype.is_float else value
        return self.op("extu", (code,), "i32")

    def narrow(self, value: ElementParts, type_: str) -> ElementParts:
        dtype = TYPES[type_]
        if dtype.bits == 32:
            return self.op("bitcast", (value,), type_)
        if dtype.bits == 1:
            low = self.op("andi", (value, self.const(1, "i32")), "i32")
            return self.op("nei", (low, self.const(0, "i32")), type_)
        if dtype.bits < 8:
            value = self.op("andi", (value, self.const((1 << dtype.bits) - 1, "i32")), "i32")
        code = self.op("trunci", (value,), f"i{dtype.storage_bits}")
        if not _on_machine(type_):
            return ElementParts(type_, code.values)
        return self.op("bitcast", (code,), type_) if dtype.is_float else code

    def split(self, value: ElementParts) -> tuple[ElementParts, ElementParts]:
        low, high = value.values
        return ElementParts("i32", (low,)), ElementParts("i32", (high,))

    def join(self, low: ElementParts, high: ElementParts, type_: str) -> ElementParts:
        if type_ != "i64":
            raise UnsupportedError(f"no {type_} of two words", code="TFW0680", place=self._made.place)
        return ElementParts(type_, (low.one, high.one))


def _scalar(bits: int, dtype: str) -> NDArray[np.generic]:
    """One element as `graph.Constant` holds it: of NumPy's own type, or its code."""
    if dtype == "int1":
        return np.array(bits & 1 != 0)
    code = np.array(bits, np.uint64).astype(f"u{isa.TYPES[dtype].nbytes}")
    native = dtype in ("fp32", "fp16") or not isa.TYPES[dtype].is_float
    return code.view(isa.TYPES[dtype].numpy) if native else code
