"""globaltimer, memrealtime, smid: what the machine knows while a kernel runs; num_warps, num_threads: what it runs a program on."""

from __future__ import annotations

from typing import Any

from tilefw.api.errors import UnsupportedError
from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import cast, to_value
from tilefw.frontend.values import RuntimeValue

meaning = Meanings()


@meaning("globaltimer")
def globaltimer(b: Builder) -> RuntimeValue:
    return b.observe("nanoseconds")


@meaning("memrealtime")
def memrealtime(b: Builder) -> RuntimeValue:
    return b.observe("ticks")


@meaning("smid")
def smid(b: Builder) -> RuntimeValue:
    return b.observe("processor")


@meaning("num_warps")
def num_warps(b: Builder) -> int:
    return _warps(b, "num_warps")[0]


@meaning("num_threads")
def num_threads(b: Builder) -> int:
    warps, lanes = _warps(b, "num_threads")
    return warps * lanes


def _warps(b: Builder, name: str) -> tuple[int, int]:
    if b.warps is None:
        raise UnsupportedError(
            f"`{name}` has no value here: no warps run the program, or how many is not known",
            "TFW0107",
            note="the reference and chips without lanes have no warps",
            help="pass the number as a tl.constexpr argument",
        )
    return b.warps


@meaning("convert_custom_float8")
def convert_custom_float8(b: Builder, arg: Any, dst_ty: Any, fp_downcast_rounding: Any) -> RuntimeValue:
    return cast(b, to_value(b, arg), dst_ty, fp_downcast_rounding)
