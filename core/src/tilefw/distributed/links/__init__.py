"""The model of links: time of transfers between devices, on published figures of their systems."""

from tilefw.distributed.links.collectives import (
    OPERATIONS,
    PlayedCollective,
    all_reduce_over_nodes,
    collective,
    direct_all_reduce,
)
from tilefw.distributed.links.flows import Network
from tilefw.distributed.links.system import System, plugin_system, read_system, system_names

__all__ = [
    "OPERATIONS", "Network", "PlayedCollective", "System", "all_reduce_over_nodes", "collective", "direct_all_reduce",
    "plugin_system", "read_system", "system_names",
]
