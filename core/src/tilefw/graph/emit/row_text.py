"""Rows of the elementwise table as expressions of the language: what the body of a `graph.map` becomes in a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Block, SSAValue

from tilefw.api.dtypes import DType
from tilefw.api.errors import UnsupportedError
from tilefw.graph.dialect.pointwise_ops import IndexOp, YieldOp
from tilefw.tile import types
from tilefw.tile.dialect.constant_op import ConstantOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp

_FLOATS: Mapping[str, str] = {
    "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp64": "float64", "fp8e4nv": "float8e4nv", "fp8e5": "float8e5",
    "fp8e4b8": "float8e4b8", "fp8e5b16": "float8e5b16", "fp4e2m1": "float4e2m1",
}
_BOTH = "propagate_nan=tl.PropagateNan.ALL"
_EXPRESSIONS: Mapping[str, str] = {
    "addi": "{0} + {1}", "subi": "{0} - {1}", "muli": "{0} * {1}", "divs": "{0} // {1}", "rems": "{0} % {1}",
    "andi": "{0} & {1}", "ori": "{0} | {1}", "xori": "{0} ^ {1}", "shl": "{0} << {1}", "shrs": "{0} >> {1}",
    "absi": "tl.abs({0})", "mins": "tl.minimum({0}, {1})", "maxs": "tl.maximum({0}, {1})",
    "clz": "libdevice.clz({0})", "popc": "libdevice.popc({0})",
    "eqi": "{0} == {1}", "nei": "{0} != {1}", "lts": "{0} < {1}", "les": "{0} <= {1}", "gts": "{0} > {1}", "ges": "{0} >= {1}",
    "addf": "{0} + {1}", "subf": "{0} - {1}", "mulf": "{0} * {1}", "divf": "{0} / {1}", "remf": "{0} % {1}",
    "negf": "-{0}", "absf": "tl.abs({0})", "minf": "tl.minimum({0}, {1})", "maxf": "tl.maximum({0}, {1})",
    "minf_nan": f"tl.minimum({{0}}, {{1}}, {_BOTH})", "maxf_nan": f"tl.maximum({{0}}, {{1}}, {_BOTH})",
    "clampf": "tl.clamp({0}, {1}, {2})", "clampf_nan": f"tl.clamp({{0}}, {{1}}, {{2}}, {_BOTH})", "fma": "tl.fma({0}, {1}, {2})",
    "eqf": "{0} == {1}", "nef": "{0} != {1}", "ltf": "{0} < {1}", "lef": "{0} <= {1}", "gtf": "{0} > {1}", "gef": "{0} >= {1}",
    "isnan": "{0} != {0}", "select": "tl.where({0}, {1}, {2})",
    "exts": "{0}.to({to})", "trunci": "{0}.to({to})", "castf": "{0}.to({to})", "s2f": "{0}.to({to})", "f2s": "{0}.to({to})",
    "bitcast": "{0}.to({to}, bitcast=True)",
}
# Functions that the language has for 32 and 64 bits only; narrower floats pass through 32.
_FUNCTIONS: Mapping[str, str] = {
    "div_rn": "tl.div_rn({0}, {1})", "sqrt": "tl.sqrt({0})", "sqrt_rn": "tl.sqrt_rn({0})", "rsqrt": "tl.rsqrt({0})",
    "exp": "tl.exp({0})", "exp2": "tl.exp2({0})", "log": "tl.log({0})", "log2": "tl.log2({0})", "sin": "tl.sin({0})",
    "cos": "tl.cos({0})", "erf": "tl.erf({0})", "floor": "tl.floor({0})", "ceil": "tl.ceil({0})",
    "tanh": "libdevice.tanh({0})", "pow": "libdevice.pow({0}, {1})", "log1p": "libdevice.log1p({0})",
    "expm1": "libdevice.expm1({0})", "trunc": "libdevice.trunc({0})", "round_even": "libdevice.rint({0})",
}
_UNSIGNED: Mapping[str, str] = {
    "divu": "{0} // {1}", "remu": "{0} % {1}", "shru": "{0} >> {1}", "minu": "tl.minimum({0}, {1})", "maxu": "tl.maximum({0}, {1})",
    "ltu": "{0} < {1}", "leu": "{0} <= {1}", "gtu": "{0} > {1}", "geu": "{0} >= {1}", "mulhu": "tl.umulhi({0}, {1})",
    "extu": "{0}.to({to})", "u2f": "{0}.to({to})",
}


def spelled(kind: DType) -> str:
    """An element type as kernels write it: `tl.float32` for fp32."""
    return f"tl.{_FLOATS[kind.name]}" if kind.is_float else f"tl.int{kind.bits}"


def constant_text(value: float | int, type: Attribute, rank: int) -> str:
    """A constant as a tile of one element."""
    kind = types.dtype_of(type)
    number = repr(float(value)) if kind.is_float else str(int(value))
    number = number if number[-1].isdigit() else f"float('{number}')"
    return f"tl.full({(1,) * rank}, {number}, {spelled(kind)})"


def op_text(op: ElementwiseOp, operands: Sequence[str]) -> str:
    """The expression of one op. Raises UnsupportedError TFW0992 for a row that the language has not."""
    row, source, result = op.row, types.dtype_of(op.operands[op.row.typed_by].type), types.dtype_of(op.result.type)
    to = spelled(result)
    given = [f"({one})" if one.startswith("-") else one for one in operands]
    if row.name in ("castf",) and op.rounding == "rtz":
        return f'{given[0]}.to({to}, fp_downcast_rounding="rtz")'
    if row.name == "trunci" and result.bits == 1:
        return f"({given[0]} & 1) != 0"
    if row.name == "exts" and source.bits == 1:
        return f"-({given[0]}.to({to}))"
    if row.name in ("extu", "u2f") and source.bits == 1:
        return f"{given[0]}.to({to})"
    if row.name == "f2u":
        return f"{given[0]}.to(tl.uint{result.bits}).to({to}, bitcast=True)"
    if row.name in _EXPRESSIONS:
        return _EXPRESSIONS[row.name].format(*given, to=to)
    if row.name in _UNSIGNED:
        return _unsigned(row.name, given, source, result)
    if row.name not in _FUNCTIONS:
        raise UnsupportedError(f"the language has no expression for tile.{row.name}", code="TFW0992")
    if source.bits >= 32:
        return _FUNCTIONS[row.name].format(*given)
    return f"{_FUNCTIONS[row.name].format(*(f'{one}.to(tl.float32)' for one in given))}.to({to})"


def _unsigned(row: str, given: Sequence[str], source: DType, result: DType) -> str:
    """A row on the unsigned integers of the bits."""
    text = _UNSIGNED[row].format(*(f"{one}.to(tl.uint{source.bits}, bitcast=True)" for one in given), to=spelled(result))
    kept = result.bits == 1 or row in ("extu", "u2f")
    return text if kept else f"({text}).to({spelled(result)}, bitcast=True)"


def body_lines(block: Block, operands: Sequence[str], index: Callable[[int], str], name: Callable[[], str], rank: int) -> tuple[
    list[str], list[str]
]:
    """The statements of a body of scalar ops, and the names of its results. `index(dim)` is the place along a dim, `name()` gives
    names for values."""
    known: dict[SSAValue, str] = dict(zip(block.args, operands, strict=True))
    lines: list[str] = []
    for op in block.ops:
        if isinstance(op, YieldOp):
            return lines, [known[value] for value in op.operands]
        if isinstance(op, ConstantOp):
            text = constant_text(op.value, op.result.type, rank)
        elif isinstance(op, IndexOp):
            assert isinstance(op.dim, IntegerAttr)
            text = index(op.dim.value.data)
        else:
            assert isinstance(op, ElementwiseOp)
            text = op_text(op, [known[value] for value in op.operands])
        known[op.results[0]] = name()
        lines.append(f"{known[op.results[0]]} = {text}")
    raise AssertionError("a body ends in graph.yield")
