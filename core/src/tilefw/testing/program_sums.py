"""Statements of a random program that combine elements: reductions by rows, by functions of several results, and dots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from tilefw.api.dtypes import dtype
from tilefw.testing.program_text import ProgramValue, Shape, type_of
from tilefw.testing.program_tiles import broadcast, expanded, factored, permuted, reshaped, source
from tilefw.testing.program_values import ProgramValues

FLOAT_ROWS = ("addf", "mulf", "minf", "maxf", "minf_nan", "maxf_nan")
INTEGER_ROWS = ("addi", "muli", "andi", "ori", "xori", "mins", "maxs", "minu", "maxu")

# Functions of one or several results: `%a…` are the values so far, `%b…` the next ones. But for rounding, all are associative and
# commutative.
WELFORD = """
%n = tile.addf %a2, %b2 : f32
%d = tile.subf %b0, %a0 : f32
%w = tile.divf %b2, %n : f32
%dw = tile.mulf %d, %w : f32
%m = tile.addf %a0, %dw : f32
%q = tile.addf %a1, %b1 : f32
%dd = tile.mulf %d, %dw : f32
%e = tile.mulf %dd, %a2 : f32
%s = tile.addf %q, %e : f32
return %m, %s, %n : f32, f32, f32"""
_SOFTMAX = """
%m = tile.maxf %a0, %b0 : f32
%da = tile.subf %a0, %m : f32
%db = tile.subf %b0, %m : f32
%ea = tile.exp %da : f32
%eb = tile.exp %db : f32
%sa = tile.mulf %a1, %ea : f32
%sb = tile.mulf %b1, %eb : f32
%s = tile.addf %sa, %sb : f32
return %m, %s : f32, f32"""
RING_SUM = """
%p = tile.muli %a0, %b0 : i32
%s = tile.addi %a0, %b0 : i32
%t = tile.addi %p, %s : i32
return %t : i32"""
TWO_SUMS = """
%s = tile.addf %a0, %b0 : f32
%t = tile.addi %a1, %b1 : i32
return %s, %t : f32, i32"""

# Operand and accumulator element types, the words of the op, and the least K.
_DOTS: tuple[tuple[str, str, str, int], ...] = (
    ("fp16", "fp32", "", 16), ("fp16", "fp16", "", 16), ("bf16", "fp32", "", 16), ("int8", "int32", "", 32),
    ("int8", "int32", " unsigned", 32), ("fp32", "fp32", "", 16), ("fp32", "fp32", " tf32", 16), ("fp32", "fp32", " tf32x3", 16),
    ("fp32", "fp32", " bf16x3", 16), ("fp32", "fp32", " bf16x6", 16), ("fp64", "fp64", "", 16), ("fp8e4nv", "fp32", "", 32),
    ("fp8e5", "fp32", "", 32), ("fp8e5", "fp16", "", 32),
)


def combine(
    program: ProgramValues, values: Sequence[ProgramValue], axis: int, body: str, op: str = "reduce", words: str = ""
) -> list[ProgramValue]:
    """A reduction or scan of tiles by the text of a function, whose last line begins with `return`."""
    first = values[0]
    left = first.shape if op == "scan" else first.shape[:axis] + first.shape[axis + 1 :]
    made = [ProgramValue(program.name(), value.element, left) for value in values]
    names, types = ", ".join(v.name for v in values), ", ".join(v.type for v in values)
    elements = [dtype(v.element).ir for v in values]
    arguments = [f"%{side}{i}: {element}" for side in "ab" for i, element in enumerate(elements)]
    program.line(f"{', '.join(v.name for v in made)} = tile.{op} {names} axis {axis}{words} : {types} {{")
    program.line(f"^bb0({', '.join(arguments)}):")
    *steps, end = body.strip().splitlines()
    for text in (*steps, f"tile.{op}_{end}"):
        program.line(f"  {text}")
    program.line("}")
    for value in values:
        value.used = True
    program.scope.values += made
    return made


def _by_row(program: ProgramValues) -> None:
    """Sums, products, extremes, bits; the result is sometimes spread over the tile again, as `keep_dims` is for."""
    value = two_dims(program)
    rows = FLOAT_ROWS if dtype(value.element).is_float else INTEGER_ROWS
    row, element = program.rng.choice(rows), dtype(value.element).ir
    axis = program.rng.randrange(len(value.shape))
    body = f"%r = tile.{row} %a0, %b0 : {element}\nreturn %r : {element}"
    (made,) = combine(program, [value], axis, body)
    if made.shape and program.rng.random() < 0.4:
        spread = broadcast(program, expanded(program, made, axis), value.shape)
        minus = "subf" if dtype(value.element).is_float else "subi"
        program.define(value.element, value.shape, f"tile.{minus} {value.name}, {spread.name} : {value.type}", value, spread)


def _of_booleans(program: ProgramValues) -> None:
    """Any, all, or the parity of a mask."""
    mask = program.need("int1", program.shape, whole=True)
    row, axis = program.rng.choice(("andi", "ori", "xori")), program.rng.randrange(len(mask.shape))
    combine(program, [mask], axis, f"%r = tile.{row} %a0, %b0 : i1\nreturn %r : i1")


def two_dims(program: ProgramValues) -> ProgramValue:
    value = source(program, arithmetic=True)
    if len(value.shape) == 1 and program.rng.random() < 0.5:
        return reshaped(program, value, factored(program, prod(value.shape), 2))
    return value


def _place_of_extreme(program: ProgramValues) -> None:
    """The largest or smallest with its place, ties to the first or the last."""
    value = two_dims(program)
    axis, real = program.rng.randrange(len(value.shape)), dtype(value.element).is_float
    kind = dtype(value.element).ir
    order, equal = program.rng.choice((("gtf", "eqf"), ("ltf", "eqf")) if real else (("gts", "eqi"), ("lts", "eqi")))
    body = f"""%better = tile.{order} %a0, %b0 : {kind}
