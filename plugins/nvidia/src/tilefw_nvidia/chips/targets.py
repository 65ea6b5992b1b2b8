"""The targets that the plugin registers: one a chip, with what its compiler serves, natively or by expansion."""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.api import TargetInfo
from tilefw_nvidia.chips import Chip, chips

# Arithmetic is on these; the formats of 8 bits and less are loaded, stored, selected and cast, as in the language.
_INTEGERS = ("int1", "int4", "int8", "int16", "int32", "int64")
_FLOATS = ("fp16", "bf16", "fp32", "fp64")

CAPABILITIES = frozenset(
    {"control.*", "cf.*", "atomic.*", "memory.*", "cast.*", "select.*", "shape.*", "dot.*"}
    | {f"int.*.{name}" for name in _INTEGERS}
    | {f"{group}.*.{name}" for group in ("float", "math") for name in _FLOATS}
    | {f"{group}.{name}" for group in ("reduce", "scan") for name in (*_INTEGERS, *_FLOATS)}
)


def target(chip: Chip) -> TargetInfo:
    """What core must know of a chip. A launch's fact `disjoint` lets the loads of a pipeline move over stores to other buffers."""
    return TargetInfo(
        name=chip.target, vendor="nvidia", chip=chip.name, summary=chip.summary, backend="tilefw_nvidia.backend:NvidiaBackend",
        provides=frozenset({"lower", "emit", "assemble", "simulate"}), aliases=chip.aliases, capabilities=CAPABILITIES,
        limits=chip.limits, wants=frozenset({"disjoint"}),
    )


def targets() -> Sequence[TargetInfo]:
    """One for each chip."""
    return tuple(target(chip) for chip in chips().values())
