"""What the devices of a mesh do: `jax.shard_map` over one axis, and the collectives within it, as ops of a model of several ranks.

Sums of floats are the library's all-reduce and reduce-scatter. All else that combines (`pmax`, sums of integers) gathers what all
ranks have and combines it on each; a permutation picks from what was gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxlib.mlir.dialects import sdy

from tilefw.api.errors import UnsupportedError
from tilefw.graph.builder import GraphOperation, GraphValue, shape_of
from tilefw.graph.collective_kinds import SUMMED
from tilefw_jax.element_types import kind_of
from tilefw_jax.known_values import KnownValueBuilder
from tilefw_jax.rules.attributes import integer
from tilefw_jax.rules.bodies import Functions, only_operator, scalar_body

Values = Sequence[GraphValue]


@dataclass(frozen=True, slots=True)
class ManualComputation:
    """What `jax.shard_map` becomes: over how many ranks, and along which dim the one axis of the mesh divides each operand and each
    result; None where all ranks have all of it."""

    ranks: int
    operands: tuple[int | None, ...]
    results: tuple[int | None, ...]


def manual_computation(op: Any, meshes: Mapping[str, Any]) -> ManualComputation:
    """The divisions of an `sdy.manual_computation`. Raises UnsupportedError TFW0992 for a mesh of several axes."""
    shardings = [sdy.TensorShardingPerValueAttr(op.attributes[name]).shardings for name in ("in_shardings", "out_shardings")]
    sizes: dict[str, int] = {}
    for one in (*shardings[0], *shardings[1]):
        sizes.update(_axes_of(sdy.TensorShardingAttr(one).mesh_or_ref, meshes))
    wide = {name: size for name, size in sizes.items() if size > 1}
    manual = {str(name) for name in sdy.ManualAxesAttr(op.attributes["manual_axes"])}
    if len(wide) > 1 or not set(wide) <= manual:
        raise UnsupportedError("a mesh of several axes, or one that is divided in part by hand", code="TFW0992")
    divided = [tuple(_divided_dim(one, wide) for one in found) for found in shardings]
    return ManualComputation(next(iter(wide.values()), 1), divided[0], divided[1])


def _axes_of(mesh: Any, meshes: Mapping[str, Any]) -> dict[str, int]:
    name = getattr(mesh, "value", None)
    attribute = mesh if name is None else meshes[name].attributes["mesh"]
    axes = [sdy.MeshAxisAttr(axis) for axis in sdy.MeshAttr(attribute).axes]
    return {axis.name: axis.size for axis in axes}


def _divided_dim(sharding: Any, wide: Mapping[str, int]) -> int | None:
    dims = [sdy.DimensionShardingAttr(dim) for dim in sdy.TensorShardingAttr(sharding).dimension_shardings]
    found = [place for place, dim in enumerate(dims) if any(sdy.AxisRefAttr(axis).name in wide for axis in dim.axes)]
    return found[0] if found else None


# Parts and wholes ------------------------------------------------------------------------------------------------------------


def rank_number(b: KnownValueBuilder, ranks: int) -> GraphValue:
    """The rank's own number, int32 of one element: its part of all numbers."""
    return b.part(b.constant(np.arange(ranks, dtype=np.int32), "int32"), 0, ranks)


