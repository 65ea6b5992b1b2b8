"""leftovers: when a thread ends, none of its asynchronous copies is uncommitted or unwaited for."""

from __future__ import annotations

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks.check import Check
from tilefw.sim.memory.copies import Copy


class Leftovers(Check):
    """Reports copies that never landed."""

    name = "leftovers"

    def copy_left(self, lanes: NumpyLanes, copy: Copy, committed: bool) -> None:
        what = "never waited for" if committed else "never committed to a group"
        lanes.launch.diagnostics.reporter.add(
            self.name, "TFW0808", f"an asynchronous copy is {what} when its thread ends", copy.instruction,
            count=len(copy.index), note="its bytes may or may not have arrived",
        )
