"""What one program of a launch computes and moves, op by op in order, from its simplified tile IR; nothing here is of a chip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
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
from tilefw.timing.estimate.program_facts import bits_of, data_ops, differ, from_place, live_bytes
from tilefw.timing.estimate.program_parts import ROW_WORK, ProgramPart, ProgramWork, WorkRegion

UNKNOWN_TRIPS = 4
"""Trips of a loop whose bounds are read from memory that nobody knows."""
TURNS_FOLLOWED = 64
"""Turns of a loop that are followed one by one, at most."""
MOST_TURNS = 1024
"""Turns of a `while` that are counted at most."""


def program_work(
    module: ModuleOp, arguments: Mapping[str, int | float], extents: Mapping[str, int], grid: tuple[int, int, int],
    contents: Mapping[str, np.ndarray] | None = None,
) -> ProgramWork:
    """The work of a module's one kernel. `arguments`: its scalars by name; `extents`: bytes behind its pointers; `contents`: the
    integers there, of arrays that are small and known."""
    function = next(op for op in module.ops if isinstance(op, func.FuncOp))
    names = parameter_names(function)
    body = function.body.block
    known: dict[SSAValue, Any] = {}
    for number, (name, value) in enumerate(zip(names, body.args, strict=True)):
        if types.is_pointer(value.type):
            known[value] = Address(number, np.array(0, np.int64))
        elif types.is_int(value.type) and name in arguments:
            known[value] = signed(int(arguments[name]))
    held = {number: (contents or {})[name] for number, name in enumerate(names) if name in (contents or {})}
    extents_by = {number: extents[name] for number, name in enumerate(names) if name in extents}
    data, here = data_ops(body), from_place(body)

    def work(place: tuple[int, int, int]) -> WorkRegion:
        walk = _ProgramWalk(KnownIntegers(known, place, grid, held), data, here, extents_by)
        whole = WorkRegion(1.0)
        walk.block(body, whole)
        return whole

    others = tuple(work(place) for place in _elsewhere(grid)) if differ(body, here) else ()
    return ProgramWork(work((grid[0] // 2, grid[1] // 2, grid[2] // 2)), prod(grid), extents_by, live_bytes(body), others)


def _elsewhere(grid: tuple[int, int, int]) -> Iterable[tuple[int, int, int]]:
    """The first program, the last, and two between them that no period of a grid's meets, by the golden section."""
    total = prod(grid)
    for at in sorted({0, int(total * 0.382), int(total * 0.618), total - 1}):
        yield at % grid[0], at // grid[0] % grid[1], at // (grid[0] * grid[1])


def parameter_names(function: func.FuncOp) -> list[str]:
    """The names of a kernel's parameters, as its declarations have them."""
    from tilefw.tile.dialect.kernel_info import argument_attributes

    found = [argument_attributes(function, index) for index in range(len(function.body.block.args))]
    return [str(getattr(attributes.get("tile.name"), "data", "")) for attributes in found]


