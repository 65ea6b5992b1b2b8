"""Which capabilities a kernel needs, read off its tile IR (`api/capabilities.py` says what there are).

An operation needs the group of its row in the elementwise table with its element type (`math.exp.fp32`, `int.div.int32`), or
`memory.load`, `memory.store`, `atomic.<kind>`; control flow has `control.for`, `control.if`, `control.while`, and `cf.dynamic` for
a loop whose trip count depends on loaded data. Operations that combine or move elements across a tile have `reduce.<type>` and
`scan.<type>` for each tile (the function that combines needs its own rows too), `dot.<a>.<b>.<accumulator>` with the input
precision behind for fp32 operands (`dot.fp32.fp32.fp32.tf32`), and `shape.<operation>.<type>`; tiles of several dims need
`shape.dims`.

What a compiler must make counts, be it reached by a launch or not: bodies of loops that make no trip, branches that are not taken,
and the scalars that the default passes leave of addresses. What it is not asked for, tiles of addresses where access is structured,
does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tilefw.api.capabilities import missing

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Operation

    from tilefw.passes.launch_known import LaunchKnown
    from tilefw.tile.atomic_ops import AtomicCasOp, AtomicRmwOp
    from tilefw.tile.dot_op import DotOp

__all__ = ["missing", "needed", "required"]

_CONTROL = {"scf.for": "control.for", "scf.if": "control.if", "scf.while": "control.while"}
_COMBINE = {"tile.reduce": "reduce", "tile.scan": "scan"}
_MEMORY = {
    "tile.load": "memory.load", "tile.load_block": "memory.load",
    "tile.store": "memory.store", "tile.store_block": "memory.store",
}
# What moves elements to other places; expand_dims and broadcast only say anew where they are.
_SHAPE = {f"tile.{name}": f"shape.{name}" for name in ("trans", "reshape", "join", "split", "flip")}


def needed(module: ModuleOp) -> frozenset[str]:
    """Every capability that a kernel needs of a compiler, which gets it as the default passes leave it: nothing that only a launch
    tells is folded, but arithmetic of tiles of addresses is gone where access is structured."""
    from xdsl.context import Context

    from tilefw.passes.pipeline import default_passes

    copy = module.clone()
    for step in default_passes():
        step.apply(Context(), copy)
    return required(copy)


def required(module: ModuleOp) -> frozenset[str]:
    """Every capability that the operations of a tile IR module need, as they stand."""
    from tilefw.passes.launch_known import LaunchKnown

    known = LaunchKnown(module)
    return frozenset(capability for operation in module.walk() for capability in _of(operation, known))


def _of(operation: Operation, known: LaunchKnown) -> Iterator[str]:
    from tilefw.tile.atomic_ops import AtomicCasOp, AtomicRmwOp
    from tilefw.tile.dot_op import DotOp
    from tilefw.tile.elementwise import ROWS
    from tilefw.tile.types import shape_of

    if any(len(shape_of(value.type)) > 1 for value in (*operation.operands, *operation.results)):
        yield "shape.dims"
    if operation.name in _CONTROL:
        yield from _control(operation, known)
    elif operation.name in _MEMORY:
        for value in (*operation.operands, *operation.results):
            if element := _memory_element(value.type):
                yield f"{_MEMORY[operation.name]}.{element}"
    elif operation.name in _SHAPE:
        yield f"{_SHAPE[operation.name]}.{_element(operation.operands[0].type)}"
    elif operation.name in _COMBINE:
        yield from (f"{_COMBINE[operation.name]}.{_element(value.type)}" for value in operation.operands)
    elif isinstance(operation, AtomicRmwOp | AtomicCasOp):
        yield f"atomic.{_atomic(operation)}.{_element(operation.results[0].type)}"
    elif isinstance(operation, DotOp):
        yield _dot(operation)
    elif (row := ROWS.get(operation.name.removeprefix("tile."))) is not None:
        typed = [operation.operands[row.typed_by], *(operation.results if row.is_cast else ())]
        for value in typed:
            yield row.capability(_element(value.type))


def _control(operation: Operation, known: LaunchKnown) -> Iterator[str]:
    """A loop whose trips only loaded data tells needs more than the others."""
    from xdsl.dialects import scf

    from tilefw.passes.launch_known import Known

    yield _CONTROL[operation.name]
    if isinstance(operation, scf.ForOp | scf.WhileOp) and known.of_trips(operation) is Known.LOADED:
        yield "cf.dynamic"


def _atomic(operation: AtomicRmwOp | AtomicCasOp) -> str:
    from tilefw.tile.atomic_ops import KINDS, AtomicRmwOp

    return KINDS[operation.kind].name if isinstance(operation, AtomicRmwOp) else "cas"


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
