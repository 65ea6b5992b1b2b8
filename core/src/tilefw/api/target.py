"""What a plugin says of a chip without running any of its code: plain data, cheap to import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class TritonNames:
    """What Triton calls a chip: `GPUTarget(backend, arch, …)`; `kernel.asm[text]` is the assembly, `asm[binary]` its bytes.

    `loads` is the one of both that the backend's `parse` reads.
    """

    backend: str
    arch: int | str
    text: str
    binary: str
    loads: str


@dataclass(frozen=True, slots=True)
class TargetInfo:
    """One target, as `tilefw_targets` returns it.

    `name` starts with the plugin's entry-point name and a hyphen (`acme-v1`); `backend` is `"module:Class"`,
    imported when the target is first used. `provides` is a subset of PROVIDES. `wants` names the launch facts that
    the backend can use (see FACTS). `options` maps the launch keywords that this target understands, beyond
    Triton's, to a line of documentation. `limits` are the chip's numbers, each named with its unit
    (`shared_bytes`, `threads_per_workgroup`); `default_options` holds this target's values of launch keywords.
    A target that says `lanes` and `threads_per_workgroup` has larger values of num_warps refused; `product_rows`, `product_columns`
    and `product_depth` are the largest tile of a product of matrices that suits it in a model. `triton` is how programs written for
    Triton know the chip.
    """

    name: str
    vendor: str
    chip: str
    summary: str
    backend: str
    provides: frozenset[str]
    capabilities: frozenset[str] = frozenset()
    aliases: tuple[str, ...] = ()
    wants: frozenset[str] = frozenset({"divisible_by_16", "equal_to_1"})
    options: Mapping[str, str] = field(default_factory=dict)
    default_options: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    triton: TritonNames | None = None


# `timeline`: its simulator tells what happened in which cycle (`LaunchOptions.timeline`).
PROVIDES = ("lower", "emit", "assemble", "simulate", "timeline", "device")

# The most bytes of a buffer that is `under_2_gib`: distances of both signs fit 32 bits, with room for what is none.
UNDER_2_GIB = (2 << 30) - (64 << 10)

# Facts about arguments that enter at launch and are part of the cache key.
# `checks`: the device makes checks in this launch, for a target whose code itself makes them.
FACTS = ("divisible_by_16", "equal_to_1", "under_2_gib", "disjoint", "checks", "scalars", "grid", "extents")
# Those of one launch alone: a target that wants any of them compiles for one launch (`api.LaunchArguments`).
BOUND_FACTS = frozenset({"scalars", "grid", "extents"})
