"""The kernel of an attention group: two products, and between them what is computed of rows of scores, a softmax as a rule.

Each program has a tile of rows (queries). Where a row of scores is short, the tile has it whole, and what is between the products
is computed as the ops say. Where it is long, the keys come in blocks: of each row its greatest score so far and the sum of its
exponentials are kept, and what has been summed is scaled when a greater score comes (Milakov and Gimelshein, "Online normalizer
calculation for softmax", arXiv:1805.02867; Dao, "FlashAttention", arXiv:2205.14135). Maps in front of the products and between them
are computed where they are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.ir import Operation, SSAValue

from tilefw.api.integers import ceil_div
from tilefw.graph.dialect.combining_ops import ContractOp, GraphReduceOp, numbers_of
from tilefw.graph.emit.reductions import reduced
from tilefw.graph.emit.scalar_text import spelled
from tilefw.graph.emit.tile_text import Coordinates, NotOneKernelError, TileText, place_text
from tilefw.graph.fuse.contract import sides
from tilefw.graph.fuse.softmax import Softmax, softmax_of
from tilefw.graph.index_maps import rows_of, stays_inside
from tilefw.runtime.jit import next_power_of_2
from tilefw.tile import types

# Tiles of places: row vectors of keys, of a query's and of a result's elements; column vectors of queries, and of keys and a key's
# elements as the other side of a product reads them.
_TURNED = {"row": ":, None", "key": "None, :", "across": "None, :", "column": "None, :", "down": ":, None", "below": ":, None"}
_HEIGHT = 64  # rows of a program at most
_WHOLE = 128  # keys whose scores a tile has whole, at most
_BLOCK = 64  # keys of a block otherwise
_OPERAND = 16384  # elements of an operand's tile at most


class AttentionText(TileText):
    """`product` is the second product, of weights and values; the first is found behind its weights."""

    def __init__(self, name: str, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue], product: ContractOp) -> None:
        super().__init__(name, inputs, {frozenset({word}): word for word in _TURNED})
        self.product = product
        self.side, self.scores = weights_of(product, inputs)
        batch, rows, columns = self._dims()
        sizes = product.extents
        self.counts = {
            "row": prod(sizes[d] for d in rows), "key": prod(product.summed), "column": prod(sizes[d] for d in columns),
            "across": prod(self.scores.summed), "below": prod(product.summed), "down": prod(self.scores.summed),
        }
        if not all(self.counts.values()):
            raise NotOneKernelError("an attention without elements")
        if self.counts["row"] == self.counts["column"] == 1:
            raise NotOneKernelError("an attention that gives one element of each batch")
        whole = self.counts["key"] <= _WHOLE
        self.blocks = {word: next_power_of_2(count) for word, count in self.counts.items()}
        self.blocks["row"] = min(self.blocks["row"], _HEIGHT)
        if not whole:
            self.blocks["key"] = self.blocks["below"] = _BLOCK
        if max(self.blocks["key"], self.blocks["row"]) * max(self.blocks["across"], self.blocks["column"]) > _OPERAND:
            raise NotOneKernelError("queries, keys or values too wide for a tile")
        self.lengths.update(self.blocks)
        self.multiply_adds = prod(product.extents) + prod(self.scores.extents)
        self.base = self._begin(batch, rows, columns)
        value = self._whole() if whole else self._in_blocks()
        self._known[product.result, self.base[: types.rank_of(product.result.type)]] = value
        for output in outputs:
            if types.shape_of(output.type) != types.shape_of(product.result.type):
                raise NotOneKernelError("an output of another shape than the product's")
            self.store(output, self.base[: types.rank_of(product.result.type)])

    # The index space -----------------------------------------------------------------------------------------------------

    def _dims(self) -> tuple[list[int], list[int], list[int]]:
        """The dims of the product's result that are batches, rows and columns."""
        for op in (self.product, self.scores):
            for operand, map in zip(op.operands, (op.left_map.data, op.right_map.data), strict=True):
                if not stays_inside(map, op.extents, types.shape_of(operand.type)):
                    raise NotOneKernelError("a product that reads beside its operands")
        batch, left, right = sides(self.product)
        return (batch, right, left) if self.side else (batch, left, right)

    def _begin(self, batch: list[int], rows: list[int], columns: list[int]) -> Coordinates:
        """The tiles of places; gives the coordinates of the product's index space, by `key` along what it sums."""
        sizes, height = self.product.extents, self.blocks["row"]
        blocks = ceil_div(self.counts["row"], height)
        self.grid = prod(sizes[d] for d in batch) * blocks
        self.elements = height * max(self.blocks["key"], self.blocks["column"])
        self.lines += [
            f"batch = tl.program_id(0) // {blocks}",
            f"row = (tl.program_id(0) % {blocks} * {height} + tl.arange(0, {height}))[:, None]",
        ]
        for word in ("across", "down", "column", *(("key", "below") if self.blocks["key"] >= self.counts["key"] else ())):
            self.lines.append(f"{word} = tl.arange(0, {self.blocks[word]})[{_TURNED[word]}]")
        found: dict[int, str] = {}
        for word, dims in (("batch", batch), ("row", rows), ("column", columns)):
            found.update(zip(dims, self.spread(word, [sizes[d] for d in dims]), strict=True))
        return (*(found[d] for d in range(len(found))), *self.spread("key", self.product.summed))

    def mask(self, coordinates: Coordinates) -> str:
        """Which of the elements at these places there are, by each tile that is longer than what it numbers."""
        return " & ".join(self._limits(self.used(*coordinates)))

    def _limits(self, words: frozenset[str], every: bool = False) -> list[str]:
        return [f"({word} < {self.counts[word]})" for word in _TURNED if word in words and (every or self._padded(word))]

    def _padded(self, word: str) -> bool:
        return bool(self.counts[word] % self.blocks[word])

    def remember(self, shape: Sequence[int], coordinates: Coordinates, flat: str) -> None:
        """One element has the number 0, along whichever tile it is asked for."""
        if prod(shape) > 1:
            super().remember(shape, coordinates, flat)

    def statement(self, text: str) -> str:
        """A new name, of which is known of what tiles it is made."""
        name = super().statement(text)
        self.made_of[name] = self.used(text)
        return name

    def _tile(self, name: str, *words: str, outside: str = "0") -> str:
        """A value as a tile over two words, `outside` where there is no element."""
        both = frozenset(words)
        if self.used(name) - both:
            raise NotOneKernelError("an operand of a product along other tiles than its own")
        limits = self._limits(both, every=self.used(name) != both)
        return self.statement(f"tl.where({' & '.join(limits)}, {name}, {outside})") if limits else name

    # The products --------------------------------------------------------------------------------------------------------

    def _operand(self, op: ContractOp, side: int, coordinates: Coordinates, *words: str) -> str:
        map = (op.left_map, op.right_map)[side].data
        places = tuple(place_text(factors, offset, coordinates) for factors, offset in rows_of(map))
        return self._tile(self.value(op.operands[side], places), *words)

    def _values(self) -> str:
        """The tile of values that the keys of `below` have."""
        kept = self.base[: types.rank_of(self.product.result.type)]
        return self._operand(self.product, 1 - self.side, (*kept, *self.spread("below", self.product.summed)), "below", "column")

    def _dot(self, first: str, second: str, total: str, op: ContractOp) -> str:
        exact = ', input_precision="ieee"' if types.is_float(op.left.type) else ""
        name = self.statement(f"tl.dot({first}, {second}, {total}{exact}, out_dtype={_total(op)})")
        self.made_of[name] = frozenset({"row", "key" if op is self.scores else "column"})
        return name

    def _whole(self) -> str:
        """A tile has all scores of its rows."""
        weights = self._operand(self.product, self.side, self.base, "row", "key")
        total = f"tl.zeros(({self.blocks['row']}, {self.blocks['column']}), {_total(self.product)})"
        return self._rounded(self._dot(weights, self._values(), total, self.product), self.product)

    def special(self, op: Operation, value: SSAValue, coordinates: Coordinates) -> str:
        """The first product, or a reduction of its rows."""
        if op is self.scores:
            return self._first_product(coordinates)
        if isinstance(op, GraphReduceOp) and self.blocks["key"] >= self.counts["key"]:
            return self._reduction(op, value, coordinates)
        raise NotOneKernelError(f"{op.name} in kernel {self.name}")

    def _first_product(self, coordinates: Coordinates) -> str:
        op = self.scores
        walked = [self._walked(map.data, coordinates, op) for map in (op.left_map, op.right_map)]
        side = next((k for k in range(2) if walked[k] <= {"row"} and walked[1 - k] <= {"key"}), None)  # one query walks nothing
        if side is None:
            raise NotOneKernelError("a product whose sides are not rows and keys")
        queries = self._operand(op, side, (*coordinates, *self.spread("across", op.summed)), "row", "across")
        keys = self._operand(op, 1 - side, (*coordinates, *self.spread("down", op.summed)), "down", "key")
        total = f"tl.zeros(({self.blocks['row']}, {self.blocks['key']}), {_total(op)})"
        return self._rounded(self._dot(queries, keys, total, op), op)

    def _rounded(self, total: str, op: ContractOp) -> str:
        kind = types.dtype_of(op.result.type)
        return total if spelled(kind.name) == _total(op) else self.statement(f"{total}.to({spelled(kind.name)})")

    def _reduction(self, op: GraphReduceOp, value: SSAValue, coordinates: Coordinates) -> str:
        shape, axes = types.shape_of(op.operands[0].type), numbers_of(op.axes)
        if prod(shape[axis] for axis in axes) != self.counts["key"] or self.used(*coordinates) - {"row"}:
            raise NotOneKernelError("a reduction of other elements than a row's scores")
        along, kept = iter(self.spread("key", [shape[axis] for axis in axes])), iter(coordinates)
        places = tuple(next(along) if dim in axes else next(kept) for dim in range(len(shape)))
        held = [self.value(operand, places) for operand in op.operands]
        if "inside" not in self.made_of:
            limits = self._limits(frozenset({"row", "key"}), every=True)
            self.lines.append(f"inside = {' & '.join(limits)}")
            self.made_of["inside"] = frozenset({"row", "key"})
        found = reduced(self, op, held, self._padded("key") or self._padded("row"))
        for result, name in zip(op.results, found, strict=True):
            self.made_of[name] = frozenset({"row"})
            self._known[result, coordinates] = name
        return found[[result is value for result in op.results].index(True)]

    # Long rows -----------------------------------------------------------------------------------------------------------

    def _in_blocks(self) -> str:
        """The keys come block by block; the weights are a softmax."""
        found = softmax_of(self.product.operands[self.side])
        if found is None:
            raise NotOneKernelError("weights of long rows that are no softmax")
        wide = _total(self.product)
        self._queries_first(found)
        height, width = self.blocks["row"], self.blocks["column"]
        self.lines += [
            f'greatest = tl.full(({height}, 1), float("-inf"), {wide})', f"weight = tl.zeros(({height}, 1), {wide})",
            f"total = tl.zeros(({height}, {width}), {wide})",
        ]
        outer, known = self.lines, dict(self._known)
        self.lines = [f"{word} = (start + tl.arange(0, {_BLOCK}))[{_TURNED[word]}]" for word in ("key", "below")]
        self.trips = ceil_div(self.counts["key"], _BLOCK)
        self._block(found, wide)
        self.trips = 1
        inner, self.lines, self._known = self.lines, outer, known
        self.lines += [f"for start in range(0, {self.counts['key']}, {_BLOCK}):", *(f"    {line}" for line in inner)]
        mean = "total / weight"
        if found.zero_for_nan:
            mean = f"tl.where(weight > 0, {mean}, 0)"
        return self._rounded(self.statement(mean), self.product)

    def _queries_first(self, found: Softmax) -> None:
        """What the queries are is computed before the loop: the same places are asked for within."""
        places = self._score_places(found)
        op = self.scores
        if found.scores.owner is not op:
            return
        side = next((k for k, map in enumerate((op.left_map, op.right_map)) if "key" not in self._walked(map.data, places, op)), 0)
        terms = rows_of((op.left_map, op.right_map)[side].data)
        self.value(op.operands[side], tuple(place_text(*one, (*places, *self.spread("across", op.summed))) for one in terms))

    def _walked(self, map: Any, places: Coordinates, op: ContractOp) -> frozenset[str]:
        return self.used(*(place_text(*terms, (*places, *("0" for _ in op.summed))) for terms in rows_of(map)))

    def _score_places(self, found: Softmax) -> Coordinates:
        """Where the scores of the rows and keys stand."""
        map = (self.product.left_map, self.product.right_map)[self.side].data
        shape = types.shape_of(found.scores.type)
        places = tuple(place_text(*terms, self.base) for terms in rows_of(map))
        axes = [dim for dim, place in enumerate(places) if "key" in self.used(place)]
        if axes != [found.axis] or (shape[found.axis], places[found.axis]) != (self.counts["key"], "key"):
            raise NotOneKernelError("a softmax along other elements than the keys")
        return places

    def _block(self, found: Softmax, wide: str) -> None:
        """One block of keys: rows whose scores are -inf so far subtract 0, so that their exponentials are 0."""
        scores = self._tile(self.value(found.scores, self._score_places(found)), "row", "key", outside='float("-inf")')
        values = self._values()
        kind = spelled(types.dtype_of(self.product.operands[1 - self.side].type).name)
        self.lines += [
            f"scores = {scores}.to({wide})",
            "greater = tl.maximum(greatest, tl.max(scores, axis=1)[:, None])",
            'finite = tl.where(greater == float("-inf"), 0, greater)',
            "part = tl.exp(scores - finite)",
            "kept = tl.exp(greatest - finite)",
            "weight = weight * kept + tl.sum(part, axis=1)[:, None]",
            f'total = tl.dot(part.to({kind}), {values}, total * kept, input_precision="ieee", out_dtype={wide})',
            "greatest = greater",
        ]


def weights_of(product: ContractOp, inputs: Sequence[SSAValue]) -> tuple[int, ContractOp]:
    """Which operand of a product is computed of another product, and that one. Raises NotOneKernelError."""
    found = [(side, one) for side, value in enumerate(product.operands) for one in products_behind(value, inputs)]
    if len(found) != 1:
        raise NotOneKernelError("a product of no product's result, or of several")
    return found[0]


def products_behind(value: SSAValue, inputs: Sequence[SSAValue] = ()) -> list[ContractOp]:
    """The nearest products that a value is computed of."""
    found: dict[ContractOp, None] = {}
    seen: set[SSAValue] = set(inputs)
    work = [value]
    while work:
        one = work.pop()
        if one in seen or not isinstance(one.owner, Operation):
            continue
        seen.add(one)
        if isinstance(one.owner, ContractOp):
            found[one.owner] = None
        else:
            work += one.owner.operands
    return list(found)


def _total(op: ContractOp) -> str:
    """The type that a product is added up in."""
    element = types.dtype_of(op.left.type)
    return "tl.int32" if not element.is_float else "tl.float64" if element.bits == 64 else "tl.float32"
