"""The targets that the plugin registers: one a chip, with what its compiler serves, natively or by expansion."""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.api import SIMT_CAPABILITIES, TargetInfo, TritonNames
from tilefw_nvidia.chips import Chip, chips

_MULTIMEM_SINCE = 90  # PTX ISA, "multimem.ld_reduce, multimem.st, multimem.red": Target ISA Notes
_WORDS, _HALVES, _FLOATS = ("int32", "int64"), ("fp16", "bf16"), ("fp32", "fp64")


def _multimem(chip: Chip) -> frozenset[str]:
    """The accesses of all ranks' copies that the chip makes through multimem addresses. Floats are only added up, those of 16 bits
    by pairs, of which a store would write both: core makes loops of the others."""
    if chip.architecture.number < _MULTIMEM_SINCE:
        return frozenset()
    combined = [("add", (*_WORDS, *_HALVES, *_FLOATS)), *((kind, _WORDS) for kind in ("max", "min", "and", "or", "xor"))]
    return frozenset({
        *(f"multicast.store.{name}" for name in (*_WORDS, *_FLOATS)),
        *(f"multicast.{load}{kind}.{name}" for load in ("load.", "") for kind, names in combined for name in names),
    })


def target(chip: Chip) -> TargetInfo:
    """What core must know of a chip. A launch's fact `disjoint` lets the loads of a pipeline move over stores to other buffers."""
    return TargetInfo(
        name=chip.target, vendor="nvidia", chip=chip.name, summary=chip.summary, backend="tilefw_nvidia.backend:NvidiaBackend",
        provides=frozenset({"lower", "emit", "assemble", "simulate", "device"}), aliases=chip.aliases,
        capabilities=SIMT_CAPABILITIES | {"inline_asm", "observe.*"} | _multimem(chip), limits=chip.limits,
        wants=frozenset({"disjoint"}),
        triton=TritonNames("cuda", chip.architecture.number, text="ptx", binary="cubin", loads="ptx"),
    )


def targets() -> Sequence[TargetInfo]:
    """One for each chip."""
    return tuple(target(chip) for chip in chips().values())
