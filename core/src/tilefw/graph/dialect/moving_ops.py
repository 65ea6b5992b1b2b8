"""Ops that only move elements: views by index maps, reshapes, concatenation, gathers, scatters and sorting.

    %t = graph.view %x [affine_map<(d0, d1) -> (d1, d0)>] : tensor<4x8xf32> to tensor<8x4xf32>
    %p = graph.view %x [affine_map<(d0, d1) -> (d0 + -1, d1)>] pad %zero : tensor<4x8xf32> to tensor<6x8xf32>
    %g = graph.gather %x [affine_map<(d0, d1) -> (0, d1)>] at (%i) axes [0] : tensor<9x8xf32> (tensor<4x8xi32>) -> tensor<4x8xf32>

A view's map gives the source's index of each element of the result; an index outside the source reads `pad`, a tensor of one
element. In a gather, the coordinates along `axes` come from index tensors of the result's shape instead; they are clamped. In a
scatter the updates have the place of the map, with index tensors of the updates' shape; what falls outside is dropped.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import AffineMapAttr, IntegerAttr, StringAttr, TensorType, UnitAttr
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilefw.graph.dialect.combining_ops import Integers, check_map, numbers_of
from tilefw.graph.index_maps import stays_inside
from tilefw.tile import types

SCATTERED = ("addf", "addi", "maxs", "mins", "andi", "ori", "xori")  # rows by which updates are combined


@irdl_op_definition
class ViewOp(IRDLOperation):
    """A tensor whose elements are those of a source at the places that a linear map gives."""

    name = "graph.view"
    source = operand_def(TensorType)
    pad = opt_operand_def(TensorType)
    map = prop_def(AffineMapAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$source `[` $map `]` (`pad` $pad^ `:` type($pad))? attr-dict `:` type($source) `to` type($result)"

    def verify_(self) -> None:
        shape, source = types.shape_of(self.result.type), types.shape_of(self.source.type)
        check_map(self, self.map.data, len(shape), len(source))
        element = types.element_of(self.source.type)
        if types.element_of(self.result.type) != element:
            raise VerifyException(f"graph.view keeps the element type {element}, got {self.result.type}")
        if self.pad is not None and (types.element_of(self.pad.type) != element or types.shape_of(self.pad.type)):
            raise VerifyException(f"graph.view pads with a tensor<{element}>, got {self.pad.type}")
        if self.pad is None and prod(shape) and not stays_inside(self.map.data, shape, source):
            raise VerifyException(f"graph.view: {self.map.data} leaves {self.source.type}, and there is no pad")


@irdl_op_definition
class GraphReshapeOp(IRDLOperation):
    """The same elements in row-major order in another shape."""

    name = "graph.reshape"
    source = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def verify_(self) -> None:
        if prod(types.shape_of(self.source.type)) != prod(types.shape_of(self.result.type)):
            raise VerifyException(f"graph.reshape: {self.source.type} and {self.result.type} have not as many elements")
        if types.element_of(self.source.type) != types.element_of(self.result.type):
            raise VerifyException("graph.reshape keeps the element type")


@irdl_op_definition
class GraphConcatOp(IRDLOperation):
    """Tensors behind each other along an axis."""

    name = "graph.concat"
    inputs = var_operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$inputs `axis` $axis attr-dict `:` type($inputs) `->` type($result)"

    def verify_(self) -> None:
        axis, result = self.axis.value.data, types.shape_of(self.result.type)
        if not self.inputs or not 0 <= axis < len(result):
            raise VerifyException(f"graph.concat: axis {axis} does not fit {self.result.type}")
        shapes = [types.shape_of(type) for type in self.operand_types]
        rest = {(*shape[:axis], *shape[axis + 1 :], len(shape)) for shape in (*shapes, result)}
        if len(rest) != 1 or sum(shape[axis] for shape in shapes) != result[axis]:
            raise VerifyException(f"graph.concat: its operands do not make {self.result.type} along dim {axis}")
        if len({types.element_of(type) for type in (*self.operand_types, self.result.type)}) != 1:
            raise VerifyException("graph.concat joins elements of one type")


def _check_indices(op: GraphGatherOp | ScatterOp, shape: tuple[int, ...], rank: int) -> None:
    axes = numbers_of(op.axes)
    if not axes or sorted(set(axes)) != list(axes) or axes[-1] >= rank or axes[0] < 0 or len(axes) != len(op.indices):
        raise VerifyException(f"{op.name}: axes {list(axes)} are ascending dims, one for each index tensor")
    for index in op.indices:
        if types.shape_of(index.type) != shape or not types.is_int(index.type):
            raise VerifyException(f"{op.name}: index tensors are integers of shape {list(shape)}, got {index.type}")
    check_map(op, op.map.data, len(shape), rank)


@irdl_op_definition
class GraphGatherOp(IRDLOperation):
    """Elements at computed places: the coordinates along `axes` are read, clamped; the others follow the map. With `trusted`
    an index that names no element is a fault, which a kernel makes no element of."""

    name = "graph.gather"
    source = operand_def(TensorType)
    indices = var_operand_def(TensorType)
    axes = prop_def(Integers)
    map = prop_def(AffineMapAttr)
    trusted = opt_prop_def(UnitAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = (
        "$source `[` $map `]` `at` `(` $indices `)` `axes` $axes (`trusted` $trusted^)? attr-dict"
        " `:` type($source) `(` type($indices) `)` `->` type($result)"
    )

    def verify_(self) -> None:
        shape, source = types.shape_of(self.result.type), types.shape_of(self.source.type)
        _check_indices(self, shape, len(source))
        if types.element_of(self.source.type) != types.element_of(self.result.type):
            raise VerifyException("graph.gather keeps the element type")
        if prod(shape) and not prod(source):
            raise VerifyException(f"graph.gather: {self.source.type} has no element")


@irdl_op_definition
class ScatterOp(IRDLOperation):
    """A tensor with updates at computed places, combined by a row whose result no order of the updates changes but by rounding:
    what a memory does in one step (`tilefw.graph.scattering` writes all other scatters with it). With `trusted` an index that names
    no element is a fault."""

    name = "graph.scatter"
    source = operand_def(TensorType)
    updates = operand_def(TensorType)
    indices = var_operand_def(TensorType)
    axes = prop_def(Integers)
    map = prop_def(AffineMapAttr)
    row = prop_def(StringAttr)
    trusted = opt_prop_def(UnitAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = (
        "$source `,` $updates `[` $map `]` `at` `(` $indices `)` `axes` $axes `by` $row (`trusted` $trusted^)? attr-dict"
        " `:` type($source) `,` type($updates) `(` type($indices) `)` `->` type($result)"
    )

    def verify_(self) -> None:
        _check_indices(self, types.shape_of(self.updates.type), types.rank_of(self.source.type))
        if self.result.type != self.source.type or types.element_of(self.updates.type) != types.element_of(self.source.type):
            raise VerifyException("graph.scatter gives a tensor of its source's type, and updates have its elements")
        kind = types.dtype_of(self.source.type)
        if self.row.data not in SCATTERED or kind.bits not in (32, 64) or kind.is_float != (self.row.data == "addf"):
            raise VerifyException(f"graph.scatter combines 32 or 64 bits by one of {', '.join(SCATTERED)}, got {self.row.data}")


@irdl_op_definition
class GraphSortOp(IRDLOperation):
    """Whole numbers in rising order along an axis. With `bitonic` they rise first and fall then, or fall first, and there are as
    many as a power of two. (`tilefw.graph.ordering` writes the order of other elements, and of several tensors, with it.)"""

    name = "graph.sort"
    source = operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    bitonic = opt_prop_def(UnitAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$source `axis` $axis (`bitonic` $bitonic^)? attr-dict `:` type($source) `->` type($result)"

    def verify_(self) -> None:
        shape, kind = types.shape_of(self.source.type), types.dtype_of(self.source.type)
        if not 0 <= self.axis.value.data < len(shape):
            raise VerifyException(f"graph.sort: {self.source.type} has no axis {self.axis.value.data}")
        if kind.is_float or kind.bits not in (32, 64) or self.result.type != self.source.type:
            raise VerifyException(f"graph.sort gives a tensor of whole numbers of 32 or 64 bits again, got {self.result.type}")
        length = shape[self.axis.value.data]
        if self.bitonic is not None and length & (length - 1):
            raise VerifyException(f"graph.sort: rows of {length} elements are not bitonic")
