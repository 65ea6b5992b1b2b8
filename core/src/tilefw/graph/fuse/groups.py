"""Groups of graph ops: from the last op to the first, each joins a group that uses it where one kernel can still be written.

Maps, reductions, scans, sorts, scatters and contractions are computed by one group each. Views, reshapes, small constants,
concatenations, gathers are cheap where they are read: each group that reads one has it too, and it is in memory only where an
output or an op that is not fused needs it. Whether a group is one kernel is asked of who writes it (`tilefw.graph.emit.kinds`), by
writing it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from tilefw.api.errors import UnsupportedError
from tilefw.graph.dialect import combining_ops, grouping_ops, moving_ops, pointwise_ops, rank_ops
from tilefw.graph.emit.kinds import write
from tilefw.graph.emit.tile_text import NotOneKernelError, TileText
from tilefw.graph.fuse.choice import FEWEST_LAUNCHES, FusionChoice, ops_between, part_of
from tilefw.graph.fuse.contract import fuse_contractions
from tilefw.graph.fuse.memory_ranges import in_memory
from tilefw.graph.meaning import model_function
from tilefw.tile import types
from tilefw.tile.text.module import verify

_COMPUTED = (
    pointwise_ops.MapOp, combining_ops.GraphReduceOp, combining_ops.GraphScanOp, combining_ops.ContractOp, moving_ops.GraphSortOp,
    moving_ops.ScatterOp,
)
_READ = (moving_ops.ViewOp, moving_ops.GraphReshapeOp, moving_ops.GraphConcatOp, moving_ops.GraphGatherOp)
_GIVEN = (  # whose results are in memory
    pointwise_ops.GraphConstantOp, grouping_ops.FusedOp, grouping_ops.OpaqueKernelOp, rank_ops.PartOp, rank_ops.CollectiveOp,
)
_DEEPEST = 96  # ops between a value of a group and one that it stores: each is some calls deep for whoever writes the kernel
_LONGEST = 32  # ops in a row that are read in place
_PADDED = 4  # times as many elements as there are, in a tile that is padded along both dims
_MOST = 96  # computed ops of a group: whoever writes its kernel goes from the last to the first, some calls deep for each


@dataclass(eq=False)
class OpGroup:
    """What one launch computes: the ops that no other group has, and the values that it stores."""

    wanted: set[SSAValue]  # the values that are in memory anyhow
    members: set[Operation] = field(default_factory=set)
    outputs: list[SSAValue] = field(default_factory=list)
    computed: dict[Operation, int] = field(default_factory=dict)  # how many elements of each map the launch computes
    loops: bool = False  # sums of products are computed in it

    def written(self) -> TileText:
        """The launch's kernel. Raises NotOneKernelError where no kernel computes it."""
        text = write(self.inputs(), self.outputs)[1]
        self.computed = {op: count * text.grid for op, count in text.computed.items()}
        self.loops = any(isinstance(op, combining_ops.ContractOp) for op in self.members)
        return text

    def reader(self, op: Operation) -> Operation | None:
        """The one map that reads what a map gives, where the launch has it and computes none of its elements often: whoever writes
        the kernel can compute the map just there."""
        readers = {use.operation for value in op.results for use in value.uses}
        one = next(iter(readers))
        if len(readers) > 1 or self.loops or not isinstance(op, pointwise_ops.MapOp) or one not in self.computed:
            return None
        return one if one in self.members and not _repeated(one, self.computed[one]) else None

    def inputs(self) -> list[SSAValue]:
        """The values that are in memory before the launch, in the order in which the outputs reach them."""
        return values_read(self.outputs, self.has)

    def has(self, op: Operation, value: SSAValue) -> bool:
        """Whether the launch computes the value for itself."""
        return op in self.members or value in self.outputs or (is_read_in_place(op) and value not in self.wanted)


def values_read(results: Sequence[SSAValue], is_inside: Callable[[Operation, SSAValue], bool]) -> list[SSAValue]:
    """What is read to compute `results` and is not inside what computes them, in the order in which they reach it."""
    found: dict[SSAValue, None] = {}
    seen: set[SSAValue] = set()
    work = list(reversed(results))
    while work:
        value = work.pop()
        if value in seen:
            continue
        seen.add(value)
        op = value.owner
        if isinstance(op, Operation) and is_inside(op, value):
            work += reversed(op.operands)
        else:
            found[value] = None
    return list(found)


