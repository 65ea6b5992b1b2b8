"""How a function of libdevice is defined: the operand types that it takes, none of them promoted, and what it computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilefw.api.errors import CompileError
from tilefw.frontend.arithmetic import together
from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import to_value
from tilefw.frontend.libdevice.term import Term
from tilefw.frontend.values import RuntimeValue

Signature = tuple[str, ...]
Signatures = tuple[Signature, ...]
Compute = Callable[..., Term]


def of_one_type(count: int, *types: str) -> Signatures:
    """Signatures of `count` operands that all have one of the types."""
    return tuple((name,) * count for name in types)


def floats(count: int) -> Signatures:
    """Signatures of `count` operands that all are float32 or all float64."""
    return of_one_type(count, "fp32", "fp64")


def operands(b: Builder, function: str, signatures: Signatures, *arguments: Any) -> list[Term]:
    """The operands, which have one of the signatures, broadcast to one shape."""
    values = [to_value(b, argument) for argument in arguments]
    if tuple(value.dtype.name for value in values) not in signatures:
        raise CompileError(
            f"libdevice.{function} takes {_in_words(signatures)}, not {', '.join(str(v.dtype) for v in values)}",
            "TFW0209",
            note="functions of libdevice promote nothing",
            help="cast first, e.g. `x.to(tl.float32)`",
        )
    return [Term(b, value) for value in together(b, values)]


def _in_words(signatures: Signatures) -> str:
    if all(len(set(signature)) == 1 for signature in signatures):
        return " or ".join(signature[0] for signature in signatures)
    return " or ".join("(" + ", ".join(signature) + ")" for signature in signatures)


class Functions:
    """The functions that one file defines; `meaning` has them as the front end calls them."""

    def __init__(self) -> None:
        self.meaning = Meanings()

    def define(self, name: str, signatures: Signatures, compute: Compute) -> None:
        """Add a function: `compute` gets one term for each operand."""

        def build(b: Builder, *arguments: Any) -> RuntimeValue:
            return compute(*operands(b, name, signatures, *arguments)).value

        self.meaning(f"libdevice.{name}")(build)

    def __call__(self, signatures: Signatures) -> Callable[[Compute], Compute]:
        """The decorator of a function that is defined under its own name."""

        def register(compute: Compute) -> Compute:
            self.define(compute.__name__, signatures, compute)
            return compute

        return register
