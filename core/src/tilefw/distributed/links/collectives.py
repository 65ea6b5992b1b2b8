"""The time of a library's collective on a system of devices: its choice of algorithm, played on the system's ports."""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.api.errors import CodeError
from tilefw.distributed.links.direct import ALGORITHMS, play_phases
from tilefw.distributed.links.exchange import Exchange, all_to_all
from tilefw.distributed.links.fabric import Fabric
from tilefw.distributed.links.flows import Network
from tilefw.distributed.links.in_switch import SwitchReduction, switch_all_reduce
from tilefw.distributed.links.nodes import NodesOfDevices, all_reduce_of_nodes
from tilefw.distributed.links.ring import ring_collective
from tilefw.distributed.links.selection import RING_STEPS, AlgorithmChoice, choose
from tilefw.distributed.links.system import System
from tilefw.distributed.links.tree import tree_all_reduce
from tilefw.runtime.names import suggest

_CODE = "TFW0668"
_MOST_BYTES = 1 << 40  # more than any device's memory; the transfers of more would not fit in the host's
OPERATIONS = ("all_gather", "all_reduce", "all_to_all", "reduce_scatter")


@dataclass(frozen=True)
class PlayedCollective:
    """A collective that was played: `microseconds` from launch to end, of which `launch` are before the first byte."""

    choice: AlgorithmChoice
    launch: float
    network: Network
    microseconds: float


def collective(system: System, operation: str, ranks: int, size: float, algorithm: str = "") -> PlayedCollective:
    """`operation` among `ranks` devices of one node; `size` as nccl-tests counts: the bytes of the whole array of a rank. The
    library chooses unless `algorithm` does. Raises CodeError TFW0668 for what is not there."""
    check_collective(system, operation, ranks, size)
    network = Network()
    fabric = system.fabric(network, ranks)
    if operation == "all_to_all":
        if algorithm not in ("", "exchange"):
            raise CodeError(f"{system.name} has no all_to_all by '{algorithm}'", code=_CODE, help="it has 'exchange' alone")
        return _exchange(system, network, fabric, size)
    choice = choose(system, operation, ranks, size, algorithm)
    if choice.algorithm == "in-switch":
        launch = system["switch_launch"]
        if "switch_peer" in system:  # more devices than where the launch was measured: longer barriers
            launch += system["switch_peer"] * max(ranks - system["switch_launch_ranks"], 0)
        switch_all_reduce(network, fabric.egress, size, SwitchReduction(system["switch_rate"], system["switch_channels"]))
    elif choice.algorithm == "tree":
        launch = system.launch(choice.protocol)
        rate = system.ring_rate(ranks) * system[f"{choice.protocol}_share"]
        tree_all_reduce(network, fabric.path, size, system["tree_step"], [[] for _ in range(ranks)], limit=rate)
    else:
        launch = system.launch(choice.protocol)
        steps = RING_STEPS[operation] * (ranks - 1)
        ring_collective(network, fabric, size, steps, system.ring(choice.protocol, ranks))
    return PlayedCollective(choice, launch, network, launch + network.run())


def direct_all_reduce(system: System, algorithm: str, ranks: int, size: float, kernel: str) -> PlayedCollective:
    """An all-reduce of `kernel`, whose launch and rate are figures of the system (`KERNEL_launch`, `KERNEL_rate`), by one of
    `ALGORITHMS`; raises CodeError TFW0668."""
    if algorithm not in ALGORITHMS:
        raise CodeError(f"'{algorithm}' is no algorithm", code=_CODE, help=suggest(algorithm, ALGORITHMS, what="algorithms"))
    check_collective(system, "all_reduce", ranks, size)
    network = Network()
    fabric = system.fabric(network, ranks)
    phases = ALGORITHMS[algorithm](size, ranks)
    play_phases(network, fabric, phases, system[f"{kernel}_rate"])
    launch = system[f"{kernel}_launch"] + system["direct_peer"] * (ranks - 1)
    if len(phases) > 1:
        launch += system[f"{kernel}_phase"] * (len(phases) - 1)
    return PlayedCollective(AlgorithmChoice(algorithm, kernel, 0.0), launch, network, launch + network.run())


def all_reduce_over_nodes(system: System, count: int, size: float) -> PlayedCollective:
    """All ranks of `count` nodes; `system` has the figures of a node and of its cards (`node_*`, `card_*`)."""
    check_collective(system, "all_reduce", 2, size)
    if count < 2:
        raise CodeError(f"an all-reduce over {count} nodes", code=_CODE, help="at least 2; `collective` is for one node")
    network = Network()
    nodes = NodesOfDevices(count, system["node_rate"], system["card_rate"], system["card_step"], system["card_chunk"])
    protocol = "ll" if size < system["card_ll_bytes"] else "simple"
    launch = system[f"card_{protocol}_launch"]
    if "card_ramp_rate" in system:  # the first bytes of a connection go more slowly
        launch += min(size, system["card_ramp_bytes"]) * (1 / system["card_ramp_rate"] - 1 / system["card_rate"])
    all_reduce_of_nodes(network, nodes, size)
    return PlayedCollective(AlgorithmChoice("nodes", protocol, 0.0), launch, network, launch + network.run())


def check_collective(system: System, operation: str, ranks: int, size: float) -> None:
    """Refuse an operation, a number of ranks or of bytes that the system cannot have; raises CodeError TFW0668."""
    if operation not in OPERATIONS:
        raise CodeError(f"'{operation}' is no collective", code=_CODE, help=suggest(operation, OPERATIONS, what="collectives"))
    if not 2 <= ranks <= system["ranks"]:
        raise CodeError(f"{system.name} has no {ranks} ranks in a node", code=_CODE, help=f"2 to {system['ranks']:.0f}")
    if not 0 < size <= _MOST_BYTES:
        raise CodeError(f"a collective of {size} bytes", code=_CODE, help="the bytes of a rank's whole array: above 0, up to 1 TiB")


def _exchange(system: System, network: Network, fabric: Fabric, size: float) -> PlayedCollective:
    ranks = len(fabric)
    protocol = "ll" if size / ranks <= system["exchange_ll_bytes"] else "simple"
    ramp = (system["exchange_ramp_bytes"], system["exchange_ramp_rate"]) if "exchange_ramp_rate" in system else (0.0, float("inf"))
    all_to_all(network, fabric, size, Exchange(system["exchange_rate"], system["exchange_copy_rate"], *ramp))
    launch = system[f"exchange_{protocol}_launch"] + system["exchange_peer"] * (ranks - 1)
    return PlayedCollective(AlgorithmChoice("exchange", protocol, 0.0), launch, network, launch + network.run())