def is_read_in_place(op: Operation) -> bool:
    """Whether every group that reads the op's result computes it for itself."""
    if isinstance(op, pointwise_ops.GraphConstantOp):
        return not types.shape_of(op.result.type)
    return isinstance(op, _READ) or (isinstance(op, pointwise_ops.MapOp) and not op.operands)


def _factor(value: SSAValue) -> SSAValue:
    """What a factor of a sum is a view of: it is read often, and so computed before."""
    while isinstance(value.owner, moving_ops.GraphReshapeOp | moving_ops.ViewOp):
        value = value.owner.source
    return value


def fuse(module: ModuleOp, choice: FusionChoice = FEWEST_LAUNCHES) -> ModuleOp:
    """The module with each group as a `graph.fused`. Raises UnsupportedError TFW0992 where no kernel computes an op."""
    grouping = _Grouping(model_function(module).body.block, choice)
    grouping.group()
    grouping.rewrite()
    verify(module)
    return module


def fuse_as_written(part: ModuleOp) -> None:
    """A way to fuse a part: siblings and two products behind each other stay as they are; a pair is one kernel of two sums."""
    fuse_contractions(part)
    fuse(part)


class _Grouping:
    """One block of a model on its way to groups."""

    def __init__(self, block: Block, choice: FusionChoice) -> None:
        self.block, self.choice = block, choice
        self.order = {op: place for place, op in enumerate(block.ops)}
        self.readers: dict[SSAValue, dict[OpGroup, None]] = {}  # the groups that read a value
        self.wanted: set[SSAValue] = set()  # the values that must be in memory
        self.alone: dict[SSAValue, list[Operation]] = {}  # ops that are not fused and read a value
        self.owner: dict[Operation, OpGroup] = {}
        self.groups: list[OpGroup] = []
        self.depth: dict[SSAValue, int] = {}  # how many ops at most are between a value and what the groups that read it store

    def group(self) -> None:
        """Give each computed op its group, the last first."""
        self._cut_chains()
        for op in reversed(list(self.block.ops)):
            if isinstance(op, _COMPUTED) and not is_read_in_place(op):
                self._place(op)
            elif is_read_in_place(op):
                self._read(op)
            else:
                for operand in map(in_memory, op.operands):
                    self.wanted.add(operand)
                    self.alone.setdefault(operand, []).append(op)

    def _cut_chains(self) -> None:
        """Have a value in memory after each so many ops in a row that would be read in place."""
        length: dict[SSAValue, int] = {}
        for op in reversed(list(self.block.ops)):
            if not is_read_in_place(op) or not op.operands:
                continue
            behind = length.get(op.results[0], 0)
            if behind >= _LONGEST:
                self.wanted.add(op.results[0])
                behind = 0
            for operand in op.operands:
                length[operand] = max(length.get(operand, 0), behind + 1)

    def _place(self, op: Operation) -> None:
        if isinstance(op, combining_ops.ContractOp):
            self.wanted.update(factor for factor in map(_factor, op.operands) if types.shape_of(factor.type))
        readers = self._readers(op.results)
        wanted = [value for value in op.results if value in self.wanted]
        if not readers and not wanted:
            return
        open = [] if self._depth(op) > _DEEPEST else [one for one in readers if len(one.members) < _MOST]
        chosen = next((one for one in open if self._joins(one, op, wanted, readers)), None)
        begins = chosen is None
        if chosen is None:
            chosen = OpGroup(self.wanted, {op}, [value for value in op.results if value in self.wanted or self.readers.get(value)])
            self._begin(chosen)
        self.owner[op] = chosen
        self._pass_on(op, [chosen], 0 if begins else self._depth(op))

    def _joins(self, group: OpGroup, op: Operation, wanted: Sequence[SSAValue], readers: Iterable[OpGroup]) -> bool:
        """Whether the op can be computed in a group that reads it, and what else reads it wait for that group's end."""
        others = [one for one in readers if one is not group]
        read = {value for value in op.results if any(one in self.readers.get(value, ()) for one in others)}
        stored = [value for value in op.results if value in wanted or value in read]
        if stored and self._waits_for(group, op, others):
            return False
        if not stored and (reader := group.reader(op)) is not None:
            group.members.add(op)
            group.computed[op] = group.computed[reader]
            return True
        outputs = [*group.outputs, *(value for value in stored if value not in group.outputs)]
        grown = OpGroup(self.wanted, {*group.members, op}, outputs)
        try:
            text = grown.written()
        except NotOneKernelError:
            return False
        often = _repeated(op, grown.computed.get(op, 0)) or op in text.scattered
        if often and not self._worth_joining(grown, op):
            return False
        group.members, group.outputs = grown.members, grown.outputs
        group.computed, group.loops = grown.computed, grown.loops
        return True

    def _worth_joining(self, grown: OpGroup, op: Operation) -> bool:
        """Whether the op is better computed in the group that reads it, where that takes more, than in a launch of its own."""
        inputs = grown.inputs()
        place = ops_between(inputs, grown.outputs).index(op)
        ways = _one_group, TwoGroups(place)
        return self.choice.best(lambda: part_of(inputs, grown.outputs), ways) == 0

    def _waits_for(self, group: OpGroup, op: Operation, others: Sequence[OpGroup]) -> bool:
        """Whether the group needs what an other reader of the op's results computes. What stands before the op reads none."""
        unfused = {reader for value in op.results for reader in self.alone.get(value, ())}
        seen: set[SSAValue] = set()
        work = [value for value in group.inputs() if value not in op.results]
        while work:
            value = work.pop()
            owner = value.owner
            if value in seen or not isinstance(owner, Operation) or self.order[owner] < self.order[op]:
                continue
            seen.add(value)
            maker = self.owner.get(owner)
            if owner in unfused or (maker is not None and maker in others):
                return True
            work += maker.inputs() if maker is not None and maker is not group else owner.operands
        return False

    def _read(self, op: Operation) -> None:
        """An op that its readers compute for themselves, or that needs a launch to be in memory."""
        if self._depth(op) > _DEEPEST:
            self.wanted.add(op.results[0])
        if op.results[0] in self.wanted:
            group = self.owner[op] = OpGroup(self.wanted, set(), [op.results[0]])
            self._begin(group)
            self._pass_on(op, [group], 0)
            return
        self._pass_on(op, list(self._readers(op.results)), self._depth(op))

    def _depth(self, op: Operation) -> int:
        return max((self.depth.get(value, 0) for value in op.results), default=0)

    def _begin(self, group: OpGroup) -> None:
        try:
            group.written()
        except NotOneKernelError as error:
            raise UnsupportedError(f"no kernel computes {error}", code="TFW0992") from None
        self.groups.append(group)

    def _readers(self, values: Sequence[SSAValue]) -> dict[OpGroup, None]:
        return {group: None for value in values for group in self.readers.get(value, ())}

    def _pass_on(self, op: Operation, groups: Sequence[OpGroup], depth: int) -> None:
        for operand in op.operands:
            self.readers.setdefault(operand, {}).update(dict.fromkeys(groups))
            self.depth[operand] = max(self.depth.get(operand, 0), depth + 1)

    # The new block -------------------------------------------------------------------------------------------------------

    def rewrite(self) -> None:
        """Each group becomes an op behind what it reads; what nothing reads any more falls away."""
        _rewrite(self.block, self.groups)


