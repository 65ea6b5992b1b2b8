"""All-reduce in the switch: a rank pulls the sum of its part from all devices through the switch, and stores it to all at once.

Chunks go through three engines of every rank: into buffers that the switch knows, the reduction, and out again.
Source: nccl `src/device/all_reduce.h` (runNvls: scatter, reduce, gather).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilefw.distributed.links.flows import Network

# nccl `src/enqueue.cc`, chunk of a channel for the switch: 128 KiB, less for what has fewer chunks than so many for each of
# the heads of all channels.
_CHUNKS = ((64, 128 << 10), (8, 64 << 10), (2, 32 << 10), (0, 16 << 10))


@dataclass(frozen=True, slots=True)
class SwitchReduction:
    """`rate`: bytes per us of a port with multicast, `channels` of a rank."""

    rate: float
    channels: float

    def loop_bytes(self, size: float, ranks: int) -> float:
        """Bytes that all channels and heads take at once."""
        at_once = self.channels * ranks
        chunk = next(chunk for least, chunk in _CHUNKS if size >= least * at_once * chunk)
        return at_once * chunk


def switch_all_reduce(network: Network, ports: Sequence[int], size: float, reduction: SwitchReduction) -> None:
    """`ports` are the ranks' ways to the switch: each carries all of a rank's data to be summed, and the sums of its own part."""
    ranks = len(ports)
    loops = max(1, -int(-size // reduction.loop_bytes(size, ranks)))
    piece = size / loops
    engines = [[network.agent(f"rank {rank} {word}") for word in ("in", "reduce", "out")] for rank in range(ranks)]
    for loop in range(loops):
        name = f"chunk {loop}"
        before = [network.transfer(into, (), piece, limit=reduction.rate, name=f"{name} in") for into, _, _ in engines]
        gate = network.gate(before)
        reduced = [
            network.transfer(reduce, (port,), piece * (1 + 1 / ranks), after=(gate,), limit=reduction.rate, name=f"{name} reduce")
            for port, (_, reduce, _) in zip(ports, engines, strict=True)
        ]
        gate = network.gate(reduced)
        for _, _, out in engines:
            network.transfer(out, (), piece, after=(gate,), limit=reduction.rate, name=f"{name} out")
