"""Operations that move elements: splat, broadcast, reshape, trans, join, split, cat, gather; histogram, which counts them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tilefw.language as tl
from tilefw.frontend.builtins.counting import histogram
from tilefw.frontend.builtins.rearrange import cat
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.values import RuntimeValue

if TYPE_CHECKING:
    from tilefw.importers.triton_ir.translation import Translation
    from tilefw.importers.triton_ir.tree import TextOperation

meaning = Meanings()


def _shape(t: Translation, s: TextOperation) -> tuple[int, ...]:
    type = t.result_type(s)
    return type.shape if isinstance(type, tl.block_type) else ()


@meaning("tt.splat")
def splat(t: Translation, s: TextOperation) -> RuntimeValue:
    (value,) = t.operands(s)
    return t.b.splat(value, _shape(t, s))


@meaning("tt.unsplat")
def unsplat(t: Translation, s: TextOperation) -> RuntimeValue:
    (value,) = t.operands(s)
    return t.b.reshape(value, ())


@meaning("tt.broadcast")
def broadcast(t: Translation, s: TextOperation) -> RuntimeValue:
    (value,) = t.operands(s)
    return t.b.broadcast(value, _shape(t, s))


@meaning("tt.expand_dims")
def expand_dims(t: Translation, s: TextOperation) -> RuntimeValue:
    (value,) = t.operands(s)
    return t.b.expand_dims(value, t.integer(s, "axis"))


@meaning("tt.reshape")
def reshape(t: Translation, s: TextOperation) -> RuntimeValue:
    """Also where any order of the elements would do."""
    (value,) = t.operands(s)
    return t.b.reshape(value, _shape(t, s))


@meaning("tt.trans")
def transpose(t: Translation, s: TextOperation) -> RuntimeValue:
    (value,) = t.operands(s)
    return t.b.transpose(value, t.integers(s, "order"))


@meaning("tt.join")
def join(t: Translation, s: TextOperation) -> RuntimeValue:
    return t.b.join(*t.operands(s))


@meaning("tt.split")
def split(t: Translation, s: TextOperation) -> list[Any]:
    (value,) = t.operands(s)
    return list(t.b.split(value))


@meaning("tt.cat")
def concatenate(t: Translation, s: TextOperation) -> RuntimeValue:
    """Any order of the elements would do."""
    first, second = t.operands(s)
    return cat(t.b, first, second, True, 0)


@meaning("tt.gather")
def gather(t: Translation, s: TextOperation) -> RuntimeValue:
    source, index = t.operands(s)
    return t.b.gather(source, index, t.integer(s, "axis"))


@meaning("tt.histogram")
def count(t: Translation, s: TextOperation) -> RuntimeValue:
    """Numbers are unsigned: what is not below the number of bins is not counted."""
    value, *mask = t.operands(s)
    unsigned = t.b.retyped(value, tl.uint32)
    return histogram(t.b, unsigned, _shape(t, s)[0], mask[0] if mask else None)
