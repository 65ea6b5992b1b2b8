"""Which capabilities a kernel needs, read off its tile IR (`api/capabilities.py` says what there are).

An operation needs the group of its row in the elementwise table with its element type (`math.exp.fp32`, `int.div.int32`), or
`memory.load`, `memory.store`, `atomic.<kind>`; control flow has `control.for`, `control.if`, `control.while`. Operations that
combine or move elements across a tile have `reduce.<type>` and `scan.<type>` for each tile (the function that combines needs its
own rows too), `dot.<a>.<b>.<accumulator>` with the input precision behind for fp32 operands (`dot.fp32.fp32.fp32.tf32`),
`dot.scaled.<a>.<b>.fp32` where a target takes products with scales, and `shape.<operation>.<type>`; tiles of several dims need
`shape.dims`.

What depends on data that the kernel loads needs more: `cf.dynamic` a loop's trip count, `cf.branch` a branch, `memory.gather` and
`memory.scatter` an address; `memory.reload` is a load, or an atomic whose old value is used, of what the kernel may have written.

What a compiler must make counts, be it reached by a launch or not: bodies of loops that make no trip, branches that are not taken,
and the scalars that the default passes leave of addresses. What it is not asked for, tiles of addresses where access is structured,
does not count; for one launch (`folded`) neither does what follows from constants, scalars, the grid, program ids and counters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from tilefw.api import capabilities
from tilefw.api.capabilities import missing
from tilefw.api.errors import UnsupportedError
from tilefw.api.launch import LaunchArguments
from tilefw.passes.launch_known import KnownLevel, LaunchKnown
from tilefw.passes.side_effects import is_side_effect_free
from tilefw.tile.dialect.atomic_ops import KINDS, AtomicCasOp, AtomicOp, AtomicRmwOp, FenceOp
from tilefw.tile.dialect.block_ops import BlockAccess, StoreBlockOp
from tilefw.tile.dialect.combine_op import CombineOp
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.dot_scaled_op import DotScaledOp
from tilefw.tile.dialect.inline_asm_op import InlineAsmOp
from tilefw.tile.dialect.kernel_info import argument_attributes
from tilefw.tile.dialect.memory_ops import PointerAccess, StoreOp
from tilefw.tile.dialect.multicast_op import MulticastOp
from tilefw.tile.dialect.observe_op import ObserveOp
from tilefw.tile.dialect.print_op import PrintOp
from tilefw.tile.dialect.structural_op import StructuralOp
from tilefw.tile.elementwise import ROWS
from tilefw.tile.text.source_location import place_of
from tilefw.tile.types import dtype_of, is_pointer, pointee_of, shape_of

AccessOperation = BlockAccess | PointerAccess
Writer = StoreOp | StoreBlockOp | AtomicOp
_COMBINE = {"tile.reduce": "reduce", "tile.scan": "scan"}


def required(module: ModuleOp, launch: LaunchArguments | None = None) -> frozenset[str]:
    """Every capability that the operations of a tile IR module need, as they stand: a compiler gets them from the default passes.

    With `launch`, the compiler compiles for it alone and folds what it tells; without, nothing that only a launch tells is folded.
    """
    return frozenset(first_uses(module, launch))


def first_uses(module: ModuleOp, launch: LaunchArguments | None = None) -> dict[str, Operation]:
    """Each capability that the operations need, with the first operation that needs it."""
    needs = _OperationRequirements(LaunchKnown(module), launch is not None, _Written.of(module, launch))
    found: dict[str, Operation] = {}
    for operation in module.walk():
        for capability in needs.of(operation):
            found.setdefault(capability, operation)
    return found


def refuse_unserved(module: ModuleOp, target: str, claimed: frozenset[str], launch: LaunchArguments | None = None) -> None:
    """Raises UnsupportedError (TFW0611) at the first operation that needs a capability which no claim covers, and names all.

    For a backend that wants to say so before it begins: what it lowers then, it serves.
    """
    uses = first_uses(module, launch)
    lacking = missing(uses, claimed)
    if not lacking:
        return
    ordered = [name for name in uses if name in lacking]
    where = [(name, place_of(uses[name])) for name in ordered]
    raise UnsupportedError(
        f"{target} does not serve {', '.join(ordered)}", code="TFW0611", place=where[0][1],
        note="\n".join(f"{name}: {capabilities.describe(name)}" + (f", line {at.line}" if at else "") for name, at in where),
        help=f"`tilefw targets --json` lists what {target} serves",
    )


@dataclass(frozen=True, slots=True)
class _Written:
    """What memory the kernel may have written by the time that an operation runs. `orders` numbers the memory operations as they
    stand; one in a loop may come after any other of that loop. `roots` numbers the memory behind each argument."""

    roots: Mapping[SSAValue, int]
    orders: Mapping[AccessOperation, int]
    writers: Mapping[Writer, frozenset[int]]

    @staticmethod
    def of(module: ModuleOp, launch: LaunchArguments | None) -> _Written:
        roots: dict[SSAValue, int] = {}
        for function in module.walk():
            if isinstance(function, func.FuncOp):
                for index, argument in enumerate(function.body.block.args):
                    named = argument_attributes(function, index).get("tile.name")
                    buffer = launch.buffers.get(named.data) if launch is not None and isinstance(named, StringAttr) else None
                    roots[argument] = -1 - buffer.storage if buffer is not None else len(roots)
        accesses = [op for op in module.walk() if isinstance(op, AccessOperation)]
        writers = {op: _stems(_pointer(op), roots) for op in accesses if isinstance(op, Writer)}
        return _Written(roots, {op: number for number, op in enumerate(accesses)}, writers)

    def before(self, access: AccessOperation) -> bool:
        """Whether the access may touch what an earlier one wrote."""
        mine = _stems(_pointer(access), self.roots)
        return any(
            mine & theirs and (self.orders[writer] < self.orders[access] or _share_a_loop(writer, access))
            for writer, theirs in self.writers.items()
        )


def _stems(pointer: SSAValue, roots: Mapping[SSAValue, int]) -> frozenset[int]:
    """The memories that a pointer may point into: those of all arguments from which it is computed."""
    found, seen, pending = set[int](), set[SSAValue](), [pointer]
    while pending:
        current = pending.pop()
        if current in seen or not is_pointer(current.type):
            continue
        seen.add(current)
        if current in roots:
            found.add(roots[current])
        elif isinstance(current, BlockArgument):
            pending += _carried(current)
        else:
            owner = current.owner
            assert isinstance(owner, Operation)
            pending += owner.operands
            pending += [value for region in owner.regions for block in region.blocks for value in _ends(block.last_op)]
    return frozenset(found)


def _carried(argument: BlockArgument) -> Iterator[SSAValue]:
    """What a loop's argument may be: what the loop begins with, and what its blocks pass on."""
    loop = argument.block.parent_op()
    if loop is not None:
        yield from loop.operands
        for region in loop.regions:
            for block in region.blocks:
                yield from _ends(block.last_op)