def _rewrite(block: Block, groups: Sequence[OpGroup]) -> None:
    makers = {value: group for group in groups for value in group.outputs}
    last = block.last_op
    assert last is not None
    old = list(block.ops)
    _GroupPlacing(block, makers).run(last)
    for op in reversed(old):
        if op is not last and not any(result.uses.get_length() for result in op.results):
            op.detach()
            op.erase()


def _repeated(op: Operation, computed: int) -> bool:
    """Whether a kernel computes each element of a map several times: more often than tiles padded along both dims do."""
    count = max(prod(types.shape_of(value.type)) for value in op.results)
    return computed > _PADDED * max(count, 1)


def _one_group(part: ModuleOp) -> None:
    """One launch of a part."""
    block = model_function(part).body.block
    _rewrite(block, [_rest(block, set(), set())])


@dataclass(frozen=True, slots=True)
class TwoGroups:
    """A way to fuse a part: a launch of the op at a place of it, and one of the others."""

    place: int

    def __call__(self, part: ModuleOp) -> None:
        block = model_function(part).body.block
        op = list(block.ops)[self.place]
        wanted = set[SSAValue](op.results)
        alone = OpGroup(wanted, {op}, [value for value in op.results if value.uses.get_length()])
        _rewrite(block, [alone, _rest(block, wanted, {op})])


