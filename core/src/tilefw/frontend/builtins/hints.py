"""multiple_of, max_contiguous, max_constancy, assume, expect_zero, gdc_wait, gdc_launch_dependents."""

from __future__ import annotations

from typing import Any

from tilefw.api.errors import CompileError
from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import to_value
from tilefw.frontend.semantics import not_constexpr
from tilefw.frontend.values import RuntimeValue, describe, named

meaning = Meanings()


def _hint(name: str, attribute: str) -> None:
    @meaning(name)
    def apply(b: Builder, input: Any, values: Any) -> RuntimeValue:
        value = to_value(b, input)
        extents = values if isinstance(values, tuple) else (values,)
        for extent in extents:
            if isinstance(extent, RuntimeValue):
                raise not_constexpr(f"a value of {name}")
            if not isinstance(extent, int) or isinstance(extent, bool) or extent < 1:
                raise CompileError(f"{name} takes positive ints, not {describe(extent)}", "TFW0212")
        if len(extents) != max(1, len(value.shape)):
            raise CompileError(
                f"{name} got {len(extents)} values for {named(value)}", "TFW0212", note="one value an axis is needed"
            )
        b.hint(value, attribute, extents)
        return value


_hint("multiple_of", "tile.divisible")
_hint("max_contiguous", "tile.contiguous")
_hint("max_constancy", "tile.constant")


@meaning("assume")
def assume(b: Builder, cond: Any) -> None:
    if not to_value(b, cond).dtype.is_bool():
        raise CompileError(f"assume takes a condition (int1), not {describe(cond)}", "TFW0201")


@meaning("gdc_wait")
def gdc_wait(b: Builder) -> None:
    """Launches follow one another: the one before is complete."""


@meaning("gdc_launch_dependents")
def gdc_launch_dependents(b: Builder) -> None:
    """Launches follow one another: none may begin early."""


@meaning("expect_zero")
def expect_zero(b: Builder, x: Any, mask: Any) -> Any:
    to_value(b, mask)
    return x
