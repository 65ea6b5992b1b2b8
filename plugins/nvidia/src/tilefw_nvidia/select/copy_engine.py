"""The copy engine as the kit describes it, and its instructions: copies of boxes by tensor maps.

Limits: PTX ISA, "Tensors", and CUDA Driver API, `cuTensorMapEncodeTiled` (rank, extents of a box, alignment of addresses, strides
and rows). Swizzles of 128, 64 and 32 bytes are those of wgmma's operands (PTX ISA, "Swizzling Modes").
"""

from __future__ import annotations

from tilefw.api.machine import Operand, Slice
from tilefw.api.simt import BulkCopy, BulkStore, Code, CopyEngine, Element, SharedForm
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.isa.set import instruction_set
from tilefw_nvidia.isa.tensor_map_size import ALIGNMENT, BYTES

_STORE = "cp.async.bulk.tensor.{}d.global.shared::cta.bulk_group"
_COPY = "cp.async.bulk.tensor.{}d.shared::cluster.global.mbarrier::complete_tx::bytes"
_SWIZZLED_ROWS = (128, 64, 32)
_ENGINE = CopyEngine(
    rank=5, extent=256, alignment=16, element_bytes=(1, 2, 4, 8), descriptor_bytes=BYTES, descriptor_alignment=ALIGNMENT,
    forms=tuple(SharedForm(size, True) for size in _SWIZZLED_ROWS), shared_alignment=128,
    stores=True, clusters=True,
)


def copy_engine(chip: Chip) -> CopyEngine | None:
    """The chip's; None where it has none."""
    return _ENGINE if instruction_set(chip).opcode(_COPY.format(2)).exists else None


def descriptor(code: Code, index: int) -> Element:
    """The generic address of the tensor map, which is a parameter."""
    address = code.inst("mov.u64", "w64", f"{code.function.name}_param_{index}")
    return code.inst("cvta.param.u64", "w64", address)


def copy(code: Code, made: BulkCopy) -> None:
    """Start one copy."""
    places = [code.chip.operand(code, place) for place in made.places]
    operands: list[Operand] = [
        made.address, made.immediate, made.barrier, made.barrier_immediate, made.descriptor, *places,
    ]
    opcode = _COPY.format(len(places))
    if made.workgroups > 1:
        opcode, operands = f"{opcode}.multicast::cluster", [*operands, (1 << made.workgroups) - 1]
    code.effect(opcode, (), operands, predicate=made.predicate, buffer=made.buffer)


def store(code: Code, made: BulkStore) -> None:
    """Start one store."""
    places = [code.chip.operand(code, place) for place in made.places]
    operands: list[Operand] = [made.descriptor, *places, made.address, made.immediate]
    code.effect(_STORE.format(len(places)), (), operands, predicate=made.predicate, buffer=made.buffer)


def finish_stores(code: Code, predicate: Slice | None, written: bool) -> None:
    """Until the engine has read (PTX ISA, cp.async.bulk.wait_group: `.read`), or written, which it has when the kernel is over."""
    code.effect("cp.async.bulk.commit_group", predicate=predicate)
    code.effect("cp.async.bulk.wait_group" if written else "cp.async.bulk.wait_group.read", (), [0], predicate=predicate)
