"""The types of tile IR: builtin scalars and tensors, plus `!tile.ptr<T, space>` and `!tile.fp8e4b15`.

xDSL attributes are not interned and cost some 10 µs each, so every constructor here is cached: within one process equal
types made here are one object. Text that is parsed makes its own objects; compare types with `==`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import ClassVar

from xdsl.dialects import builtin
from xdsl.dialects.builtin import IntegerType, StringAttr, TensorType, VectorType
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from tilefw.api.dtypes import DTYPES, DType

GLOBAL_SPACE = "global"


@irdl_attr_definition
class Fp8E4B15Type(ParametrizedAttribute, TypeAttribute):
    """Triton's fp8e4b15: 4 exponent bits of bias 15, 3 mantissa bits, every code finite. No builtin type has this form."""

    name = "tile.fp8e4b15"


@irdl_attr_definition
class PtrType(ParametrizedAttribute, TypeAttribute):
    """A pointer to elements of `element` in a memory space; the global space is the default and is not printed."""

    name = "tile.ptr"

    element: Attribute
    space: StringAttr

    _GLOBAL: ClassVar = StringAttr(GLOBAL_SPACE)

    def __init__(self, element: Attribute, space: StringAttr | str = GLOBAL_SPACE) -> None:
        super().__init__(element, StringAttr(space) if isinstance(space, str) else space)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Read `<element>` or `<element, space>` behind the type's name."""
        with parser.in_angle_brackets():
            element = parser.parse_type()
            space = cls._GLOBAL
            if parser.parse_optional_punctuation(","):
                space = StringAttr(parser.parse_identifier())
        return (element, space)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.element)
            if self.space.data != GLOBAL_SPACE:
                printer.print_string(f", {self.space.data}")


_INTEGERS: dict[int, IntegerType] = {bits: IntegerType(bits) for bits in {d.bits for d in DTYPES.values() if d.kind != "float"}}
i1, i8, i16, i32, i64 = (_INTEGERS[bits] for bits in (1, 8, 16, 32, 64))
f16, bf16, f32, f64 = builtin.Float16Type(), builtin.BFloat16Type(), builtin.Float32Type(), builtin.Float64Type()
_FLOATS: dict[str, Attribute] = {
    "f64": f64,
    "f32": f32,
    "bf16": bf16,
    "f16": f16,
    "f8E5M2": builtin.Float8E5M2Type(),
    "f8E4M3FN": builtin.Float8E4M3FNType(),
    "f8E5M2FNUZ": builtin.Float8E5M2FNUZType(),
    "f8E4M3FNUZ": builtin.Float8E4M3FNUZType(),
    "!tile.fp8e4b15": Fp8E4B15Type(),
    "f6E3M2FN": builtin.Float6E3M2FNType(),
    "f6E2M3FN": builtin.Float6E2M3FNType(),
    "f4E2M1FN": builtin.Float4E2M1FNType(),
}
# Asked by class: `isinstance` of xDSL's classes goes through Python's abstract base classes, ten times as slow.
_SHAPED = frozenset({TensorType, VectorType})
_FLOAT_DTYPES: dict[type[Attribute], DType] = {_FLOATS[d.ir].__class__: d for d in DTYPES.values() if d.is_float}
_INT_DTYPES: dict[int, DType] = {d.bits: d for d in DTYPES.values() if d.kind == "int"} | {1: DTYPES["int1"]}


def ir_type(dtype: DType) -> Attribute:
    """The scalar type of tile IR that spells `dtype`; signedness is lost, as integers are signless there."""
    return _FLOATS[dtype.ir] if dtype.is_float else _INTEGERS[dtype.bits]


def dtype_of(type: Attribute) -> DType:
    """The element type of a scalar, tile or vector type; integers come back signed. Raises TypeError for other types."""
    element = element_of(type)
    if element.__class__ is IntegerType:
        found = _INT_DTYPES.get(element.width.data)  # type: ignore[attr-defined]
    else:
        found = _FLOAT_DTYPES.get(element.__class__)
    if found is None:
        raise TypeError(f"{type} has no element type of tilefw")
    return found


@cache
def tile(shape: tuple[int, ...], element: Attribute) -> Attribute:
    """`tensor<shape x element>`; the element type itself for the empty shape."""
    return TensorType(element, shape) if shape else element


@cache
def pointer(element: Attribute, space: str = GLOBAL_SPACE) -> PtrType:
    """`!tile.ptr<element, space>`."""
    return PtrType(element, space)


def element_of(type: Attribute) -> Attribute:
    """The element type of a tile or vector; a scalar type is its own."""
    return type.element_type if type.__class__ in _SHAPED else type  # type: ignore[attr-defined]


def shape_of(type: Attribute) -> tuple[int, ...]:
    """The shape of a tile or vector; `()` for a scalar."""
    return tuple([dim.data for dim in type.shape.data]) if type.__class__ in _SHAPED else ()  # type: ignore[attr-defined]


def rank_of(type: Attribute) -> int:
    """The number of dims of a tile or vector; 0 for a scalar."""
    return len(type.shape.data) if type.__class__ in _SHAPED else 0  # type: ignore[attr-defined]


def with_element(type: Attribute, element: Attribute) -> Attribute:
    """`type` with its elements replaced: the same container (tile with its layout, vector) or scalar."""
    if type.__class__ is TensorType:
        return _tensor_with(type, element)  # type: ignore[arg-type]
    if type.__class__ is VectorType:
        return _vector_with(type, element)  # type: ignore[arg-type]
    return element


@cache
def _tensor_with(type: TensorType, element: Attribute) -> Attribute:
    return TensorType(element, type.shape, type.encoding)


@cache
def _vector_with(type: VectorType, element: Attribute) -> Attribute:
    return VectorType(element, type.shape)


def is_int(type: Attribute) -> bool:
    """Whether elements are integers (i1 too)."""
    return element_of(type).__class__ is IntegerType


def is_bool(type: Attribute) -> bool:
    """Whether elements are i1."""
    element = element_of(type)
    return element.__class__ is IntegerType and element.width.data == 1  # type: ignore[attr-defined]


def is_float(type: Attribute) -> bool:
    """Whether elements are floats of any format."""
    return element_of(type).__class__ in _FLOAT_DTYPES


def is_pointer(type: Attribute) -> bool:
    """Whether elements are pointers."""
    return element_of(type).__class__ is PtrType


def is_tile(type: Attribute) -> bool:
    """Whether the type is a tile, not a scalar."""
    return type.__class__ is TensorType


def pointee_of(type: Attribute) -> Attribute:
    """The element type that a pointer, or a tile of pointers, points to. Raises TypeError for other types."""
    element = element_of(type)
    if not isinstance(element, PtrType):
        raise TypeError(f"{type} is not a pointer")
    return element.element
