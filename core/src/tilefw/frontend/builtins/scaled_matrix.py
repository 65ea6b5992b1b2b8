"""dot_scaled: which formats, scales and shapes multiply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import bitcast, constant
from tilefw.frontend.semantics import checked_flag, not_constexpr
from tilefw.frontend.values import RuntimeValue, describe, named

meaning = Meanings()

# Element types that a format may be given in, its own first; the bits of others are read as the format's.
_FORMATS: dict[str, tuple[tl.dtype, ...]] = {
    "e2m1": (tl.uint8, tl.float4e2m1), "e2m3": (tl.float6e2m3,), "e3m2": (tl.float6e3m2,),
    "e4m3": (tl.float8e4nv, tl.uint8), "e5m2": (tl.float8e5, tl.uint8), "bf16": (tl.bfloat16, tl.uint16),
    "fp16": (tl.float16, tl.uint16),
}
_SCALES = (tl.uint8, tl.int8, tl.float8e4nv)
_GROUPS = (32, 16)


@dataclass(frozen=True, slots=True)
class _GivenOperand:
    """One operand as it was given: `side` is lhs or rhs, in the names of the parameters."""

    side: str
    value: RuntimeValue
    scale: RuntimeValue | None
    format: str
    k_pack: bool

    @property
    def packed(self) -> bool:
        return self.format == "e2m1" and self.value.dtype.is_int()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape in elements."""
        shape = self.value.shape
        if not self.packed:
            return shape
        dim = len(shape) - (1 if (self.side == "lhs") == self.k_pack else 2)
        return (*shape[:dim], 2 * shape[dim], *shape[dim + 1 :])

    @property
    def size_of_k(self) -> int:
        return self.shape[-1] if self.side == "lhs" else self.shape[-2]

    @property
    def rows(self) -> tuple[int, ...]:
        """The shape of the scales without their last axis."""
        return self.shape[:-1] if self.side == "lhs" else (*self.shape[:-2], self.shape[-1])


@meaning("dot_scaled")
def dot_scaled(
    b: Builder, lhs: Any, lhs_scale: Any, lhs_format: Any, rhs: Any, rhs_scale: Any, rhs_format: Any, acc: Any, fast_math: Any,
    lhs_k_pack: Any, rhs_k_pack: Any, out_dtype: Any,
) -> RuntimeValue:
    checked_flag(fast_math, "fast_math")
    if out_dtype != tl.float32:
        raise CompileError(
            f"tl.dot_scaled gives float32, not {describe(out_dtype).removeprefix('constexpr ')}", "TFW0217", help="cast the result",
        )
    left = _operand(b, "lhs", lhs, lhs_scale, lhs_format, lhs_k_pack)
    right = _operand(b, "rhs", rhs, rhs_scale, rhs_format, rhs_k_pack)
    shape = _product_shape(left, right)
    _check_scales(left, right)
    start = constant(b, 0, tl.float32, shape) if acc is None else _accumulator(acc, shape)
    packings = ["k" if operand.k_pack else "outer" for operand in (left, right)]
    return b.dot_scaled(left.value, right.value, start, (left.scale, right.scale), packings)


def _operand(b: Builder, side: str, value: Any, scale: Any, format: Any, k_pack: Any) -> _GivenOperand:
    if not isinstance(value, RuntimeValue) or len(value.shape) not in (2, 3):
        raise CompileError(f"tl.dot_scaled multiplies tiles of two or three axes, but `{side}` is {named(value)}", "TFW0202")
    format = _format(side, format)
    packs = checked_flag(k_pack, f"{side}_k_pack")
    if value.dtype not in _FORMATS[format]:
        raise CompileError(
            f"`{side}` has format {format}, but elements of {value.dtype}", "TFW0217",
            note=f"{format} is given as {' or '.join(map(str, _FORMATS[format]))}"
            + ("; a byte of uint8 holds two elements" if format == "e2m1" else ""),
            help="read signed bytes as unsigned ones: `x.to(tl.uint8, bitcast=True)`" if value.dtype == tl.int8 else None,
        )
    if not packs and (format != "e2m1" or not value.dtype.is_int()):
        raise CompileError(
            f"{side}_k_pack is False, but elements of {format} are not packed", "TFW0217",
            note="it says along which axis the two elements of a byte of e2m1 are neighbours",
        )
    own = _FORMATS[format][0]
    kept = value.dtype if format == "e2m1" else own
    return _GivenOperand(side, bitcast(b, value, kept), _scale(side, scale), format, packs)


