"""The targets that the plugin registers: one a chip, with what its compiler serves, natively or by expansion."""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.api import SIMT_CAPABILITIES, TargetInfo, TritonNames
from tilefw_nvidia.chips import Chip, chips


def target(chip: Chip) -> TargetInfo:
    """What core must know of a chip. A launch's fact `disjoint` lets the loads of a pipeline move over stores to other buffers."""
    return TargetInfo(
        name=chip.target, vendor="nvidia", chip=chip.name, summary=chip.summary, backend="tilefw_nvidia.backend:NvidiaBackend",
        provides=frozenset({"lower", "emit", "assemble", "simulate", "device"}), aliases=chip.aliases,
        capabilities=SIMT_CAPABILITIES | {"inline_asm", "observe.*"}, limits=chip.limits, wants=frozenset({"disjoint"}),
        triton=TritonNames("cuda", chip.architecture.number, text="ptx", binary="cubin", loads="ptx"),
    )


def targets() -> Sequence[TargetInfo]:
    """One for each chip."""
    return tuple(target(chip) for chip in chips().values())
