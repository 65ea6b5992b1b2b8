"""A function of scalars applied to every element of tiles: built once on scalars, then written down again on whole tiles.

What it computes is elementwise, so each of its ops has a counterpart on tiles. Its branches become choices between both results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from xdsl.ir import Block, SSAValue

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins.reduction import any_of
from tilefw.frontend.casts import to_value
from tilefw.frontend.combine import CombineBuilder, assertions_stop, without_tiles
from tilefw.frontend.values import RuntimeValue, lowered, tile_type
from tilefw.tile import types
from tilefw.tile.dialect import elementwise_op, ops


class ScalarBuilder(CombineBuilder):
    """Appends the ops of a mapped function, and refuses all that are not elementwise on scalars."""

    __slots__ = ()
    builds = "the function of tl.map_elementwise"
    reason = "it runs on single elements in all lanes at once, so it may only compute with scalars"
    instead = MappingProxyType({
        "read memory": "load the tile before, and map over it as well",
        "loop at run time": "unroll the loop with tl.static_range",
    })


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A jit function of the user's that is mapped; `inline` builds its body with a builder and gives what it returns."""

    kernel: Any
    inline: Callable[[Builder, list[RuntimeValue]], Any]

    def apply(self, b: Builder, arguments: Sequence[RuntimeValue]) -> Any:
        """What the function returns for each element of `arguments`, which have one shape: tiles in place of its scalars."""
        elements = [argument.dtype for argument in arguments]
        block = Block(arg_types=[lowered(element) for element in elements])
        inner = ScalarBuilder(block, b.debug)
        inner.location, inner.steps = b.location, b.steps
        scalars = [RuntimeValue(ssa, element) for ssa, element in zip(block.args, elements, strict=True)]
        returned = self.inline(inner, scalars)
        if returned is None:
            raise CompileError(
                f"`{self.kernel.__name__}` returns nothing, and tl.map_elementwise needs a value for each element", "TFW0214"
            )
        values = returned if isinstance(returned, tuple) else (returned,)
        results = [to_value(inner, value) for value in values]
        b.steps = inner.steps
        if any(result.is_tile for result in results):
            raise CompileError(f"{inner.builds} cannot work on tiles", "TFW0215", note=inner.reason)
        without_tiles(block)
        tiles = _widened(b, block, arguments)
        failed = [RuntimeValue(tiles[found.fails.ssa], tile_type(tl.int1, arguments[0].shape)) for found in inner.assertions]
        assertions_stop(b, inner.assertions, [any_of(b, "map_elementwise", fails) for fails in failed])
        shape = arguments[0].shape
        found = tuple(RuntimeValue(tiles[result.ssa], tile_type(result.dtype, shape)) for result in results)
        return found if isinstance(returned, tuple) else found[0]


def _widened(b: Builder, block: Block, arguments: Sequence[RuntimeValue]) -> dict[SSAValue, SSAValue]:
    """The tile that stands for each scalar of `block`, whose ops are built again on tiles like `arguments`."""
    tiles: dict[SSAValue, SSAValue] = dict(zip(block.args, [argument.ssa for argument in arguments], strict=True))
    shape, after = arguments[0].shape, b.location
    for op in block.ops:
        (result,) = op.results
        b.location = op.location
        type = types.tile(shape, result.type)
        if isinstance(op, elementwise_op.ElementwiseOp):
            operands = [tiles[operand] for operand in op.operands]
            wide = elementwise_op.build(op.row.name, *operands, result=type, rounding=op.rounding)
        else:
            assert isinstance(op, ops.ConstantOp)
            wide = ops.ConstantOp(op.value, type)
        tiles[result] = b.insert(wide).results[0]
    b.location = after
    return tiles
