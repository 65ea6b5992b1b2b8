"""The kernel of a rows group: whole rows of a tensor in one tile; reductions along them, what they are made of and what uses them.

Softmax and the normalisations are such groups. The rows are those of the first reduction's operand: its axes number a row's
elements, its other dims the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.ir import Block, Operation, SSAValue

from tilefw.api.integers import ceil_div
from tilefw.graph.dialect.combining_ops import GraphReduceOp, numbers_of
from tilefw.graph.emit.scalar_text import number_text, spelled, write_body
from tilefw.graph.emit.tile_text import Coordinates, NotOneKernelError, TileText, squeezed
from tilefw.graph.meaning import only_row
from tilefw.runtime.jit import JITFunction, jit, next_power_of_2
from tilefw.tile import types

_TILE = 2048  # elements of a program's tile at most, unless a row alone has more
_LONGEST = 16384
_REDUCTIONS = {"addf": "tl.sum", "addi": "tl.sum", "maxf": "tl.max", "minf": "tl.min"}


class RowsText(TileText):
    """Each program has a tile of whole rows: `row` is a column vector of row numbers, `column` numbers the elements of a row."""

    def __init__(self, name: str, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue], anchor: GraphReduceOp) -> None:
        both = frozenset({"row", "column"})
        masks = {both: "inside", frozenset({"row"}): "known", frozenset({"column"}): "within"}
        super().__init__(name, inputs, masks)
        self.shape, self.axes = types.shape_of(anchor.operands[0].type), numbers_of(anchor.axes)
        along = [extent for dim, extent in enumerate(self.shape) if dim not in self.axes]
        self.length, self.count = prod(self.shape[axis] for axis in self.axes), prod(along)
        width = next_power_of_2(self.length)
        if width > _LONGEST:
            raise NotOneKernelError(f"rows of {self.length} elements")
        height = max(1, min(next_power_of_2(max(self.count, 1)), _TILE // width))
        self.grid, self.elements, self.padded = ceil_div(self.count, height), height * width, width != self.length
        self.lines += [
            f"row = (tl.program_id(0) * {height} + tl.arange(0, {height}))[:, None]", f"column = tl.arange(0, {width})[None, :]",
            f"known = row < {self.count}", f"within = column < {self.length}", "inside = known & within",
        ]
        self.rows = self.spread("row", along)
        self.across = self.spread("column", [self.shape[axis] for axis in self.axes])
        self.whole = self._whole(self.shape, self.axes)
        if self.axes == tuple(range(len(self.shape) - len(self.axes), len(self.shape))):
            self.remember(self.shape, self.whole, f"row * {self.length} + column")
        for value in outputs:
            self.store(value, self._places(types.shape_of(value.type)))

    def _whole(self, shape: Sequence[int], axes: Sequence[int]) -> Coordinates:
        rows, across = iter(self.rows), iter(self.across)
        return tuple(next(across) if dim in axes else next(rows) for dim in range(len(shape)))

    def _places(self, shape: tuple[int, ...]) -> Coordinates:
        if prod(shape) == prod(self.shape) and (self.length > 1 or len(shape) == len(self.shape)):
            return self.reshaped(self.shape, self.whole, shape)
        if prod(shape) == self.count:
            return self.spread("row", shape)
        raise NotOneKernelError("an output that is neither rows nor one element a row")

    def special(self, op: Operation, value: SSAValue, coordinates: Coordinates) -> str:
        """A reduction of the same rows, asked for at their places."""
        if not isinstance(op, GraphReduceOp):
            raise NotOneKernelError(f"{op.name} in kernel {self.name}")
        shape, axes = types.shape_of(op.operands[0].type), numbers_of(op.axes)
        mine, theirs = _turned(self.shape, self.axes), _turned(shape, axes)
        kept = types.shape_of(value.type)
        if mine != theirs or squeezed(kept, coordinates) != squeezed(kept, self.spread("row", kept)):
            raise NotOneKernelError("a reduction of other rows, or at other places")
        places = self.reshaped(self.shape, self.whole, shape)
        held = [self.value(operand, places) for operand in op.operands]
        results = self._reduced(op, held)
        self._known.update({(result, coordinates): name for result, name in zip(op.results, results, strict=True)})
        return results[[result is value for result in op.results].index(True)]

    def _reduced(self, op: GraphReduceOp, held: list[str]) -> list[str]:
        row = only_row(op.body.block)
        kinds = [types.dtype_of(operand.type) for operand in op.operands]
        if self.padded and (row is None or row not in _IDENTITIES):
            raise NotOneKernelError("rows whose length is no power of two, combined by a function without a neutral element")
        fill = _IDENTITIES[row](kinds[0]) if row in _IDENTITIES else 0
        narrow = row == "addf" and kinds[0].bits < 32
        tiles = [self.statement(f"tl.where(inside, {name}, {number_text(fill)})") for name in held]
        tiles = [self.statement(f"{name}.to(tl.float32)") for name in tiles] if narrow else tiles
        if row in _REDUCTIONS and (kinds[0].is_float or kinds[0].bits >= 32):
            cast = f".to({spelled(kinds[0].name)})" if kinds[0].bits < 32 else ""  # the language reduces in 32 bits
            assert row is not None
            return [self.statement(f"{_REDUCTIONS[row]}({tiles[0]}, axis=1)[:, None]{cast}")]
        combine = f"combine{len(self.names)}"
        source = _combine(combine, op.body.block, len(held))
        self.combines.append(source)
        self.names[combine] = _function(combine, source)
        given = tiles[0] if len(tiles) == 1 else f"({', '.join(tiles)})"
        found = self.statement(f"tl.reduce({given}, 1, {combine})")
        parts = [found] if len(tiles) == 1 else [f"{found}[{k}]" for k in range(len(tiles))]
        return [self.statement(f"{part}[:, None]") for part in parts]


def _turned(shape: Sequence[int], axes: Sequence[int]) -> list[tuple[int, bool]]:
    """The dims other than 1, and whether each is reduced."""
    return [(extent, dim in axes) for dim, extent in enumerate(shape) if extent != 1]


def _least(kind: Any) -> float:
    return float("-inf") if kind.is_float else -(1 << (kind.bits - 1)) if kind.bits > 1 else 0


def _largest(kind: Any) -> float:
    return float("inf") if kind.is_float else (1 << (kind.bits - 1)) - 1 if kind.bits > 1 else 1


_IDENTITIES: dict[str | None, Any] = {
    "addf": lambda _: 0.0, "mulf": lambda _: 1.0, "addi": lambda _: 0, "muli": lambda _: 1,
    "maxf": lambda _: float("nan"), "minf": lambda _: float("nan"),  # the number wins over it: of NaN alone, NaN
    "maxf_nan": _least, "minf_nan": _largest, "maxs": _least, "mins": _largest,
    "maxu": lambda _: 0, "minu": lambda _: -1, "ori": lambda _: 0, "xori": lambda _: 0,
    "andi": lambda kind: True if kind.bits == 1 else -1,
}


def _combine(name: str, block: Block, count: int) -> str:
    """The body of a reduction as the text of a function of the language."""
    lines: list[str] = []

    def statement(text: str) -> str:
        lines.append(f"v{len(lines)} = {text}")
        return f"v{len(lines) - 1}"

    arguments = [f"a{k}" for k in range(2 * count)]
    results = write_body(block, arguments, str, statement)
    body = "".join(f"    {line}\n" for line in lines)
    return f"def {name}({', '.join(arguments)}):\n{body}    return {', '.join(results)}\n"


def _function(name: str, source: str) -> JITFunction:
    """The function of a text."""
    import tilefw.language as tl
    from tilefw.language.extra import libdevice

    names: dict[str, Any] = {"tl": tl, "libdevice": libdevice}
    exec(compile(source, f"<graph {name}>", "exec"), names)
    return jit(source=source)(names[name])
