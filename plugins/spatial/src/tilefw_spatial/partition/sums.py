"""`--split k`: every chip has a part of the products' terms, and the sums are added across chips.

Each block of results belongs to one chip. All others send it their sums of that block; it adds them in the order of the chips,
makes of them what the kernel wants, and sends the result to all. That is an all-reduce in two steps, every pair of chips by its
own link: no chip waits for any, since the schedule knows when each vector arrives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from math import prod

from tilefw.api import InternalError, UnsupportedError
from tilefw.api.integers import ceil_div
from tilefw_spatial.arrange import arrange
from tilefw_spatial.graph import Axis, Dot, Graph
from tilefw_spatial.isa import SUMS
from tilefw_spatial.machine import Machine
from tilefw_spatial.partition.axes import products
from tilefw_spatial.partition.blocks import in_blocks
from tilefw_spatial.partition.exchange import accessed, combination, needed, results_identical, same, transmissions
from tilefw_spatial.partition.restrict import part_of, part_sums
from tilefw_spatial.stream_program import (
    AccessPattern,
    AluStep,
    Array,
    LinkStreamOp,
    NodeStreamProgram,
    OperandSource,
    Read,
    StreamOp,
    StreamProgram,
    VectorStreamOp,
    Write,
)


def sums_split(graph: Graph, chips: int, machine: Machine) -> NodeStreamProgram:
    """The stream programs of chips that have parts of K. Raises UnsupportedError TFW0656 for a graph that is not about one
    product."""
    found = products(graph)
    if len(found) != 1:
        raise UnsupportedError(
            f"split=k divides the sums of one product; this kernel has {len(found) or 'none'}", code="TFW0656",
            place=found[0].place if found else None, help="split=n divides any kernel",
        )
    product = found[0]
    op = product.op
    assert isinstance(op, Dot)
    axis = _divided(op, chips)
    for shares in (_in_sets(axis, op, chips, machine), _even(axis, chips)):
        programs: list[StreamProgram] = []
        owners: list[int] = []
        for begin, end in pairwise(accumulate(shares, initial=0)):
            blocks, owners = in_blocks(part_sums(graph, product, part_of(axis, begin, end)), chips)
            programs.append(arrange(blocks, machine))
        exchanged = [_SummingChip.of(program) for program in programs]
        if results_identical(programs) and all(same(exchanged[0].shapes(), chip.shapes()) for chip in exchanged):
            return _Exchange(exchanged, owners, machine).program()
    raise UnsupportedError(
        "the chips' parts of the sums have different layouts", code="TFW0657",
        help="split=n divides this kernel, as does another number of chips",
    )


def _divided(op: Dot, chips: int) -> Axis:
    """The longest contracted axis."""
    axis = max(op.contracted, key=lambda axis: axis.extent)
    if axis.extent < chips:
        raise UnsupportedError(
            f"split=k divides sums of {axis.extent} terms among {chips} chips", code="TFW0656", help="use fewer chips, or split=n"
        )
    return axis


def _even(axis: Axis, chips: int) -> list[int]:
    """Parts that differ by one at most: where sets of weights leave the last a part with another layout."""
    return [axis.extent * (chip + 1) // chips - axis.extent * chip // chips for chip in range(chips)]


def _in_sets(axis: Axis, op: Dot, chips: int, machine: Machine) -> list[int]:
    """Whole sets of weights where there are enough of them."""
    depth = machine.depth(op.a.dtype) if op.a.dtype in SUMS else 1
    sets = ceil_div(axis.extent, depth)
    if sets < chips:
        return _even(axis, chips)
    shares = [(sets * (chip + 1) // chips - sets * chip // chips) * depth for chip in range(chips)]
    full = max(chip for chip in range(chips) if shares[chip] == max(shares))
    shares[full] -= sum(shares) - axis.extent
    return shares


@dataclass(slots=True)
class _SummingChip:
    """A chip's stream operations, drains made into stream operations that keep the sums: `sums` has the array of each, `rest` the
    stream operation that goes on from the whole sums in `totals`."""

    stream_ops: list[StreamOp] = field(default_factory=list)
    sums: list[Array] = field(default_factory=list)
    totals: list[Array] = field(default_factory=list)
    rest: list[StreamOp] = field(default_factory=list)
    results: list[Array] = field(default_factory=list)

    @staticmethod
    def of(program: StreamProgram) -> _SummingChip:
        """A chip that does all of the program's products."""
        chip = _SummingChip(results=program.results)
        for stream_op in program.stream_ops:
            if isinstance(stream_op, VectorStreamOp) and stream_op.drains:
                number, dtype = len(chip.sums), stream_op.drains[0].dtype
                kept = Array(f"sums{number}", SUMS[dtype], prod(stream_op.domain), "temp")
                total = replace_name(kept, f"total{number}")
                chip.sums.append(kept)
                chip.totals.append(total)
                chip.stream_ops.append(_keeping(stream_op, kept))
                chip.rest.append(_going_on(stream_op, total))
            else:
                chip.stream_ops.append(stream_op)
                chip.rest.append(stream_op)
        return chip

    def shapes(self) -> tuple[object, ...]:
        """What arrays of sums must share, number by number, for one chip to add another's: their form, and which vectors of which
        results are made of them."""
        numbers = {id(array): number for number, array in enumerate(self.results)}
        going_on = {
            id(stream_op.reads[0].pattern.array): stream_op for stream_op in self.rest
            if isinstance(stream_op, VectorStreamOp) and stream_op.reads
        }
        return tuple(
            (total.dtype, total.vectors, total.groups, tuple(
                (numbers.get(id(write.pattern.array)), write.pattern.start, write.pattern.strides, write.pattern.table)
                for write in going_on[id(total)].writes
            ))
            for total in self.totals
        )


