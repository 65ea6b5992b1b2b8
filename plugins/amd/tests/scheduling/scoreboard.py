"""A loop's cycles on a machine in order: an instruction begins when its operands are there and its pipe is free.

One wave, no contention. Results arrive by `machine.timing`, which knows nothing of how schedules are made; a barrier begins when
the wave's accesses to LDS are done, a pause lasts as long as it says.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.api.machine import Inst
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.machine.timing import timing

TURNS = 8


def cycles(isa: InstructionSet, insts: Sequence[Inst]) -> float:
    """Of one turn of a loop, in the long run."""
    arrived: dict[tuple[str, int], int] = {}
    free: dict[str, int] = {}
    now, shared, ends = 0, 0, []
    for _ in range(TURNS):
        for inst in insts:
            its = timing(isa)[isa.row(inst.opcode).name]
            begin = max([now, free.get(its.unit, 0), *(arrived.get(register, 0) for register in _registers(inst))])
            if inst.opcode == "s_barrier":
                begin = max(begin, shared)
            end = begin + its.latency
            for piece in inst.writes():
                arrived.update(dict.fromkeys(((piece.reg.cls, i) for i in range(piece.first, piece.first + piece.count)), end))
            free[its.unit] = begin + its.issue
            shared = max(shared, end) if its.unit == "lds" else shared
            now = begin + isa.chip.rates.vector_cycles * (1 + int(inst.uses[0]) if inst.opcode == "s_nop" else 1)
        ends.append(now)
    return (ends[-1] - ends[0]) / (TURNS - 1)


def _registers(inst: Inst) -> list[tuple[str, int]]:
    """What must have arrived: what is read, and what an earlier instruction has still to write."""
    return [(piece.reg.cls, i) for piece in (*inst.reads(), *inst.writes()) for i in range(piece.first, piece.first + piece.count)]
