"""Nodes of devices: what joins them, and what they do together."""