def _rest(block: Block, wanted: set[SSAValue], without: set[Operation]) -> OpGroup:
    """The group of all ops of a part but some."""
    last = block.last_op
    assert last is not None
    outputs = [value for value in dict.fromkeys(last.operands) if value not in wanted]
    return OpGroup(wanted, {op for op in block.ops if op is not last} - without, outputs)


class _GroupPlacing:
    """Groups, and copies of the ops that stay, put before the block's end in an order in which each follows what it reads. The old
    ops keep their operands: groups are still read off them."""

    def __init__(self, block: Block, makers: Mapping[SSAValue, OpGroup]) -> None:
        self.block, self.makers = block, makers
        self.made: dict[SSAValue, SSAValue] = {}

    def run(self, last: Operation) -> None:
        """Make all that the last op reads."""
        pending = list(reversed(last.operands))
        while pending:
            value = pending[-1]
            lacking = [] if self._is_made(value) else [one for one in self._read(value) if not self._is_made(one)]
            pending += reversed(lacking)
            if not lacking:
                pending.pop()
                if not self._is_made(value):
                    self._place(value, last)
        last.operands = [self._now(value) for value in last.operands]

    def _is_made(self, value: SSAValue) -> bool:
        return value in self.made or not isinstance(value.owner, Operation)

    def _now(self, value: SSAValue) -> SSAValue:
        """What stands for an old value."""
        return self.made.get(value, value)

    def _read(self, value: SSAValue) -> Sequence[SSAValue]:
        """What there must be before what makes a value."""
        group = self.makers.get(value)
        return self._inputs(group) if group is not None else list(value.owner.operands)  # type: ignore[union-attr]

    def _inputs(self, group: OpGroup) -> list[SSAValue]:
        """What a group reads: of a tensor in memory, a view that is a stretch of it as an address of its own."""
        return values_read(group.outputs, lambda op, value: group.has(op, value) and not self._is_stretch(value, group))

    def _is_stretch(self, value: SSAValue, group: OpGroup) -> bool:
        """Whether a value is a view and has the memory of one that another launch stores, or that nothing computes."""
        if value in self.makers or not isinstance(value.owner, moving_ops.ViewOp):
            return False
        held = in_memory(value)
        return self.makers.get(held, group) is not group or not isinstance(held.owner, Operation) or isinstance(held.owner, _GIVEN)

    def _place(self, value: SSAValue, last: Operation) -> None:
        group = self.makers.get(value)
        if group is not None:
            self._fused(group, last)
            return
        op = value.owner
        assert isinstance(op, Operation)
        copy = op.clone({operand: self._now(operand) for operand in op.operands})
        self.block.insert_op_before(copy, last)
        self.made.update(zip(op.results, copy.results, strict=True))

    def _fused(self, group: OpGroup, last: Operation) -> None:
        inputs = self._inputs(group)
        kind, _ = write(inputs, group.outputs)
        body = Block(arg_types=[value.type for value in inputs])
        inner: dict[SSAValue, SSAValue] = dict(zip(inputs, body.args, strict=True))
        results = [_cloned(value, inner, body) for value in group.outputs]
        body.add_op(pointwise_ops.YieldOp.create(operands=results))
        fused = grouping_ops.FusedOp.create(
            operands=[self._now(value) for value in inputs], properties={"kind": StringAttr(kind)},
            result_types=[value.type for value in group.outputs], regions=[Region(body)],
        )
        self.block.insert_op_before(fused, last)
        self.made.update(zip(group.outputs, fused.results, strict=True))


def _cloned(value: SSAValue, inner: dict[SSAValue, SSAValue], body: Block) -> SSAValue:
    """The value in the body of a group, with the ops that it needs."""
    if value not in inner:
        op = value.owner
        assert isinstance(op, Operation)
        operands = [_cloned(operand, inner, body) for operand in op.operands]
        copy = op.clone(dict(zip(op.operands, operands, strict=True)))
        body.add_op(copy)
        inner.update(zip(op.results, copy.results, strict=True))
    return inner[value]
