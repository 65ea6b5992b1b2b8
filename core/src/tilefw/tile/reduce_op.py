"""Reductions: one or more tiles are combined along an axis by a small scalar function, in an order that is left open.

    %sum = tile.reduce %x axis 1 : tensor<16x32xf32> {
    ^bb0(%a : f32, %b : f32):
      %c = tile.addf %a, %b : f32
      tile.reduce_return %c : f32
    }

Any tree over the elements in any order may be taken, as in Triton, whose `tt.reduce` names no order either: the function must be
associative and commutative as far as its user cares. There is no initial value: an axis of size 1 gives its element.
"""

from __future__ import annotations

from xdsl.ir import Attribute

from tilefw.tile import types
from tilefw.tile.combine_op import CombineOp, CombineReturnOp


class ReduceReturnOp(CombineReturnOp):
    """Ends a combine function with its results: `tile.reduce_return %c : f32`."""

    name = "tile.reduce_return"


class ReduceOp(CombineOp):
    """n >= 1 tiles of one shape combined along `axis`; n results without that dim, scalars when no dim is left."""

    name = "tile.reduce"
    ends_with = ReduceReturnOp
    verb = "reduces"
    noun = "reduction"

    @classmethod
    def result_type(cls, type: Attribute, axis: int) -> Attribute:
        shape = types.shape_of(type)
        return types.tile((*shape[:axis], *shape[axis + 1 :]), types.element_of(type))
