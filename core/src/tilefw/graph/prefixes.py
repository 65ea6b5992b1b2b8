"""Scans along rows of any length: those of parts, and what the parts before one have combined to.

    (y,) = prefixes(b, lambda s, x, y: [s("addf", x, y)], lambda held, more: [b.map("addf", held[0], more[0])], [x], axis=1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from tilefw.api.integers import ceil_div
from tilefw.graph.builder import ModuleBuilder, shape_of

_LONGEST = 8192  # elements that one tile scans
Values = Sequence[SSAValue]


def prefixes(
    b: ModuleBuilder, scalars: Callable[..., Sequence[SSAValue]], tensors: Callable[[Values, Values], Values], inputs: Values,
    axis: int, backwards: bool = False,
) -> list[SSAValue]:
    """Each element combined with all before it, or all behind it. The body, which is associative, is written twice: on scalars
    of a map (`scalars`) and on tensors of one shape."""
    shape = shape_of(inputs[0])
    length = shape[axis]
    if backwards:
        turned = prefixes(b, scalars, tensors, [_turned(b, one, axis) for one in inputs], axis)
        return [_turned(b, one, axis) for one in turned]
    if length <= _LONGEST:
        return b.scan_by(scalars, inputs, axis)
    parts = ceil_div(length, _LONGEST)
    size = ceil_div(length, parts)
    split = [_in_parts(b, one, axis, parts, size) for one in inputs]
    within = b.scan_by(scalars, split, axis + 1)
    last = (*shape[:axis], parts - 1, 1, *shape[axis + 1 :])
    ends = [b.slice(one, [size - 1 if dim == axis + 1 else 0 for dim in range(len(last))], last) for one in within]
    totals = prefixes(b, scalars, tensors, [b.reshape(one, (*shape[:axis], parts - 1, *shape[axis + 1 :])) for one in ends], axis)
    first = [b.slice(one, [0] * len(last), [1 if dim == axis else n for dim, n in enumerate(shape_of(one))]) for one in within]
    rest = [
        b.slice(one, [int(dim == axis) for dim in range(len(last))], [n - (dim == axis) for dim, n in enumerate(shape_of(one))])
        for one in within
    ]
    before = [b.broadcast(b.reshape(one, last), shape_of(more)) for one, more in zip(totals, rest, strict=True)]
    joined = [b.concat([one, more], axis) for one, more in zip(first, tensors(before, rest), strict=True)]
    whole = (*shape[:axis], parts * size, *shape[axis + 1 :])
    return [b.slice(b.reshape(one, whole), [0] * len(shape), shape) for one in joined]


def _turned(b: ModuleBuilder, value: SSAValue, axis: int) -> SSAValue:
    """The rows from the end."""
    shape = shape_of(value)
    starts = [extent - 1 if dim == axis else 0 for dim, extent in enumerate(shape)]
    return b.slice(value, starts, shape, [-1 if dim == axis else 1 for dim in range(len(shape))])


def _in_parts(b: ModuleBuilder, value: SSAValue, axis: int, parts: int, size: int) -> SSAValue:
    """The axis as two; behind its end stands its last element, which no result that is kept has."""
    shape = shape_of(value)
    lacking = parts * size - shape[axis]
    if lacking:
        starts = [extent - 1 if dim == axis else 0 for dim, extent in enumerate(shape)]
        ends = b.slice(value, starts, [1 if dim == axis else extent for dim, extent in enumerate(shape)])
        behind = b.broadcast(ends, [lacking if dim == axis else extent for dim, extent in enumerate(shape)])
        value = b.concat([value, behind], axis)
    return b.reshape(value, (*shape[:axis], parts, size, *shape[axis + 1 :]))
