"""The kernel's parameters: kind, element type, offset, size and alignment in the argument block."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp

from tilefw.api.artifact import Parameter
from tilefw.api.dtypes import dtype
from tilefw.api.integers import round_up
from tilefw.copy_descriptors import CopyDescriptor
from tilefw.simt import lane
from tilefw.simt.description import CopyEngine
from tilefw.tile import types
from tilefw.tile.dialect.kernel_info import hidden_of
from tilefw.tile.nested_ops import nested_ops


def parameters(function: FuncOp, pointer_bits: int, engine: CopyEngine | None = None) -> tuple[Parameter, ...]:
    """All of them, in order, naturally aligned as in C; `readonly` pointers are those no store can reach. Descriptors for the copy
    engine are structs."""
    written = _written_arguments(function)
    result: list[Parameter] = []
    offset = 0
    names = function.arg_attrs.data if function.arg_attrs is not None else [None] * len(function.body.block.args)
    for i, (argument, attrs) in enumerate(zip(function.body.block.args, names, strict=True)):
        found = {} if attrs is None else attrs.data
        stated = found.get("tile.dtype")
        pointer = types.is_pointer(argument.type)
        element = types.dtype_of(types.pointee_of(argument.type) if pointer else argument.type)
        if isinstance(stated, StringAttr):
            element = dtype(stated.data)
        size = pointer_bits // 8 if pointer else element.storage_bits // 8
        offset = round_up(offset, size)
        name = found.get("tile.name")
        if engine is not None and CopyDescriptor.of(hidden_of(found)) is not None:
            offset = round_up(offset, engine.descriptor_alignment)
            size, words = engine.descriptor_bytes, argument.name_hint or f"arg{i}"
            result.append(Parameter(words, "struct", "uint8", offset, size, engine.descriptor_alignment, hidden=hidden_of(found)))
            offset += size
            continue
        result.append(Parameter(
            name=name.data if isinstance(name, StringAttr) else argument.name_hint or f"arg{i}",
            kind="pointer" if pointer else "scalar", dtype=element.name, offset=offset, size=size, alignment=size,
            readonly=pointer and written is not None and i not in written, hidden=hidden_of(found),
        ))
        offset += size
    return tuple(result)


def _written_arguments(function: FuncOp) -> set[int] | None:
    """The arguments that stores, those of engines too, and atomics go through; None when one's argument is unknown, as of an
    address in assembly. Stores to shared memory go through none: their `buffer` is one of its own."""
    found: set[int] = set()
    for op in nested_ops(function):
        if isinstance(op, lane.StoreOp) and op.shared:
            continue
        if isinstance(op, lane.StoreOp | lane.AtomicOp):
            if op.buffer < 0:
                return None
            found.add(op.buffer)
        elif isinstance(op, lane.BulkStoreOp):
            found.add(op.argument)
        elif isinstance(op, lane.InlineAsmOp) and any(types.dtype_of(value.type).bits == 64 for value in op.operands):
            return None
    return found
