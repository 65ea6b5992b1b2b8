"""A made-up unit that multiplies for groups of waves: the products, who must meet for them, and what it holds until a wait."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tilefw.api.device import ALL_CHECKS, LaunchOptions
from tilefw.sim.engine.load import load_program
from tilefw.sim.engine.run import launch
from tilefw.sim.matrix.fragments import Accumulation, Fragment
from tilefw.sim.matrix.group_product import GroupProduct
from tilefw.sim.memory.regions import GlobalMemory
from tilefw.sim.program import (
    Barrier,
    Branch,
    Exit,
    Guard,
    Immediate,
    Instruction,
    Issue,
    Program,
    ProgramParameter,
    Register,
    SimulatedChip,
    Special,
    Variable,
    Wait,
)

# Waves of 8 lanes, two of them a group. A wave has 4 rows of 8 columns: lanes are 4 rows by 2 pairs of columns, registers the
# columns of a pair, then those 4 columns on. A row of A is 4 floats, and so is a column of B.
CHIP = SimulatedChip("toy", wave_size=8, max_threads=64, max_grid=(64, 1, 1), shared_bytes=4096, shared_banks=8)
WAVES, ROWS, COLUMNS, DEPTH = 2, 4, 8, 4
C = Fragment("f32", ("l1", "l2"), ("r0", "l0", "r1"))


@dataclass(frozen=True)
class RowTile:
    """Rows of 16 bytes, `pitch` apart from the descriptor on."""

    rows: int
    pitch: int = 16
    fmt: str = "f32"
    along_k: bool = True
    negated: bool = False

    def places(self, descriptor: int) -> np.ndarray:
        return (descriptor + self.pitch * np.arange(self.rows))[:, None]


PRODUCT = GroupProduct(WAVES, COLUMNS, RowTile(WAVES * ROWS), RowTile(COLUMNS), C, Accumulation("f32"))
LANE = Special("lane", 32, lambda lanes: lanes.thread_id(0))
GROUP = Special("group", 32, lambda lanes: lanes.workgroup_id(0))
ACCUMULATORS = tuple(Register(i, 32) for i in range(4))
SPARE, AWAY = Register(4, 32), Register(5, 1)
HELD = Issue("unit", "product", (0, 1, 2, 3), settles=True, grouped=True)


def _fill(lanes, thread, group):
    """The two tiles: element i of shared memory is i modulo 7, and the number of the workgroup more."""
    for part in range(4):
        place = lanes.add(thread, lanes.const(16 * part, 32))
        value = lanes.add(lanes.rem(place, lanes.const(7, 32), False), group)
        lanes.store("shared", lanes.shl(place, lanes.const(2, 32)), (lanes.int_to_float(value, False, "f32"),))
    lanes.view_fence()  # the unit reads what lanes wrote


def _write(lanes, thread, group, *registers):
    address = lanes.add(lanes.load("param", lanes.const(0, 64), 64)[0], lanes.zero_extend(
        lanes.add(lanes.shl(thread, lanes.const(4, 32)), lanes.shl(group, lanes.const(8, 32))), 64))
    lanes.store("global", address, registers)


def instruction(text: str, meaning=lambda lanes: None, sources=(), destinations=(), **facts) -> Instruction:
    return Instruction(0, text, text, "unit", meaning, tuple(sources), tuple(destinations), **facts)


def multiply(lanes, *values):
    return lanes.group_multiply((values[4],), values[5], values[:4], values[6], PRODUCT)


PROGRAM = {
    "zero": instruction("zero", lambda lanes: (lanes.const(0, 32),) * 4, (), ACCUMULATORS),
    "fill": instruction("fill", _fill, (LANE, GROUP)),
    "bar": Instruction(0, "bar", "bar", "flow", sources=(Immediate(0, 32),), flow=Barrier()),
    "fence": instruction("fence", fences=("unit",)),
    "multiply": instruction(
        "multiply", multiply, (*ACCUMULATORS, Immediate(0, 64), Immediate(128, 64), Immediate(1, 1)), ACCUMULATORS, gathers=WAVES,
        issues=(HELD,),
    ),
    "again": instruction(
        "again", multiply, (*ACCUMULATORS, Immediate(0, 64), Immediate(128, 64), Immediate(1, 1)), ACCUMULATORS, gathers=WAVES,
        issues=(HELD,),
    ),
    "commit": instruction("commit", commits=("unit",)),
    "wait": instruction("wait", waits=Wait((("unit", 0),))),
    "write": instruction("write", _write, (LANE, GROUP, *ACCUMULATORS)),
    "end": Instruction(0, "end", "end", "flow", flow=Exit()),
}


def run(changes: dict[str, list[Instruction]] | None = None, grid: int = 3, block: int = 16, seed: int = 0):
    """The results of each workgroup, and the findings; `changes` replaces instructions by name."""
    written: list[Instruction] = []
    for name, made in PROGRAM.items():
        written += (changes or {}).get(name, [made])
    program = Program(
        "toy", [replace(each, index=i) for i, each in enumerate(written)], [32] * 5 + [1], ["c0", "c1", "c2", "c3", "s", "p"],
        (ProgramParameter("out", 0, 8, 8),), (Variable("tiles", "shared", 256, 16),),
    )
    memory = GlobalMemory()
    handle = memory.allocate(grid * 256)
    base = np.array([memory.region(handle).base], np.uint64).tobytes()
    options = LaunchOptions(checks=ALL_CHECKS, seed=seed)
    report = launch(load_program(program, CHIP, memory), memory, (grid,), (block, 1, 1), base, options)
    # Behind the rows: the pair of a lane, then the bits of the register, of which the upper one is 4 columns on.
    out = memory.region(handle).data[: grid * 256].view(np.float32).reshape(grid, WAVES, ROWS, 2, 2, 2)
    return out.transpose(0, 1, 2, 4, 3, 5).reshape(grid, WAVES * ROWS, COLUMNS), report.findings


def wanted(group: int) -> np.ndarray:
    tiles = (np.arange(64) % 7 + group).astype(np.float64)
    return 2 * tiles[:32].reshape(8, 4) @ tiles[32:].reshape(8, 4).T


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_chained_products_add_up_in_every_workgroup(seed: int) -> None:
    got, findings = run(seed=seed)
    assert findings == ()
    assert all(np.array_equal(got[group], wanted(group)) for group in range(3))


TOUCH = {
    "reads": instruction("touch", lambda lanes, a: a, ACCUMULATORS[1:2], (SPARE,)),
    "writes": instruction("touch", lambda lanes: lanes.const(0, 32), (), ACCUMULATORS[2:3]),
}
FAULTS = [
    ("fence", [], "TFW0829", "multiply"),
    ("wait", [], "TFW0820", "write"),
    ("commit", [], "TFW0820", "write"),
    ("commit", [PROGRAM["commit"], TOUCH["reads"]], "TFW0820", "touch"),
    ("commit", [PROGRAM["commit"], TOUCH["writes"]], "TFW0820", "touch"),
    ("again", [TOUCH["writes"], PROGRAM["again"]], "TFW0829", "again"),
    ("commit", [PROGRAM["commit"], PROGRAM["fill"]], "TFW0804", "fill"),
]


@pytest.mark.parametrize(("name", "instead", "code", "at"), FAULTS)
def test_what_the_unit_holds_is_left_alone(name: str, instead: list[Instruction], code: str, at: str) -> None:
    _, findings = run({name: instead})
    assert (code, at) in {(f.code, f.instruction) for f in findings}, findings


def test_work_that_nobody_waits_for_is_left_over() -> None:
    _, findings = run({"wait": [], "write": []})
    assert [f.instruction for f in findings if f.code == "TFW0808"] == ["multiply"]


def test_a_group_whose_second_wave_stays_away_is_a_deadlock() -> None:
    skip = [
        instruction("second", lambda lanes, t: lanes.compare(t, lanes.const(8, 32), "ge", False), (LANE,), (AWAY,)),
        Instruction(0, "skip", "skip", "flow", flow=Branch(10), guard=Guard(AWAY)),
    ]
    _, findings = run({"fence": [*skip, PROGRAM["fence"]]})
    (finding,) = [f for f in findings if f.code == "TFW0811"]
    assert "the other waves of their group" in finding.note and "`multiply`" in finding.note


def test_waves_that_come_apart_meet() -> None:
    """The second wave takes another way to the product."""
    around = [
        instruction("second", lambda lanes, t: lanes.compare(t, lanes.const(8, 32), "ge", False), (LANE,), (AWAY,)),
        Instruction(0, "skip", "skip", "flow", flow=Branch(6), guard=Guard(AWAY)),
        instruction("way", lambda lanes, t: t, (LANE,), (SPARE,)),
        PROGRAM["fence"],
    ]
    got, findings = run({"fence": around}, seed=3)
    assert findings == () and np.array_equal(got[1], wanted(1))
