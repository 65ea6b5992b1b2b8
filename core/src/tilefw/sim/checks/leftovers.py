"""leftovers: when a thread ends, none of its asynchronous copies is uncommitted or unwaited for."""

from __future__ import annotations

from typing import Any

from tilefw.sim.program import Instruction


def report(lanes: Any, instruction: Instruction, committed: bool, count: int) -> None:
    """`count` copies started by `instruction` never landed."""
    if "leftovers" not in lanes.launch.checks:
        return
    what = "never waited for" if committed else "never committed to a group"
    lanes.launch.reporter.add(
        "leftovers", "TFW0808", f"an asynchronous copy is {what} when its thread ends", instruction, count=count,
        note="its bytes may or may not have arrived",
    )
