"""Whether a loop had best be divided among groups of waves though its author does not say so.

Where lanes wait at a barrier of the workgroup in each iteration, for the copies and for each other, its groups of waves multiply in
step, and the unit idles meanwhile. With roles each group waits for what it needs itself. That is a gain where

- a copy engine makes all copies, which one wave starts: else as many waves copy as multiply, with registers for both;
- at least two groups of waves multiply, with a unit that runs by itself;
- the ring has three slots or more. Of two, one is read until its product is done, so that a copy comes beside one product alone,
  and waits for the slowest group besides (64x256x128 blocks of f16 in two slots take a fifth longer by the model of time);
- one workgroup is all that a processor has room for. Two side by side fill each other's pauses, and there is no room for them where
  registers are dealt out: a program that does so has all of a processor's.
"""

from __future__ import annotations

from xdsl.dialects.scf import ForOp

from tilefw.simt.assign.accesses import Accesses
from tilefw.simt.lower.described_array import engine_of
from tilefw.simt.roles.handed_over import registers_wanted
from tilefw.simt.software_pipeline.engine_copies import is_the_engines
from tilefw.simt.software_pipeline.invariants_to_shared import bytes_wanted
from tilefw.simt.software_pipeline.plan import LoadChain, Plan, PrefetchStorage, candidates

_GROUPS, _SLOTS = 2, 3


def pays(loop: ForOp, plan: Plan, accesses: Accesses) -> bool:
    """Whether dividing the loop is a gain, as far as its plan tells."""
    machine = accesses.machine
    engine, units = engine_of(machine, loop), [atom.waves for atom in machine.chip.atoms if atom.asynchronous]
    waves = machine.waves // machine.workgroups
    if engine is None or not machine.chip.register_deal or not units or waves < _GROUPS * min(units):
        return False
    if len(plan) != 1 or plan[0].storage is not PrefetchStorage.COPIES or plan[0].slots < _SLOTS:
        return False
    if set(plan[0].loads) != set(candidates(loop)):
        return False
    return all(is_the_engines(load, engine, accesses) for load in plan[0].loads) and _is_alone(loop, plan[0], accesses)


def _is_alone(loop: ForOp, chain: LoadChain, accesses: Accesses) -> bool:
    """Whether a processor has room for one workgroup of such a loop, undivided."""
    machine = accesses.machine
    chip = machine.chip
    ring = chain.slots * sum(accesses.bytes(load.result.type) for load in chain.loads)
    taken = ring + bytes_wanted(loop, machine) + chip.system_shared_bytes
    by_memory = chip.processor_shared_bytes // taken if chip.processor_shared_bytes else 1
    each = max(1, registers_wanted(loop, accesses))
    by_registers = chip.processor_registers // (each * machine.workgroup_threads) if chip.processor_registers else 1
    return min(by_memory, by_registers) <= 1
