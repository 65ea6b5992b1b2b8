"""The target as data: any machine with a C compiler."""

from __future__ import annotations

from tilefw.api import TargetInfo

HOST = TargetInfo(
    name="cee-host", vendor="cee", chip="host", summary="this machine, through C and its C compiler",
    backend="tilefw_cee.backend:CBackend", provides=frozenset({"lower", "emit", "assemble", "device"}),
    capabilities=frozenset({"*"}), wants=frozenset({"divisible_by_16", "equal_to_1", "disjoint"}),
)
TARGETS = (HOST,)
