"""Tiles of computation and their communication: one after the other, overlapped by copy engines, or by some of the processors.

`bulk_synchronous`: all tiles, then the collective, each on all processors. `producer_consumer`: waves of tiles, each of which is
sent by a copy engine when it is done, while all processors go on. `specialised`: some processors do nothing but send.
Source of the names: the taxonomy of arXiv 2511.12500.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.api.errors import CodeError
from tilefw.distributed.links.flows import LinkTransfer, Network
from tilefw.distributed.links.system import System
from tilefw.runtime.names import suggest

_CODE = "TFW0668"
VARIANTS = ("bulk_synchronous", "producer_consumer", "specialised")


@dataclass(frozen=True, slots=True)
class TiledWork:
    """`tiles` of every rank, each `tile_us` on one of `processors`; each sends `tile_bytes` to every other rank when it is done,
    or needs as many from each before it begins (`gathers`)."""

    tiles: int
    tile_us: float
    tile_bytes: float
    processors: int
    gathers: bool = False

    def __post_init__(self) -> None:
        if min(self.tiles, self.processors) < 1 or min(self.tile_us, self.tile_bytes) <= 0:
            raise CodeError("work has tiles and processors, each tile time and bytes above 0", code=_CODE)


def overlapped(system: System, ranks: int, work: TiledWork, variant: str, senders: int = 0) -> float:
    """Microseconds of the work in a variant; `senders` processors of `specialised` do nothing but send. Each is worth a channel of
    a library, of which the figure `channels` reach a rank's whole rate."""
    if variant not in VARIANTS:
        raise CodeError(f"'{variant}' is no variant", code=_CODE, help=suggest(variant, VARIANTS, what="variants"))
    if variant == "specialised" and not 0 < senders < work.processors:
        raise CodeError(f"{senders} of {work.processors} processors to send", code=_CODE, help="at least one, and one left to work")
    rate = system.ring_rate(ranks)
    if variant == "specialised":
        rate *= min(1.0, senders / system["channels"])
    working = work.processors - (senders if variant == "specialised" else 0)
    waves = -(-work.tiles // working)
    pieces = 1 if variant == "bulk_synchronous" else waves
    return _play(system, ranks, work, pieces, waves * work.tile_us, rate) + _launches(system, variant)


def _launches(system: System, variant: str) -> float:
    """A collective of its own is launched when the work is done; what is fused has signals instead, a step each."""
    return system.launch("simple") if variant == "bulk_synchronous" else system["simple_step"]


def _play(system: System, ranks: int, work: TiledWork, pieces: int, compute: float, rate: float) -> float:
    """`pieces` of the work, one after the other on a rank's processors, and of its bytes by its sending engine."""
    network = Network()
    fabric = system.fabric(network, ranks)
    size = work.tiles * work.tile_bytes / pieces
    lanes = [network.port(f"rank {rank} sends", rate) for rank in range(ranks)]
    to = {(one, peer): network.agent(f"rank {one} to {peer}") for one in range(ranks) for peer in range(ranks) if peer != one}
    workers = [network.agent(f"rank {rank} works") for rank in range(ranks)]
    for piece in range(pieces):
        made: list[LinkTransfer] = []
        if not work.gathers:
            made = [network.transfer(worker, (), compute / pieces, limit=1.0, name=f"piece {piece}") for worker in workers]
        arriving: list[list[LinkTransfer]] = [[] for _ in range(ranks)]
        for rank in range(ranks):
            for peer in range(ranks):
                if peer != rank:
                    ports = (*fabric.path(rank, peer), lanes[rank])
                    sent = network.transfer(to[rank, peer], ports, size, after=made[rank : rank + 1], name=f"piece {piece}")
                    arriving[peer].append(sent)
        if work.gathers:
            for worker, needed in zip(workers, arriving, strict=True):
                network.transfer(worker, (), compute / pieces, after=needed, limit=1.0, name=f"piece {piece}")
    return network.run()
