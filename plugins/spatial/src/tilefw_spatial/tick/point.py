"""One vector's worth of one instruction: what a queue issues in one cycle."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilefw_spatial.machine import Queue
from tilefw_spatial.program import QueueInst


@dataclass(slots=True, eq=False)
class TickBurst:
    """What the points of one burst share: for each superlane, what a reduction over time has taken so far."""

    taken: dict[int, list[Any]] = field(default_factory=dict)
    starts: dict[int, list[Any]] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Point:
    """Point `index` of a burst, issued at cycle `time` to superlane 0 and a cycle later to each further one; it works at row
    `address`. `crossing` is what superlanes hand to one another: by superlane, what it contributes."""

    chip: int
    queue: Queue
    inst_index: int
    inst: QueueInst
    time: int
    index: int
    address: int
    burst: TickBurst
    crossing: dict[int, Any] = field(default_factory=dict)
