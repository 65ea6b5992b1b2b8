"""From a kernel bound to one launch to a graph of arrays over axes."""

from tilefw_spatial.lower.launch import check_grid, lower

__all__ = ["check_grid", "lower"]
