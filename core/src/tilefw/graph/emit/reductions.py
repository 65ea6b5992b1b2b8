"""Reductions, scans and sorts along the columns of a kernel's tiles: by the language's own where it has one, else by a function of
their body."""

from __future__ import annotations

from typing import Any

from xdsl.ir import Block

import tilefw.language as tl
from tilefw.graph.dialect.combining_ops import GraphReduceOp, GraphScanOp
from tilefw.graph.dialect.moving_ops import GraphSortOp
from tilefw.graph.emit.scalar_text import number_text, spelled, write_body
from tilefw.graph.emit.tile_text import NotOneKernelError, TileText
from tilefw.graph.meaning import only_row
from tilefw.language.extra import libdevice
from tilefw.runtime.jit import JITFunction, jit
from tilefw.tile import types

_REDUCTIONS = {"addf": "tl.sum", "addi": "tl.sum", "maxf": "tl.max", "minf": "tl.min"}


def reduced(text: TileText, op: GraphReduceOp, held: list[str], padded: bool) -> list[str]:
    """The results of a reduction along the columns of tiles, as column vectors; `inside` is where there are elements, and `padded`
    says that it is not everywhere. Raises NotOneKernelError."""
    row = only_row(op.body.block)
    kinds = [types.dtype_of(operand.type) for operand in op.operands]
    if padded and (row is None or row not in _IDENTITIES):
        raise NotOneKernelError("rows whose length is no power of two, combined by a function without a neutral element")
    fill = _IDENTITIES[row](kinds[0]) if row in _IDENTITIES else 0
    narrow = row == "addf" and kinds[0].bits < 32
    tiles = [text.statement(f"tl.where(inside, {name}, {number_text(fill)})") for name in held]
    tiles = [text.statement(f"{name}.to(tl.float32)") for name in tiles] if narrow else tiles
    if row in _REDUCTIONS and (kinds[0].is_float or kinds[0].bits >= 32):
        cast = f".to({spelled(kinds[0].name)})" if kinds[0].bits < 32 else ""  # the language reduces in 32 bits
        assert row is not None
        return [text.statement(f"{_REDUCTIONS[row]}({tiles[0]}, axis=1)[:, None]{cast}")]
    found = text.statement(f"tl.reduce({_tuple(tiles)}, 1, {_combiner(text, op)})")
    return [text.statement(f"{part}[:, None]") for part in _parts(found, len(tiles))]


def scanned(text: TileText, op: GraphScanOp, held: list[str], padded: bool) -> list[str]:
    """The results of a scan along the columns of tiles. Raises NotOneKernelError."""
    row = only_row(op.body.block)
    backwards = op.reverse is not None
    if padded and backwards and (row is None or row not in _IDENTITIES):
        raise NotOneKernelError("rows whose length is no power of two, scanned backwards by a function without a neutral element")
    fill = _IDENTITIES[row](types.dtype_of(op.operands[0].type)) if row in _IDENTITIES else 0
    tiles = [text.statement(f"tl.where(inside, {name}, {number_text(fill)})") for name in held]
    turned = ", reverse=True" if backwards else ""
    found = text.statement(f"tl.associative_scan({_tuple(tiles)}, 1, {_combiner(text, op)}{turned})")
    return _parts(found, len(tiles))


def in_order(text: TileText, op: GraphSortOp, held: list[str], padded: bool) -> list[str]:
    """The result of a sort along the columns of a tile."""
    fill = number_text(_largest(types.dtype_of(op.source.type)))
    tile = text.statement(f"tl.where(inside, {held[0]}, {fill})") if padded else held[0]
    return [text.statement(f"tl.{'bitonic_merge' if op.bitonic is not None else 'sort'}({tile})")]


def _combiner(text: TileText, op: GraphReduceOp | GraphScanOp) -> str:
    """The name of a function of the language that does what the body of an op says."""
    combine = f"combine{len(text.names)}"
    source = _combine(combine, op.body.block, len(op.operands))
    text.combines.append(source)
    text.names[combine] = _function(combine, source)
    return combine


def _tuple(tiles: list[str]) -> str:
    return tiles[0] if len(tiles) == 1 else f"({', '.join(tiles)})"


def _parts(found: str, count: int) -> list[str]:
    return [found] if count == 1 else [f"{found}[{k}]" for k in range(count)]


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
    names: dict[str, Any] = {"tl": tl, "libdevice": libdevice}
    exec(compile(source, f"<graph {name}>", "exec"), names)
    return jit(source=source)(names[name])
