"""Who runs when: programs as coroutines, each to its end in the order of the grid, unless it waits for another one."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

from xdsl.dialects import func

from tilefw.tile.dialect.atomic_ops import AtomicOp, AtomicRmwOp, FenceOp
from tilefw.tile.reference.value import EvaluatedValue

Run = Generator[None, None, Any]  # yields where it can do nothing but wait for others
Results = Generator[None, None, list[EvaluatedValue]]  # a part of a run, and the values it gives


def run_round_robin(programs: Iterable[Run]) -> None:
    """Run all to their ends, round-robin: one that waits continues after all the others have run."""
    waiting = [program for program in programs if not _ended(program)]
    while waiting:
        waiting = [program for program in waiting if not _ended(program)]


def to_end(program: Run) -> None:
    """Run one that nobody else can help by what it waits for."""
    while not _ended(program):
        pass


def _ended(program: Run) -> bool:
    for _ in program:
        return False
    return True


def order_matters(function: func.FuncOp) -> bool:
    """Whether programs must run one after the other for the atomics of a kernel to have the meaning of some order.

    Not where nobody reads an old value and all do the same thing: additions, say, or maxima, come to the same in any order.
    One whose scope ends at its own program says nothing to the others: each must meet what those before it left.
    """
    atomics = [op for op in function.walk() if isinstance(op, AtomicOp)]
    kinds = {op.kind if isinstance(op, AtomicRmwOp) else "cas" for op in atomics}
    if any(isinstance(op, FenceOp) for op in function.walk()):
        return True
    told_apart = any(op.result_is_used or op.scope == "workgroup" for op in atomics)
    return told_apart or bool(kinds & {"cas", "xchg"}) or len(kinds) > 1
