"""A made-up chip for the model of time, and traces written by hand for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tilefw.api.execution_trace import AccessTrace, BatchTrace, BlockRun, ExecutionTrace
from tilefw.sim.program import Barrier, Instruction, Register
from tilefw.timing.chip_file import ChipFigures, read_chip_file
from tilefw.timing.chip_timing import ChipTiming, InstructionCost, MemoryLevel

FIGURES = read_chip_file(
    'chip: toy\nfigures:\n  clock: {value: 1000, unit: MHz, kind: assumption, source: "made up"}\n', "toy.yaml"
)
COSTS = {
    "add": InstructionCost("alu", 1, 4),
    "mul": InstructionCost("alu", 8, 8),
    "dot": InstructionCost("matrix", 16, 32, operations=1024),
    "load": InstructionCost("memory", 1, 0),
    "store": InstructionCost("memory", 1, 0),
    "share": InstructionCost("memory", 1, 20),
    "copy": InstructionCost("memory", 1, 0, role="copy"),
    "commit": InstructionCost("memory", 1, 0, role="commit"),
    "wait0": InstructionCost("memory", 1, 0, role="wait", pending=0),
    "wait1": InstructionCost("memory", 1, 0, role="wait", pending=1),
    "meet": InstructionCost("alu", 0, 1),
}


def chip(figures: ChipFigures = FIGURES, **changed: object) -> ChipTiming:
    """Two schedulers, a cache of 1 KiB a processor, a second level that all four processors share, and memory."""
    made = ChipTiming(
        figures=figures, product="toy", clock_hz=figures["clock"] * 1e6, processors=4, dies=1, schedulers=2, issue_interval=1,
        pipes={"alu": "scheduler", "matrix": "scheduler", "memory": "scheduler", "shared": "processor"}, shared_pipe="shared",
        shared_pass=1, barrier=2,
        levels=(
            MemoryLevel("near", "processor", 1024, 10, 64, 32), MemoryLevel("far", "chip", 1 << 20, 100, 128),
            MemoryLevel("memory", "chip", 0, 300, 32),
        ),
        cost=lambda instruction: COSTS[instruction.mnemonic], resident_waves=8, launch_seconds=1e-6, workgroup_cycles=10,
        matrix_pipes=frozenset({"matrix"}),
    )
    return replace(made, **changed)  # type: ignore[arg-type]


def code(*lines: str) -> list[Instruction]:
    """Instructions from `mnemonic destination sources…`, registers by number, `-` for no destination: `add 1 2 3`."""
    made = []
    for index, line in enumerate(lines):
        mnemonic, *operands = line.split()
        destinations = tuple(Register(int(o), 32) for o in operands[:1] if o != "-")
        sources = tuple(Register(int(o), 32) for o in operands[1:])
        flow = Barrier() if mnemonic == "meet" else None
        made.append(Instruction(index, line, mnemonic, "unit", None, sources, destinations, flow=flow))
    return made


def trace(
    instructions: Sequence[Instruction], workgroups: Sequence[int] = (0,), waves: int = 1, times: int = 1,
    touches: dict[int, Sequence[int]] | None = None, passes: dict[int, int] | None = None, apart: int = 0,
) -> ExecutionTrace:
    """Every wave of the workgroups runs all the code `times`. Instruction i touches the chunks `touches[i]` in the first wave of
    the first workgroup the first time; `apart` chunks on in each further workgroup, wave and time."""
    everyone = np.ones((len(workgroups), waves), dtype=np.bool_)
    runs = []
    for turn in range(times):
        run = BlockRun(0, len(instructions), everyone)
        rows = np.arange(len(workgroups) * waves)[:, None] + turn * len(workgroups) * waves
        for number, chunks in (touches or {}).items():
            where = np.array(list(chunks), dtype=np.int64)[None, :] + rows * apart
            kind = "write" if instructions[number].mnemonic == "store" else "read"
            run.accesses.append(AccessTrace(number, kind, everyone, where, np.zeros(len(rows), np.int64), np.full(len(rows), 128)))
        for number, count in (passes or {}).items():
            none = np.full((len(rows), 0), -1, dtype=np.int64)
            run.accesses.append(AccessTrace(number, "read", everyone, none, np.full(len(rows), count), np.full(len(rows), 128)))
        runs.append(run)
    batch = BatchTrace(tuple(workgroups), waves, runs)
    return ExecutionTrace(instructions, (max(workgroups) + 1, 1, 1), waves, [batch])
