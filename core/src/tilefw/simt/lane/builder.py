"""Builds lane IR; it folds integer constants and value-numbers pure ops as it creates them, so that no pass need follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilefw.passes.rewriting import block_of
from tilefw.simt import lane
from tilefw.simt.lane.promises import Promising, promise
from tilefw.tile import types
from tilefw.tile.attribute_keys import AttributeKeys
from tilefw.tile.dialect.base import dense_i64, integer_attr, string_attr

_FOLDS: dict[str, Callable[[int, int], int]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
}
_COMMUTATIVE = {"addi", "muli", "andi", "ori", "xori"}
_LOW_BITS = frozenset(_FOLDS)  # the low bits of whose results are made of the operands' low bits alone
_OFFSETS = frozenset({"addi", "subi", "muli", "shl", "select", "exts", "trunci"})  # what makes the exact integer of an offset
_LOW_DEPTH = 8  # how deep sums and products are narrowed, as their terms may meet again at every step


class LaneBuilder(Promising):
    """Appends to `block`. `scopes` are the value-numbering tables of the open regions, innermost last.

    What a thread computes once (one register of a pure op) stands before the loops that do not change it; whole vectors stay
    where they are used, so that they are selected in chunks and hold no registers over a loop.
    """

    def __init__(self, block: Block, location: Attribute) -> None:
        self.block = block
        self.location = location
        self.scopes: list[dict[object, SSAValue]] = [{}]
        self.allocations = 0
        self._key = AttributeKeys().of
        self._outer: list[tuple[Block, bool]] = []  # the blocks around, and whether the region in them is a loop's

    def insert(self, op: Operation) -> Operation:
        op.location = self.location  # type: ignore[assignment]
        self.block.add_op(op)
        return op

    def enter(self, block: Block, loop: bool = False) -> Block:
        """Go on in `block`, a region's (of a loop?); returns the block to come back to with `leave`."""
        outer, self.block = self.block, block
        self._outer.append((outer, loop))
        self.scopes.append({})
        return outer

    @property
    def in_loop(self) -> bool:
        """Whether what is built now stands in a loop."""
        return any(loop for _, loop in self._outer)

    def leave(self, outer: Block) -> None:
        self.block = outer
        self._outer.pop()
        self.scopes.pop()

    def numbered(self, key: object, make: Callable[[], Operation]) -> SSAValue:
        """The result of the pure op that `make` makes, or of the one that `key` made before it in this region or one around it."""
        for scope in reversed(self.scopes):
            found = scope.get(key)
            if found is not None:
                return found
        op = make()
        op.location = self.location  # type: ignore[assignment]
        depth = self._depth(op)
        # A loop's op is added behind its body is made: what is added to the block around it now stands before it.
        (self.block if depth == len(self._outer) else self._outer[depth][0]).add_op(op)
        (result,) = op.results
        self.scopes[depth][key] = result
        return result

    def repeated(self, key: object, make: Callable[[], SSAValue]) -> SSAValue:
        """What `make` builds of pure ops, or what `key` built in this region before: `numbered` for what many ops make."""
        scope = self.scopes[-1]
        found = scope.get(key)
        if found is None:
            found = scope[key] = make()
        return found

    def _depth(self, op: Operation) -> int:
        """How many regions deep a pure op must stand: out of every loop that defines none of its operands."""
        depth = len(self._outer)
        if not depth or not self._outer[-1][1] or types.shape_of(op.results[0].type) not in ((), (1,)):
            return depth
        defined = {block_of(operand) for operand in op.operands}
        while depth and self._outer[depth - 1][1]:
            inner = self.block if depth == len(self._outer) else self._outer[depth][0]
            if inner in defined:
                break
            depth -= 1
        return depth

    def depth(self, value: SSAValue) -> int:
        """How many of the open regions a value stands in: the fewer, the more loops leave it as it is."""
        block = block_of(value)
        around = [outer for outer, _ in self._outer]
        return around.index(block) if block is not None and block in around else len(around)

    def constant(self, value: int | float, type: Attribute) -> SSAValue:
        # -0.0 equals 0.0 and NaN nothing, so the text is the key.
        return self.numbered(("constant", repr(value), self._key(type)), lambda: lane.ConstantOp(value, type))

    def constants(self, values: Sequence[int], element: Attribute) -> SSAValue:
        """A vector of integer constants."""
        if all(v == values[0] for v in values):
            return self.constant(values[0], lane.vector(len(values), element))
        return self.numbered(
            ("constants", tuple(values), self._key(element)),
            lambda: lane.ConstantsOp.create(
                result_types=[lane.vector(len(values), element)], properties={"values": dense_i64(tuple(values))}
            ),
        )

    def op(self, name: str, *operands: SSAValue, result: Attribute | None = None, rounding: str | None = None) -> SSAValue:
        """The elementwise row `name`; casts name their result's element type."""
        folded = self._fold(name, operands)
        if folded is None and name in _REARRANGED:
            folded = _REARRANGED[name](self, *operands)
        if folded is not None:
            return folded
        made = self.numbered(
            (
                name, frozenset(operands) if name in _COMMUTATIVE else operands, None if result is None else self._key(result),
                rounding,
            ),
            lambda: lane.ELEMENTWISE[name](*operands, result=result, rounding=rounding),  # type: ignore[arg-type]
        )
        if self._promised and name in _OFFSETS:
            promise(made.owner, self._promised)  # type: ignore[arg-type]
        return made

    def _gathered(self, a: SSAValue, b: SSAValue) -> SSAValue | None:
        """(x + constants) + y of a thread's x and y as (x + y) + constants: one register for what is the same in all elements,
        where loops would hold those of x + constants."""
        for total, y in ((a, b), (b, a)):
            if isinstance(total.owner, lane.ELEMENTWISE["addi"]) and isinstance(y.owner, lane.SplatOp):
                x, constants = total.owner.operands
                if isinstance(x.owner, lane.SplatOp) and isinstance(constants.owner, lane.ConstantsOp):
                    one = self.op("addi", self.splat(x.owner.source, 1), self.splat(y.owner.source, 1))
                    return self.op("addi", self.splat(one, types.shape_of(a.type)[0]), constants)
        return None

    def _conjunction(self, a: SSAValue, b: SSAValue) -> SSAValue | None:
        both = self._ranged(a, b)
        return self._gated(a, b) if both is None else both

    def _ranged(self, a: SSAValue, b: SSAValue) -> SSAValue | None:
        """x >= 0 and x < y as one comparison without signs, of y where it is positive; x >= 0 may be a term of a conjunction."""
        for lower, upper in ((a, b), (b, a)):
            if not isinstance(upper.owner, lane.ELEMENTWISE["lts"]):
                continue
            x, y = upper.owner.operands
            terms = list(lower.owner.operands) if isinstance(lower.owner, lane.ELEMENTWISE["andi"]) else [lower]
            for term in terms:
                if not isinstance(term.owner, lane.ELEMENTWISE["ges"]):
                    continue
                index, least = term.owner.operands
                if index is x and _literal(least) == 0:
                    others = [other for other in terms if other is not term]
                    within = self.op("ltu", x, self.positive(y))
                    return self.op("andi", others[0], within) if others else within
        return None

    def _multiple(self, row: str, x: SSAValue, y: SSAValue) -> SSAValue | None:
        """Whether the remainder by a power of two is zero, of which with a sign or without it the low bits tell."""
        if _literal(y) != 0 or not isinstance(x.owner, lane.ELEMENTWISE["rems"] | lane.ELEMENTWISE["remu"]):
            return None
        number, divisor = x.owner.operands
        power = _literal(divisor)
        if not isinstance(power, int) or power < 1 or power & power - 1:
            return None
        return self.op(row, self.op("andi", number, self.constant(power - 1, divisor.type)), y)

    def _less_complement(self, a: SSAValue, b: SSAValue) -> SSAValue | None:
        """a - ~b is a + b + 1."""
        if not isinstance(b.owner, lane.ELEMENTWISE["xori"]) or types.is_bool(b.type):
            return None
        flipped, ones = b.owner.operands
        return self.op("addi", self.op("addi", a, flipped), self.constant(1, b.type)) if _literal(ones) == -1 else None

    def positive(self, value: SSAValue) -> SSAValue:
        """The larger one of integers and 0, made once of a splat's source."""
        if isinstance(value.owner, lane.SplatOp):
            return self.splat(self.positive(value.owner.source), types.shape_of(value.type)[0])
        known = _literal(value)
        if isinstance(known, int):
            return self.constant(max(0, known), value.type)
        return self.op("maxs", value, self.constant(0, value.type))

    def _gated(self, a: SSAValue, b: SSAValue) -> SSAValue | None:
        """A thread's mask from outside of a loop and x < y, with x from there as well, as one comparison: of what is x where the
        mask is true, and else is below nothing."""
        inner = len(self._outer)
        for mask, compared in ((a, b), (b, a)):
            if not self.in_loop or mask.type != lane.vector(1, types.i1) or not isinstance(compared.owner, lane.ELEMENTWISE["lts"]):
                continue
            x, y = compared.owner.operands
            if self.depth(compared) == inner and max(self.depth(mask), self.depth(x)) < inner:
                most = self.constant((1 << types.dtype_of(x.type).bits - 1) - 1, x.type)
                return self.op("lts", self.op("select", mask, x, most), y)
        return None

    def splat(self, value: SSAValue, n: int) -> SSAValue:
        """`value`, a scalar or a vector of one, as `vector<n>`."""
        if types.shape_of(value.type) == (n,):
            return value
        type = lane.vector(n, types.element_of(value.type))
        known = _literal(value)
        if known is not None:
            return self.constant(known, type)
        return self.numbered(("splat", value, n), lambda: lane.SplatOp(value, type))

    def pick(self, value: SSAValue, indices: Sequence[int]) -> SSAValue:
        """The elements of `value` at `indices`; `value` itself when that is all of them in order."""
        size = types.shape_of(value.type)[0]
        if tuple(indices) == tuple(range(size)):
            return value
        known = _literal(value)
        type = lane.vector(len(indices), types.element_of(value.type))
        if known is not None:
            return self.constant(known, type)
        return self.numbered(
            ("pick", value, tuple(indices)),
            lambda: lane.PickOp.create(operands=[value], result_types=[type], properties={"indices": dense_i64(tuple(indices))}),
        )

    def join(self, values: Sequence[SSAValue]) -> SSAValue:
        """Vectors one after the other as one."""
        if len(values) == 1:
            return values[0]
        n = sum(types.shape_of(v.type)[0] for v in values)
        type = lane.vector(n, types.element_of(values[0].type))
        return self.numbered(("join", *values), lambda: lane.JoinOp.create(operands=values, result_types=[type]))

    def uniform(self, value: SSAValue) -> SSAValue:
        """A `vector<1xT>` that is equal in all threads, as a scalar."""
        scalar = types.element_of(value.type)
        known = _literal(value)
        if known is not None:
            return self.constant(known, scalar)
        return self.numbered(("uniform", value), lambda: lane.UniformOp.create(operands=[value], result_types=[scalar]))

    def shuffle(self, value: SSAValue, mode: str, lanes: int | SSAValue) -> SSAValue:
        """`lane.shuffle`: by a constant or, for the mode `index`, from lanes given as `vector<1xi32>` or one an element."""
        if _literal(value) is not None:
            return value
        properties: dict[str, Attribute] = {"mode": string_attr(mode)}
        if isinstance(lanes, int):
            properties["amount"] = integer_attr(lanes)
        operands = [value] if isinstance(lanes, int) else [value, lanes]
        return self.numbered(
            ("shuffle", value, mode, lanes),
            lambda: lane.ShuffleOp.create(operands=operands, result_types=[value.type], properties=properties),
        )

    def alloc(self, size: int, align: int, label: str) -> lane.AllocOp:
        """`size` bytes of shared memory, alive from its first to its last access; inside a loop, in each iteration anew."""
        self.allocations += 1
        properties: dict[str, Attribute] = {
            "id": integer_attr(self.allocations - 1), "bytes": integer_attr(size), "align": integer_attr(align),
            "label": string_attr(label),
        }
        op = lane.AllocOp.create(result_types=[types.i32], properties=properties)
        self.insert(op)
        return op

    def extend(self, value: SSAValue, element: Attribute, depth: int = _LOW_DEPTH) -> SSAValue:
        """A signed integer as the integer type `element`, whichever is wider; a sum or product is made anew of narrower parts."""
        if types.element_of(value.type) is element:
            return value
        have, want = types.dtype_of(value.type).bits, types.dtype_of(element).bits
        if have == want:
            return value
        known = _literal(value)
        if isinstance(known, int):
            sign = 1 << (want - 1)
            return self.constant(((known + sign) % (2 * sign)) - sign, types.with_element(value.type, element))
        return self.op("exts", value, result=element) if have < want else self._low(value, element, depth - 1)

    def _low(self, value: SSAValue, element: Attribute, depth: int) -> SSAValue:
        """The low bits of an integer, as many as `element` has."""
        owner = value.owner
        if isinstance(owner, lane.ELEMENTWISE["exts"]):
            return self.extend(owner.operands[0], element)
        name = owner.name.removeprefix("lane.") if isinstance(owner, Operation) else ""
        if depth and name in _LOW_BITS:
            return self.op(name, *(self.extend(operand, element, depth) for operand in owner.operands))  # type: ignore[union-attr]
        if depth and isinstance(owner, lane.SplatOp):
            return self.splat(self.extend(owner.source, element, depth), types.shape_of(value.type)[0])
        if depth and isinstance(owner, lane.PickOp):
            return self.pick(self.extend(owner.operands[0], element, depth), owner.indices)
        return self.op("trunci", value, result=element)

    def _fold(self, name: str, operands: tuple[SSAValue, ...]) -> SSAValue | None:
        if name not in _FOLDS:
            return None
        a, b = _literal(operands[0]), _literal(operands[1])
        if isinstance(a, int) and isinstance(b, int):
            return self.constant(_FOLDS[name](a, b), operands[0].type)
        if isinstance(a, int) and name in _COMMUTATIVE:
            a, b, operands = b, a, (operands[1], operands[0])
        if not isinstance(b, int):
            return None
        if (b == 0 and name in ("addi", "subi", "ori", "xori")) or (b == 1 and name == "muli"):
            return operands[0]
        if b == 1 and name == "andi" and types.element_of(operands[0].type) == types.i1:
            return operands[0]
        return self.constant(0, operands[0].type) if b == 0 and name in ("muli", "andi") else None


_REARRANGED: dict[str, Callable[[LaneBuilder, SSAValue, SSAValue], SSAValue | None]] = {
    "addi": LaneBuilder._gathered, "andi": LaneBuilder._conjunction, "subi": LaneBuilder._less_complement,
    "eqi": lambda b, x, y: b._multiple("eqi", x, y), "nei": lambda b, x, y: b._multiple("nei", x, y),
}


def _literal(value: SSAValue) -> int | float | None:
    owner = value.owner
    return owner.value if owner.__class__ is lane.ConstantOp else None  # type: ignore[union-attr]