%equal = tile.{equal} %a0, %b0 : {kind}
%earlier = tile.{program.rng.choice(("lts", "gts"))} %a1, %b1 : i32
%tie = tile.andi %equal, %earlier : i1
%left = tile.ori %better, %tie : i1
%v = tile.select %left, %a0, %b0 : {kind}
%i = tile.select %left, %a1, %b1 : i32
return %v, %i : {kind}, i32"""
    combine(program, [value, _indices(program, value.shape, axis)], axis, body)


def _indices(program: ProgramValues, shape: Shape, axis: int) -> ProgramValue:
    """Each element's index along an axis."""
    found = program.define("int32", (shape[axis],), f"tile.iota 0 to {shape[axis]}")
    for dim in range(len(shape)):
        if dim != axis:
            found = expanded(program, found, dim)
    return found if found.shape == shape else broadcast(program, found, shape)


def _by_function(program: ProgramValues) -> None:
    """A running mean and variance, an online softmax's sums, products of 1 + x, sums of two types at once."""
    kind = program.rng.choice(("welford", "softmax", "ring", "sums"))
    shape = program.shape if len(program.shape) == 2 else program.rng.choice((program.shape, (4, 16), (16, 8)))
    axis = program.rng.randrange(len(shape))
    if kind == "ring":
        combine(program, [program.need("int32", shape, whole=True)], axis, RING_SUM)
    elif kind == "sums":
        combine(program, [program.need(e, shape, whole=True) for e in ("fp32", "int32")], axis, TWO_SUMS)
    else:  # orders differ by what cancels: ordinary numbers only
        value, one = ordinary(program, "fp32", shape), program.constant(1.0, "fp32", shape)
        if kind == "softmax":
            combine(program, [value, one], axis, _SOFTMAX)
        else:
            combine(program, [value, program.constant(0.0, "fp32", shape), one], axis, WELFORD)


def ordinary(program: ProgramValues, element: str, shape: Shape) -> ProgramValue:
    return program.load(element, shape, whole=True, kind="normal" if dtype(element).is_float else None)


