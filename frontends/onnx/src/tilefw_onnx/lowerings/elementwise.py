"""Operators that compute each element from the elements at its place: one formula each, over NumPy's broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce

from tilefw.api.dtypes import dtype
from tilefw_onnx.lowerings.node import Node, NodeTensor
from tilefw_onnx.lowerings.places import contiguous
from tilefw_onnx.lowerings.text import KernelText, cover, largest, least


@dataclass(frozen=True, slots=True)
class Formula:
    """An operator's value of the operands `{0}`, `{1}`, … and its attributes by name; `{bits}` is the width of the first operand.

    `wide`: 16-bit floats are computed in fp32 and rounded once at the end.
    """

    text: str
    wide: bool = True


def _folded(text: str, last: str = "<all>") -> Callable[[Node], Formula]:
    """Any number of operands, `<x>` and `<y>` at a time; `last` is applied to `<all>` of them, and knows their number as `<n>`."""

    def formula(node: Node) -> Formula:
        places = [f"{{{i}}}" for i in range(len(node.inputs))]
        whole = reduce(lambda left, right: text.replace("<x>", left).replace("<y>", right), places)
        return Formula(last.replace("<all>", whole).replace("<n>", str(len(places))), wide=False)

    return formula


def _by_type(floats: str, integers: str) -> Callable[[Node], Formula]:
    return lambda node: Formula(floats if dtype(node.input(0).dtype).is_float else integers)


def _mod(node: Node) -> Formula:
    """`fmod=1` has the sign of the dividend, as C's; else of the divisor, as Python's."""
    if node.attributes["fmod"] or not dtype(node.input(0).dtype).is_signed:
        return Formula("{0} % {1}")
    return _by_type("functions.floor_mod({0}, {1})", "functions.integer_floor_mod({0}, {1})")(node)


def _power(node: Node) -> Formula:
    base, exponent = (dtype(node.input(i).dtype).is_float for i in (0, 1))
    if base:
        return Formula("libdevice.pow({0}, {1})" if exponent else "libdevice.pow({0}, {1}.to(tl.float32))")
    return Formula("functions.integer_to_float_power({0}, {1})" if exponent else "functions.integer_power({0}, {1})")


def _shift(node: Node) -> Formula:
    function = {"LEFT": "functions.shift_left", "RIGHT": "functions.shift_right"}[node.attributes["direction"]]
    return Formula(f"{function}({{0}}, {{1}}, {{bits}})")


def _gelu(node: Node) -> Formula:
    return Formula("functions.gelu_by_tanh({0})" if node.attributes["approximate"] == "tanh" else "functions.gelu({0})")


def _is_infinite(node: Node) -> Formula:
    signs = {"detect_positive": "{0} == float('inf')", "detect_negative": "{0} == float('-inf')"}
    asked = [f"({text})" for name, text in signs.items() if node.attributes[name]]
    return Formula(" | ".join(asked) or "{0} != {0}")


def _clip(node: Node) -> Formula:
    low = "{1}" if node.optional(1) is not None else least(node.input(0).dtype)
    high = f"{{{len(node.given()) - 1}}}" if node.optional(2) is not None else largest(node.input(0).dtype)
    return Formula(f"tl.minimum(tl.maximum({{0}}, {low}), {high})", wide=False)


_NAN = "propagate_nan=tl.PropagateNan.ALL"

FORMULAS: Mapping[str, Formula | Callable[[Node], Formula]] = {
    # Arithmetic.
    "Add": Formula("{0} + {1}", wide=False),
    "Sub": Formula("{0} - {1}", wide=False),
    "Mul": Formula("{0} * {1}", wide=False),
    "Div": _by_type("tl.div_rn({0}, {1})", "{0} // {1}"),
    "Mod": _mod,
    "Pow": _power,
    "Max": _folded(f"tl.maximum(<x>, <y>, {_NAN})"),
    "Min": _folded(f"tl.minimum(<x>, <y>, {_NAN})"),
    "Sum": _folded("(<x> + <y>)"),
    "Mean": _folded("(<x> + <y>)", "<all> / <n>.0"),
    "Neg": Formula("-{0}", wide=False),
    "Abs": Formula("tl.abs({0})", wide=False),
    "Sign": Formula("functions.sign({0})"),
    "Reciprocal": Formula("tl.div_rn(1.0, {0})"),
    "BitShift": _shift,
    "BitwiseAnd": Formula("{0} & {1}"),
    "BitwiseOr": Formula("{0} | {1}"),
    "BitwiseXor": Formula("{0} ^ {1}"),
    "BitwiseNot": Formula("~{0}"),

    # Mathematical functions.
    "Acos": Formula("functions.acos({0})"),
    "Acosh": Formula("functions.acosh({0})"),
    "Asin": Formula("functions.asin({0})"),
    "Asinh": Formula("functions.asinh({0})"),
    "Atan": Formula("functions.atan({0})"),
    "Atanh": Formula("functions.atanh({0})"),
    "Cos": Formula("tl.cos({0})"),
    "Cosh": Formula("functions.cosh({0})"),
    "Sin": Formula("tl.sin({0})"),
    "Sinh": Formula("functions.sinh({0})"),
    "Tan": Formula("functions.tan({0})"),
    "Tanh": Formula("libdevice.tanh({0})"),
    "Exp": Formula("tl.exp({0})"),
    "Log": Formula("tl.log({0})"),
    "Sqrt": Formula("tl.sqrt_rn({0})"),
    "Erf": Formula("tl.erf({0})"),
    "Ceil": Formula("tl.ceil({0})"),
    "Floor": Formula("tl.floor({0})"),
    "Round": Formula("libdevice.rint({0})"),

    # Activations.
    "Celu": Formula("functions.celu({0}, {alpha})"),
    "Elu": Formula("functions.elu({0}, {alpha})"),
    "Gelu": _gelu,
    "HardSigmoid": Formula("functions.hard_sigmoid({0}, {alpha}, {beta})"),
    "HardSwish": Formula("{0} * functions.hard_sigmoid({0}, 1.0 / 6.0, 0.5)"),
    "LeakyRelu": Formula("tl.where({0} < 0, {0} * {alpha}, {0})"),
    "Mish": Formula("functions.mish({0})"),
    "PRelu": Formula("tl.where({0} < 0, {0} * {1}, {0})"),
    "Relu": Formula(f"tl.maximum({{0}}, 0.0, {_NAN})", wide=False),
    "Selu": Formula("functions.selu({0}, {alpha}, {gamma})"),
    "Shrink": Formula("functions.shrink({0}, {bias}, {lambd})"),
    "Sigmoid": Formula("functions.sigmoid({0})"),
    "Softplus": Formula("functions.softplus({0})"),
    "Softsign": Formula("{0} / (1.0 + tl.abs({0}))"),
    "Swish": Formula("{0} * functions.sigmoid({alpha} * {0})"),
    "ThresholdedRelu": Formula("tl.where({0} > {alpha}, {0}, 0.0)"),

    # Comparison and choice.
    "Equal": Formula("{0} == {1}"),
    "Greater": Formula("{0} > {1}"),
    "GreaterOrEqual": Formula("{0} >= {1}"),
    "Less": Formula("{0} < {1}"),
    "LessOrEqual": Formula("{0} <= {1}"),
    "And": Formula("{0} & {1}"),
    "Or": Formula("{0} | {1}"),
    "Xor": Formula("{0} ^ {1}"),
    "Not": Formula("~{0}"),
    "Where": Formula("tl.where({0}, {1}, {2})", wide=False),
    "IsInf": _is_infinite,
    "IsNaN": Formula("libdevice.isnan({0})"),
    "Clip": _clip,
}


def lower(node: Node) -> KernelText:
    """out[i] = formula(inputs[i], …), element by element, broadcast to the output's shape."""
    known = FORMULAS[node.operator]
    formula = known if isinstance(known, Formula) else known(node)
    out = node.output(0)
    text = KernelText(node)
    cover(text, out.size)
    operands = [_operand(text, tensor, out.shape, formula.wide) for tensor in node.given()]
    value = formula.text.format(*operands, bits=dtype(node.input(0).dtype).bits, **constants(node))
    text.add(f"result = {value}")
    text.store(out, "index", f"result.to({text.pointer(out)}.dtype.element_ty)", "inside")
    return text


def _operand(text: KernelText, tensor: NodeTensor, shape: tuple[int, ...], wide: bool) -> str:
    return text.load(tensor, contiguous(tensor.shape).broadcast(shape).offset("index"), "inside", wide=wide)


def constants(node: Node) -> dict[str, str]:
    """Numbers as kernels write them; ONNX holds floats in 32 bits, so the constants are those exactly."""
    return {name: repr(value) for name, value in node.attributes.items() if isinstance(value, float | int)}