class _ProgramWalk:
    """Goes through a function with numbers. `made`: the parts of the current region that a value comes from."""

    def __init__(self, known: KnownIntegers, data: set[Operation], here: set[SSAValue], extents: Mapping[int, int]) -> None:
        self._known = known
        self._data, self._here, self._extents = data, here, extents
        self._drawn: set[SSAValue] = set()
        self._brought: dict[int, np.ndarray] = {}
        self._products: dict[SSAValue, Operation] = {}
        self._made: dict[SSAValue, tuple[int, ...]] = {}
        self._along: dict[SSAValue, tuple[int, int]] = {}

    def block(self, block: Block, into: WorkRegion) -> None:
        outside, self._brought = self._brought, {}
        self._ops(block, into)
        self._brought = outside

    def _ops(self, block: Block, into: WorkRegion) -> None:
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
        if low is not None and step and 0 < trips <= TURNS_FOLLOWED and any(isinstance(one, scf.WhileOp) for one in body.walk()):
            self._turns(op, range(low, low + trips * step, step), into)
            return
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
        for result, value in zip(op.results, last.operands if trips else op.iter_args, strict=True):
            self._known.set(result, self._known[value])
            self._made[result] = (len(into.items),)
            if value in self._products:
                self._products[result] = self._products[value]
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

    def _turns(self, op: scf.ForOp, counters: range, into: WorkRegion) -> None:
        """A loop whose turns differ, turn by turn: what it carries decides how long its inner loops are."""
        body = op.body.block
        carried: list[Any] = [self._known[value] for value in op.iter_args]
        last = body.last_op
        assert last is not None
        for counter in counters:
            made, self._made = self._made, {}
            inner = WorkRegion(1.0)
            for argument, known in zip(body.args, [np.array(counter, np.int64), *carried], strict=True):
                self._known.set(argument, known)
            self.block(body, inner)
            carried = [self._known[value] for value in last.operands]
            self._made = made
            into.items.append(inner)
        for result, known in zip(op.results, carried, strict=True):
            self._known.set(result, known)
            self._made[result] = (len(into.items) - 1,)

    def _while(self, op: scf.WhileOp, into: WorkRegion) -> None:
        """As many turns as its condition holds, where that is known of each; they are taken to be alike."""
        before, after = (region.block for region in op.regions)
        made, first, trips = self._made, WorkRegion(1.0), 0
        carried: list[Any] = [self._known[value] for value in op.operands]
        while True:
            inner = WorkRegion(1.0)
            self._made = {}
            for argument, known in zip(before.args, carried, strict=True):
                self._known.set(argument, known)
            self.block(before, inner)
            condition = before.last_op
            assert isinstance(condition, scf.ConditionOp)
            passed = [self._known[value] for value in condition.operands[1:]]
            goes_on = self._known.number(condition.operands[0])
            if goes_on == 0 or trips == MOST_TURNS:
                break
            for argument, known in zip(after.args, passed, strict=True):
                self._known.set(argument, known)
            self.block(after, inner)
            first = inner if not trips else first
            trips += 1
            if goes_on is None:
                trips = UNKNOWN_TRIPS
                passed = [None] * len(passed)
                break
            last = after.last_op
            assert last is not None
            carried = [self._known[value] for value in last.operands]
        self._made = made
        first.times = float(trips)
        for result, known in zip(op.results, passed, strict=True):
            self._known.set(result, known)
            self._made[result] = (len(into.items),)
        into.items.append(first)

    def _branch(self, op: scf.IfOp, into: WorkRegion) -> None:
        condition = self._known.number(op.cond)
        taken = op.regions[1 if condition == 0 else 0]
        if not taken.blocks:
            return
        self._ops(taken.block, into)
        last = taken.block.last_op
        for result, value in zip(op.results, () if last is None else last.operands, strict=False):
            self._known.set(result, self._known[value])
            self._made[result] = self._made.get(value, ())

    def _op(self, op: Operation, into: WorkRegion) -> None:
        self._known.compute(op)
        if isinstance(op, ops.LoadOp | ops.LoadBlockOp) and types.is_int(op.results[0].type):
            shape = types.shape_of(op.results[0].type)
            if shape:
                self._known.set(op.results[0], _some_indices(shape))
                self._drawn.add(op.results[0])
            elif isinstance(op, ops.LoadOp):
                self._known.set(op.results[0], self._known.loaded(op.pointer, op.offsets))
        after = tuple(dict.fromkeys(part for operand in op.operands for part in self._made.get(operand, ())))[-8:]
        part = self._part(op, after)
        if part is None:
            made = after
        else:
            made = (len(into.items),)
            into.items.append(part)
            if part.what in ("load", "store", "atomic"):
                self._serve(part, after, into)
        if isinstance(op, ElementwiseOp | StructuralOp | ops.AddPtrOp) and any(operand in self._drawn for operand in op.operands):
            self._drawn.update(op.results)
        along = self._direction(op, part)
        product = self._product(op)
        for result in op.results:
            if product is not None:
                self._products[result] = product
            self._made[result] = made
            if along is not None:
                self._along[result] = along

    def _serve(self, access: ProgramPart, places: Iterable[int], into: WorkRegion) -> None:
        """What makes an access's addresses makes one for each of its runs."""
        pending = list(places)
        while pending:
            place = pending.pop()
            part = into.items[place]
            if isinstance(part, ProgramPart) and part.address and not 0 < part.run <= access.run:
                into.items[place] = replace(part, run=access.run, bits=access.bits)
                pending += part.after

    def _product(self, op: Operation) -> Operation | None:
        """The product whose layout an op's result has."""
        if isinstance(op, DotOp | ops.DotScaledOp):
            return op
        if not isinstance(op, ElementwiseOp):
            return None
        return next((self._products[operand] for operand in op.operands if operand in self._products), None)

    def _direction(self, op: Operation, part: ProgramPart | None) -> tuple[int, int] | None:
        """Along which dim the neighbours in memory lie of what was loaded, and how many."""
        if part is not None and part.what == "load":
            return (part.along, part.run) if part.run > 1 and len(part.shape) > 1 else None
        if not isinstance(op, ElementwiseOp | ops.TransOp):
            return None
        found = next((self._along[operand] for operand in op.operands if operand in self._along), None)
        return (op.order.index(found[0]), found[1]) if isinstance(op, ops.TransOp) and found is not None else found

    def _part(self, op: Operation, after: tuple[int, ...]) -> ProgramPart | None:
        if isinstance(op, BlockAccess):
            return self._block_access(op, after)
        if isinstance(op, PointerAccess):
            return self._access(op, after)
        if isinstance(op, DotOp | ops.DotScaledOp):
            shape = types.shape_of(op.results[0].type)
            return ProgramPart("dot", prod(shape), {}, after, shape, op=op, operands=tuple(map(self._along.get, op.operands[:2])))
        if isinstance(op, CombineOp):
            return _combination(op, after)
        if isinstance(op, ElementwiseOp):
            type = op.results[0].type
            shape = types.shape_of(type)
            address = bool(shape) and op not in self._data
            return ProgramPart("rows", prod(shape), _kinds(op), after, shape, bits_of(type), 0 if address else 1, address=address)
        if isinstance(op, StructuralOp | ops.ConstantOp | ops.IotaOp | ops.AddPtrOp | ops.ProgramIdOp | ops.NumProgramsOp):
            return None
        return ProgramPart("other", prod(types.shape_of(op.results[0].type)) if op.results else 1, {"integer": 1.0}, after)

    def _block_access(self, op: BlockAccess, after: tuple[int, ...]) -> ProgramPart:
        shape, strides = op.block, [self._known.number(value) for value in op.strides]
        bits = bits_of(op.block_type)
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
        turned = self._turned(op.value, along) if what == "store" and len(shape) > 1 and dense else None  # type: ignore[attr-defined]
        return ProgramPart(
            what, prod(shape), {}, after, shape, bits, shape[along] if dense else 1, along, prod(inside) * bits / 8,
            rows * each, 0.0, base.argument if isinstance(base, Address) else -1, start=start, turned_from=turned,
            op=None if op.results else self._products.get(op.value),  # type: ignore[attr-defined]
        )

    def _access(self, op: PointerAccess, after: tuple[int, ...]) -> ProgramPart:
        type = op.value_type
        shape, bits = types.shape_of(type), bits_of(type)
        found = self._known[op.pointer]
        if op.offsets is not None:
            offsets = self._known[op.offsets]
            both = isinstance(found, Address) and isinstance(offsets, np.ndarray)
            found = Address(found.argument, found.offset + offsets) if both else None  # type: ignore[union-attr, operator]
        what = "atomic" if isinstance(op, AtomicOp) else "load" if op.results else "store"
        if not isinstance(found, Address):
            count = prod(shape)
            return ProgramPart(what, count, {}, after, shape, bits, 1, max(0, len(shape) - 1), count * bits / 8, count)
        mask = None if op.mask is None or op.mask in self._drawn else self._known[op.mask]
        offset = np.broadcast_to(found.offset, shape)
        run, along = _runs(offset)
        if isinstance(mask, np.ndarray):
            offset = offset[np.broadcast_to(mask, shape) != 0]
        wanted = np.unique(offset.reshape(-1) * bits // 8 // CHUNK)
        chunks, met = len(wanted), self._bring(found.argument, wanted) if what == "load" else 0
        turned = self._turned(op.value, along) if what == "store" and len(shape) > 1 and run > 1 else None  # type: ignore[attr-defined]
        made = ProgramPart(
            what, prod(shape), {}, after, shape, bits, run, along, offset.size * bits / 8, chunks, met, found.argument,
            start=int(offset.min()) * bits // 8 if offset.size else None, turned_from=turned,
            op=self._products.get(op.value) if what == "store" else None,  # type: ignore[attr-defined]
        )
        return self._meeting(op, made, offset) if what == "atomic" and offset.size else made

    def _turned(self, value: SSAValue, along: int) -> int | None:
        """Along which other dim a value was loaded."""
        found = self._along.get(value)
        return None if found is None or found[0] == along else found[0]

    def _bring(self, argument: int, wanted: np.ndarray) -> int:
        """How many of these chunks an earlier load of the region has brought; from now on all of them."""
        had = self._brought.get(argument)
        self._brought[argument] = wanted if had is None else np.union1d(had, wanted)
        return 0 if had is None else len(wanted) + len(had) - len(self._brought[argument])

    def _meeting(self, op: PointerAccess, part: ProgramPart, offset: np.ndarray) -> ProgramPart:
        """An atomic access with how many of its elements, and of all programs, meet at an address."""
        pointers = (op.pointer,) if op.offsets is None else (op.pointer, op.offsets)
        if any(value in self._drawn for value in pointers):
            among = self._extents.get(part.argument, 0) * 8 // part.bits
            lines = max(1.0, among * part.bits / 8 / CHUNK)
            return replace(part, among=float(among), contended=1 - (1 - 1 / lines) ** offset.size, chunks=min(part.chunks, lines))
        alike = offset.size / len(np.unique(offset))
        return replace(part, alike=alike, contended=0.0 if any(value in self._here for value in pointers) else 1.0)


def _kinds(op: ElementwiseOp) -> Mapping[str, float]:
    """Instructions of an element, by kind."""
    of = op.operands[op.row.typed_by].type
    return ROW_WORK.get(op.row.group, {"float" if types.is_float(of) else "integer": 1.0})


def _combination(op: CombineOp, after: tuple[int, ...]) -> ProgramPart:
    """A reduction or a scan: what its function takes for each element, and how many of its ops come one after the other."""
    kinds: Counter[str] = Counter()
    depth: dict[SSAValue, int] = {}
    for one in op.combine.ops:
        if isinstance(one, ElementwiseOp):
            kinds.update(_kinds(one))
            depth[one.result] = 1 + max((depth.get(operand, 0) for operand in one.operands), default=0)
    shape, what = types.shape_of(op.operands[0].type), "reduce" if isinstance(op, ops.ReduceOp) else "scan"
    bits = max(bits_of(operand.type) for operand in op.operands)
    steps = max(depth.values(), default=1)
    return ProgramPart(what, prod(shape), dict(kinds), after, shape, bits, axis=op.axis, values=len(op.operands), steps=steps)


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
