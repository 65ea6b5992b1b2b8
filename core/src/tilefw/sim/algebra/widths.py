"""How wide a primitive's results are, given the widths of its operands: a rule for each primitive, found by the recording form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def primitive(widths: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark an abstract method as a primitive; `widths` gets what the method gets, with each value replaced by its width."""

    def mark(method: Callable[..., Any]) -> Callable[..., Any]:
        method.widths = widths  # type: ignore[attr-defined]
        return method

    return mark


def width_of_first(a: int, *_: Any, **__: Any) -> int:
    return a


def one_bit(*_: Any, **__: Any) -> int:
    return 1


def float_width(fmt: str) -> int:
    widths = {"f64": 64, "f32": 32, "tf32": 32, "f16": 16, "bf16": 16}
    return widths.get(fmt, 8)


def no_result(*_: Any, **__: Any) -> None:
    return None


def one_word(*_: Any, **__: Any) -> int:
    return 32
