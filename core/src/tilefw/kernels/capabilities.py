"""Which capabilities a kernel needs, read off its tile IR, and which of them a target's claims cover.

A capability is `<group>.<element type>` with Triton's name of the type: the group of the operation's row in the elementwise table
(`math.exp.fp32`, `int.div.int32`), or `memory.load`, `memory.store`; control flow has `control.for`, `control.if`,
`control.while`. Operations that combine or move elements across a tile have `reduce.<type>` for each reduced tile (the
function that combines needs its own rows too), `dot.<a>.<b>.<accumulator>` with the input precision behind for fp32 operands
(`dot.fp32.fp32.fp32.tf32`), and `shape.<operation>.<type>`. A claim may hold `*` (`int.*`, `*.fp32`, `*`), which stands for any
words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tilefw.api.capabilities import missing

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation

    from tilefw.tile.dot_op import DotOp

__all__ = ["missing", "required"]

_CONTROL = {"scf.for": "control.for", "scf.if": "control.if", "scf.while": "control.while"}
_MEMORY = {
    "tile.load": "memory.load", "tile.load_block": "memory.load",
    "tile.store": "memory.store", "tile.store_block": "memory.store",
}
# What moves elements to other places; expand_dims and broadcast only say anew where they are.
_SHAPE = {f"tile.{name}": f"shape.{name}" for name in ("trans", "reshape", "join", "split", "flip")}


def required(module: Operation) -> frozenset[str]:
    """Every capability that the operations of a tile IR module need."""
    return frozenset(capability for operation in module.walk() for capability in _of(operation))


def _of(operation: Operation) -> Iterator[str]:
    from tilefw.tile.dot_op import DotOp
    from tilefw.tile.elementwise import ROWS

    if operation.name in _CONTROL:
        yield _CONTROL[operation.name]
    elif operation.name in _MEMORY:
        for value in (*operation.operands, *operation.results):
            if element := _memory_element(value.type):
                yield f"{_MEMORY[operation.name]}.{element}"
    elif operation.name in _SHAPE:
        yield f"{_SHAPE[operation.name]}.{_element(operation.operands[0].type)}"
    elif operation.name == "tile.reduce":
        yield from (f"reduce.{_element(value.type)}" for value in operation.operands)
    elif isinstance(operation, DotOp):
        yield _dot(operation)
    elif (row := ROWS.get(operation.name.removeprefix("tile."))) is not None:
        typed = [operation.operands[row.typed_by], *(operation.results if row.is_cast else ())]
        for value in typed:
            yield row.capability(_element(value.type))


def _dot(operation: DotOp) -> str:
    """Integer operands are named by their sign, which their type does not tell."""
    names = [_element(value.type) for value in operation.operands]
    if operation.unsigned:
        names[:2] = [f"u{name}" for name in names[:2]]
    precision = (operation.input_precision,) if names[0] == "fp32" else ()
    return ".".join(("dot", *names, *precision))


def _memory_element(type: Attribute) -> str:
    """The pointee of a pointer, or of a tile of pointers; empty for anything else."""
    from tilefw.tile.types import dtype_of, is_pointer, pointee_of

    return dtype_of(pointee_of(type)).name if is_pointer(type) else ""


def _element(type: Attribute) -> str:
    from tilefw.tile.types import dtype_of, is_pointer

    return "pointer" if is_pointer(type) else dtype_of(type).name