def _ends(last: Operation | None) -> tuple[SSAValue, ...]:
    return () if last is None else tuple(last.operands)


def _share_a_loop(one: Operation, other: Operation) -> bool:
    parent = one.parent_op()
    while parent is not None:
        if isinstance(parent, scf.ForOp | scf.WhileOp) and parent.is_ancestor(other):
            return True
        parent = parent.parent_op()
    return False


def _pointer(access: AccessOperation) -> SSAValue:
    return access.base if isinstance(access, BlockAccess) else access.pointer


@dataclass(frozen=True, slots=True)
class _OperationRequirements:
    """What one operation needs, given when its operands are known and what was written before."""

    known: LaunchKnown
    folded: bool
    written: _Written

    def of(self, operation: Operation) -> Iterator[str]:
        if self.folded and self._follows_from_launch(operation):
            return
        if any(len(shape_of(value.type)) > 1 for value in (*operation.operands, *operation.results)):
            yield "shape.dims"
        if isinstance(operation, scf.ForOp | scf.WhileOp):
            yield "control.for" if isinstance(operation, scf.ForOp) else "control.while"
            if self.known.of_trips(operation) is KnownLevel.LOADED:
                yield "cf.dynamic"
        elif isinstance(operation, scf.IfOp):
            yield "control.if"
            if self.known[operation.cond] is KnownLevel.LOADED:
                yield "cf.branch"
        elif isinstance(operation, AccessOperation):
            yield from self._access(operation)
        else:
            yield from _computed(operation)

    def _follows_from_launch(self, operation: Operation) -> bool:
        """Whether the compiler itself can compute all that the operation gives, or decide where it branches."""
        if isinstance(operation, scf.IfOp):
            return self.known[operation.cond] > KnownLevel.LOADED
        pure = is_side_effect_free(operation) and (not operation.regions or isinstance(operation, CombineOp))
        return pure and bool(operation.results) and all(self.known[result] > KnownLevel.LOADED for result in operation.results)

    def _access(self, operation: AccessOperation) -> Iterator[str]:
        pointer = _pointer(operation)
        element = dtype_of(pointee_of(pointer.type)).name
        places = [pointer, *operation.strides, *operation.offsets] if isinstance(operation, BlockAccess) else [
            pointer, *([] if operation.offsets is None else [operation.offsets])
        ]
        moves = any(self.known[value] is KnownLevel.LOADED for value in places)
        if isinstance(operation, AtomicOp):
            yield operation.capability if isinstance(operation, MulticastOp) else f"atomic.{_atomic(operation)}.{element}"
            if moves:
                yield f"memory.scatter.{element}"
            if operation.result_is_used:
                yield f"memory.reload.{element}"
        elif isinstance(operation, StoreOp | StoreBlockOp):
            yield f"memory.store.{element}"
            if moves:
                yield f"memory.scatter.{element}"
        else:
            yield f"memory.load.{element}"
            if moves:
                yield f"memory.gather.{element}"
            if self.written.before(operation):
                yield f"memory.reload.{element}"


