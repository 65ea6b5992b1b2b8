"""The time of launches on a node: what each rank executed, replayed on the chip's model of time and the model of links."""

from tilefw.distributed.node_time.node_clock import NodeClock, NodeTime, RankLaunchTime, RankTime
from tilefw.distributed.node_time.node_time import check_system, default_system, node_time
from tilefw.distributed.node_time.rank_execution import ExecutedLaunch

__all__ = [
    "ExecutedLaunch", "NodeClock", "NodeTime", "RankLaunchTime", "RankTime", "check_system", "default_system", "node_time",
]
