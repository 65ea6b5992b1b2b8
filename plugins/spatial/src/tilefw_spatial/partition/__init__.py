"""A launch on several chips: the graph divided, each chip's part arranged, and what the chips send to one another.

`restrict` makes parts of graphs, `axes` chooses the axis; `strategies`, `sums` and `stages` are the splits.
"""

from tilefw_spatial.partition.strategies import SPLITS, partition

__all__ = ["SPLITS", "partition"]
