"""The targets that the plugin registers: one a chip, with what its compiler serves."""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.api import SIMT_CAPABILITIES, TargetInfo, TritonNames
from tilefw_amd.chips import Chip, chips
from tilefw_amd.options import OPTIONS


def target(chip: Chip) -> TargetInfo:
    """What core must know of a chip."""
    return TargetInfo(
        name=chip.target,
        vendor="amd",
        chip=chip.name,
        summary=chip.summary,
        backend="tilefw_amd.backend:AmdBackend",
        provides=frozenset({"lower", "emit", "assemble", "simulate", "device"}),
        aliases=chip.aliases,
        capabilities=SIMT_CAPABILITIES | {"inline_asm", "observe.*"},
        # Loads of a pipeline move over stores to other buffers; buffers below 2 GiB are reached by 32-bit offsets.
        wants=frozenset({"disjoint", "under_2_gib"}),
        options={name: option.text for name, option in OPTIONS.items()},
        default_options={"num_stages": 2},  # Triton's own default for HIP: the next iteration's loads are in flight
        limits=dict(chip.limits),
        triton=TritonNames("hip", chip.name, text="amdgcn", binary="hsaco", loads="hsaco"),
    )


def targets() -> Sequence[TargetInfo]:
    """One for each chip."""
    return tuple(target(chip) for chip in chips().values())
