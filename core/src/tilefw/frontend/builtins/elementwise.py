"""map_elementwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilefw.api.errors import CompileError
from tilefw.frontend.arithmetic import together
from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import to_value
from tilefw.frontend.scalar_function import ScalarFunction
from tilefw.frontend.semantics import not_constexpr
from tilefw.frontend.values import RuntimeValue, describe

meaning = Meanings()


@meaning("map_elementwise")
def map_elementwise(b: Builder, scalar_fn: Any, args: tuple[Any, ...], pack: Any) -> Any:
    if not isinstance(scalar_fn, ScalarFunction):
        raise CompileError(
            f"scalar_fn is a jit function, not {_name(scalar_fn)}", "TFW0214",
            help="write a function of scalars and decorate it with @tilefw.jit",
        )
    if not args:
        raise CompileError("tl.map_elementwise takes one tile or more", "TFW0107")
    tiles = together(b, [to_value(b, value) for value in args])
    _check_pack(pack, tiles[0].shape)
    if pack == 1:
        return scalar_fn.apply(b, tiles)
    return _packed(b, scalar_fn, tiles, pack)


def _check_pack(pack: Any, shape: tuple[int, ...]) -> None:
    """Raises CompileError unless neighbours along the last axis can be put together, `pack` at a time."""
    if isinstance(pack, RuntimeValue):
        raise not_constexpr("pack")
    if not isinstance(pack, int) or isinstance(pack, bool) or pack < 1 or pack & (pack - 1):
        raise CompileError(f"pack is a power of two, not {describe(pack)}", "TFW0203")
    if pack > 1 and (not shape or shape[-1] % pack):
        raise CompileError(
            f"pack={pack} puts that many neighbours along the last axis together, but the shape is {list(shape)}", "TFW0202"
        )


def _packed(b: Builder, function: ScalarFunction, tiles: Sequence[RuntimeValue], pack: int) -> tuple[RuntimeValue, ...]:
    returned = function.apply(b, [part for tile in tiles for part in _parts(b, tile, pack)])
    results = returned if isinstance(returned, tuple) else (returned,)
    if len(results) % pack:
        raise CompileError(
            f"`{function.kernel.__name__}` returns {len(results)} values, which is no multiple of pack={pack}", "TFW0214",
            help="return as many values for each result as the call takes elements of each tile",
        )
    groups = [results[first : first + pack] for first in range(0, len(results), pack)]
    for group in groups:
        if len({value.dtype for value in group}) > 1:
            raise CompileError(
                f"`{function.kernel.__name__}` returns {', '.join(str(value.dtype) for value in group)} for neighbours of one tile",
                "TFW0214", help="return one type for all of them",
            )
    return tuple(_whole(b, group) for group in groups)


def _parts(b: Builder, tile: RuntimeValue, count: int) -> list[RuntimeValue]:
    """Tiles of every `count`-th element of the last axis, by the first of them."""
    if count == 1:
        return [tile]
    *outer, extent = tile.shape
    if (*outer, extent) == (2,):
        even, odd = (b.reshape(half, (1,)) for half in b.split(b.reshape(tile, (1, 2))))
    else:
        even, odd = b.split(b.reshape(tile, (*outer, extent // 2, 2)))
    halves = [_parts(b, half, count // 2) for half in (even, odd)]
    return [half[index] for index in range(count // 2) for half in halves]


def _whole(b: Builder, parts: Sequence[RuntimeValue]) -> RuntimeValue:
    """The inverse of `_parts`."""
    if len(parts) == 1:
        return parts[0]
    even, odd = _whole(b, parts[0::2]), _whole(b, parts[1::2])
    *outer, extent = even.shape
    return b.reshape(b.join(even, odd), (*outer, 2 * extent))


def _name(value: Any) -> str:
    name = getattr(value, "__tilefw_builtin__", None) or getattr(value, "__name__", None)
    return describe(value) if name is None else f"`{name}`"
