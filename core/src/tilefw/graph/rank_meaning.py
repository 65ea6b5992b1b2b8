"""What a graph module computes that several ranks run, in NumPy: all ranks op by op, those together that need each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation

from tilefw.api.errors import UsageError
from tilefw.distributed import collectives
from tilefw.distributed.symmetric_heap import MOST_RANKS
from tilefw.graph.dialect.rank_ops import CollectiveOp, PartOp, ranks_of
from tilefw.graph.meaning import Array, Known, model_function, results_of
from tilefw.tile import numbers, types

HOST_COLLECTIVES: Mapping[str, Callable[[Sequence[np.ndarray[Any, Any]]], list[np.ndarray[Any, Any]]]] = MappingProxyType({
    "all_reduce": collectives.all_reduce, "all_gather": collectives.all_gather, "reduce_scatter": collectives.reduce_scatter,
    "all_to_all": collectives.all_to_all,
})
"""What NumPy makes of the arrays of all ranks; floats that are added up are float64."""


def ranks_in(module: ModuleOp) -> int:
    """How many ranks run a module; 1 where no op says it. Raises UsageError TFW0367 where ops say different numbers, or
    one beyond what a node has."""
    said = {ranks_of(op) for op in model_function(module).body.block.ops if isinstance(op, PartOp | CollectiveOp)}
    if len(said) > 1:
        raise UsageError(
            f"ops of the model are of {' and of '.join(map(str, sorted(said)))} ranks", code="TFW0367",
            help="all parts and collectives of a model are of one number of ranks",
        )
    ranks = said.pop() if said else 1
    if ranks > MOST_RANKS:
        raise UsageError(f"the model is of {ranks} ranks, and a node has {MOST_RANKS} at most", code="TFW0367")
    return ranks


def run_on_ranks(module: ModuleOp, inputs: Sequence[Array]) -> list[list[Array]]:
    """The outputs of each rank for inputs that all of them are given, as values (float64, integers of the width, bool)."""
    block, ranks = model_function(module).body.block, ranks_in(module)
    known: list[Known] = [dict(zip(block.args, map(np.asarray, inputs), strict=True)) for _ in range(ranks)]
    for op in block.ops:
        given = [[values[operand] for operand in op.operands] for values in known]
        if isinstance(op, ReturnOp):
            return given
        for values, found in zip(known, _results(op, given), strict=True):
            values.update(zip(op.results, found, strict=True))
    raise AssertionError("a block of graph ops has a terminator")


def _results(op: Operation, given: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """The results of one op on each rank."""
    if isinstance(op, PartOp):
        return [[np.split(one[0], len(given), op.axis.value.data)[rank]] for rank, one in enumerate(given)]
    if isinstance(op, CollectiveOp):
        kind = types.dtype_of(op.result.type)
        found = HOST_COLLECTIVES[op.kind.data]([one[0] for one in given])
        return [[numbers.round_to(array, kind) if kind.is_float else array] for array in found]
    return [results_of(op, one) for one in given]
