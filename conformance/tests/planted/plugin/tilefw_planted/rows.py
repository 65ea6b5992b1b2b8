"""Bugs that take one operation for another: a wrong row of an instruction table."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation

from tilefw.passes.rewriting import exchange, replace
from tilefw.tile.dialect.elementwise_op import ElementwiseOp, build
from tilefw_planted.bug import Bug, Finds, Plants, is_row, swapped


def _taken(rows: Mapping[str, str]) -> tuple[Finds, Plants]:
    def finds(op: object) -> bool:
        return isinstance(op, ElementwiseOp) and op.row.name in rows

    def plant(op: ElementwiseOp) -> None:
        result = op.results[0].type if op.row.is_cast else None
        exchange(op, build(rows[op.row.name], *op.operands, result=result))

    return finds, plant


def _both_ways(rows: Mapping[str, str]) -> Mapping[str, str]:
    return {**rows, **{to: row for row, to in rows.items()}}


_ORDERS = ("lt", "le", "gt", "ge")
_STRICT = {f"{order}t{kind}": f"{order}e{kind}" for order in "lg" for kind in "suf"}
_SIGNS = {f"{order}s": f"{order}u" for order in _ORDERS}

# What was done wrong, how it shows, and the row that stands for each row.
_ROWS: dict[str, tuple[str, str, Mapping[str, str]]] = {
    "bound-included": ("< is selected as <=", "at equality", _STRICT),
    "bound-excluded": ("<= is selected as <", "at equality", {to: row for row, to in _STRICT.items()}),
    "compare-turned": (
        "a compare's operands are in the other's order", "wherever the two differ",
        _both_ways({"lts": "gts", "les": "ges", "ltf": "gtf", "lef": "gef", "ltu": "gtu", "leu": "geu"}),
    ),
    "equal-inverted": ("== and != change places", "everywhere", _both_ways({"eqi": "nei", "eqf": "nef"})),
    "signed-as-unsigned": ("signed compares as unsigned", "with one negative operand", _SIGNS),
    "unsigned-as-signed": ("unsigned compares as signed", "with one top bit set", {to: row for row, to in _SIGNS.items()}),
    "shift-arithmetic": ("a logical shift to the right keeps the sign", "with the top bit set", {"shru": "shrs"}),
    "shift-logical": ("an arithmetic shift to the right fills with zeros", "for negative values", {"shrs": "shru"}),
    "divide-unsigned": ("signed division and remainder are unsigned", "for negative values", {"divs": "divu", "rems": "remu"}),
    "divide-signed": ("unsigned division and remainder are signed", "with the top bit set", {"divu": "divs", "remu": "rems"}),
    "high-half-signed": ("the high half of an unsigned product is the signed one", "with the top bit set", {"mulhu": "mulhs"}),
    "order-unsigned": ("signed minimum and maximum are unsigned", "with one negative operand", {"mins": "minu", "maxs": "maxu"}),
    "order-signed": ("unsigned minimum and maximum are signed", "with one top bit set", {"minu": "mins", "maxu": "maxs"}),
    "minimum-for-maximum": (
        "minimum and maximum change places", "wherever operands differ",
        _both_ways({"minf": "maxf", "mins": "maxs", "minf_nan": "maxf_nan", "minu": "maxu"}),
    ),
    "nan-dropped": (
        "what must give NaN gives the number", "with a NaN", {"maxf_nan": "maxf", "minf_nan": "minf", "clampf_nan": "clampf"},
    ),
    "nan-kept": (
        "what must give the number gives NaN", "with a NaN", {"maxf": "maxf_nan", "minf": "minf_nan", "clampf": "clampf_nan"},
    ),
    "exp2-for-exp": ("the machine's exp2 without the factor log2(e)", "everywhere but at 0", {"exp": "exp2"}),
    "exp-for-exp2": ("exp in place of exp2", "everywhere but at 0", {"exp2": "exp"}),
    "log2-for-log": ("the machine's log2 without the factor ln(2)", "everywhere but at 1", {"log": "log2"}),
    "cosine-for-sine": ("sine and cosine change places", "everywhere", _both_ways({"sin": "cos"})),
    "root-not-inverted": ("sqrt in place of 1/sqrt", "everywhere but at 1", {"rsqrt": "sqrt"}),
    "truncate-for-floor": ("floor is selected as truncation", "for negative fractions", {"floor": "trunc"}),
    "floor-for-truncate": ("truncation is selected as floor", "for negative fractions", {"trunc": "floor"}),
    "ceiling-for-floor": ("floor is selected as ceiling", "for fractions", {"floor": "ceil", "ceil": "floor"}),
    "zero-extended": ("signed integers are zero extended", "for negative values", {"exts": "extu"}),
    "sign-extended": ("unsigned integers are sign extended", "with the top bit set", {"extu": "exts"}),
    "to-float-unsigned": ("signed integers become floats as unsigned", "for negative values", {"s2f": "u2f"}),
    "to-float-signed": ("unsigned integers become floats as signed", "with the top bit set", {"u2f": "s2f"}),
    "to-int-unsigned": ("floats become unsigned in place of signed integers", "for negative values", {"f2s": "f2u"}),
    "or-for-xor": ("exclusive or is selected as or", "with both bits set", {"xori": "ori"}),
    "and-for-or": ("and and or change places", "where bits differ", _both_ways({"andi": "ori"})),
}


def _is_ordered(op: Operation) -> bool:
    ordered = ("subf", "subi", "divf", "div_rn", "divs", "divu", "rems", "remu", "remf", "pow", "shl", "shrs", "shru")
    return is_row(op, *ordered)


BUGS = [
    *(Bug(name, mistake, shows, *_taken(rows)) for name, (mistake, shows, rows) in _ROWS.items()),
    Bug(
        "absolute-missed", "|x| is selected as a plain move", "for negative values",
        lambda op: is_row(op, "absf", "absi"), lambda op: replace(op, op.operands[0]),
    ),
    Bug(
        "operands-swapped", "subtrahend, divisor, exponent or shift count comes first", "wherever the two differ",
        _is_ordered, lambda op: swapped(op, 0, 1),
    ),
    Bug(
        "branches-swapped", "select takes its branches in the other order", "wherever the two differ",
        lambda op: is_row(op, "select"), lambda op: swapped(op, 1, 2),
    ),
]