def part_of_rank(b: KnownValueBuilder, value: GraphValue, dim: int, ranks: int) -> GraphValue:
    """The rank's part of a value that all ranks have; of one that they compute, what it picks by its number."""
    owner, shape = value.owner, shape_of(value)
    if not isinstance(owner, GraphOperation) or owner.name == "graph.constant":
        return b.part(value, dim, ranks)
    apart = b.reshape(value, (*shape[:dim], ranks, shape[dim] // ranks, *shape[dim + 1 :]))
    taken = b.take(apart, rank_number(b, ranks), dim, trusted=True)
    return b.reshape(taken, (*shape[:dim], shape[dim] // ranks, *shape[dim + 1 :]))


def gathered(b: KnownValueBuilder, value: GraphValue, dim: int, ranks: int) -> GraphValue:
    """The ranks' values behind each other along a dim."""
    shape = shape_of(value)
    every = _every(b, value, ranks)
    order = [*range(1, dim + 1), 0, *range(dim + 1, len(shape) + 1)]
    return b.reshape(b.transpose(every, order), (*shape[:dim], shape[dim] * ranks, *shape[dim + 1 :]))


def _every(b: KnownValueBuilder, value: GraphValue, ranks: int) -> GraphValue:
    """The ranks' values along a new first dim."""
    return b.collective("all_gather", b.reshape(value, (1, *shape_of(value))), ranks)


# Collectives -----------------------------------------------------------------------------------------------------------------


def all_reduce(b: KnownValueBuilder, op: Any, held: Values, functions: Functions, ranks: int) -> list[GraphValue]:
    _require_all(op, ranks)
    return [_reduced(b, op, value, functions, ranks) for value in held]


def _reduced(b: KnownValueBuilder, op: Any, value: GraphValue, functions: Functions, ranks: int) -> GraphValue:
    if _is_sum(op):
        shape = shape_of(value)
        return b.reshape(b.collective("all_reduce", b.reshape(value, shape or (1,)), ranks), shape)
    body = scalar_body(op.regions[0].blocks[0], functions)
    return b.reduce_by(body, [_every(b, value, ranks)], [0])[0]


def _is_sum(op: Any) -> bool:
    return only_operator(op.regions[0].blocks[0]) == "stablehlo.add" and kind_of(op.operands[0].type) in SUMMED


def all_gather(b: KnownValueBuilder, op: Any, held: Values, _functions: Functions, ranks: int) -> list[GraphValue]:
    _require_all(op, ranks)
    return [gathered(b, value, integer(op, "all_gather_dim"), ranks) for value in held]


def reduce_scatter(b: KnownValueBuilder, op: Any, held: Values, functions: Functions, ranks: int) -> list[GraphValue]:
    _require_all(op, ranks)
    dim = integer(op, "scatter_dimension")
    if not _is_sum(op):
        return [part_of_rank(b, _reduced(b, op, held[0], functions, ranks), dim, ranks)]
    rank = len(shape_of(held[0]))
    front = [dim, *(d for d in range(rank) if d != dim)]
    found = b.collective("reduce_scatter", b.transpose(held[0], front), ranks)
    return [b.transpose(found, [front.index(d) for d in range(rank)])]


def all_to_all(b: KnownValueBuilder, op: Any, held: Values, _functions: Functions, ranks: int) -> list[GraphValue]:
    _require_all(op, ranks)
    split, joined = integer(op, "split_dimension"), integer(op, "concat_dimension")
    found: list[GraphValue] = []
    for value in held:
        shape = shape_of(value)
        rank = len(shape)
        apart = b.reshape(value, (*shape[:split], ranks, shape[split] // ranks, *shape[split + 1 :]))
        first = b.transpose(apart, [split, *range(split), *range(split + 1, rank + 1)])
        exchanged = b.collective("all_to_all", first, ranks)
        part = shape_of(exchanged)[1:]
        order = [*range(1, joined + 1), 0, *range(joined + 1, rank + 1)]
        found.append(b.reshape(b.transpose(exchanged, order), (*part[:joined], part[joined] * ranks, *part[joined + 1 :])))
    return found


def collective_permute(b: KnownValueBuilder, op: Any, held: Values, _functions: Functions, ranks: int) -> list[GraphValue]:
    """What another rank has, and zeros where no rank sends."""
    senders = {int(target): int(source) for source, target in np.array(op.attributes["source_target_pairs"]).reshape(-1, 2)}
    source = np.array([senders.get(rank, ranks) for rank in range(ranks)], np.int32)
    sender = b.part(b.constant(source, "int32"), 0, ranks)
    found: list[GraphValue] = []
    for value in held:
        every = _every(b, value, ranks)
        nothing = b.broadcast(b.full(0, value), (1, *shape_of(value)))
        found.append(b.reshape(b.take(b.concat([every, nothing], 0), sender, 0, trusted=True), shape_of(value)))
    return found


def partition_id(b: KnownValueBuilder, _op: Any, _held: Values, _functions: Functions, ranks: int) -> list[GraphValue]:
    return [b.reshape(rank_number(b, ranks), ())]


COLLECTIVES: Mapping[str, Callable[..., list[GraphValue]]] = {
    "stablehlo.all_reduce": all_reduce, "stablehlo.all_gather": all_gather, "stablehlo.reduce_scatter": reduce_scatter,
    "stablehlo.all_to_all": all_to_all, "stablehlo.collective_permute": collective_permute,
    "stablehlo.partition_id": partition_id,
}


def _require_all(op: Any, ranks: int) -> None:
    """Raises UnsupportedError TFW0992 for a collective of some ranks among themselves, or in another order."""
    groups = np.array(op.attributes["replica_groups"]).tolist()
    if groups != [list(range(ranks))]:
        raise UnsupportedError(f"a collective of the groups {groups}, not of all {ranks} ranks in order", code="TFW0992")
