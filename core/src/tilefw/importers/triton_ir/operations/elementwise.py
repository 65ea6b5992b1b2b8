"""Arithmetic, comparisons, conversions and functions: most are rows of the elementwise table under another name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tilefw.language as tl
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import bitcast
from tilefw.frontend.values import RuntimeValue
from tilefw.importers.triton_ir.types import type_of

if TYPE_CHECKING:
    from tilefw.importers.triton_ir.translation import Translation
    from tilefw.importers.triton_ir.tree import TextOperation

meaning = Meanings()

# Operation: the row that it is.
ROWS: dict[str, str] = {
    **{f"arith.{name}": name for name in (
        "addi", "subi", "muli", "andi", "ori", "xori", "addf", "subf", "mulf", "divf", "remf", "negf",
    )},
    "arith.divsi": "divs", "arith.divui": "divu", "arith.remsi": "rems", "arith.remui": "remu",
    "arith.shli": "shl", "arith.shrsi": "shrs", "arith.shrui": "shru",
    "arith.minsi": "mins", "arith.maxsi": "maxs", "arith.minui": "minu", "arith.maxui": "maxu",
    "arith.minnumf": "minf", "arith.maxnumf": "maxf", "arith.minimumf": "minf_nan", "arith.maximumf": "maxf_nan",
    **{f"math.{name}": name for name in (
        "exp", "exp2", "log", "log2", "log1p", "expm1", "sin", "cos", "tanh", "erf", "sqrt", "rsqrt", "floor", "ceil", "trunc",
        "fma", "absf", "absi",
    )},
    "math.roundeven": "round_even", "math.powf": "pow", "math.ctlz": "clz", "math.ctpop": "popc",
    "tt.approx_divf": "divf", "tt.precise_divf": "div_rn", "tt.precise_sqrt": "sqrt_rn", "tt.mulhiui": "mulhu",
}
# Operation: the row of a conversion that keeps the shape.
CASTS: dict[str, str] = {
    "arith.extsi": "exts", "arith.extui": "extu", "arith.trunci": "trunci", "arith.extf": "castf", "arith.truncf": "castf",
    "arith.sitofp": "s2f", "arith.uitofp": "u2f", "arith.fptosi": "f2s", "arith.fptoui": "f2u", "tt.fp_to_fp": "castf",
    "tt.int_to_ptr": "int_to_ptr", "tt.ptr_to_int": "ptr_to_int",
}
INTEGER_PREDICATES: dict[str, str] = {
    "eq": "eqi", "ne": "nei", "slt": "lts", "sle": "les", "sgt": "gts", "sge": "ges", "ult": "ltu", "ule": "leu", "ugt": "gtu",
    "uge": "geu",
}
# An unordered predicate is true with a NaN, as the opposite of the ordered one of the opposite is.
FLOAT_PREDICATES: dict[str, str] = {"oeq": "eqf", "olt": "ltf", "ole": "lef", "ogt": "gtf", "oge": "gef", "une": "nef"}
_OPPOSITES: dict[str, str] = {"ult": "gef", "ule": "gtf", "ugt": "lef", "uge": "ltf"}
_ROUNDINGS = {"rtz": "rtz", "rtne": "rtne", "toward_zero": "rtz", "to_nearest_even": "rtne"}


def _row(row: str) -> Callable[[Translation, TextOperation], RuntimeValue]:
    return lambda t, s: t.b.row(row, *_typed(t, s))


def _typed(t: Translation, s: TextOperation) -> list[Any]:
    """The operands, which have the type that the text says."""
    values, type = t.operands(s), type_of(s.types[0])
    if any(value.type != type for value in values):
        raise ValueError(f"the operands are {', '.join(map(str, values))}, and the text says {s.types[0]}")
    return values


def _cast(row: str) -> Callable[[Translation, TextOperation], RuntimeValue]:
    def build(t: Translation, s: TextOperation) -> RuntimeValue:
        (value,) = _typed(t, s)
        named = next((_ROUNDINGS[word] for word in s.words if word in _ROUNDINGS), None)
        element = t.result_type(s).scalar
        narrows = row == "castf" and element.primitive_bitwidth < value.dtype.primitive_bitwidth
        return t.b.cast(row, value, element, named if narrows else None)

    return build


for _name, _row_name in ROWS.items():
    meaning(_name)(_row(_row_name))
for _name, _row_name in CASTS.items():
    meaning(_name)(_cast(_row_name))


@meaning("arith.bitcast")
@meaning("tt.bitcast")
def reinterpret(t: Translation, s: TextOperation) -> RuntimeValue:
    (value,) = t.operands(s)
    return bitcast(t.b, value, t.result_type(s).scalar)


@meaning("arith.cmpi")
def compare_integers(t: Translation, s: TextOperation) -> RuntimeValue:
    return t.b.compare(INTEGER_PREDICATES[s.words[0]], *t.operands(s))


@meaning("arith.cmpf")
def compare_floats(t: Translation, s: TextOperation) -> RuntimeValue:
    predicate, (left, right) = s.words[0], t.operands(s)
    if predicate in FLOAT_PREDICATES:
        return t.b.compare(FLOAT_PREDICATES[predicate], left, right)
    if predicate in _OPPOSITES:
        return _inverted(t, t.b.compare(_OPPOSITES[predicate], left, right))
    if predicate in ("one", "ueq"):
        differs = t.b.row("ori", t.b.compare("ltf", left, right), t.b.compare("gtf", left, right))
        return differs if predicate == "one" else _inverted(t, differs)
    if predicate in ("ord", "uno"):
        unordered = t.b.row("ori", *(t.b.row("isnan", x, type=x.type.with_element_ty(tl.int1)) for x in (left, right)))
        return unordered if predicate == "uno" else _inverted(t, unordered)
    if predicate in ("true", "false"):
        return t.b.constant(predicate == "true", tl.int1, left.shape)
    raise ValueError(f"{predicate} is no predicate of arith.cmpf")


def _inverted(t: Translation, value: RuntimeValue) -> RuntimeValue:
    return t.b.row("xori", value, t.b.constant(True, tl.int1, value.shape))


@meaning("arith.select")
def select(t: Translation, s: TextOperation) -> Any:
    condition, left, right = t.operands(s)
    if left.is_tile and not condition.is_tile:
        condition = t.b.splat(condition, left.shape)
    return t.b.row("select", condition, left, right)


@meaning("tt.clampf")
def clamp(t: Translation, s: TextOperation) -> RuntimeValue:
    return t.b.row("clampf_nan" if s.after("propagateNan") == "all" else "clampf", *t.operands(s))
