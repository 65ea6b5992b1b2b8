"""A launch on several chips: the graph divided, each chip's part arranged, and what the chips send to one another.

`restrict` makes parts of graphs, `axes` says along which axis; `columns`, `sums`, `gather` and `stages` are the ways to split.
"""

from tilefw_spatial.partition.ways import SPLITS, partition

__all__ = ["SPLITS", "partition"]
