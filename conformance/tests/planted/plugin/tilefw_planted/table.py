"""Every planted bug by its name."""

from __future__ import annotations

from tilefw_planted import accesses, atomics, combines, control, floats, matrices, rows, shapes
from tilefw_planted.bug import Bug

BUGS: dict[str, Bug] = {
    bug.name: bug
    for room in (rows, floats, accesses, control, combines, shapes, matrices, atomics)
    for bug in room.BUGS
}
