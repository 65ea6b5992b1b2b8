"""The time of launches on a node: what each rank executed, replayed on the chip's model of time and the model of links."""

from tilefw.distributed.node_time.node_time import NodeTime, RankTime, check_system, default_system, node_time

__all__ = ["NodeTime", "RankTime", "check_system", "default_system", "node_time"]
