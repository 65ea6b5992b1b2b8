"""A module of StableHLO, as jaxlib holds it, as a graph module: functions inlined, loops of a known length written out.

The objects of jaxlib's MLIR are walked as they are; nothing is printed or parsed. An operator without a rule does not end the
reading: zeros stand for its results, and all that were refused are told at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from re import search
from typing import Any

from tilefw.api.errors import CodeError, UnsupportedError
from tilefw.graph.builder import GraphValue
from tilefw.graph.emit.model import kernel_graph
from tilefw.graph.fuse.choice import FEWEST_LAUNCHES, FusionChoice
from tilefw.graph.kernel_graph import KernelGraph
from tilefw_jax.element_types import ELEMENT_TYPES, kind_of, static_shape
from tilefw_jax.known_values import KnownValueBuilder
from tilefw_jax.rules import indexing, moves, products
from tilefw_jax.rules.bodies import pointwise
from tilefw_jax.rules.combining import COMBINING, constant
from tilefw_jax.rules.ordering import ORDERING
from tilefw_jax.rules.pointwise import POINTWISE
from tilefw_jax.rules.ranks import COLLECTIVES, gathered, manual_computation, part_of_rank

_MOST_TURNS = 4096  # of all loops that are written out
_MOVES: Mapping[str, Callable[..., GraphValue]] = {
    "stablehlo.broadcast_in_dim": moves.broadcast_in_dim, "stablehlo.reshape": moves.reshape,
    "stablehlo.transpose": moves.transpose,
    "stablehlo.slice": moves.slice_, "stablehlo.reverse": moves.reverse, "stablehlo.pad": moves.pad,
    "stablehlo.concatenate": moves.concatenate, "stablehlo.iota": moves.iota, "stablehlo.dynamic_slice": moves.dynamic_slice,
    "stablehlo.dynamic_update_slice": moves.dynamic_update_slice, "stablehlo.gather": indexing.gather,
    "stablehlo.dot_general": products.dot_general, "stablehlo.convolution": products.convolution,
}
_WITH_BODIES = {**COMBINING, **ORDERING, "stablehlo.scatter": indexing.scatter}
_SAME = ("stablehlo.optimization_barrier", "sdy.sharding_constraint")  # what goes in comes out
_CALLS = ("func.call", "call")
_ENDS = ("stablehlo.return", "func.return", "return", "sdy.return")
_CONTROL = ("stablehlo.while", "stablehlo.case", "stablehlo.if", "stablehlo.composite", "stablehlo.custom_call", *_CALLS)
_RANKS = (*COLLECTIVES, "sdy.manual_computation")
SERVED = sorted({*POINTWISE, *_MOVES, *_WITH_BODIES, *_SAME, *_RANKS, *_CONTROL, "stablehlo.constant"})


@dataclass
class ModuleReading:
    """One module on its way to a graph module."""

    module: Any
    builder: KnownValueBuilder = field(default_factory=KnownValueBuilder)
    values: dict[Any, GraphValue] = field(default_factory=dict)
    functions: dict[str, Any] = field(default_factory=dict)
    meshes: dict[str, Any] = field(default_factory=dict)
    ranks: int = 1  # that run what is being read
    refused: dict[str, str] = field(default_factory=dict)
    turns: int = 0
    outputs: dict[str, str] = field(default_factory=dict)  # element types by name

    def read(self) -> None:
        """Write what the function `main` does. Raises UnsupportedError TFW0992 that lists all that has no rule."""
        for view in self.module.body.operations:
            op = view.operation
            if op.name == "func.func" and len(op.regions[0].blocks):
                self.functions[op.attributes["sym_name"].value] = op
            elif op.name == "sdy.mesh":
                self.meshes[op.attributes["sym_name"].value] = op
        if "main" not in self.functions:
            found = ", ".join(self.functions) or "none"
            raise CodeError("the module has no function 'main'", code="TFW0994", note=f"functions: {found}")
        block = self.functions["main"].regions[0].blocks[0]
        for place, argument in enumerate(block.arguments):
            kind = self._told(f"argument {place}", argument.type)
            self.values[argument] = self.builder.input(f"input{place}", kind, _stand_in_shape(argument.type))
        results = self._block(block)
        last = list(block.operations)[-1].operation
        for place, (operand, value) in enumerate(zip(last.operands, results, strict=True)):
            name = f"output{place}"
            self.builder.output(name, value)
            self.outputs[name] = self._told(f"result {place}", operand.type)
        if self.refused:
            refused = "\n".join(self.refused.values())
            raise UnsupportedError("the function is not served in all it does", code="TFW0992", note=refused)

    def graph(self, choice: FusionChoice = FEWEST_LAUNCHES) -> KernelGraph:
        """The launches of what was read; `choice` is between ways to fuse."""
        found = kernel_graph(self.builder.module(), choice=choice)
        outputs = {name: replace(tensor, dtype=self.outputs[name]) for name, tensor in found.outputs.items()}
        return replace(found, outputs=outputs)

    def _told(self, place: str, type: Any) -> str:
        """The element type of an argument or a result; one that is not served is told with the operators."""
        try:
            kind = kind_of(type)
            static_shape(type)
            return kind
        except UnsupportedError as error:
            self.refused.setdefault(place, f"{place}: {error.message}")
            return "fp32"

    # Blocks ------------------------------------------------------------------------------------------------------------------

    def _block(self, block: Any, given: Sequence[GraphValue] | None = None) -> list[GraphValue]:
        if given is not None:
            self.values.update(zip(block.arguments, given, strict=True))
        for view in block.operations:
            op = view.operation
            held = [self.values[operand] for operand in op.operands]
            if op.name in _ENDS:
                return held
            self.values.update(zip(op.results, self._op(op, held), strict=True))
        raise AssertionError("a block ends in a return")

    def _op(self, op: Any, held: Sequence[GraphValue]) -> Sequence[GraphValue]:
        try:
            return self._results(op, held)
        except UnsupportedError as error:
            told = f"{_place(op)}: {op.name}: {error.message}" + (f" ({error.note})" if error.note else "")
            self.refused.setdefault(told, told)
            return [self._zeros(one.type) for one in op.results]

    def _zeros(self, type: Any) -> GraphValue:
        """What stands for a result that is not computed, so that the reading goes on."""
        kind = ELEMENT_TYPES.get(str(getattr(type, "element_type", "")), "fp32")
        zero = self.builder.fused_map(lambda s: s.number(0, kind), shape=())[0]
        return self.builder.broadcast(zero, _stand_in_shape(type))

    def _results(self, op: Any, held: Sequence[GraphValue]) -> Sequence[GraphValue]:
        b, name = self.builder, op.name
        for one in (*op.operands, *op.results):
            kind_of(one.type)
            static_shape(one.type)
        if name == "stablehlo.constant":
            return [constant(b, op)]
        if name in POINTWISE:
            return [pointwise(b.map, op, held)]
        if name in _MOVES:
            return [_MOVES[name](b, op, held)]
        if name in _WITH_BODIES:
            return _WITH_BODIES[name](b, op, held, self.functions)
        if name in _SAME:
            return held
        if name in _CALLS:
            return self._call(op.attributes["callee"].value, held)
        if name == "stablehlo.composite":
            return self._call(op.attributes["decomposition"].value, held)
        if name == "stablehlo.while":
            return self._loop(op, held)
        if name in ("stablehlo.case", "stablehlo.if"):
            return self._branch(op, held[0])
        if name == "stablehlo.custom_call":
            return self._custom_call(op, held)
        if name in COLLECTIVES:
            return COLLECTIVES[name](b, op, held, self.functions, self.ranks)
        if name == "sdy.manual_computation":
            return self._manual(op, held)
        near = get_close_matches(name, SERVED, n=1)
        raise UnsupportedError("it has no rule" + (f"; the nearest that has is {near[0]}" if near else ""), code="TFW0992")

    def _call(self, name: str, held: Sequence[GraphValue]) -> Sequence[GraphValue]:
        if name not in self.functions:
            raise UnsupportedError(f"a call of '{name}', a function without a body", code="TFW0992")
        return self._block(self.functions[name].regions[0].blocks[0], held)

    def _custom_call(self, op: Any, held: Sequence[GraphValue]) -> Sequence[GraphValue]:
        target = op.attributes["call_target_name"].value
        if target == "Sharding":
            return held
        raise UnsupportedError(f"a call of '{target}', a function of XLA's run time", code="TFW0992")

    def _manual(self, op: Any, held: Sequence[GraphValue]) -> Sequence[GraphValue]:
        """What `jax.shard_map` becomes: each rank is given its parts, and gathers what others have of the results."""
        told, b = manual_computation(op, self.meshes), self.builder
        given = [
            value if dim is None else part_of_rank(b, value, dim, told.ranks)
            for value, dim in zip(held, told.operands, strict=True)
        ]
        self.ranks, outer = told.ranks, self.ranks
        try:
            found = self._block(op.regions[0].blocks[0], given)
        finally:
            self.ranks = outer
        return [
            value if dim is None else gathered(b, value, dim, told.ranks) for value, dim in zip(found, told.results, strict=True)
        ]

    # Control flow --------------------------------------------------------------------------------------------------------------

    def _loop(self, op: Any, held: Sequence[GraphValue]) -> Sequence[GraphValue]:
        """Turn by turn, as long as what is known says so."""
        condition, body = (region.blocks[0] for region in op.regions)
        while True:
            (goes_on,) = self._block(condition, held)
            known = self.builder.number(goes_on)
            if known is None:
                raise UnsupportedError(
                    "a loop whose end depends on data", code="TFW0992",
                    note="loops are written out: lax.scan, or lax.fori_loop whose bounds are numbers when it is traced",
                )
            if not known:
                return held
            self.turns += 1
            if self.turns > _MOST_TURNS:
                raise UnsupportedError(f"loops of more than {_MOST_TURNS} turns in all", code="TFW0992")
            held = self._block(body, held)

    def _branch(self, op: Any, chooser: GraphValue) -> Sequence[GraphValue]:
        """The branch that is known to be taken; otherwise all are computed, and one's results are selected."""
        blocks = [region.blocks[0] for region in op.regions]
        truth = op.name == "stablehlo.if"
        known = self.builder.number(chooser)
        if known is not None:
            place = int(not known) if truth else known if 0 <= known < len(blocks) else len(blocks) - 1
            return self._block(blocks[place])
        found = [self._block(block) for block in blocks]
        if truth:
            return [self.builder.map("select", chooser, one, other) for one, other in zip(*found, strict=True)]
        results = found[-1]
        for place, branch in enumerate(found[:-1]):
            taken = self.builder.map("eqi", chooser, place)
            results = [self.builder.map("select", taken, one, other) for one, other in zip(branch, results, strict=True)]
        return results


def _place(op: Any) -> str:
    """Where the operator comes from, in the user's own file where jaxlib knows it."""
    found = str(op.location)
    file = search(r'"([^"]+\.py)":(\d+)', found)
    if file is not None:
        return f"{file[1]}:{file[2]}"
    name = search(r'"([^"]*/[^"]*)"', found)
    return name[1] if name is not None else "main"


def _stand_in_shape(type: Any) -> tuple[int, ...]:
    """The shape of what stands for a value of any type: dims that are not known are 1."""
    if not getattr(type, "has_rank", False):
        return ()
    return tuple(1 if type.is_dynamic_dim(dim) else extent for dim, extent in enumerate(type.shape))
