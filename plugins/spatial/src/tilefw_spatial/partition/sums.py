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
from tilefw_spatial.partition.alike import results_alike, same
from tilefw_spatial.partition.axes import products
from tilefw_spatial.partition.blocks import in_blocks
from tilefw_spatial.partition.combined import combined
from tilefw_spatial.partition.needs import needed, sent, touched
from tilefw_spatial.partition.restrict import part_of, part_sums
from tilefw_spatial.sweep import AluStep, Array, LinkSweep, NodeWork, OperandSource, Read, Sweep, VectorSweep, Walk, Work, Write


def sums_split(graph: Graph, chips: int, machine: Machine) -> NodeWork:
    """The work of chips that have parts of K. Raises UnsupportedError TFW0656 for a graph that is not about one product."""
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
        works: list[Work] = []
        owners: list[int] = []
        for begin, end in pairwise(accumulate(shares, initial=0)):
            blocks, owners = in_blocks(part_sums(graph, product, part_of(axis, begin, end)), chips)
            works.append(arrange(blocks, machine))
        exchanged = [_Chip.of(work) for work in works]
        if results_alike(works) and all(same(exchanged[0].shapes(), chip.shapes()) for chip in exchanged):
            return _Exchange(exchanged, owners, machine).work()
    raise UnsupportedError(
        "the chips' parts of the sums are laid out in different ways", code="TFW0657",
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
    """Parts that differ by one at most: where sets of weights leave the last a part that is laid out in another way."""
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
class _Chip:
    """A chip's sweeps, drains made into sweeps that keep the sums: `sums` has the array of each, `rest` the sweep that goes on from
    the whole sums in `totals`."""

    sweeps: list[Sweep] = field(default_factory=list)
    sums: list[Array] = field(default_factory=list)
    totals: list[Array] = field(default_factory=list)
    rest: list[Sweep] = field(default_factory=list)
    results: list[Array] = field(default_factory=list)

    @staticmethod
    def of(work: Work) -> _Chip:
        """A chip that does all of the work's products."""
        chip = _Chip(results=work.results)
        for sweep in work.sweeps:
            if isinstance(sweep, VectorSweep) and sweep.drains:
                number, dtype = len(chip.sums), sweep.drains[0].dtype
                kept = Array(f"sums{number}", SUMS[dtype], prod(sweep.domain), "temp")
                total = replace_name(kept, f"total{number}")
                chip.sums.append(kept)
                chip.totals.append(total)
                chip.sweeps.append(_keeping(sweep, kept))
                chip.rest.append(_going_on(sweep, total))
            else:
                chip.sweeps.append(sweep)
                chip.rest.append(sweep)
        return chip

    def shapes(self) -> tuple[object, ...]:
        """What arrays of sums must share, number by number, for one chip to add another's: their form, and which vectors of which
        results are made of them."""
        numbers = {id(array): number for number, array in enumerate(self.results)}
        going_on = {id(sweep.reads[0].walk.array): sweep for sweep in self.rest if isinstance(sweep, VectorSweep) and sweep.reads}
        return tuple(
            (total.dtype, total.vectors, total.groups, tuple(
                (numbers.get(id(write.walk.array)), write.walk.start, write.walk.strides, write.walk.table)
                for write in going_on[id(total)].writes
            ))
            for total in self.totals
        )


def replace_name(array: Array, name: str, role: str = "temp") -> Array:
    """A new array of the same vectors."""
    return Array(name, array.dtype, array.vectors, role, array.groups)


def _keeping(sweep: VectorSweep, kept: Array) -> VectorSweep:
    """The drains of a sweep, added where there are two, to memory."""
    drained = tuple(OperandSource("stream", number) for number in range(len(sweep.drains)))
    step = AluStep("ADD" if len(drained) > 1 else "MOV", kept.dtype, drained)
    reads = [Read(read.walk) for read in sweep.reads[: len(drained)]]
    return VectorSweep((kept.vectors,), reads, [step], [Write(0, Walk(kept, 0, (1,)))], sweep.drains, sweep.place)


def _going_on(sweep: VectorSweep, total: Array) -> VectorSweep:
    """The sweep with the whole sums from memory in place of its drains."""
    steps = list(sweep.steps)
    drains = len(sweep.drains)
    if drains > 1:
        number = _adding(sweep)
        first = steps[number].operands[0]
        steps[number] = replace(steps[number], op="MOV", operands=(replace(first, index=0),))
    strides = tuple(accumulate(reversed(sweep.domain[1:]), int.__mul__, initial=1))[::-1]
    reads = [Read(Walk(total, 0, strides), sweep.reads[0].time), *sweep.reads[drains:]]
    moved = [replace(step, operands=tuple(_renumbered(source, drains - 1) for source in step.operands)) for step in steps]
    return VectorSweep(sweep.domain, reads, moved, list(sweep.writes), (), sweep.place)


def _adding(sweep: VectorSweep) -> int:
    """The step that adds two drains, the only one that reads them."""
    users = [
        number for number, step in enumerate(sweep.steps)
        if any(source.kind == "stream" and source.index < 2 for source in step.operands)
    ]
    if len(users) != 1 or sweep.steps[users[0]].op != "ADD":
        raise InternalError("two drains of one product are taken by something else than one addition")
    return users[0]


def _renumbered(source: OperandSource, fewer: int) -> OperandSource:
    return replace(source, index=max(source.index - fewer, 0)) if source.kind == "stream" else source


@dataclass(slots=True)
class _Exchange:
    """The chips, and which of them each result belongs to."""

    chips: list[_Chip]
    owners: Sequence[int]
    machine: Machine
    order: list[tuple[int, Sweep] | LinkSweep] = field(default_factory=list)

    def work(self) -> NodeWork:
        """All sums, then their way to the owners, what the owners make of them, and that to all."""
        own = [self._own(number) for number in range(len(self.chips))]
        done: set[int] = set()
        for turn in _in_turns([self._totals_of(number, sweeps) for number, sweeps in enumerate(own)]):
            for number in range(len(self.chips)):
                self._multiply(number, [index for _, index in turn], done)
            for owner, index in turn:
                self._reduce(owner, index)
        for number, sweeps in enumerate(own):
            self.order += [(number, sweep) for sweep in sweeps]
        spread: set[int] = set()
        for index, owner in enumerate(self.owners):
            array = self.chips[owner].results[index]
            if id(array) not in spread:
                spread.add(id(array))
                self._spread(index, owner)
        return NodeWork([self._chip_work(number) for number in range(len(self.chips))], self.order)

    def _own(self, number: int) -> list[Sweep]:
        """What a chip makes of the sums that it owns, but for what it has made before."""
        chip = self.chips[number]
        before = {id(sweep) for sweep in needed(chip.sweeps, chip.sums)}
        wanted = [array for array, owner in zip(chip.results, self.owners, strict=True) if owner == number]
        return [sweep for sweep in needed(chip.rest, wanted) if id(sweep) not in before]

    def _totals_of(self, number: int, sweeps: list[Sweep]) -> list[int]:
        """The numbers of the sums that a chip's sweeps go on from."""
        arrays = touched(sweeps)
        return [index for index, total in enumerate(self.chips[number].totals) if id(total) in arrays]

    def _multiply(self, number: int, indices: list[int], done: set[int]) -> None:
        """A chip's part of some sums, but for what is done."""
        chip = self.chips[number]
        sweeps = [sweep for sweep in needed(chip.sweeps, [chip.sums[index] for index in indices]) if id(sweep) not in done]
        done |= {id(sweep) for sweep in sweeps}
        self.order += [(number, sweep) for sweep in sweeps]

    def _reduce(self, owner: int, index: int) -> None:
        """One array of sums to its owner, who adds them."""
        chip = self.chips[owner]
        terms: list[Array] = []
        for source, sender in enumerate(self.chips):
            if source == owner:
                terms.append(chip.sums[index])
                continue
            arrived = replace_name(chip.sums[index], f"{chip.sums[index].name}from{source}", "link")
            self.order += sent(source, sender.sums[index], (owner, arrived))
            terms.append(arrived)
        total = chip.totals[index]
        self.order.append((owner, combined("ADD", total.dtype, terms, Walk(total, 0, (1,)), self.machine)))

    def _spread(self, index: int, owner: int) -> None:
        """A result to all other chips."""
        array = self.chips[owner].results[index]
        others = [number for number in range(len(self.chips)) if number != owner]
        for number in others:
            self.chips[number].results[index].role = "link"
            self.chips[number].results[index].transfers = ()
        self.order += sent(owner, array, *((number, self.chips[number].results[index]) for number in others))

    def _chip_work(self, number: int) -> Work:
        sweeps = [item[1] for item in self.order if not isinstance(item, LinkSweep) and item[0] == number]
        arrays = touched(sweeps)
        for item in self.order:
            if isinstance(item, LinkSweep):
                arrays |= {id(array): array for chip, array in ((item.source, item.array), *item.targets) if chip == number}
        return Work(sweeps, list(arrays.values()))


def _in_turns(lists: list[list[int]]) -> Iterator[list[tuple[int, int]]]:
    """The first of each chip's, then the second of each, …, as (chip, number)."""
    for turn in range(max(map(len, lists), default=0)):
        yield [(chip, numbers[turn]) for chip, numbers in enumerate(lists) if turn < len(numbers)]
