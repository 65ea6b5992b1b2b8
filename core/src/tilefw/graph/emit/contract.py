"""The kernel of a group whose root is a contraction: a product of matrices by `tl.dot`, and what is computed of its elements.

The dims of the contraction's result that are walked by the left tensor alone are rows or columns, those of the right alone the
other; the side of the last dim is the columns, so that neighbours are stored together. Dims of both, or of none, are batches. A
convolution is no other case: its rows are filters, its columns places, and what is summed over are channels and taps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from tilefw.api.cost import LaunchWork
from tilefw.api.errors import UnsupportedError
from tilefw.graph.dialect.combining_ops import ContractOp
from tilefw.graph.dialect.grouping_ops import FusedOp
from tilefw.graph.dialect.moving_ops import GraphReshapeOp, ViewOp
from tilefw.graph.dialect.pointwise_ops import GraphConstantOp, IndexOp, MapOp, YieldOp
from tilefw.graph.emit.access import IndexWords, TensorAccess, access, merged, row_major
from tilefw.graph.emit.emitted_kernel import EmittedKernel
from tilefw.graph.emit.scalar_text import number_text, spelled, weight_of, write_body
from tilefw.graph.emit.tile_text import check_counted
from tilefw.graph.fuse.contract import multiplied_by_dot, sides
from tilefw.graph.index_maps import composed, merging_map, rows_of
from tilefw.graph.meaning import only_row, results_of
from tilefw.graph.product_tiles import ProductExtents
from tilefw.tile import types

_LONG = 32  # summed elements that fill a tile: other dims of the sum are loops around it, each turn with one place along them


def write(group: FusedOp, name: str) -> EmittedKernel:
    """The kernel of a contraction's group. Raises UnsupportedError TFW0992 for elements that `tl.dot` does not multiply."""
    return _ContractWriter(group, name).written()


@dataclass(frozen=True, slots=True)
class _TensorRead:
    """Elements of an operand of the group at the places of a map."""

    value: SSAValue
    access: TensorAccess


@dataclass(slots=True)
class _KernelLines:
    """Statements, with names for values."""

    lines: list[str] = field(default_factory=list)
    count: int = 0

    def statement(self, text: str) -> str:
        """A new name for what `text` computes."""
        self.count += 1
        self.lines.append(f"v{self.count} = {text}")
        return f"v{self.count}"


