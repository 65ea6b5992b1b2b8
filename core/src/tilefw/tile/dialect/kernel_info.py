"""What a kernel's function says of its parameters: names, element types, layout of the argument block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from xdsl.dialects import func
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, BlockArgument, SSAValue

from tilefw.api.artifact import Entry, Parameter
from tilefw.api.integers import round_up
from tilefw.node_context import HIDDEN as NODE_CONTEXT
from tilefw.tile import types
from tilefw.tile.dialect.block_ops import StoreBlockOp
from tilefw.tile.dialect.memory_ops import StoreOp
from tilefw.tile.dialect.ops import AddPtrOp
from tilefw.tile.dialect.structural_op import StructuralOp

_POINTER_BYTES = 8
PRINTS = "tile.prints"  # of a function whose prints are lowered: its print sites, as text
_READS = ("tile.load", "tile.load_block", "tile.copy", "tile.copy_block")
_KEEPS_POINTER = (AddPtrOp, StructuralOp)


def argument_attributes(function: func.FuncOp, index: int) -> Mapping[str, Attribute]:
    """The attributes of parameter number `index`, from 0 (`tile.name`, `tile.divisible`, …); empty where it has none."""
    if function.arg_attrs is None:
        return {}
    entry = function.arg_attrs.data[index]
    return entry.data if isinstance(entry, DictionaryAttr) else {}


def is_argument(value: SSAValue) -> TypeGuard[BlockArgument]:
    """Whether a value is an argument of the kernel itself."""
    return isinstance(value, BlockArgument) and isinstance(value.block.parent_op(), func.FuncOp)


def entry_of(function: func.FuncOp, workgroup: tuple[int, int, int] = (1, 1, 1)) -> Entry:
    """The entry of a kernel in tile IR, with `workgroup` threads along x, y and z.

    Its parameters are in order, each aligned to its own size in the argument block. Offsets and sizes are in bytes; a pointer
    has 8.
    """
    parameters: list[Parameter] = []
    offset = 0
    for index, argument in enumerate(function.body.block.args):
        attributes = argument_attributes(function, index)
        named = attributes.get("tile.name")
        name = named.data if isinstance(named, StringAttr) else argument.name_hint or f"arg{index}"
        pointer = types.is_pointer(argument.type)
        element = types.dtype_of(types.pointee_of(argument.type) if pointer else argument.type)
        stated = attributes.get("tile.dtype")
        spelled = stated.data if isinstance(stated, StringAttr) else element.name
        size = _POINTER_BYTES if pointer else element.storage_bits // 8
        offset = round_up(offset, size)
        readonly = pointer and not may_store(argument)
        kind = "pointer" if pointer else "scalar"
        parameters.append(Parameter(name, kind, spelled, offset, size, size, readonly, hidden_of(attributes)))
        offset += size
    return Entry(function.sym_name.data, tuple(parameters), workgroup)


def hidden_of(attributes: Mapping[str, Attribute]) -> str | None:
    """What the runtime passes for a parameter with these attributes by itself; None for the user's own."""
    found = attributes.get("tile.hidden")
    return found.data if isinstance(found, StringAttr) else None


def reaches_peers(function: func.FuncOp) -> bool:
    """Whether pointers may be moved from an argument's array to a peer's copy of it, which is as far away as the heaps are."""
    places = range(len(function.body.block.args))
    return any(hidden_of(argument_attributes(function, place)) == NODE_CONTEXT for place in places)


def prints_of(module: ModuleOp) -> str | None:
    """The print sites of a module's only function, as text; None where it prints nothing."""
    for function in module.body.block.ops:
        found = function.attributes.get(PRINTS)
        if isinstance(found, StringAttr):
            return found.data
    return None


def may_store(pointer: SSAValue) -> bool:
    """Whether any store may go through a pointer: it is followed through arithmetic and shapes, and may elsewhere."""
    seen: set[SSAValue] = set()
    pending = [pointer]
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            op = use.operation
            if isinstance(op, StoreOp | StoreBlockOp):
                return True
            if isinstance(op, _KEEPS_POINTER):
                pending.extend(op.results)
            elif op.name not in _READS:
                return True  # a loop, a branch, a cast: the pointer may reach a store there
    return False
