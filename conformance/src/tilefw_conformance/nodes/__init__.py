"""The level `distributed`: programs of several kernels on nodes of devices, as cases whose kernels are called `node:NAME`."""

from __future__ import annotations

OWNER = "node"