def _dot_operands(program: ProgramValues) -> tuple[ProgramValue, ProgramValue, ProgramValue, str]:
    """Operands and accumulator of a dot, and its words."""
    element, sums, words, least = program.rng.choice(_DOTS)
    batch = program.rng.choice(((), (), (), (2,)))
    m, n, k = program.rng.choice((16, 32)), program.rng.choice((16, 32, 64)), program.rng.choice((least, 32, 64))
    a, b = _factor(program, element, (*batch, m, k)), _factor(program, element, (*batch, k, n))
    shape = (*batch, m, n)
    acc = program.constant(0.0 if dtype(sums).is_float else 0, sums, shape) if program.rng.random() < 0.5 else ordinary(
        program, sums, shape
    )
    return a, b, acc, words


def _factor(program: ProgramValues, element: str, shape: Shape) -> ProgramValue:
    """A factor; sometimes transposed on the way."""
    order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    if program.rng.random() < 0.25:
        return permuted(program, _factor(program, element, tuple(shape[dim] for dim in order)), order)
    there = [v for v in program.scope.visible() if v.element == element and v.shape == shape and not v.partial]
    if there and program.rng.random() < 0.4:
        chosen = program.rng.choice(there)
        chosen.used = True
        return chosen
    special = program.rng.random() < 0.1
    return program.load(element, shape, whole=True, kind="specials" if special else None if element == "int8" else "normal")


def _multiplied(program: ProgramValues, a: ProgramValue, b: ProgramValue, acc: ProgramValue, words: str) -> ProgramValue:
    types = f"{a.type}, {b.type}, {acc.type}"
    return program.define(acc.element, acc.shape, f"tile.dot {a.name}, {b.name}, {acc.name}{words} : {types}", a, b, acc)


def _dot(program: ProgramValues) -> None:
    _multiplied(program, *_dot_operands(program))


def _chained_dots(program: ProgramValues) -> None:
    """A product, rounded to f16, times another matrix: what attention does."""
    a, b = _factor(program, "fp16", (16, 16)), _factor(program, "fp16", (16, 32))
    first = _multiplied(program, a, b, program.constant(0.0, "fp32", (16, 32)), "")
    narrow = program.define("fp16", first.shape, f"tile.castf {first.name} : {first.type} to {type_of('fp16', first.shape)}", first)
    right = _factor(program, "fp16", (32, 16))
    _multiplied(program, narrow, right, program.constant(0.0, "fp32", (16, 16)), "")


def _dot_loop(program: ProgramValues) -> None:
    """The loop of a matrix product: both factors are loaded anew in each round, some stages ahead."""
    a, b, acc, words = _dot_operands(program)
    low, step, made = program.constant(0, "int32"), program.constant(1, "int32"), program.name()
    counter, carried = program.name(), program.name()
    heads = f"iter_args({carried} = {acc.name}) -> ({acc.type})"
    program.line(f"{made} = scf.for {counter} = {low.name} to %trips step {step.name} {heads} : i32 {{")
    inner = ProgramValue(carried, acc.element, acc.shape, used=True)
    with program.region(ProgramValue(counter, "int32", used=True), inner):
        left, right = (program.load_round(v.element, v.shape, counter) for v in (a, b))
        total = _multiplied(program, left, right, inner, words)
        total.used = True
        program.line(f"scf.yield {total.name} : {acc.type}")
    stages = program.rng.choice((0, 1, 2, 4))
    program.line(f"}} {{tile.num_stages = {stages} : i64}}" if stages else "}")
    acc.used = True
    program.scope.values.append(ProgramValue(made, acc.element, acc.shape))


SUMS: dict[str, Callable[[ProgramValues], None]] = {
    "reduce_row": _by_row, "reduce_booleans": _of_booleans, "reduce_place": _place_of_extreme, "reduce_function": _by_function,
    "dot": _dot, "chained_dots": _chained_dots, "dot_loop": _dot_loop,
}
