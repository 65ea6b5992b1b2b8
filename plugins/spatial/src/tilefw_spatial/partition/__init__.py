"""A launch on several chips: the graph divided, each chip's part arranged, and what the chips send to one another.

`node_options` reads the launch keywords `chips` and `split`. `restrict` makes parts of graphs, `axes` chooses the axis;
`strategies`, `sums` and `stages` are the splits.
"""

from tilefw_spatial.partition.strategies import SPLITS, node_options, partition

__all__ = ["SPLITS", "node_options", "partition"]
