"""The timeline of a program: every burst in its queue; utilisation is what spans add up to; memory what lies in rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hand_made import MACHINE, allocation, matrix, program, run

from tilefw.kernels.launchable import launchable
from tilefw.kernels.spec import load
from tilefw.runtime import config
from tilefw.runtime.launch import with_timeline
from tilefw.runtime.plugins.loader import find_target
from tilefw_spatial.program import HostTensor, QueueInst, SpatialProgram
from tilefw_spatial.simulate.trace import ALL_KINDS, timeline
from tilefw_spatial.simulate.utilisation import UNITS, occupied, utilisation


def two_reads_and_a_write() -> SpatialProgram:
    """Rows 0 to 5 of MEM.E0, every second one once more by REP, and the first six into MEM.E1 from row 100 on."""
    timed = {
        "MEM.E0": [
            (0, QueueInst("RD", burst=6, step=1, dst=0)), (10, QueueInst("RD", dst=0)),
            (11, QueueInst("REP", burst=2, imm=4, step=2))
        ],
        "MEM.E1": [(4, QueueInst("WR", burst=6, a=0, address=4096 + 100, step=1))],
    }
    tensors = [
        HostTensor("x", "in", allocation("uint8", 6, [("MEM.E0", 0, 0)]), (matrix(0, 6),)),
        HostTensor("z", "out", allocation("uint8", 4, [("MEM.E1", 1, 102)]), (matrix(1, 4),)),
    ]
    return program(timed, tensors, [("x", "uint8"), ("z", "uint8")])


def test_spans_are_the_bursts_of_each_queue() -> None:
    simulation = run(two_reads_and_a_write(), np.zeros((6, 320), np.uint8), np.zeros((4, 320), np.uint8))
    shown = timeline(simulation)
    assert shown.cycles == simulation.cycles
    spans = {row.name: [(s.begin, s.length, s.busy, s.kind) for s in row.spans] for row in shown.rows}
    assert spans == {"MEM.E0": [(0, 6, 6, "read"), (10, 9, 3, "read")], "MEM.E1": [(4, 6, 6, "write")]}
    assert [row.group for row in shown.rows] == ["MEM.E", "MEM.E"]
    assert [row.facts for row in shown.rows] == [{"rows filled": 6}, {"rows filled": 6}]


def test_rows_are_those_of_the_host_and_those_that_are_written() -> None:
    filled = occupied(run(two_reads_and_a_write(), np.zeros((6, 320), np.uint8), np.zeros((4, 320), np.uint8)))
    assert {slice_: np.nonzero(rows)[0].tolist() for (_, slice_), rows in filled.items() if rows.any()} == {
        "MEM.E0": list(range(6)), "MEM.E1": list(range(4196, 4202)),
    }


def test_rows_of_groups_and_segments_are_counted_one_by_one() -> None:
    places = [("MEM.W3", 0, 7), ("MEM.W4", 1, 0), ("MEM.W5", 0, 0), ("MEM.W5", 0, 9)]
    scattered = replace(allocation("uint8", 11, places, 4), groups=2, segment=6)
    made = program(
        {"MEM.E0": [(0, QueueInst("RD", burst=1))]}, [HostTensor("x", "in", scattered, (matrix(0, 11),))], [("x", "uint8")]
    )
    filled = occupied(run(made, np.zeros((11, 320), np.uint8)))
    assert {slice_: np.nonzero(rows)[0].tolist() for (_, slice_), rows in filled.items() if rows.any()} == {
        "MEM.W3": [7, 8, 9], "MEM.W4": [4096, 4097, 4098], "MEM.W5": [0, 1, 2, 9, 10],
    }


def test_a_kernels_figures_add_up() -> None:
    resolved = config.resolve(config.settings("spatial-sdm1"))
    result = with_timeline(launchable(load("matmul"), {"m": 40, "n": 50, "k": 170}, find_target("spatial-sdm1"), resolved))
    shown, figures = result.timeline, {u.resource: u for u in result.utilisation}
    assert shown is not None and shown.cycles == result.counters["cycles"] == shown.facts["cycles predicted"]
    busy = dict.fromkeys(UNITS, 0)
    for row in shown.rows:
        ends = [span.begin + span.length for span in row.spans]
        assert all(end <= span.begin for end, span in zip(ends, row.spans[1:], strict=False)), "spans of a row do not overlap"
        assert {span.kind for span in row.spans} <= set(ALL_KINDS) and max(ends) <= shown.cycles
        busy[MACHINE.queues[row.name].kind] += sum(span.busy for span in row.spans)
    planes = busy["MAC"]
    busy["MAC"] *= 2  # a pair of planes for each product of 16-bit floats
    assert planes > 0 and {UNITS[kind]: used for kind, used in busy.items()} == {
        name: u.used for name, u in figures.items() if u.unit == "cycles"
    }
    assert figures["matrix planes"].available == 4 * shown.cycles and figures["vector ALUs"].available == 16 * shown.cycles
    rows = sum(int(row.facts["rows filled"]) for row in shown.rows if row.group.startswith("MEM"))
    assert figures["memory"].used == 320 * rows and figures["memory"].available == MACHINE.capacity


def test_chips_of_a_node_have_rows_and_figures_of_their_own() -> None:
    code = {"MEM.E0": [(0, QueueInst("RD", burst=2, step=1))]}
    simulation = run(program([code, code], [
        HostTensor("x", "in", allocation("uint8", 2, [("MEM.E0", 0, 0, chip)]), (matrix(0, 2),)) for chip in (0, 1)
    ], [("x", "uint8")]), np.zeros((2, 320), np.uint8))
    assert [(row.name, row.group) for row in timeline(simulation).rows] == [("MEM.E0", "chip 0 MEM.E"), ("MEM.E0", "chip 1 MEM.E")]
    figures = {u.resource: u for u in utilisation(simulation)}
    assert figures["memory slices"].used == 4 and figures["memory slices"].available == 2 * 88 * simulation.cycles
    assert figures["memory"].used == 2 * 2 * 320
