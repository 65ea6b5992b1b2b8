"""A graph module being written: what readers of models call, with NumPy's shapes and explicit views.

    b = ModuleBuilder()
    x = b.input("x", "fp32", (4, 8))
    w = b.constant(np.ones((8, 6), np.float32), "fp32")
    y = b.matmul(x, w)                                        # graph.contract
    m = b.reduce("maxf", y, [1], keep=True)                   # (4, 1)
    e = b.map("exp", b.map("subf", y, m))                     # m is broadcast by a graph.view
    b.output("y", b.map("divf", e, b.reduce("addf", e, [1], keep=True)))
    module = b.module()                                       # verified; `tilefw.graph.meaning.run` computes it in NumPy

A reader keeps a table from its own names to the builder's values, walks its ops in order, and calls a method or several for each;
`map` and `reduce` take names of rows of the elementwise table (`tilefw.tile.elementwise.ROWS`), numbers stand for constants of the
other operands' type. `shape_of` and `dtype` tell what a value is. What no method says is `fused_map`, whose body is written by a
function on scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap

from tilefw.api.dtypes import dtype as dtype_named
from tilefw.graph.collective_kinds import COLLECTIVE_KINDS
from tilefw.graph.dialect import combining_ops, grouping_ops, moving_ops, pointwise_ops, rank_ops
from tilefw.graph.dialect.elements import StoredElements, tensor
from tilefw.graph.dialect.served_nodes import serve
from tilefw.graph.index_maps import linear_map
from tilefw.tile import numbers, types
from tilefw.tile.dialect.constant_op import ConstantOp
from tilefw.tile.dialect.elementwise_op import build
from tilefw.tile.elementwise import ROWS
from tilefw.tile.text.module import verify

GraphValue = SSAValue  # what readers call a value, who need not know xDSL
GraphOperation = Operation
Operand = SSAValue | int | float
Body = Callable[..., SSAValue | Sequence[SSAValue]]


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """The shape of a value."""
    return types.shape_of(value.type)


class MapBodyBuilder:
    """A `fused_map` being written: `s("addf", a, b)`, `s("castf", a, to="fp16")`, `s.index(1)`, `s.number(2, "fp32")`."""

    def __init__(self, block: Block) -> None:
        self._block = block

    def __call__(self, row: str, *operands: Operand, to: str | None = None) -> SSAValue:
        typed = next(operand for operand in operands[ROWS[row].typed_by :] if isinstance(operand, SSAValue))
        given = [one if isinstance(one, SSAValue) else self._add(ConstantOp(one, typed.type)) for one in operands]
        return self._add(build(row, *given, result=None if to is None else types.ir_type(dtype_named(to))))

    def index(self, dim: int) -> SSAValue:
        """The place along a dim, an i32."""
        return self._add(pointwise_ops.IndexOp.create(properties={"dim": IntegerAttr(dim, 64)}, result_types=[types.i32]))

    def number(self, value: float, dtype: str) -> SSAValue:
        """A constant."""
        return self._add(ConstantOp(value, types.ir_type(dtype_named(dtype))))

    def end(self, found: SSAValue | Sequence[SSAValue]) -> list[SSAValue]:
        """Close the body with its results."""
        results = [found] if isinstance(found, SSAValue) else list(found)
        self._block.add_op(pointwise_ops.YieldOp.create(operands=results))
        return results

    def _add(self, op: Operation) -> SSAValue:
        self._block.add_op(op)
        return op.results[0]


class ModuleBuilder:
    """Inputs, ops in order, outputs."""

    def __init__(self) -> None:
        self._block = Block()
        self._inputs: list[DictionaryAttr] = []
        self._outputs: dict[str, SSAValue] = {}
        self._node = ""

    # Ends of the model -------------------------------------------------------------------------------------------------

    def input(self, name: str, dtype: str, shape: Sequence[int]) -> SSAValue:
        """A tensor that a run is given."""
        said = {"graph.name": StringAttr(name), "graph.dtype": StringAttr(dtype)}
        self._inputs.append(DictionaryAttr(said))
        return self._block.insert_arg(tensor(tuple(shape), types.ir_type(dtype_named(dtype))), len(self._block.args))

    def output(self, name: str, value: SSAValue) -> None:
        """What a run gives under `name`."""
        self._outputs[name] = value

    def module(self) -> ModuleOp:
        """The verified module; the builder is at its end. Raises IRError TFW0402."""
        outputs = list(self._outputs.values())
        self._block.add_op(ReturnOp(*outputs))
        types_of = ([arg.type for arg in self._block.args], [value.type for value in outputs])
        function = FuncOp("model", types_of, Region(self._block), arg_attrs=ArrayAttr(self._inputs))
        function.attributes["graph.outputs"] = ArrayAttr([StringAttr(name) for name in self._outputs])
        module = ModuleOp([function])
        verify(module)
        return module

    @contextmanager
    def node(self, name: str) -> Iterator[None]:
        """All that is written meanwhile is part of this node of the model; launches are called by their nodes."""
        self._node, outer = name, self._node
        try:
            yield
        finally:
            self._node = outer

    def add(self, op: Operation) -> SSAValue:
        """An op made elsewhere, at the end; its first result."""
        if self._node:
            serve(op, [self._node])
        self._block.add_op(op)
        return op.results[0]

    # Elements ----------------------------------------------------------------------------------------------------------

    def constant(self, array: np.ndarray[Any, Any], dtype: str, name: str = "") -> SSAValue:
        """Elements in storage form, shared where they are contiguous and read-only, copied otherwise; `name` is for reports."""
        held = np.array(array, order="C") if array.flags.writeable else np.ascontiguousarray(array)
        data = held.reshape(-1).view(np.uint8)
        data.flags.writeable = False
        made = self._constant(data.data, array.shape, types.ir_type(dtype_named(dtype)))
        if name and isinstance(made.owner, Operation):
            made.owner.attributes["graph.name"] = StringAttr(name)
        return made

    def full(self, value: float, like: SSAValue) -> SSAValue:
        """A tensor of one element, of the element type of `like`."""
        element = types.element_of(like.type)
        kind = types.dtype_of(element)
        held = np.array([value], np.float64 if kind.is_float else bool if kind.bits == 1 else numbers.int_type(kind.bits))
        held = numbers.in_format(held, kind) if kind.is_float else held
        data = numbers.to_bytes(held, kind).reshape(-1).view(np.uint8)
        return self._constant(memoryview(data.tobytes()), (), element)

    def _constant(self, data: memoryview, shape: Sequence[int], element: Attribute) -> SSAValue:
        made = pointwise_ops.GraphConstantOp.create(
            properties={"value": StoredElements(data)}, result_types=[tensor(tuple(shape), element)]
        )
        return self.add(made)

    def map(self, row: str, *operands: Operand, to: str | None = None) -> SSAValue:
        """A row of the elementwise table on each element; operands broadcast as NumPy's do, by views."""
        return self.fused_map(lambda s, *given: s(row, *given, to=to), *self._tensors(row, operands))[0]

    def fused_map(self, body: Body, *operands: SSAValue, shape: Sequence[int] | None = None) -> list[SSAValue]:
        """One `graph.map`, whose body `body(s, *scalars)` writes. `shape` is that of a map without operands."""
        wanted = tuple(shape) if shape is not None else np.broadcast_shapes(*map(shape_of, operands))
        given = [self.broadcast(operand, wanted) for operand in operands]
        block = Block(arg_types=[types.element_of(value.type) for value in given])
        scalars = MapBodyBuilder(block)
        results = scalars.end(body(scalars, *block.args))
        made = pointwise_ops.MapOp.create(
            operands=given, result_types=[tensor(wanted, value.type) for value in results], regions=[Region(block)]
        )
        self.add(made)
        return list(made.results)

    def cast(self, value: SSAValue, dtype: str, source: str | None = None) -> SSAValue:
        """The values as another type; `source` names the type of the value where its integers are unsigned."""
        row = cast_row(source or types.dtype_of(value.type).name, dtype)
        return value if row is None else self.map(row, value, to=dtype)

    def iota(self, shape: Sequence[int], dim: int) -> SSAValue:
        """The place along a dim, int32."""
        return self.fused_map(lambda s: s.index(dim), shape=shape)[0]

    def _tensors(self, row: str, operands: Sequence[Operand]) -> list[SSAValue]:
        typed = next(operand for operand in operands[ROWS[row].typed_by :] if isinstance(operand, SSAValue))
        return [one if isinstance(one, SSAValue) else self.full(one, typed) for one in operands]

    # Views -------------------------------------------------------------------------------------------------------------

    def view(self, source: SSAValue, map: AffineMap, shape: Sequence[int], pad: SSAValue | None = None) -> SSAValue:
        """The elements at the places that a linear map from the result's indices gives; `pad` stands for those outside."""
        made = moving_ops.ViewOp.build(
            operands=[source, pad], properties={"map": AffineMapAttr(map)},
            result_types=[tensor(tuple(shape), types.element_of(source.type))],
        )
        return self.add(made)

    def broadcast(self, source: SSAValue, shape: Sequence[int]) -> SSAValue:
        """NumPy's broadcasting to a shape."""
        own, wanted = shape_of(source), tuple(shape)
        if own == wanted:
            return source
        skip = len(wanted) - len(own)
        rows = [[int(d == k + skip and extent != 1) for d in range(len(wanted))] for k, extent in enumerate(own)]
        return self.view(source, linear_map(rows, [0] * len(own), len(wanted)), wanted)

    def transpose(self, source: SSAValue, order: Sequence[int]) -> SSAValue:
        """Dim `d` of the result is dim `order[d]` of the source."""
        own = shape_of(source)
        if list(order) == list(range(len(own))):
            return source
        rows = [[int(order[d] == k) for d in range(len(own))] for k in range(len(own))]
        return self.view(source, linear_map(rows, [0] * len(own), len(own)), [own[k] for k in order])

    def slice(self, source: SSAValue, starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int] | None = None) -> SSAValue:
        """`sizes` elements of each dim from `starts` on, each `steps` behind the one before (negative: backwards)."""
        rank = len(shape_of(source))
        rows = [[(steps[k] if steps else 1) if d == k else 0 for d in range(rank)] for k in range(rank)]
        return self.view(source, linear_map(rows, starts, rank), sizes)

    def pad(self, source: SSAValue, before: Sequence[int], after: Sequence[int], value: Operand) -> SSAValue:
        """`value` before and behind the elements of each dim."""
        own = shape_of(source)
        rows = [[int(d == k) for d in range(len(own))] for k in range(len(own))]
        shape = [extent + low + high for extent, low, high in zip(own, before, after, strict=True)]
        held = value if isinstance(value, SSAValue) else self.full(value, source)
        return self.view(source, linear_map(rows, [-low for low in before], len(own)), shape, held)

    def reshape(self, source: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The same elements in another shape."""
        wanted = tuple(shape)
        if wanted == shape_of(source):
            return source
        type = tensor(wanted, types.element_of(source.type))
        return self.add(moving_ops.GraphReshapeOp.create(operands=[source], result_types=[type]))

    def concat(self, inputs: Sequence[SSAValue], axis: int) -> SSAValue:
        """Tensors behind each other."""
        shape = list(shape_of(inputs[0]))
        shape[axis] = sum(shape_of(one)[axis] for one in inputs)
        type = tensor(tuple(shape), types.element_of(inputs[0].type))
        properties = {"axis": IntegerAttr(axis, 64)}
        return self.add(moving_ops.GraphConcatOp.create(operands=list(inputs), properties=properties, result_types=[type]))

    # Gathers and order -------------------------------------------------------------------------------------------------

    def gather(
        self, source: SSAValue, indices: Sequence[SSAValue], axes: Sequence[int], map: AffineMap, trusted: bool = False
    ) -> SSAValue:
        """Elements at the places of `map`, where index tensors of the result's shape give the coordinates along `axes`: the nearest
        ones that there are, unless the indices are `trusted` to name some."""
        type = tensor(shape_of(indices[0]), types.element_of(source.type))
        properties: dict[str, Attribute] = {"axes": _dense(axes), "map": AffineMapAttr(map)}
        if trusted:
            properties["trusted"] = UnitAttr()
        return self.add(moving_ops.GraphGatherOp.create(operands=[source, *indices], properties=properties, result_types=[type]))

    def take(self, source: SSAValue, indices: SSAValue, axis: int, trusted: bool = False) -> SSAValue:
        """NumPy's `take`: the dim `axis` is replaced by the dims of the index tensor."""
        own, asked = shape_of(source), shape_of(indices)
        shape = (*own[:axis], *asked, *own[axis + 1 :])
        dims = range(len(shape))
        spread = linear_map([[int(d == axis + k) for d in dims] for k in range(len(asked))], [0] * len(asked), len(shape))
        place = [k if k < axis else k - 1 + len(asked) for k in range(len(own))]
        rows = [[int(k != axis and d == place[k]) for d in dims] for k in range(len(own))]
        map = linear_map(rows, [0] * len(own), len(shape))
        return self.gather(source, [self.view(indices, spread, shape)], [axis], map, trusted)

    def scatter(
        self, source: SSAValue, updates: SSAValue, indices: Sequence[SSAValue], axes: Sequence[int], map: AffineMap, row: str,
        trusted: bool = False,
    ) -> SSAValue:
        """`source` with the updates at their places combined by a row that memory has; `tilefw.graph.scattering` has all others.
        What goes to no element is dropped, unless the indices are `trusted` to name some."""
        properties: dict[str, Attribute] = {"axes": _dense(axes), "map": AffineMapAttr(map), "row": StringAttr(row)}
        if trusted:
            properties["trusted"] = UnitAttr()
        made = moving_ops.ScatterOp.create(operands=[source, updates, *indices], properties=properties, result_types=[source.type])
        return self.add(made)

    def sort(self, source: SSAValue, axis: int, bitonic: bool = False) -> SSAValue:
        """Whole numbers of 32 or 64 bits in rising order; `tilefw.graph.ordering` has the order of all others."""
        properties: dict[str, Attribute] = {"axis": IntegerAttr(axis, 64)}
        if bitonic:
            properties["bitonic"] = UnitAttr()
        return self.add(moving_ops.GraphSortOp.create(operands=[source], properties=properties, result_types=[source.type]))

    # Combining ---------------------------------------------------------------------------------------------------------

    def reduce(self, row: str, source: SSAValue, axes: Sequence[int], keep: bool = False) -> SSAValue:
        """Elements along the axes combined by a row; `keep` leaves them in the shape, of size 1."""
        return self.reduce_by(lambda s, a, b: s(row, a, b), [source], axes, keep)[0]

    def reduce_by(self, body: Body, inputs: Sequence[SSAValue], axes: Sequence[int], keep: bool = False) -> list[SSAValue]:
        """The same with a body `body(s, *held, *next)` over one or more tensors of one shape."""
        own = shape_of(inputs[0])
        if not all(-len(own) <= axis < len(own) for axis in axes):
            raise ValueError(f"axes {list(axes)} of a tensor of {len(own)} dims")
        gone = sorted({axis % len(own) for axis in axes})
        if not gone:
            return list(inputs)
        shape = tuple(extent for dim, extent in enumerate(own) if dim not in gone)
        made = self._combined(combining_ops.GraphReduceOp, body, inputs, shape, {"axes": _dense(gone)})
        kept = tuple(1 if dim in gone else extent for dim, extent in enumerate(own))
        return [self.reshape(one, kept) for one in made] if keep else made

    def scan(self, row: str, source: SSAValue, axis: int, reverse: bool = False) -> SSAValue:
        """Each element combined with all before it, or all behind it, by a row."""
        return self.scan_by(lambda s, a, b: s(row, a, b), [source], axis, reverse)[0]

    def scan_by(self, body: Body, inputs: Sequence[SSAValue], axis: int, reverse: bool = False) -> list[SSAValue]:
        """The same with a body over one or more tensors of one shape."""
        properties: dict[str, Attribute] = {"axes": _dense([axis])}
        if reverse:
            properties["reverse"] = UnitAttr()
        return self._combined(combining_ops.GraphScanOp, body, inputs, shape_of(inputs[0]), properties)

    def _combined(
        self, op: type[Any], body: Body, inputs: Sequence[SSAValue], shape: tuple[int, ...], properties: Mapping[str, Attribute]
    ) -> list[SSAValue]:
        elements = [types.element_of(one.type) for one in inputs]
        block = Block(arg_types=elements * 2)
        scalars = MapBodyBuilder(block)
        scalars.end(body(scalars, *block.args))
        found = [tensor(shape, element) for element in elements]
        made = op.create(operands=list(inputs), properties=properties, result_types=found, regions=[Region(block)])
        self.add(made)
        return list(made.results)

    def contract(
        self, left: SSAValue, right: SSAValue, maps: tuple[AffineMap, AffineMap], sizes: Sequence[int], kept: int,
        to: str | None = None,
    ) -> SSAValue:
        """Sums of products over an index space of `sizes`, whose first `kept` dims are the result's."""
        element = types.element_of(left.type) if to is None else types.ir_type(dtype_named(to))
        properties = {"left_map": AffineMapAttr(maps[0]), "right_map": AffineMapAttr(maps[1]), "sizes": _dense(sizes)}
        found = [tensor(tuple(sizes[:kept]), element)]
        return self.add(combining_ops.ContractOp.create(operands=[left, right], properties=properties, result_types=found))

    def einsum(self, left: SSAValue, right: SSAValue, words: str, to: str | None = None) -> SSAValue:
        """A product in NumPy's notation, such as `bmk,bkn->bmn`; an operand's dim of size 1 is broadcast."""
        given, result = words.split("->")
        names = given.split(",")
        extents: dict[str, int] = {}
        for value, word in zip((left, right), names, strict=True):
            for extent, letter in zip(shape_of(value), word, strict=True):
                if extent != extents.setdefault(letter, extent) and 1 not in (extent, extents[letter]):
                    raise ValueError(f"{words}: '{letter}' is {extents[letter]} and {extent}")
                extents[letter] = extent if extents[letter] == 1 else extents[letter]
        order = [*result, *(letter for letter in extents if letter not in result)]
        maps = [
            linear_map(
                [[int(one == letter and n != 1) for one in order] for n, letter in zip(shape_of(value), word, strict=True)],
                [0] * len(word), len(order),
            )
            for value, word in zip((left, right), names, strict=True)
        ]
        return self.contract(left, right, (maps[0], maps[1]), [extents[one] for one in order], len(result), to)

    def matmul(self, left: SSAValue, right: SSAValue, to: str | None = None) -> SSAValue:
        """NumPy's `matmul` for operands of two or more dims."""
        ranks = len(shape_of(left)), len(shape_of(right))
        batch = "abcdefgh"[: max(ranks) - 2]
        words = [batch[len(batch) - rank + 2 :] for rank in ranks]
        return self.einsum(left, right, f"{words[0]}mk,{words[1]}kn->{batch}mn", to)

    def convolve(
        self, source: SSAValue, weights: SSAValue, strides: Sequence[int], before: Sequence[int], after: Sequence[int],
        dilations: Sequence[int], groups: int = 1, to: str | None = None,
    ) -> SSAValue:
        """A convolution of (n, channels, *space) by (filters, channels / groups, *window): result (n, filters, *space)."""
        own, window = shape_of(source), shape_of(weights)
        space = [
            (extent + low + high - dilation * (taps - 1) - 1) // stride + 1
            for extent, low, high, taps, stride, dilation in zip(
                own[2:], before, after, window[2:], strides, dilations, strict=True
            )
        ]
        k, filters = len(space), window[0] // groups
        sizes = [own[0], groups, filters, *space, window[1], *window[2:]]  # n g f space c window
        dims = len(sizes)
        channels = _factors(dims, {1: window[1], 3 + k: 1})
        walks = [_factors(dims, {3 + d: strides[d], 4 + k + d: dilations[d]}) for d in range(k)]
        left = linear_map([_factors(dims, {0: 1}), channels, *walks], [0, 0, *(-low for low in before)], dims)
        taps = [_factors(dims, {4 + k + d: 1}) for d in range(k)]
        right = linear_map([_factors(dims, {1: filters, 2: 1}), _factors(dims, {3 + k: 1}), *taps], [0] * (2 + k), dims)
        found = self.contract(source, weights, (left, right), sizes, 3 + k, to)
        return self.reshape(found, (own[0], window[0], *space))

    def kernel(self, name: str, inputs: Sequence[SSAValue], results: Sequence[tuple[str, Sequence[int]]]) -> list[SSAValue]:
        """A launch that is not looked into; `results` are element types and shapes."""
        found = [tensor(tuple(shape), types.ir_type(dtype_named(kind))) for kind, shape in results]
        said = {"kernel": StringAttr(name)}
        made = grouping_ops.OpaqueKernelOp.create(operands=list(inputs), properties=said, result_types=found)
        self.add(made)
        return list(made.results)

    # Ranks -------------------------------------------------------------------------------------------------------------

    def part(self, source: SSAValue, axis: int, ranks: int) -> SSAValue:
        """The rank's part of an input or a constant along an axis, of a model that so many ranks run."""
        shape = list(shape_of(source))
        shape[axis] //= ranks
        properties = {"axis": IntegerAttr(axis, 64), "ranks": IntegerAttr(ranks, 64)}
        found = [tensor(tuple(shape), types.element_of(source.type))]
        return self.add(rank_ops.PartOp.create(operands=[source], properties=properties, result_types=found))

    def collective(self, kind: str, source: SSAValue, ranks: int) -> SSAValue:
        """What all ranks do together, one of `COLLECTIVE_KINDS`, such as the sum of their tensors (`all_reduce`)."""
        shape = COLLECTIVE_KINDS[kind].shape(shape_of(source), ranks)
        properties: dict[str, Attribute] = {"kind": StringAttr(kind), "ranks": IntegerAttr(ranks, 64)}
        found = [tensor(shape, types.element_of(source.type))]
        return self.add(rank_ops.CollectiveOp.create(operands=[source], properties=properties, result_types=found))


def cast_row(source: str, result: str) -> str | None:
    """The row that turns values of one element type into another; None where they are the same."""
    a, b = dtype_named(source), dtype_named(result)
    if a.name == b.name:
        return None
    if a.is_float:
        return "castf" if b.is_float else "f2s" if b.is_signed and b.bits > 1 else "f2u"
    signed = a.is_signed and a.bits > 1
    if b.is_float:
        return "s2f" if signed else "u2f"
    if a.bits == b.bits:
        return None
    return "trunci" if a.bits > b.bits else "exts" if signed else "extu"


def _factors(dims: int, given: dict[int, int]) -> list[int]:
    return [given.get(dim, 0) for dim in range(dims)]


def _dense(values: Sequence[int]) -> DenseArrayBase:
    return DenseArrayBase.from_list(i64, list(values))


def elements(value: SSAValue) -> int:
    """How many elements a value has."""
    return prod(shape_of(value))