def replace_name(array: Array, name: str, role: str = "temp") -> Array:
    """A new array of the same vectors."""
    return Array(name, array.dtype, array.vectors, role, array.groups)


def _keeping(stream_op: VectorStreamOp, kept: Array) -> VectorStreamOp:
    """The drains of a stream operation, added where there are two, to memory."""
    drained = tuple(OperandSource("stream", number) for number in range(len(stream_op.drains)))
    step = AluStep("ADD" if len(drained) > 1 else "MOV", kept.dtype, drained)
    reads = [Read(read.pattern) for read in stream_op.reads[: len(drained)]]
    return VectorStreamOp(
        (kept.vectors,), reads, [step], [Write(0, AccessPattern(kept, 0, (1,)))], stream_op.drains, stream_op.place
    )


def _going_on(stream_op: VectorStreamOp, total: Array) -> VectorStreamOp:
    """The stream operation with the whole sums from memory in place of its drains."""
    steps = list(stream_op.steps)
    drains = len(stream_op.drains)
    if drains > 1:
        number = _adding(stream_op)
        first = steps[number].operands[0]
        steps[number] = replace(steps[number], op="MOV", operands=(replace(first, index=0),))
    strides = tuple(accumulate(reversed(stream_op.domain[1:]), int.__mul__, initial=1))[::-1]
    reads = [Read(AccessPattern(total, 0, strides), stream_op.reads[0].time), *stream_op.reads[drains:]]
    moved = [replace(step, operands=tuple(_renumbered(source, drains - 1) for source in step.operands)) for step in steps]
    return VectorStreamOp(stream_op.domain, reads, moved, list(stream_op.writes), (), stream_op.place)


def _adding(stream_op: VectorStreamOp) -> int:
    """The step that adds two drains, the only one that reads them."""
    users = [
        number for number, step in enumerate(stream_op.steps)
        if any(source.kind == "stream" and source.index < 2 for source in step.operands)
    ]
    if len(users) != 1 or stream_op.steps[users[0]].op != "ADD":
        raise InternalError("two drains of one product are taken by something else than one addition")
    return users[0]


def _renumbered(source: OperandSource, fewer: int) -> OperandSource:
    return replace(source, index=max(source.index - fewer, 0)) if source.kind == "stream" else source


