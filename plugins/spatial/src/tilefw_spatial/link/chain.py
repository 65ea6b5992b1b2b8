"""A chain of launches to one program: as many of them, from the first on, as can be joined and fit the chip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilefw.api import CapacityError, ChainLaunch, Entry, Parameter, UnsupportedError
from tilefw_spatial.arrange import stream_program
from tilefw_spatial.arrange.choose import chosen
from tilefw_spatial.arrange.normal import normal
from tilefw_spatial.elements import on_machine_types
from tilefw_spatial.emit import emit
from tilefw_spatial.footprint import check as check_footprint
from tilefw_spatial.index_tables import TooLarge
from tilefw_spatial.link.align import aligned
from tilefw_spatial.link.compose import LinkedGraph, NotLinked, composed
from tilefw_spatial.machine import Machine
from tilefw_spatial.pipeline import bound_flags, metadata_of
from tilefw_spatial.program import BoundParameter, SpatialProgram
from tilefw_spatial.schedule import schedule
from tilefw_spatial.stream_program import StreamProgram

ENTRY = "linked"

MOST = 64
"""Launches of one program: what compiling takes grows faster than their number."""


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
    count, ended = min(len(launches), MOST), "" if len(launches) <= MOST else f"a program is of {MOST} launches at most"
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
    targets = aligned(normal(graph))
    kept = [
        target for target in targets
        if (number := target.access.parameter) >= len(linked.storages)
        or linked.storages[number].number in launches[-1].needed
    ]
    check_footprint(graph, machine, [f"b{storage.number}" for storage in linked.storages])
    rest = [target for target in targets if target not in kept]
    every, roots = chosen(kept, machine, rest)
    count = len(kept)
    needed, observed = (
        _program(linked, stream_program(some, items, machine), machine)
        for some, items in ((every[:count], roots[:count]), (every, roots))
    )
    return CompiledChain(needed, observed, len(launches))


def _program(linked: LinkedGraph, stream_ops: StreamProgram, machine: Machine) -> LinkedProgram:
    """The program, with parameters for the storages that it moves data of."""
    checks = linked.graph.checks
    count = len(linked.storages)
    used = sorted({transfer.parameter for array in stream_ops.arrays for transfer in array.transfers if transfer.parameter < count})
    numbers = {old: new for new, old in enumerate([*used, *range(count, count + len(checks))])}
    for array in stream_ops.arrays:
        array.transfers = tuple(replace(transfer, parameter=numbers[transfer.parameter]) for transfer in array.transfers)
    storages = [linked.storages[number] for number in used]
    stored = {transfer.parameter for array in stream_ops.arrays if array.role == "out" for transfer in array.transfers}
    timed = schedule(stream_ops, machine)
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
