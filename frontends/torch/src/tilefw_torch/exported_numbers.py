"""PyTorch's operators of numbers beside those of exported_ops.py: quotients and remainders, kinds of numbers, further functions."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, log
from typing import Any

from tilefw.api.dtypes import dtype as dtype_named
from tilefw.graph.builder import GraphValue, ModuleBuilder
from tilefw_torch.exported_ops import as_tensor, cast, chosen_row, filled, is_float
from tilefw_torch.exported_tensor import ExportedTensor, Rule, in_float32


def _quotient(b: ModuleBuilder, out: ExportedTensor, left: Any, right: Any, *, rounding_mode: str | None = None) -> GraphValue:
    real = dtype_named(out.dtype).is_float
    a, c = as_tensor(b, left, out), as_tensor(b, right, out)
    if rounding_mode is None or not real:
        found = b.map("div_rn" if real else "divs", a, c)
        return _one_less(b, found, b.map("rems", a, c), c, out) if rounding_mode == "floor" else found
    if rounding_mode == "trunc":
        return b.map("trunc", b.map("div_rn", a, c))
    return _floor_quotient(b, out, a, c)


def _floor_quotient(b: ModuleBuilder, out: ExportedTensor, a: GraphValue, c: GraphValue) -> GraphValue:
    """As PyTorch has it (c10/util/BFloat16-math.h, div_floor_floating): of what is left without the remainder, which is whole."""
    rest = b.map("remf", a, c)
    whole = _one_less(b, b.map("div_rn", b.map("subf", a, rest), c), rest, c, out)
    low = b.map("floor", whole)
    near = b.map("select", b.map("gtf", b.map("subf", whole, low), 0.5), b.map("addf", low, 1.0), low)
    return b.map("select", b.map("eqf", c, 0.0), b.map("div_rn", a, c), near)


def _one_less(b: ModuleBuilder, quotient: GraphValue, rest: GraphValue, divisor: GraphValue, out: ExportedTensor) -> GraphValue:
    """A quotient that was rounded towards zero, rounded down."""
    sub = "subf" if dtype_named(out.dtype).is_float else "subi"
    return b.map("select", _apart(b, rest, divisor), b.map(sub, quotient, 1), quotient)


def _apart(b: ModuleBuilder, rest: GraphValue, divisor: GraphValue) -> GraphValue:
    """Whether a remainder is not zero and has another sign than the divisor."""
    less, other = ("ltf", "nef") if is_float(rest) else ("lts", "nei")
    return b.map("andi", b.map(other, rest, 0), b.map("xori", b.map(less, rest, 0), b.map(less, divisor, 0)))


def _rounded_first(rule: Rule) -> Rule:
    """The rule with numbers as elements of the result's type: PyTorch computes remainders by 0.7 by what float16 has for it."""

    def computed(b: ModuleBuilder, out: ExportedTensor, left: Any, right: Any) -> GraphValue:
        return rule(b, out, as_tensor(b, left, out), as_tensor(b, right, out))

    return computed


def _remainder(b: ModuleBuilder, out: ExportedTensor, left: Any, right: Any) -> GraphValue:
    """With the sign of the divisor."""
    rest, c = _rest(b, out, left, right), as_tensor(b, right, out)
    return b.map("select", _apart(b, rest, c), b.map(chosen_row("addf", "addi", out), rest, c), rest)


def _rest(b: ModuleBuilder, out: ExportedTensor, left: Any, right: Any) -> GraphValue:
    """With the sign of the dividend."""
    return b.map(chosen_row("remf", "rems", out), as_tensor(b, left, out), as_tensor(b, right, out))


def _is_nan(b: ModuleBuilder, out: ExportedTensor, x: GraphValue) -> GraphValue:
    return b.map("isnan", x) if is_float(x) else filled(b, 0, out)


def _is_infinite(b: ModuleBuilder, out: ExportedTensor, x: GraphValue) -> GraphValue:
    return b.map("eqf", b.map("absf", x), inf) if is_float(x) else filled(b, 0, out)


def _sign(b: ModuleBuilder, out: ExportedTensor, x: GraphValue) -> GraphValue:
    """Of NaN, zero."""
    greater, less = ("gtf", "ltf") if is_float(x) else ("gts", "lts")
    below = b.map("select", b.map(less, x, 0), b.full(-1, x), b.full(0, x))
    return b.map("select", b.map(greater, x, 0), b.full(1, x), below)


def _power_of(b: ModuleBuilder, out: ExportedTensor, base: float, exponent: GraphValue) -> GraphValue:
    if not dtype_named(out.dtype).is_float:
        raise NotImplementedError("a power of an integer whose exponent is no number")
    held = cast(b, exponent, out.dtype)
    return b.map("exp2", held) if base == 2 else b.map("pow", b.full(base, held), held)


def _common_logarithm(b: ModuleBuilder, out: ExportedTensor, x: GraphValue) -> GraphValue:
    return b.map("mulf", b.map("log", cast(b, x, out.dtype)), 1 / log(10))


_REMAINDERS: Mapping[str, Rule] = {
    "remainder.Tensor": _remainder, "remainder.Scalar": _remainder, "remainder.Scalar_Tensor": _remainder, "fmod.Tensor": _rest,
    "fmod.Scalar": _rest,
}
RULES: Mapping[str, Rule] = {
    **in_float32({
        "div.Tensor_mode": _quotient, "div.Scalar_mode": _quotient, "isnan.default": _is_nan, "isinf.default": _is_infinite,
        "sign.default": _sign, "pow.Scalar": _power_of, "log2.default": lambda b, out, x: b.map("log2", cast(b, x, out.dtype)),
        "log10.default": _common_logarithm,
    }),
    **{name: _rounded_first(rule) for name, rule in in_float32(_REMAINDERS).items()},
}
