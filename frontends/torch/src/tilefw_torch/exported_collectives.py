"""PyTorch's functional collectives (`torch.distributed._functional_collectives`) as ops of a model of several ranks, by the
operators' names. Each is of all ranks.

Sums of floats are the library's all-reduce and reduce-scatter. Other reductions gather what all ranks have, and combine it on each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilefw.graph.builder import GraphValue, ModuleBuilder, shape_of
from tilefw.graph.collective_kinds import SUMMED
from tilefw_torch.exported_ops import ExportedTensor, chosen_row

_ROWS = {"sum": ("addf", "addi"), "avg": ("addf", ""), "max": ("maxf", "maxs"), "min": ("minf", "mins")}


class RankCollectives:
    """The operators of one program of so many ranks. Raises NotImplementedError for a use that is not served."""

    def __init__(self, made: ModuleBuilder, ranks: int) -> None:
        self.made, self.ranks = made, ranks
        self._groups: set[str] = set()
        names = "all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single", "broadcast", "wait_tensor"
        self.rules: Mapping[str, Callable[..., GraphValue]] = {
            f"_c10d_functional.{name}.default": getattr(self, name) for name in names
        }

    def all_reduce(self, out: ExportedTensor, x: GraphValue, op: str, group: str) -> GraphValue:
        self._require_all(group, self.ranks)
        return self._reduced(out, x, op)

    def all_gather_into_tensor(self, _out: ExportedTensor, x: GraphValue, size: int, group: str) -> GraphValue:
        self._require_all(group, size)
        return self.made.collective("all_gather", self.made.reshape(x, shape_of(x) or (1,)), self.ranks)

    def reduce_scatter_tensor(self, out: ExportedTensor, x: GraphValue, op: str, size: int, group: str) -> GraphValue:
        self._require_all(group, size)
        if op not in ("sum", "avg") or out.dtype not in SUMMED:
            raise NotImplementedError(f"reduce_scatter_tensor of {op} of {out.dtype}")
        return self._averaged(self.made.collective("reduce_scatter", x, self.ranks), op)

    def all_to_all_single(
        self, _out: ExportedTensor, x: GraphValue, received: list[int], sent: list[int], group: str
    ) -> GraphValue:
        self._require_all(group, len(sent))
        if len({*received, *sent}) != 1 or sum(sent) != shape_of(x)[0]:
            raise NotImplementedError("all_to_all_single of parts that differ in size")
        return self.made.collective("all_to_all", x, self.ranks)

    def broadcast(self, _out: ExportedTensor, x: GraphValue, source: int, group: str) -> GraphValue:
        self._require_all(group, max(self.ranks, source + 1))
        every, shape = self._every(x), shape_of(x)
        return self.made.reshape(self.made.slice(every, [source, *(0 for _ in shape)], [1, *shape]), shape)

    def wait_tensor(self, _out: ExportedTensor, x: GraphValue) -> GraphValue:
        """What it waits for is there: collectives of a plan are over before the next launch."""
        return x

    def _reduced(self, out: ExportedTensor, x: GraphValue, op: str) -> GraphValue:
        if op in ("sum", "avg") and out.dtype in SUMMED:
            summed = self.made.collective("all_reduce", self.made.reshape(x, shape_of(x) or (1,)), self.ranks)
            return self._averaged(self.made.reshape(summed, shape_of(x)), op)
        row = chosen_row(*_ROWS.get(op, ("", "")), out)
        if not row:
            raise NotImplementedError(f"all_reduce of {op} of {out.dtype}")
        return self._averaged(self.made.reduce(row, self._every(x), [0]), op)

    def _averaged(self, summed: GraphValue, op: str) -> GraphValue:
        return self.made.map("divf", summed, float(self.ranks)) if op == "avg" else summed

    def _every(self, x: GraphValue) -> GraphValue:
        """The ranks' tensors along a new first dim."""
        return self.made.collective("all_gather", self.made.reshape(x, (1, *shape_of(x))), self.ranks)

    def _require_all(self, group: str, size: int) -> None:
        self._groups.add(group)
        if self.ranks == 1:
            raise NotImplementedError("a collective: `export` wants a list of programs, one for each rank")
        if size != self.ranks or len(self._groups) > 1:
            raise NotImplementedError(
                f"a collective of {size} ranks in the groups {', '.join(sorted(self._groups))}: there are {self.ranks} programs, "
                "and each collective is of all of them"
            )