def _computed(operation: Operation) -> Iterator[str]:
    """What an operation on values needs."""
    if isinstance(operation, StructuralOp):
        if operation.capability is not None:
            yield f"{operation.capability}.{_element(operation.operands[0].type)}"
    elif isinstance(operation, FenceOp):
        yield "atomic.fence"
    elif isinstance(operation, PrintOp):
        yield "print"
    elif isinstance(operation, InlineAsmOp):
        yield "inline_asm"
    elif isinstance(operation, ObserveOp):
        yield f"observe.{operation.what}"
    elif operation.name in _COMBINE:
        yield from (f"{_COMBINE[operation.name]}.{_element(value.type)}" for value in operation.operands)
    elif isinstance(operation, DotScaledOp):
        yield f"dot.scaled.{operation.left.format.name}.{operation.right.format.name}.fp32"
    elif isinstance(operation, DotOp):
        yield _dot(operation)
    elif (row := ROWS.get(operation.name.removeprefix("tile."))) is not None:
        typed = [operation.operands[row.typed_by], *(operation.results if row.is_cast else ())]
        for value in typed:
            yield row.capability(_element(value.type))


def _atomic(operation: Operation) -> str:
    if isinstance(operation, AtomicCasOp):
        return "cas"
    assert isinstance(operation, AtomicRmwOp)
    return KINDS[operation.kind].name


def _dot(operation: DotOp) -> str:
    """Integer operands are named by their sign, which their type does not tell."""
    names = [_element(value.type) for value in operation.operands]
    if operation.unsigned:
        names[:2] = [f"u{name}" for name in names[:2]]
    precision = (operation.input_precision,) if names[0] == "fp32" else ()
    return ".".join(("dot", *names, *precision))


def _element(type: Attribute) -> str:
    return "pointer" if is_pointer(type) else dtype_of(type).name
