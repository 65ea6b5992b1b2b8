"""Stages that know no machine count with its numbers: those of the machine file."""

from __future__ import annotations

from tilefw_spatial.arrange import choose, lanes, matrix
from tilefw_spatial.chain import Limits
from tilefw_spatial.container import word
from tilefw_spatial.isa import SUMS
from tilefw_spatial.machine import load
from tilefw_spatial.partition import blocks
from tilefw_spatial.target import SDM1


def test_numbers_are_the_machine_s() -> None:
    machine = load("sdm-1")
    assert machine.lanes == lanes.LANES
    assert (machine.accumulator_rows, machine.weight_streams) == (matrix.ROWS, matrix.STREAMS)
    assert {dtype: machine.depth(dtype) for dtype in SUMS} == matrix.DEPTHS
    assert {dtype: machine.planes if dtype == "int8" else 1 for dtype in SUMS} == matrix.PLANES
    assert (choose.ALUS, Limits().alus, Limits().streams) == (machine.alus, machine.alus, machine.streams)
    assert machine.delays["load_weights"] + machine.delays["install_weights"] == blocks.LAST
    load_weights, install = machine.delays["load_weights"], machine.delays["install_weights"]
    assert (load_weights, load_weights + install) == (choose.LOAD, matrix.PITCH)
    assert machine.instruction_bytes == word.BYTES
    assert SDM1.limits["memory_bytes"] == machine.capacity
