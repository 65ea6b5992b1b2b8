"""cumsum, cumprod, associative_scan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tilefw.language as tl
from tilefw.frontend import arithmetic
from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins.reduction import combined, sum_type
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import cast
from tilefw.frontend.combine import SCAN, Combine, combinable, combinables, user_combine
from tilefw.frontend.semantics import checked_axis, checked_flag
from tilefw.frontend.values import RuntimeValue

meaning = Meanings()


@meaning("associative_scan")
def associative_scan(b: Builder, input: Any, axis: Any, combine_fn: Any, reverse: Any) -> Any:
    inputs = input if isinstance(input, tuple) else (input,)
    combine = user_combine("associative_scan", inputs, combine_fn, SCAN)
    results = _scanned(b, combinables("associative_scan", inputs, SCAN), axis, combine, reverse)
    return tuple(results) if isinstance(input, tuple) else results[0]


def _scanned(b: Builder, tiles: Sequence[RuntimeValue], axis: Any, combine: Combine, reverse: Any) -> list[RuntimeValue]:
    """The tiles, which have one shape, scanned together along `axis`."""
    along, backward = checked_axis(axis, len(tiles[0].shape)), checked_flag(reverse, "reverse")
    return combined(
        b, "associative_scan", tiles, combine, lambda all, made: b.scan(all, along, backward, made.block, made.results)
    )


def _cumulative(name: str, operation: Callable[[Builder, Any, Any], RuntimeValue]) -> None:
    """`cumsum` and `cumprod`: of which type the results are is the rule of `tl.sum`.

    bf16 is combined in fp32 and rounded once: prefixes rounded at every step lose whole percents where terms cancel, and Triton's
    compilers let an add take the fp32 result of the add before it too."""

    def combine(b: Builder, pair: Sequence[RuntimeValue]) -> RuntimeValue:
        return operation(b, *pair)

    @meaning(name)
    def compute(b: Builder, input: Any, axis: Any, reverse: Any, dtype: Any) -> RuntimeValue:
        tile = combinable(name, input, SCAN)
        element = sum_type(tile.dtype) if dtype is None else dtype
        within = tl.float32 if element == tl.bfloat16 else element
        prefixes = _scanned(b, [cast(b, cast(b, tile, element), within)], axis, combine, reverse)[0]
        return cast(b, prefixes, element)


_cumulative("cumsum", arithmetic.add)
_cumulative("cumprod", arithmetic.BINARY["*"])
