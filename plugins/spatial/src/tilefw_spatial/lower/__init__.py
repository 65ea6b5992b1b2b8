"""From a kernel bound to one launch to a graph of arrays over axes."""

from tilefw_spatial.lower.launch import lower

__all__ = ["lower"]
