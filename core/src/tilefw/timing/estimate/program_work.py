"""What one program of a launch computes and moves, op by op in order, from its simplified tile IR; nothing here is of a chip."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from tilefw.api.execution_trace import CHUNK
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.atomic_ops import AtomicOp
from tilefw.tile.dialect.block_ops import BlockAccess
from tilefw.tile.dialect.combine_op import CombineOp
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.memory_ops import PointerAccess
from tilefw.tile.dialect.structural_op import StructuralOp
from tilefw.timing.estimate.known_integers import Address, KnownIntegers, signed

# Machine instructions of a group of the table's rows, as it is usually expanded: special functions, and arithmetic of floats.
_FUNCTIONS: Mapping[str, tuple[int, int]] = {
    "float.div": (1, 6), "float.div_rn": (1, 8), "float.rem": (2, 10), "math.sqrt": (1, 1), "math.sqrt_rn": (1, 6),
    "math.rsqrt": (1, 0), "math.exp": (1, 2), "math.exp2": (1, 1), "math.log": (1, 2), "math.log2": (1, 1), "math.sin": (0, 25),
    "math.cos": (0, 25), "math.tanh": (2, 8), "math.erf": (1, 20), "math.pow": (2, 40), "math.log1p": (1, 15),
    "math.expm1": (1, 15),
}
ROW_WORK: Mapping[str, Mapping[str, float]] = {
    **{group: {"special": special, "float": float_} for group, (special, float_) in _FUNCTIONS.items()},
    **{f"cast.{kind}": {"conversion": 1} for kind in ("float", "s2f", "u2f", "f2s", "f2u")},
    "int.div": {"division": 1}, "int.rem": {"division": 1}, "int.mulhi": {"integer": 2}, "cast.bitcast": {},
}
"""By kind of instruction; a row of another group is one of the kind of its type."""
UNKNOWN_TRIPS = 4
"""Trips of a loop whose bounds are read from memory."""


@dataclass(frozen=True, slots=True)
class ProgramPart:
    """One op's work. `elements` of its tile; `kinds`: instructions an element; `after`: the parts whose results it reads, by place
    in the region. An access moves `nbytes` in `chunks`, `run` neighbouring elements of `bits` each along dim `along` of `shape`, of
    argument `argument`; `start`: the byte where it begins, `advance`: from there to where it begins in the loop's next turn. A
    store is `turned` where what it stores was loaded along another dim. `op`: a product; `axis` of what is combined. `address`: it
    makes addresses or masks, of which a lane has one for some elements."""

    what: str
    elements: int
    kinds: Mapping[str, float] = field(default_factory=dict)
    after: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    bits: int = 32
    run: int = 1
    along: int = 0
    nbytes: float = 0.0
    chunks: float = 0.0
    argument: int = -1
    axis: int = 0
    op: Operation | None = None
    address: bool = False
    start: int | None = None
    advance: int | None = None
    turned: bool = False


@dataclass(slots=True)
class WorkRegion:
    """Parts and loops in order, done `times`."""

    times: float
    items: list[ProgramPart | WorkRegion] = field(default_factory=list)

    @property
    def innermost(self) -> bool:
        return not any(isinstance(item, WorkRegion) for item in self.items)

    def parts(self) -> Iterable[ProgramPart]:
        return (item for item in self.items if isinstance(item, ProgramPart))


@dataclass(frozen=True, slots=True)
class ProgramWork:
    """The work of a program in the middle of the grid; `programs` of the launch, `extents`: bytes of arrays by argument. `live`:
    bytes of tiles that live at once at most."""

    whole: WorkRegion
    programs: int
    extents: Mapping[int, int]
    live: int


def program_work(
    module: ModuleOp, arguments: Mapping[str, int | float], extents: Mapping[str, int], grid: tuple[int, int, int],
) -> ProgramWork:
    """The work of a module's one kernel. `arguments`: its scalars by name; `extents`: bytes behind its pointers."""
    function = next(op for op in module.ops if isinstance(op, func.FuncOp))
    names = parameter_names(function)
    place = tuple(extent // 2 for extent in grid)
    known: dict[SSAValue, Any] = {}
    for number, (name, value) in enumerate(zip(names, function.body.block.args, strict=True)):
        if types.is_pointer(value.type):
            known[value] = Address(number, np.array(0, np.int64))
        elif types.is_int(value.type) and name in arguments:
            known[value] = signed(int(arguments[name]))
    walk = _ProgramWalk(KnownIntegers(known, place, grid))  # type: ignore[arg-type]
    walk.data = _data(function.body.block)
    whole = WorkRegion(1.0)
    walk.block(function.body.block, whole)
    by_number = {number: extents[name] for number, name in enumerate(names) if name in extents}
    return ProgramWork(whole, prod(grid), by_number, _live(function.body.block))


def parameter_names(function: func.FuncOp) -> list[str]:
    """The names of a kernel's parameters, as its declarations have them."""
    from tilefw.tile.dialect.kernel_info import argument_attributes

    found = [argument_attributes(function, index) for index in range(len(function.body.block.args))]
    return [str(getattr(attributes.get("tile.name"), "data", "")) for attributes in found]


class _ProgramWalk:
    """Goes through a function with numbers. `made`: the parts of the current region that a value comes from."""

    def __init__(self, known: KnownIntegers) -> None:
        self._known = known
        self.data: set[Operation] = set()
        self._made: dict[SSAValue, tuple[int, ...]] = {}
        self._along: dict[SSAValue, int] = {}

    def block(self, block: Block, into: WorkRegion) -> None:
        for op in block.ops:
            if isinstance(op, scf.ForOp):
                self._loop(op, into)
            elif isinstance(op, scf.WhileOp):
                self._while(op, into)
            elif isinstance(op, scf.IfOp):
                self._branch(op, into)
            elif not isinstance(op, scf.YieldOp | func.ReturnOp | scf.ConditionOp):
                self._op(op, into)

    def _loop(self, op: scf.ForOp, into: WorkRegion) -> None:
        low, high, step = (self._known.number(value) for value in (op.lb, op.ub, op.step))
        trips = UNKNOWN_TRIPS if low is None or high is None or not step else max(0, -(-(high - low) // step))
        body, made = op.body.block, self._made
        inner = WorkRegion(float(trips))
        self._made = {}
        self._known.set(body.args[0], None if low is None else np.array(low, np.int64))
        for argument, value in zip(body.args[1:], op.iter_args, strict=True):
            self._known.set(argument, self._known[value])
        self.block(body, inner)
        last = body.last_op
        assert last is not None
        if trips > 1 and low is not None and step and inner.innermost:
            self._advances(op, inner, low + step)
        self._made = made
        for result, value in zip(op.results, last.operands, strict=True):
            self._known.set(result, self._known[value])
            self._made[result] = (len(into.items),)
        into.items.append(inner)

    def _advances(self, op: scf.ForOp, inner: WorkRegion, counter: int) -> None:
        """What each access of a loop's turn moves on by: where it begins in the second turn."""
        body = op.body.block
        last = body.last_op
        assert last is not None
        for argument, known in zip(body.args, [np.array(counter), *[self._known[value] for value in last.operands]], strict=True):
            self._known.set(argument, known)
        again = WorkRegion(1.0)
        self.block(body, again)
        if len(again.items) == len(inner.items):  # a branch may have gone the other way
            for place, (one, other) in enumerate(zip(inner.items, again.items, strict=True)):
                if not isinstance(one, ProgramPart) or not isinstance(other, ProgramPart):
                    continue
                if one.start is not None and other.start is not None:
                    inner.items[place] = replace(one, advance=abs(other.start - one.start))

    def _while(self, op: scf.WhileOp, into: WorkRegion) -> None:
        inner, made = WorkRegion(float(UNKNOWN_TRIPS)), self._made
        self._made = {}
        for region in op.regions:
            self.block(region.block, inner)
        self._made = made
        for result in op.results:
            self._made[result] = (len(into.items),)
        into.items.append(inner)

    def _branch(self, op: scf.IfOp, into: WorkRegion) -> None:
        condition = self._known.number(op.cond)
        taken = op.regions[1 if condition == 0 else 0]
        if not taken.blocks:
            return
        self.block(taken.block, into)
        last = taken.block.last_op
        for result, value in zip(op.results, () if last is None else last.operands, strict=False):
            self._known.set(result, self._known[value])
            self._made[result] = self._made.get(value, ())

    def _op(self, op: Operation, into: WorkRegion) -> None:
        self._known.compute(op)
        if isinstance(op, ops.LoadOp | ops.LoadBlockOp) and types.shape_of(op.results[0].type) and types.is_int(op.results[0].type):
            self._known.set(op.results[0], _some_indices(types.shape_of(op.results[0].type)))
        after = tuple(dict.fromkeys(part for operand in op.operands for part in self._made.get(operand, ())))[-8:]
        part = self._part(op, after)
        if part is None:
            made = after
        else:
            made = (len(into.items),)
            into.items.append(part)
        along = self._direction(op, part)
        for result in op.results:
            self._made[result] = made
            if along is not None:
                self._along[result] = along

    def _direction(self, op: Operation, part: ProgramPart | None) -> int | None:
        """Along which dim the neighbours in memory lie of what was loaded."""
        if part is not None and part.what == "load":
            return part.along if part.run > 1 and len(part.shape) > 1 else None
        if not isinstance(op, ElementwiseOp | ops.TransOp):
            return None
        found = next((self._along[operand] for operand in op.operands if operand in self._along), None)
        return op.order.index(found) if isinstance(op, ops.TransOp) and found is not None else found

    def _part(self, op: Operation, after: tuple[int, ...]) -> ProgramPart | None:
        if isinstance(op, BlockAccess):
            return self._block_access(op, after)
        if isinstance(op, PointerAccess):
            return self._access(op, after)
        if isinstance(op, DotOp | ops.DotScaledOp):
            shape = types.shape_of(op.results[0].type)
            return ProgramPart("dot", prod(shape), {}, after, shape, op=op)
        if isinstance(op, CombineOp):
            type = op.operands[0].type
            kinds = {"float" if types.is_float(type) else "integer": float(sum(1 for _ in op.combine.ops) - 1)}
            what = "reduce" if isinstance(op, ops.ReduceOp) else "scan"
            return ProgramPart(what, prod(types.shape_of(type)), kinds, after, types.shape_of(type), axis=op.axis, bits=_bits(type))
        if isinstance(op, ElementwiseOp):
            type = op.results[0].type
            of = op.operands[op.row.typed_by].type
            kinds = ROW_WORK.get(op.row.group, {"float" if types.is_float(of) else "integer": 1.0})
            shape = types.shape_of(type)
            return ProgramPart("rows", prod(shape), kinds, after, shape, _bits(type), address=bool(shape) and op not in self.data)
        if isinstance(op, StructuralOp | ops.ConstantOp | ops.IotaOp | ops.AddPtrOp | ops.ProgramIdOp | ops.NumProgramsOp):
            return None
        return ProgramPart("other", prod(types.shape_of(op.results[0].type)) if op.results else 1, {"integer": 1.0}, after)

    def _block_access(self, op: BlockAccess, after: tuple[int, ...]) -> ProgramPart:
        shape, strides = op.block, [self._known.number(value) for value in op.strides]
        bits = _bits(op.block_type)
        inside = []
        for extent, offset, limit in zip(shape, op.offsets, op.shape, strict=True):
            start, end = self._known.number(offset), None if limit is None else self._known.number(limit)
            inside.append(extent if start is None or end is None else max(0, min(extent, end - start)))
        along = next((dim for dim, stride in enumerate(strides) if stride == 1), len(shape) - 1)
        dense = bool(strides) and strides[along] == 1
        rows = prod(inside) / max(1, inside[along])
        each = -(-inside[along] * bits // 8 // CHUNK) if dense else inside[along]
        what = "load" if op.results else "store"
        base = self._known[op.base]
        places = [self._known.number(value) for value in op.offsets]
        start = None
        if isinstance(base, Address) and base.offset.ndim == 0 and None not in (*places, *strides):
            start = (int(base.offset) + sum(at * by for at, by in zip(places, strides, strict=True))) * bits // 8  # type: ignore[operator]
        turned = what == "store" and len(shape) > 1 and dense and self._along.get(op.value, along) != along  # type: ignore[attr-defined]
        return ProgramPart(
            what, prod(shape), {}, after, shape, bits, shape[along] if dense else 1, along, prod(inside) * bits / 8,
            rows * each, base.argument if isinstance(base, Address) else -1, start=start, turned=turned,
        )

    def _access(self, op: PointerAccess, after: tuple[int, ...]) -> ProgramPart:
        type = op.value_type
        shape, bits = types.shape_of(type), _bits(type)
        found = self._known[op.pointer]
        if op.offsets is not None:
            offsets = self._known[op.offsets]
            both = isinstance(found, Address) and isinstance(offsets, np.ndarray)
            found = Address(found.argument, found.offset + offsets) if both else None  # type: ignore[union-attr, operator]
        what = "atomic" if isinstance(op, AtomicOp) else "load" if op.results else "store"
        if not isinstance(found, Address):
            count = prod(shape)
            return ProgramPart(what, count, {}, after, shape, bits, 1, max(0, len(shape) - 1), count * bits / 8, count)
        mask = None if op.mask is None else self._known[op.mask]
        offset = np.broadcast_to(found.offset, shape)
        run, along = _runs(offset)
        if isinstance(mask, np.ndarray):
            offset = offset[np.broadcast_to(mask, shape) != 0]
        chunks = len(np.unique(offset.reshape(-1) * bits // 8 // CHUNK))
        turned = what == "store" and len(shape) > 1 and run > 1 and self._along.get(op.value, along) != along  # type: ignore[attr-defined]
        return ProgramPart(
            what, prod(shape), {}, after, shape, bits, run, along, offset.size * bits / 8, chunks, found.argument,
            start=int(offset.min()) * bits // 8 if offset.size else None, turned=turned,
        )


def _some_indices(shape: tuple[int, ...]) -> np.ndarray:
    """Indices that were read from memory, of which nothing is known: far from one another."""
    return (np.arange(prod(shape), dtype=np.int64) * 397).reshape(shape)


def _runs(offset: np.ndarray) -> tuple[int, int]:
    """(Neighbouring elements, along which dim) that lie together in memory."""
    best = (1, max(0, offset.ndim - 1))
    for dim, extent in enumerate(offset.shape):
        if extent > 1:
            steps = np.diff(offset, axis=dim) != 1
            breaks = np.flatnonzero(steps.any(axis=tuple(d for d in range(offset.ndim) if d != dim)))
            run = extent if not breaks.size else int(np.gcd.reduce(breaks + 1))
            best = max(best, (run, dim))
    return best


def _bits(type: Any) -> int:
    return 64 if types.is_pointer(type) else types.dtype_of(type).storage_bits


def _data(block: Block) -> set[Operation]:
    """The ops whose results are computed with, stored or compared as data; the others only make addresses and masks."""
    found: set[Operation] = set()
    pending: list[SSAValue] = []
    for op in block.walk():
        if isinstance(op, ElementwiseOp) and (types.is_float(op.results[0].type) or types.is_float(op.operands[0].type)):
            found.add(op)
            pending += op.operands
        elif isinstance(op, CombineOp | DotOp | ops.DotScaledOp):
            pending += op.operands
        elif isinstance(op, ops.StoreBlockOp | ops.StoreOp):
            pending.append(op.value)
        elif isinstance(op, AtomicOp):
            pending += op.values
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, ElementwiseOp | StructuralOp) and owner not in found:
            found.add(owner)
            pending += owner.operands
    return found


def _live(block: Block) -> int:
    """Bytes of the tiles that live at once at most, loops' carried ones throughout."""
    best = 0
    alive: dict[SSAValue, int] = {}
    for op in block.ops:
        last = {operand for operand in op.operands if all(not _later(use.operation, op) for use in operand.uses)}
        inner = max((_live(region.block) for region in op.regions if region.blocks and not isinstance(op, CombineOp)), default=0)
        for result in op.results:
            made = types.shape_of(result.type) and not isinstance(op, ops.ConstantOp | StructuralOp)
            if made and not types.is_pointer(result.type):
                alive[result] = prod(types.shape_of(result.type)) * _bits(result.type) // 8
        best = max(best, sum(alive.values()) + inner)
        for value in last:
            alive.pop(value, None)
    return best


def _later(user: Operation, op: Operation) -> bool:
    """Whether a use comes behind an op of the same block; uses in nested regions count as where these stand."""
    while user.parent is not op.parent:
        parent = user.parent_op()
        if parent is None:
            return False
        user = parent
    return user is not op and op.is_before_in_block(user)
