"""Rows of the elementwise table as kernels write them, and bodies of scalar ops as statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.ir import Block, SSAValue

from tilefw.api.errors import UnsupportedError
from tilefw.graph.dialect.pointwise_ops import IndexOp, YieldOp
from tilefw.tile import types
from tilefw.tile.dialect.constant_op import ConstantOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp

_ALL = "propagate_nan=tl.PropagateNan.ALL"
# `{0}`, `{1}`, … are the operands, `{u0}` … the same as unsigned integers; `{type}` is the result's type, `{unsigned}` its
# width's, `{rounding}` that of a cast.
SPELLINGS: Mapping[str, str] = {
    "addf": "{0} + {1}", "subf": "{0} - {1}", "mulf": "{0} * {1}", "divf": "{0} / {1}", "div_rn": "libdevice.div_rn({0}, {1})",
    "remf": "{0} % {1}", "fma": "tl.fma({0}, {1}, {2})", "negf": "-{0}", "absf": "tl.abs({0})",
    "minf": "tl.minimum({0}, {1})", "maxf": "tl.maximum({0}, {1})",
    "minf_nan": f"tl.minimum({{0}}, {{1}}, {_ALL})", "maxf_nan": f"tl.maximum({{0}}, {{1}}, {_ALL})",
    "clampf": "tl.clamp({0}, {1}, {2})", "clampf_nan": f"tl.clamp({{0}}, {{1}}, {{2}}, {_ALL})",
    "sqrt": "tl.sqrt({0})", "sqrt_rn": "libdevice.sqrt_rn({0})", "rsqrt": "tl.rsqrt({0})",
    "exp": "tl.exp({0})", "exp2": "tl.exp2({0})", "log": "tl.log({0})", "log2": "tl.log2({0})",
    "sin": "tl.sin({0})", "cos": "tl.cos({0})", "erf": "tl.erf({0})",
    "tanh": "libdevice.tanh({0})", "pow": "libdevice.pow({0}, {1})",
    "log1p": "libdevice.log1p({0})", "expm1": "libdevice.expm1({0})",
    "floor": "tl.floor({0})", "ceil": "tl.ceil({0})", "trunc": "libdevice.trunc({0})", "round_even": "libdevice.rint({0})",
    "eqf": "{0} == {1}", "nef": "{0} != {1}", "ltf": "{0} < {1}", "lef": "{0} <= {1}", "gtf": "{0} > {1}", "gef": "{0} >= {1}",
    "isnan": "{0} != {0}",
    "addi": "{0} + {1}", "subi": "{0} - {1}", "muli": "{0} * {1}", "divs": "{0} // {1}", "rems": "{0} % {1}",
    "andi": "{0} & {1}", "ori": "{0} | {1}", "xori": "{0} ^ {1}", "mins": "tl.minimum({0}, {1})", "maxs": "tl.maximum({0}, {1})",
    "minu": "tl.minimum({u0}, {u1}).to({type})", "maxu": "tl.maximum({u0}, {u1}).to({type})",
    "divu": "({u0} // {u1}).to({type})", "remu": "({u0} % {u1}).to({type})", "shrs": "{0} >> {1}",
    "shl": "{0} << {1}", "shru": "({u0} >> {u1}).to({type})",
    "eqi": "{0} == {1}", "nei": "{0} != {1}", "lts": "{0} < {1}", "les": "{0} <= {1}", "gts": "{0} > {1}", "ges": "{0} >= {1}",
    "ltu": "{u0} < {u1}", "leu": "{u0} <= {u1}", "gtu": "{u0} > {u1}", "geu": "{u0} >= {u1}", "absi": "tl.abs({0})",
    "select": "tl.where({0}, {1}, {2})", "exts": "{0}.to({type})", "extu": "{u0}.to({type})", "trunci": "{0}.to({type})",
    "castf": "{0}.to({type}{rounding})", "s2f": "{0}.to({type})", "u2f": "{u0}.to({type})", "f2s": "{0}.to({type})",
    "f2u": "{0}.to({unsigned}).to({type})", "bitcast": "{0}.to({type}, bitcast=True)",
}
_SPELLED_TYPES = {
    "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp64": "float64", "fp8e4nv": "float8e4nv", "fp8e5": "float8e5",
    "fp8e4b8": "float8e4b8", "fp8e5b16": "float8e5b16",
}
# Functions that the language has not for 16 bits, and quotients that it leaves in 32: computed in 32 bits, rounded to 16.
_COMPUTED_WIDE = frozenset({
    "divf", "div_rn", "remf", "sqrt", "sqrt_rn", "rsqrt", "exp", "exp2", "log", "log2", "sin", "cos", "erf", "tanh", "pow", "log1p",
    "expm1", "floor", "ceil", "trunc", "round_even",
})
# Of one bit, the set one is the lesser with a sign; the language reads it as unsigned.
_OF_ONE_BIT: Mapping[str, str] = {"lts": "gtu", "les": "geu", "gts": "ltu", "ges": "leu", "mins": "maxu", "maxs": "minu"}


_FUNCTIONS = frozenset({
    "exp", "exp2", "log", "log2", "sin", "cos", "tan", "pow", "erf", "tanh", "log1p", "expm1", "divf", "div_rn", "remf", "sqrt",
    "sqrt_rn", "rsqrt",
})
_STEPS = 16  # of one of these: about the terms of a polynomial, and what reduces its argument


def weight_of(block: Block) -> int:
    """How many operations a body takes an element: functions and quotients count as several."""
    rows = [op.row.name for op in block.ops if isinstance(op, ElementwiseOp)]
    return sum(_STEPS if row in _FUNCTIONS else 1 for row in rows)


def spelled(name: str) -> str:
    """An element type as kernels write it: `tl.float32` for fp32."""
    return f"tl.{_SPELLED_TYPES.get(name, name)}"


def number_text(value: float) -> str:
    """A number as kernels write it."""
    if isinstance(value, float) and not abs(value) < float("inf"):
        return f"float({str(value)!r})"
    return repr(value)


def formula(op: ElementwiseOp, operands: list[str]) -> str:
    """What the op computes of its operands' names. Raises UnsupportedError TFW0992 for a row that kernels cannot write."""
    if op.row.name not in SPELLINGS or (op.rounding != "rtne" and op.row.name != "castf"):
        raise UnsupportedError(f"kernels do not write {op.name}", code="TFW0992")
    result = types.dtype_of(op.result.type)
    if op.row.name == "trunci" and result.bits == 1:  # the language's own cast asks for any bit
        return f"({operands[0]} & 1) != 0"
    if op.row.name in ("f2s", "f2u") and result.bits == 1:  # towards zero, and clamped
        return f"{operands[0]} <= -1.0" if op.row.name == "f2s" else f"{operands[0]} >= 1.0"
    source = types.dtype_of(op.operands[op.row.typed_by].type)
    if op.row.name in ("exts", "s2f") and source.bits == 1:  # truth values of the language have no sign
        return f"-{operands[0]}.to({spelled(result.name)})"
    rounding = ", fp_downcast_rounding='rtz'" if op.rounding == "rtz" else ""
    names: dict[str, str] = {"type": spelled(result.name), "unsigned": _unsigned(result.bits), "rounding": rounding}
    for place, (operand, word) in enumerate(zip(op.operands, operands, strict=True)):
        kind = types.dtype_of(operand.type)
        names[f"u{place}"] = word if kind.is_float else f"{word}.to({_unsigned(kind.bits)})"
    if op.row.name in _COMPUTED_WIDE and source.bits == 16:
        wide = [f"{word}.to(tl.float32)" for word in operands]
        return f"({SPELLINGS[op.row.name].format(*wide, **names)}).to({names['type']})"
    row = _OF_ONE_BIT.get(op.row.name, op.row.name) if source.bits == 1 else op.row.name
    return SPELLINGS[row].format(*operands, **names)


def _unsigned(bits: int) -> str:
    return "tl.int1" if bits == 1 else f"tl.uint{max(bits, 8)}"


def write_body(
    block: Block, arguments: list[str], index: Callable[[int], str], statement: Callable[[str], str]
) -> list[str]:
    """The names of a body's results, whose ops become statements: `statement(text)` gives the name of what it is assigned to."""
    names: dict[SSAValue, str] = dict(zip(block.args, arguments, strict=True))
    for op in block.ops:
        if isinstance(op, YieldOp):
            return [names[value] for value in op.operands]
        if isinstance(op, IndexOp):
            names[op.result] = index(op.dim.value.data)
        elif isinstance(op, ConstantOp):
            kind = types.dtype_of(op.result.type)
            value = bool(op.value) if kind.bits == 1 else op.value
            names[op.result] = statement(f"tl.full((), {number_text(value)}, {spelled(kind.name)})")
        else:
            assert isinstance(op, ElementwiseOp)
            names[op.result] = statement(formula(op, [names[value] for value in op.operands]))
    raise AssertionError("a body ends in graph.yield")