@dataclass(slots=True)
class _Exchange:
    """The chips, and which of them each result belongs to."""

    chips: list[_SummingChip]
    owners: Sequence[int]
    machine: Machine
    order: list[tuple[int, StreamOp] | LinkStreamOp] = field(default_factory=list)

    def program(self) -> NodeStreamProgram:
        """All sums, then their transmission to the owners, what the owners make of them, and that to all."""
        own = [self._own(number) for number in range(len(self.chips))]
        done: set[int] = set()
        for round_ in _in_rounds([self._totals_of(number, stream_ops) for number, stream_ops in enumerate(own)]):
            for number in range(len(self.chips)):
                self._multiply(number, [index for _, index in round_], done)
            for owner, index in round_:
                self._reduce(owner, index)
        for number, stream_ops in enumerate(own):
            self.order += [(number, stream_op) for stream_op in stream_ops]
        spread: set[int] = set()
        for index, owner in enumerate(self.owners):
            array = self.chips[owner].results[index]
            if id(array) not in spread:
                spread.add(id(array))
                self._spread(index, owner)
        return NodeStreamProgram([self._chip_program(number) for number in range(len(self.chips))], self.order)

    def _own(self, number: int) -> list[StreamOp]:
        """What a chip makes of the sums that it owns, but for what it has made before."""
        chip = self.chips[number]
        before = {id(stream_op) for stream_op in needed(chip.stream_ops, chip.sums)}
        wanted = [array for array, owner in zip(chip.results, self.owners, strict=True) if owner == number]
        return [stream_op for stream_op in needed(chip.rest, wanted) if id(stream_op) not in before]

    def _totals_of(self, number: int, stream_ops: list[StreamOp]) -> list[int]:
        """The numbers of the sums that a chip's stream operations go on from."""
        arrays = accessed(stream_ops)
        return [index for index, total in enumerate(self.chips[number].totals) if id(total) in arrays]

    def _multiply(self, number: int, indices: list[int], done: set[int]) -> None:
        """A chip's part of some sums, but for what is done."""
        chip = self.chips[number]
        stream_ops = [
            stream_op for stream_op in needed(chip.stream_ops, [chip.sums[index] for index in indices]) if id(stream_op) not in done
        ]
        done |= {id(stream_op) for stream_op in stream_ops}
        self.order += [(number, stream_op) for stream_op in stream_ops]

    def _reduce(self, owner: int, index: int) -> None:
        """One array of sums to its owner, who adds them."""
        chip = self.chips[owner]
        terms: list[Array] = []
        for source, sender in enumerate(self.chips):
            if source == owner:
                terms.append(chip.sums[index])
                continue
            arrived = replace_name(chip.sums[index], f"{chip.sums[index].name}from{source}", "link")
            self.order += transmissions(source, sender.sums[index], (owner, arrived))
            terms.append(arrived)
        total = chip.totals[index]
        self.order.append((owner, combination("ADD", total.dtype, terms, AccessPattern(total, 0, (1,)), self.machine)))

    def _spread(self, index: int, owner: int) -> None:
        """A result to all other chips."""
        array = self.chips[owner].results[index]
        others = [number for number in range(len(self.chips)) if number != owner]
        for number in others:
            self.chips[number].results[index].role = "link"
            self.chips[number].results[index].transfers = ()
        self.order += transmissions(owner, array, *((number, self.chips[number].results[index]) for number in others))

    def _chip_program(self, number: int) -> StreamProgram:
        stream_ops = [item[1] for item in self.order if not isinstance(item, LinkStreamOp) and item[0] == number]
        arrays = accessed(stream_ops)
        for item in self.order:
            if isinstance(item, LinkStreamOp):
                arrays |= {id(array): array for chip, array in ((item.source, item.array), *item.targets) if chip == number}
        return StreamProgram(stream_ops, list(arrays.values()))


def _in_rounds(lists: list[list[int]]) -> Iterator[list[tuple[int, int]]]:
    """The first of each chip's, then the second of each, …, as (chip, number)."""
    for round_ in range(max(map(len, lists), default=0)):
        yield [(chip, numbers[round_]) for chip, numbers in enumerate(lists) if round_ < len(numbers)]
