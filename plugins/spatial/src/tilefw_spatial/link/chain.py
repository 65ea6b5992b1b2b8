"""A chain of launches to one program: as many of them, from the first on, as can be joined and fit the chip."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from tilefw.api import CapacityError, ChainLaunch, Entry, Parameter, UnsupportedError
from tilefw_spatial.arrange import stream_program
from tilefw_spatial.arrange.choose import chosen
from tilefw_spatial.arrange.item import Item
from tilefw_spatial.arrange.normal import NormalTarget, normal
from tilefw_spatial.elements import on_machine_types
from tilefw_spatial.emit import emit
from tilefw_spatial.footprint import check as check_footprint
from tilefw_spatial.graph import Axis, Value
from tilefw_spatial.index_tables import TooLarge
from tilefw_spatial.link.align import aligned
from tilefw_spatial.link.compose import LinkedGraph, NotLinked, composed
from tilefw_spatial.link.copies import copies_differ
from tilefw_spatial.link.long_sums import with_sums_apart
from tilefw_spatial.link.relayouts import lane_axes, relayouts_of_products, still, with_relayouts
from tilefw_spatial.link.windows import multiplies_windows
from tilefw_spatial.machine import Machine
from tilefw_spatial.pipeline import bound_flags, metadata_of
from tilefw_spatial.program import BoundParameter, SpatialProgram
from tilefw_spatial.schedule import TRIES, ChipSchedule, Try, schedule
from tilefw_spatial.stream_program import StreamProgram

ENTRY = "linked"

FIRST_TRIES: tuple[Try, ...] = ((64, True), (0, True))
FINAL_TRIES: tuple[Try, ...] = (*TRIES, (64, True), (8, False), (8, True))
"""How arrays are placed in variants that are compared, and in the one that is taken: operations of a chain wait for one another
more than those of a launch."""

AGAIN = 2
"""How often a placement is made anew by the times of its schedule: arrays of different launches may share slices then, and those of
one time do not."""


@dataclass(frozen=True, slots=True)
class LinkedProgram:
    """A program of a chain; its parameters point to `storages`."""

    entry: Entry
    program: SpatialProgram
    storages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CompiledChain:
    """The programs of the first `count` launches: one that stores what somebody needs afterwards, and one that does the same and
    stores all that its launches store."""

    needed: LinkedProgram
    observed: LinkedProgram
    count: int
    ended: str = ""


def compile_chain(launches: Sequence[ChainLaunch], machine: Machine) -> CompiledChain | None:
    """The program of as many launches as go into one; None where the first two do not. Where launches do not fit together, half as
    many are tried."""
    count, ended = len(launches), ""
    while count > 1:
        try:
            return replace(_compiled(launches[:count], machine), ended=ended)
        except NotLinked as error:
            count, ended = error.number, error.why
        except (CapacityError, UnsupportedError) as error:
            count, ended = count // 2, error.message
        except TooLarge as error:
            count, ended = count // 2, f"an access of {error.needed} elements is looked at one by one"
    return None


def _compiled(launches: Sequence[ChainLaunch], machine: Machine) -> CompiledChain:
    linked = composed(launches)
    graph = on_machine_types(linked.graph)
    check_footprint(graph, machine, [f"b{storage.number}" for storage in linked.storages])
    targets = aligned(normal(graph))
    if multiplies_windows(targets):
        raise NotLinked(_windowed(launches), "it multiplies windows of what an earlier launch stored")
    kept = [_is_needed(target, linked, launches[-1].needed) for target in targets]
    targets = [target for _, target in sorted(zip(kept, targets, strict=True), key=lambda pair: not pair[0])]
    count = sum(kept) or len(kept)  # launches that nobody needs anything of store all the same
    best = _fastest(targets, count, machine)
    needed = _program(linked, stream_program(best.targets[:count], best.items[:count], machine), machine, FINAL_TRIES)
    observed = _program(linked, stream_program(best.targets, best.items, machine), machine, FIRST_TRIES)
    return CompiledChain(needed, observed, len(launches))


def _windowed(launches: Sequence[ChainLaunch]) -> int:
    """The number of the first launch that multiplies windows; one of them does."""
    without, having = 1, len(launches)  # how many launches
    while having - without > 1:
        middle = (without + having) // 2
        found = multiplies_windows(aligned(normal(on_machine_types(composed(launches[:middle]).graph))))
        without, having = (without, middle) if found else (middle, having)
    return without


@dataclass(frozen=True, slots=True)
class ChainVariant:
    """A form of the targets, the axes that are reduced across lanes, and the relayouts that move nothing."""

    targets: list[NormalTarget]
    lane_axes: frozenset[Axis] = frozenset()
    still: frozenset[Value] = frozenset()


def variants(targets: list[NormalTarget], count: int, machine: Machine) -> Iterator[ChainVariant]:
    """What is tried, to take the fewest cycles: every value along the lanes that its users want, or made again; and small values
    that change lanes on the chip, reductions across lanes. The first `count` targets decide."""
    yield ChainVariant(targets)
    moved = with_relayouts(targets, machine.lanes)
    if _differ(moved, targets):
        yield ChainVariant(moved)
    apart = with_relayouts(with_sums_apart(targets), machine.lanes)
    if not _differ(apart, targets):
        return
    across = lane_axes(apart[:count], machine.lanes)
    yield ChainVariant(apart, across, still(apart[:count], across, machine))
    yield ChainVariant(apart, across, relayouts_of_products(apart))


def _differ(made: list[NormalTarget], targets: list[NormalTarget]) -> bool:
    return any(one.value is not other.value for one, other in zip(made, targets, strict=True))


def _is_needed(target: NormalTarget, linked: LinkedGraph, needed: Collection[int]) -> bool:
    """Whether somebody asks for a store afterwards: the host for a check's flags."""
    number = target.access.parameter
    return number >= len(linked.storages) or linked.storages[number].number in needed


