"""What a launch did in numbers: cycles, and how long each kind of unit was at work."""

from __future__ import annotations

from tilefw_spatial.isa import OPS
from tilefw_spatial.simulate.engine import Simulation


def counted(simulation: Simulation) -> dict[str, int]:
    """Counters by name. `busy.KIND` are cycles in which a queue of the kind had a vector, summed over queues; `multiply_adds`
    counts those that K asked for, of all columns."""
    counters = {
        "cycles": simulation.cycles, "cycles_predicted": simulation.program.cycles, "bursts": len(simulation.bursts),
        "multiply_adds": 0,
    }
    for burst in simulation.bursts:
        key = f"busy.{burst.queue.kind}"
        counters[key] = counters.get(key, 0) + burst.count
        if OPS[burst.inst.op][0].name == "MAC":
            counters["multiply_adds"] += burst.count * burst.inst.imm * simulation.machine.columns
    if simulation.findings.dropped:
        counters["findings_dropped"] = simulation.findings.dropped
    return counters
