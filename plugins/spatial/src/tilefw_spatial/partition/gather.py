"""`--split gather`: as `n`, but what all chips need lies in parts on them, and every part is sent to the others while they compute.

What each chip would get from the host alike is dealt out (`dealt`). The results are made in blocks of rows, each as soon as its
operands have arrived; the last blocks are short, so that little is left to do when the links are done.
"""

from __future__ import annotations

from tilefw_spatial.arrange import arrange
from tilefw_spatial.graph import Graph
from tilefw_spatial.machine import Machine
from tilefw_spatial.partition.alike import same_data
from tilefw_spatial.partition.axes import divided_axis
from tilefw_spatial.partition.blocks import in_tapered_blocks
from tilefw_spatial.partition.columns import shares
from tilefw_spatial.partition.dealt import Dealer
from tilefw_spatial.sweep import Array, LinkSweep, NodeWork, Sweep, Work


def gathered_split(graph: Graph, chips: int, machine: Machine) -> NodeWork:
    """The work of chips that have parts of what is stored, and of what that needs."""
    works: list[Work] = []
    for stores in shares(graph, chips):
        numbers: list[int] = []
        blocks = Graph()
        for number, store in stores.items():
            made = in_tapered_blocks(store, divided_axis(store, chips), machine.pitch)
            blocks.stores += made
            numbers += [number] * len(made)
        work = arrange(blocks, machine, twins=False)  # what comes by links would come twice
        for number, array in zip(numbers, work.results, strict=True):
            array.rank = number
        works.append(work)
    dealer = Dealer(works, machine)
    for arrays in _common(works):
        dealer.deal(arrays)
    dealer.finish()
    order: list[tuple[int, Sweep] | LinkSweep] = [*dealer.sends]
    order += [(chip, sweep) for chip, work in enumerate(works) for sweep in work.sweeps]
    return NodeWork(works, order)


def _common(works: list[Work]) -> list[list[Array]]:
    """Inputs that all chips have alike, each as one array a chip, in the order in which they are first read."""
    left = [[array for array in work.arrays if array.role == "in"] for work in works]
    found: list[list[Array]] = []
    for array in list(left[0]):
        alike = [next((number for number, other in enumerate(arrays) if same_data(array, other)), None) for arrays in left]
        numbers = [number for number in alike if number is not None]
        if len(numbers) == len(works):
            found.append([arrays.pop(number) for arrays, number in zip(left, numbers, strict=True)])
    return found