@dataclass(frozen=True, slots=True)
class TriedVariant:
    """Targets, the item of each, and about how many cycles the program of the first ones takes."""

    targets: list[NormalTarget]
    items: list[Item]
    cycles: int


def tried(variant: ChainVariant, count: int, machine: Machine) -> TriedVariant:
    """A variant of which the first `count` targets are scheduled. Raises UnsupportedError TFW0670 where a copy may differ."""
    targets = variant.targets
    every, items = chosen(targets[:count], machine, targets[count:], variant.lane_axes, variant.still)
    if copies_differ(items, machine):
        raise UnsupportedError("a stored value and a copy of it would be added up in two orders", code="TFW0670")
    stream_ops = stream_program(every[:count], items[:count], machine)
    return TriedVariant(every, items, _scheduled(stream_ops, machine, FIRST_TRIES).cycles)


def _fastest(targets: list[NormalTarget], count: int, machine: Machine) -> TriedVariant:
    """The variant that takes the fewest cycles, of those that fit. Raises what one was refused with where none does."""
    found: list[TriedVariant] = []
    refused: CapacityError | UnsupportedError | None = None
    for variant in variants(targets, count, machine):
        try:
            found.append(tried(variant, count, machine))
        except (CapacityError, UnsupportedError) as error:
            refused = error
    if not found:
        assert refused is not None, "some variant is tried"
        raise refused
    return min(found, key=lambda one: one.cycles)


def _scheduled(stream_ops: StreamProgram, machine: Machine, tries: Sequence[Try]) -> ChipSchedule:
    """The schedule by the best of `tries`, by any other where arrays do not fit so."""
    try:
        return schedule(stream_ops, machine, tries, AGAIN)
    except CapacityError:
        if tries is FINAL_TRIES:
            raise
        return schedule(stream_ops, machine, FINAL_TRIES, AGAIN)


def _program(linked: LinkedGraph, stream_ops: StreamProgram, machine: Machine, tries: Sequence[Try]) -> LinkedProgram:
    """The program, with parameters for the storages that it moves data of."""
    checks = linked.graph.checks
    count = len(linked.storages)
    used = sorted({transfer.parameter for array in stream_ops.arrays for transfer in array.transfers if transfer.parameter < count})
    numbers = {old: new for new, old in enumerate([*used, *range(count, count + len(checks))])}
    for array in stream_ops.arrays:
        array.transfers = tuple(replace(transfer, parameter=numbers[transfer.parameter]) for transfer in array.transfers)
    storages = [linked.storages[number] for number in used]
    stored = {transfer.parameter for array in stream_ops.arrays if array.role == "out" for transfer in array.transfers}
    timed = _scheduled(stream_ops, machine, tries)
    parameters = [
        BoundParameter(f"b{storage.number}", "pointer", storage.dtype, storage.nbytes, None, (number, 0))
        for number, storage in enumerate(storages)
    ]
    flags = [bound_flags(check) for check in checks]
    program = emit([timed], ENTRY, (1, 1, 1), [*parameters, *flags], metadata_of([timed], checks))
    pointers = tuple(
        Parameter(parameter.name, "pointer", parameter.dtype, number * 8, 8, 8, readonly=number not in stored)
        for number, parameter in enumerate(parameters)
    )
    return LinkedProgram(Entry(ENTRY, pointers, (1, 1, 1)), program, tuple(storage.number for storage in storages))
