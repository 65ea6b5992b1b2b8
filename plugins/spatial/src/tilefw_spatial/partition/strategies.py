"""The strategies that split a launch over chips, by name, and the two that need nothing but shares of the stores.

`n`: every chip makes its share of each result from whole operands, and no chip needs another. `gather`: as `n`, but what all chips
need is sharded among them, and every shard is broadcast to the others while they compute (`sharding`). The results are made in
blocks of rows, each as soon as its operands have arrived; the last blocks are short, so that little is left when the links are
done. `k` and `stages` are in files of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilefw.api import LaunchError
from tilefw.api.integers import ceil_div
from tilefw_spatial.arrange import arrange
from tilefw_spatial.arrange.stores import unconditional
from tilefw_spatial.graph import Graph, Store
from tilefw_spatial.machine import Machine
from tilefw_spatial.partition.axes import divided_axis
from tilefw_spatial.partition.blocks import in_tapered_blocks
from tilefw_spatial.partition.exchange import same_data
from tilefw_spatial.partition.restrict import Restriction, part_of
from tilefw_spatial.partition.sharding import Sharder
from tilefw_spatial.partition.stages import staged
from tilefw_spatial.partition.sums import sums_split
from tilefw_spatial.stream_program import Array, LinkStreamOp, NodeStreamProgram, StreamOp, StreamProgram

Strategy = Callable[[Graph, int, Machine], NodeStreamProgram]


def node_options(given: Mapping[str, Any], machine: Machine) -> tuple[int, str]:
    """The number of chips and the strategy, by the launch keywords `chips` and `split`.

    Raises LaunchError TFW0655 for values that are none.
    """
    chips, split = given.get("chips", 1), given.get("split", "n")
    if type(chips) is not int or not 1 <= chips <= machine.node_chips:
        raise LaunchError(
            f"chips is a whole number from 1 to {machine.node_chips}, not {chips!r}", code="TFW0655",
            note=f"a node of {machine.name} has {machine.node_chips} chips",
        )
    if split not in SPLITS:
        raise LaunchError(f"split is one of {', '.join(SPLITS)}, not {split!r}", code="TFW0655")
    return chips, split


def partition(graph: Graph, chips: int, split: str, machine: Machine) -> NodeStreamProgram:
    """The stream program of each chip of a launch that is split by one of SPLITS. Raises UnsupportedError for what that does not
    serve."""
    return SPLITS[split](Graph(unconditional(graph.stores)), chips, machine)


def columns_split(graph: Graph, chips: int, machine: Machine) -> NodeStreamProgram:
    """The stream programs of chips that have parts of what is stored."""
    programs: list[StreamProgram] = []
    for stores in shares(graph, chips):
        program = arrange(Graph(list(stores.values())), machine)
        for number, array in zip(stores, program.results, strict=True):
            array.rank = number
        programs.append(program)
    return NodeStreamProgram(
        programs, [(chip, stream_op) for chip, program in enumerate(programs) for stream_op in program.stream_ops]
    )


def shares(graph: Graph, chips: int) -> list[dict[int, Store]]:
    """The stores of each chip by their number. Shares have one extent, the last ones with indices of which nothing is stored."""
    found: list[dict[int, Store]] = [{} for _ in range(chips)]
    for number, store in enumerate(graph.stores):
        for share, part in zip(found, _store_shares(store, chips), strict=True):
            if part is not None:
                share[number] = part
    return found


def _store_shares(store: Store, chips: int) -> list[Store | None]:
    axis = divided_axis(store, chips)
    if axis is None:
        return [store, *[None] * (chips - 1)]
    extent = ceil_div(axis.extent, chips)
    parts = (part_of(axis, chip * extent, (chip + 1) * extent) for chip in range(chips))
    return [Restriction(part).store(store) for part in parts]


def gathered_split(graph: Graph, chips: int, machine: Machine) -> NodeStreamProgram:
    """The stream programs of chips that have parts of what is stored, and of what that needs."""
    programs: list[StreamProgram] = []
    for stores in shares(graph, chips):
        numbers: list[int] = []
        blocks = Graph()
        for number, store in stores.items():
            made = in_tapered_blocks(store, divided_axis(store, chips), machine.pitch)
            blocks.stores += made
            numbers += [number] * len(made)
        program = arrange(blocks, machine, replicas=False)  # what comes by links would come twice
        for number, array in zip(numbers, program.results, strict=True):
            array.rank = number
        programs.append(program)
    sharder = Sharder(programs, machine)
    for arrays in _common(programs):
        sharder.shard(arrays)
    sharder.finish()
    order: list[tuple[int, StreamOp] | LinkStreamOp] = [*sharder.sends]
    order += [(chip, stream_op) for chip, program in enumerate(programs) for stream_op in program.stream_ops]
    return NodeStreamProgram(programs, order)


def _common(programs: list[StreamProgram]) -> list[list[Array]]:
    """Inputs that are identical on all chips, each as one array a chip, in the order in which they are first read."""
    left = [[array for array in program.arrays if array.role == "in"] for program in programs]
    found: list[list[Array]] = []
    for array in list(left[0]):
        identical = [next((number for number, other in enumerate(arrays) if same_data(array, other)), None) for arrays in left]
        numbers = [number for number in identical if number is not None]
        if len(numbers) == len(programs):
            found.append([arrays.pop(number) for arrays, number in zip(left, numbers, strict=True)])
    return found


SPLITS: Mapping[str, Strategy] = {"n": columns_split, "k": sums_split, "gather": gathered_split, "stages": staged}