class _ContractWriter:
    """One group on its way to its kernel's text."""

    def __init__(self, group: FusedOp, name: str) -> None:
        self.group, self.name, self.block = group, name, group.body.block
        self.roots = [op for op in self.block.ops if isinstance(op, ContractOp)]
        self.root = self.roots[0]
        self.sizes = self.root.extents
        self.rank = types.rank_of(self.root.result.type)
        self.text = _KernelLines()
        self.lefts = [self._access(op.left, op.left_map.data) for op in self.roots]
        self.rights = [self._access(op.right, op.right_map.data) for op in self.roots]
        self.shapes = self._index_maps()
        self.reads = self._epilogue_reads()
        self.start = self._addend()
        self._check()

    def _check(self) -> None:
        if not multiplied_by_dot(self.root):
            raise UnsupportedError(f"a contraction of {self.root.left.type} to {self.root.result.type} by tl.dot", code="TFW0992")
        for value in (*self.block.args, *self.group.results):
            check_counted(types.shape_of(value.type))

    # What is read ------------------------------------------------------------------------------------------------------

    def _access(self, value: SSAValue, map: AffineMap) -> _TensorRead:
        """An operand at the places of a map, through views."""
        while isinstance(value.owner, ViewOp):
            assert value.owner.pad is None, "a view with a pad is no part of a group"
            map, value = composed(value.owner.map.data, map), value.owner.source
        sizes = self.sizes if map.num_dims == len(self.sizes) else self.sizes[: self.rank]
        found = access(map, sizes, types.shape_of(value.type))
        spare = len(self.sizes) - map.num_dims
        if spare:
            found = TensorAccess((*found.factors, *[0] * spare), found.offset, found.guards)
        return _TensorRead(value, found)

    def _index_maps(self) -> dict[SSAValue, AffineMap]:
        """For each value that is computed of the root, the map from the root's indices to its own."""
        found: dict[SSAValue, AffineMap] = {op.result: AffineMap.identity(self.rank) for op in self.roots}
        for op in self.block.ops:
            if isinstance(op, GraphReshapeOp) and op.source in found:
                inner = found[op.source]
                step = merging_map(types.shape_of(op.source.type), types.shape_of(op.result.type))
                assert step is not None, "a reshape in a group splits no dim"
                found[op.result] = composed(step, inner)
            elif isinstance(op, MapOp):
                inner = next(found[value] for value in op.operands if value in found)
                found.update(dict.fromkeys(op.results, inner))
        return found

    def _epilogue_reads(self) -> dict[tuple[Operation, int], _TensorRead]:
        """The operands of maps that are not computed of the root."""
        found: dict[tuple[Operation, int], _TensorRead] = {}
        for op in self.block.ops:
            if not isinstance(op, MapOp):
                continue
            for place, value in enumerate(op.operands):
                if value not in self.shapes:
                    found[op, place] = self._access(value, self.shapes[op.results[0]])
        return found

    def _addend(self) -> tuple[Operation, int] | None:
        """The operand that is added to the total first, if one is: the products are added to it, as compilers may do anyhow."""
        value: SSAValue = self.root.result
        kind = types.dtype_of(value.type)
        while len(uses := list(value.uses)) == 1 and isinstance(reshape := uses[0].operation, GraphReshapeOp):
            value = reshape.result
        if len(self.roots) > 1 or not kind.is_float or kind.bits < 32 or len(uses) != 1:
            return None
        op, other = uses[0].operation, 1 - uses[0].index
        if not isinstance(op, MapOp) or only_row(op.body.block) != "addf" or (op, other) not in self.reads:
            return None
        return None if isinstance(self.reads[op, other].value.owner, GraphConstantOp) else (op, other)

    # The index space ---------------------------------------------------------------------------------------------------

    def _sides(self) -> tuple[list[int], list[int], list[int], list[int], bool]:
        """The dims of batches, rows, columns and of the sum, and whether the left tensor has the rows."""
        batch, left, right = sides(self.root)
        big = [d for d in (*left, *right) if self.sizes[d] > 1]
        swapped = bool(big) and max(big) in left
        summed = list(range(self.rank, len(self.sizes)))
        return (batch, right, left, summed, False) if swapped else (batch, left, right, summed, True)

    def _asked_places(self) -> list[TensorAccess]:
        """The places along dims that maps ask for: dims that are told apart do not become one."""
        rows = [
            rows_of(self.shapes[op.results[0]])[inner.dim.value.data]
            for op in self.block.ops if isinstance(op, MapOp) for inner in op.body.block.ops if isinstance(inner, IndexOp)
        ]
        spare = len(self.sizes) - self.rank
        return [TensorAccess((*factors, *[0] * spare), offset) for factors, offset in rows]

    def written(self) -> EmittedKernel:
        """The text and its launch."""
        batch, rows, columns, summed, left_first = self._sides()
        first, second = (self.lefts, self.rights) if left_first else (self.rights, self.lefts)
        out = TensorAccess((*row_major(self.sizes[: self.rank]), *[0] * len(summed)), 0)
        reads = (*first, *second, *self.reads.values())
        accesses = [out, *(read.access for read in reads), *self._asked_places()]
        sizes = dict(enumerate(self.sizes))
        batches, down, across, inner = (merged(dims, sizes, accesses) for dims in (batch, rows, columns, summed))
        turns, inner = _loops(inner)
        extents = ProductExtents(*(prod(size for _, size in dims) for dims in (batches, down, across, inner)))
        words = {"batch": batches, "row": down, "column": across}
        self.text.lines += [
            f"blocks: tl.constexpr = ({extents.columns} + COLUMNS - 1) // COLUMNS",
            f"heights: tl.constexpr = ({extents.rows} + ROWS - 1) // ROWS",
            "batch = tl.program_id(0) // (blocks * heights)",
            "row = (tl.program_id(0) // blocks % heights * ROWS + tl.arange(0, ROWS))[:, None]",
            "column = (tl.program_id(0) % blocks * COLUMNS + tl.arange(0, COLUMNS))[None, :]",
        ]
        limits = [f"(row < {extents.rows})", f"(column < {extents.columns})"]
        self._sum(words, turns, inner, (first, second), limits)
        self._finish(IndexWords(words), out, limits)
        return EmittedKernel(self.name, self._source(), extents, self._computed())

    def _computed(self) -> LaunchWork:
        elements = prod(self.sizes[: self.rank])
        weights = sum(weight_of(op.body.block) for op in self.block.ops if isinstance(op, MapOp))
        return LaunchWork(operations=weights * elements, multiply_adds=len(self.roots) * prod(self.sizes))

    def _sum(
        self, words: dict[str, list[tuple[int, int]]], turns: list[tuple[int, int]], inner: list[tuple[int, int]],
        operands: tuple[list[_TensorRead], list[_TensorRead]], limits: list[str],
    ) -> None:
        """The loops over what is summed."""
        count = prod(size for _, size in inner)
        element = types.dtype_of(self.root.left.type)
        total = "tl.int32" if not element.is_float else "tl.float64" if element.bits == 64 else "tl.float32"
        loops = {f"turn{number}": [turn] for number, turn in enumerate(turns)}
        loads: list[list[str]] = []
        for reads, word, limit in zip(operands, ("across", "down"), limits, strict=True):
            known, both = IndexWords({**words, **loops, word: inner}), [limit, f"({word} < {count})"]
            loads.append([self._load(read, known, both, every=True) for read in reads])
        exact = ', input_precision="ieee"' if element.is_float else ""
        start = "" if self.start is None else f" + {self._load(self.reads[self.start], IndexWords(words), limits)}"
        totals = [_numbered("total", number) for number in range(len(self.roots))]
        self.text.lines += [f"{name} = tl.zeros((ROWS, COLUMNS), {total}){start}" for name in totals]
        heads = [*(f"{word} in range(0, {size})" for word, [(_, size)] in loops.items()), f"start in range(0, {count}, DEPTH)"]
        self.text.lines += [f"{'    ' * depth}for {head}:" for depth, head in enumerate(heads)]
        deep = "    " * len(heads)
        factors: list[list[str]] = []
        for letter, along, turned, texts in zip("ab", ("across", "down"), ("None, :", ":, None"), loads, strict=True):
            self.text.lines.append(f"{deep}{along} = (start + tl.arange(0, DEPTH))[{turned}]")
            named: dict[str, str] = {}
            for text in texts:
                if text not in named:
                    named[text] = _numbered(letter, len(named))
                    self.text.lines.append(f"{deep}{named[text]} = {text}")
            factors.append([named[text] for text in texts])
        for name, a, b in zip(totals, *factors, strict=True):
            self.text.lines.append(f"{deep}{name} = tl.dot({a}, {b}, {name}{exact}, out_dtype={total})")

    def _finish(self, words: IndexWords, out: TensorAccess, limits: list[str]) -> None:
        """What is computed of the total, and the store."""
        result = types.dtype_of(self.root.result.type)
        known: dict[SSAValue, str] = {op.result: _numbered("value", number) for number, op in enumerate(self.roots)}
        self.text.lines += [
            f"{name} = {_numbered('total', number)}.to({spelled(result.name)})" for number, name in enumerate(known.values())
        ]
        for op in self.block.ops:
            if isinstance(op, GraphReshapeOp) and op.source in known:
                known[op.result] = known[op.source]
            elif self.start is not None and op is self.start[0]:
                known[op.results[0]] = "value"
            elif isinstance(op, MapOp):
                given = [known[v] if v in known else self._operand(op, place, words, limits) for place, v in enumerate(op.operands)]
                index = self.shapes[op.results[0]]
                results = write_body(op.body.block, given, lambda d, m=index: self._place(m, d, words), self.text.statement)
                known.update(zip(op.results, results, strict=True))
            elif isinstance(op, YieldOp):
                for number, value in enumerate(op.operands):
                    place = words.linear(out.factors, out.offset)
                    if "row" not in place and "column" not in place:  # one element of each batch
                        place += " + row * 0"
                    self.text.lines.append(f"tl.store(out{number}_ptr + {place}, {known[value]}, mask={' & '.join(limits)})")

    def _place(self, map: AffineMap, dim: int, words: IndexWords) -> str:
        factors, offset = rows_of(map)[dim]
        text = words.linear(factors, offset)
        return f"tl.full((), {text}, tl.int32)" if text.lstrip("-").isdigit() else f"({text})"

    def _operand(self, op: Operation, place: int, words: IndexWords, limits: list[str]) -> str:
        """An operand of a map that is not computed of the root: a load, or a number."""
        read = self.reads[op, place]
        owner = read.value.owner
        if not isinstance(owner, GraphConstantOp):
            return self.text.statement(self._load(read, words, limits))
        (number,) = results_of(owner, [])
        kind = types.dtype_of(read.value.type)
        return self.text.statement(f"tl.full((), {number_text(number.item())}, {spelled(kind.name)})")

    def _load(self, read: _TensorRead, words: IndexWords, limits: list[str], every: bool = False) -> str:
        """A load at an access. Where it walks no row, or no column, the tile has one and the limit falls away, but for `every`."""
        place = words.linear(read.access.factors, read.access.offset)
        guards = words.guards(read.access)
        asked = [limit.split(" ")[0].strip("(") for limit in limits]
        walked = [word in place for word in asked]
        if every:
            place += "".join(f" + {word} * 0" for word, found in zip(asked, walked, strict=True) if not found)
        used = [limit for limit, found in zip(limits, walked, strict=True) if found or every]
        masks = " & ".join([*used, *guards])
        kept = f", mask={masks}, other=0" if masks else ""
        argument = self.block.args.index(read.value) if read.value in self.block.args else None
        assert argument is not None, "an operand of a group is one of its arguments"
        kind = types.dtype_of(read.value.type)
        signed = "" if kind.is_float else f".to({spelled(kind.name)})"  # an input may be unsigned
        return f"tl.load(in{argument}_ptr + {place}{kept}){signed}"

    def _source(self) -> str:
        body = "\n".join(f"    {line}" for line in self.text.lines)
        given = [f"in{number}_ptr" for number in range(len(self.block.args))]
        given += [f"out{number}_ptr" for number in range(len(self.group.results))]
        given += [f"{word}: tl.constexpr" for word in ("ROWS", "COLUMNS", "DEPTH")]
        return f"def {self.name}({', '.join(given)}):\n{body}\n"


def _numbered(word: str, number: int) -> str:
    """A name of its own for each product of a group, the first one's without a number."""
    return f"{word}{number}" if number else word


def _loops(summed: list[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The dims of a sum that are loops of their own, and those that are walked in tiles: the longest alone, where it fills one."""
    longest = max(summed, key=lambda dim: (dim[1], summed.index(dim)), default=(0, 0))
    if longest[1] < _LONG:
        return [], summed
    return [dim for dim in summed if dim is not longest], [longest]
