"""Which algorithm and protocol a collectives' library takes: the least of its own estimates, latency plus bytes by bandwidth.

The estimates are the library's, not this model's: where the library misjudges, it misjudges here as well.
Source: nccl `src/graph/tuning.cc` (ncclTopoTuneModel, ncclTopoGetAlgoTime); its numbers are the figures
`pick_*` of a system.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tilefw.api.errors import CodeError
from tilefw.distributed.links.system import PROTOCOLS, System

RING_STEPS = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}  # times n - 1


@dataclass(frozen=True, slots=True)
class AlgorithmChoice:
    """An algorithm (`ring`, `in-switch`), its protocol, and what the library expects of it in microseconds."""

    algorithm: str
    protocol: str
    expected: float


def choose(system: System, operation: str, ranks: int, size: float, algorithm: str = "") -> AlgorithmChoice:
    """The choice for `size` bytes among devices of one node, of those with `algorithm` where it is given; raises CodeError
    TFW0668 where the system has no such algorithm."""
    choices = [one for one in _estimates(system, operation, ranks, size) if algorithm in ("", one.algorithm)]
    if not choices:
        raise CodeError(f"{system.name} has no {operation} by '{algorithm}' of {ranks} ranks", code="TFW0668")
    return min(choices, key=lambda choice: choice.expected)


def _estimates(system: System, operation: str, ranks: int, size: float) -> Iterator[AlgorithmChoice]:
    steps = RING_STEPS[operation] * (ranks - 1)
    carried = size * steps / ranks
    for protocol in PROTOCOLS:
        rate = system.expected_rate(protocol, ranks)
        if rate is not None:
            latency = system[f"pick_{protocol}_base"] + steps * system[f"pick_{protocol}_step"]
            yield AlgorithmChoice("ring", protocol, latency + carried / rate)
            if operation == "all_reduce" and protocol == "ll" and "tree_step" in system:
                levels = 2 * math.ceil(math.log2(ranks))
                yield AlgorithmChoice("tree", protocol, system["pick_ll_base"] + levels * system["pick_ll_step"] + 2 * size / rate)
    if operation == "all_reduce" and ranks > 2 and "switch_rate" in system:
        expected = system["pick_switch_base"] + size * (1 + 1 / ranks) / system["switch_rate"]
        yield AlgorithmChoice("in-switch", "simple", expected)