def _format(side: str, format: Any) -> str:
    if isinstance(format, RuntimeValue):
        raise not_constexpr(f"{side}_format")
    if not isinstance(format, str) or format not in _FORMATS:
        raise CompileError(
            f"tl.dot_scaled has no {side}_format {describe(format).removeprefix('constexpr ')}", "TFW0217",
            note=f"it is one of {', '.join(map(repr, _FORMATS))}",
        )
    return format


def _scale(side: str, scale: Any) -> RuntimeValue | None:
    if scale is None:
        return None
    if not isinstance(scale, RuntimeValue) or not scale.shape:
        raise CompileError(f"{side}_scale is a tile of scales or None, not {named(scale)}", "TFW0201")
    if scale.dtype not in _SCALES:
        raise CompileError(
            f"{side}_scale has elements of {scale.dtype}", "TFW0217",
            note="scales are bytes of e8m0, as uint8, or float8e4nv",
        )
    return scale


def _product_shape(left: _GivenOperand, right: _GivenOperand) -> tuple[int, ...]:
    note = f"`lhs` has shape {list(left.value.shape)}, `rhs` {list(right.value.shape)}" + "".join(
        f"; in elements, `{operand.side}` has {list(operand.shape)}" for operand in (left, right) if operand.packed
    )
    if len(left.shape) != len(right.shape):
        raise CompileError(
            f"tl.dot_scaled takes operands of one rank, not {len(left.shape)} and {len(right.shape)}", "TFW0202", note=note
        )
    if left.shape[:-2] != right.shape[:-2]:
        batches = f"{list(left.shape[:-2])} and {list(right.shape[:-2])}"
        raise CompileError(f"the batches of tl.dot_scaled differ: {batches}", "TFW0202", note=note)
    if left.size_of_k != right.size_of_k:
        raise CompileError(
            f"tl.dot_scaled cannot multiply rows of {left.size_of_k} elements with columns of {right.size_of_k}", "TFW0202",
            note=note,
            help="an operand of e2m1 as uint8 has half as many bytes along K as elements, unless its k_pack is False"
            if left.packed or right.packed else None,
        )
    return (*left.shape[:-1], right.shape[-1])


def _check_scales(left: _GivenOperand, right: _GivenOperand) -> None:
    scaled = [operand for operand in (left, right) if operand.scale is not None]
    for operand in scaled:
        assert operand.scale is not None
        wanted = [[*operand.rows, operand.size_of_k // group] for group in _GROUPS if operand.size_of_k % group == 0]
        if list(operand.scale.shape) not in wanted:
            transposed = " `rhs_scale` is not transposed: its rows are columns of `rhs`." if operand.side == "rhs" else ""
            raise CompileError(
                f"{operand.side}_scale has shape {list(operand.scale.shape)}, but for {operand.size_of_k} elements along K it is "
                + (" or ".join(map(str, wanted)) or "for groups of 32 or 16"), "TFW0202",
                note=f"a scale is for 32 elements along K, or for 16.{transposed}",
            )
    counts = {operand.scale.shape[-1] for operand in scaled if operand.scale is not None}
    if len(counts) > 1:
        raise CompileError("lhs_scale and rhs_scale are for groups of different sizes", "TFW0202",
                           note=f"they have {' and '.join(map(str, sorted(counts)))} scales along K")


def _accumulator(acc: Any, shape: tuple[int, ...]) -> RuntimeValue:
    if not isinstance(acc, RuntimeValue):
        raise CompileError(f"acc is a tile, not {named(acc)}", "TFW0201", help="leave it out to start from zero")
    if acc.shape != shape:
        raise CompileError(f"acc has shape {list(acc.shape)}, but the product has {list(shape)}", "TFW0202")
    if acc.dtype != tl.float32:
        raise CompileError(f"acc is {acc.dtype}, but tl.dot_scaled adds in float32", "TFW0217",
                           help="start from `tl.zeros(…, tl.float32)`")
    return acc
