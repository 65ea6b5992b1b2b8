"""Bugs of the grid and of loops: ids that change places, trips too few or too many, carried values that are not carried."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from tilefw.passes.fold import constant_of
from tilefw.passes.rewriting import exchange, replace
from tilefw.tile import types
from tilefw.tile.dialect.ops import NumProgramsOp, ProgramIdOp
from tilefw_planted.bug import Bug, Plants, by_row, changed, full, made, operand_changed, through


def _of_loops(name: str, mistake: str, shows: str, plant: Plants) -> Bug:
    return Bug(name, f"a loop {mistake}", shows, lambda op: isinstance(op, scf.ForOp), plant)


def _float_sums(loop: object) -> list[int]:
    """Which carried values of a loop are tiles of fp32."""
    if not isinstance(loop, scf.ForOp):
        return []
    return [i for i, value in enumerate(loop.iter_args) if types.is_tile(value.type) and types.element_of(value.type) == types.f32]


def _carried_through(loop: scf.ForOp, name: str) -> None:
    yielded = loop.body.block.last_op
    assert yielded is not None
    for index in _float_sums(loop):
        operand_changed(yielded, index, lambda value, before: through(name, value, before))


def _stale(loop: scf.ForOp) -> None:
    yielded = loop.body.block.last_op
    assert yielded is not None
    yielded.operands[len(yielded.operands) - 1] = loop.body.block.args[-1]


def _reset(loop: scf.ForOp) -> None:
    loop.body.block.args[-1].replace_all_uses_with(loop.iter_args[-1])


def _zeros(loop: object) -> list[int]:
    """Which operands of a loop are carried floats that start at zero."""
    if not isinstance(loop, scf.ForOp):
        return []
    return [i for i, value in enumerate(loop.operands) if i > 2 and types.is_float(value.type) and constant_of(value) == 0]


def _from_one(loop: scf.ForOp) -> None:
    for index in _zeros(loop):
        operand_changed(loop, index, lambda value, before: full(1.0, value.type, before))


def _shifted(loop: scf.ForOp, index: int, row: str) -> None:
    operand_changed(loop, index, lambda value, before: made(row, value, loop.step, before=before))


def _doubled(value: SSAValue, before: Operation) -> SSAValue:
    return made("addi", value, value, before=before)


BUGS = [
    Bug(
        "program-ids-swapped", "the grid's first two axes change places", "unless the grid is symmetric",
        lambda op: isinstance(op, ProgramIdOp) and op.axis < 2, lambda op: exchange(op, ProgramIdOp(1 - op.axis)),
    ),
    Bug(
        "grid-flat", "the grid's second and third axis have one program", "where they have more",
        lambda op: isinstance(op, ProgramIdOp) and op.axis > 0, lambda op: replace(op, full(0, op.results[0].type, op)),
    ),
    Bug(
        "one-program-fewer", "the number of programs is one too small", "wherever it is used",
        lambda op: isinstance(op, NumProgramsOp),
        lambda op: changed(op, lambda value, before: by_row("addi", value, before=before, number=-1)),
    ),
    _of_loops("loop-starts-late", "leaves out its first trip", "unless it adds nothing", lambda op: _shifted(op, 0, "addi")),
    _of_loops("loop-ends-early", "leaves out its last trip", "unless it adds nothing", lambda op: _shifted(op, 1, "subi")),
    _of_loops("loop-skips", "takes every other trip", "from two trips on", lambda op: operand_changed(op, 2, _doubled)),
    _of_loops("loop-runs-on", "takes one trip too many", "unless it adds nothing", lambda op: _shifted(op, 1, "addi")),
    Bug(
        "carried-stale", "a loop's last carried value never changes", "from one trip on",
        lambda op: isinstance(op, scf.ForOp) and len(op.iter_args) > 0, _stale,
    ),
    Bug(
        "carried-reset", "a loop's last carried value starts anew in each trip", "from two trips on",
        lambda op: isinstance(op, scf.ForOp) and len(op.iter_args) > 0, _reset,
    ),
    Bug("sum-from-one", "an accumulator that must start at 0 starts at 1", "everywhere", lambda op: bool(_zeros(op)), _from_one),
    Bug(
        "half-accumulator", "a loop's fp32 accumulator is kept in fp16", "from the twelfth bit on",
        lambda op: bool(_float_sums(op)), lambda op: _carried_through(op, "f16"),
    ),
    Bug(
        "bf16-accumulator", "a loop's fp32 accumulator is kept in bf16", "from the ninth bit on",
        lambda op: bool(_float_sums(op)), lambda op: _carried_through(op, "bf16"),
    ),
]
