"""Nodes of devices: symmetric memory, launches on all ranks at once, what joins them, and what they do together."""
