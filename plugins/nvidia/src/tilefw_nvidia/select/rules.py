"""Selection rules for PTX: rows and types to instructions, one register or packed pair at a time. Data first, cases after.

Sections of the PTX ISA: "Integer Arithmetic", "Floating-Point", "Half Precision Floating-Point", "Comparison and
Selection", "Logic and Shift", "Data Movement and Conversion: cvt". A rule names the instructions that it emits: it is
a chip's where the chip has all of them. Rows without a rule are expanded by core.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from tilefw.api.expand import BASE_ROWS
from tilefw.api.simt import Code, Const, Element, Rule, alias, template
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.isa.set import instruction_set
from tilefw_nvidia.select import eight_bits
from tilefw_nvidia.select.emits import Emits, Table

FORM = {"i1": "i1", "i8": "e8", "i16": "e16", "i32": "w32", "i64": "w64", "f16": "e16", "bf16": "e16", "f32": "w32", "f64": "w64"}
SMALL = ("f8E5M2", "f8E4M3FN", "f8E5M2FNUZ", "f8E4M3FNUZ", "!tile.fp8e4b15", "f6E3M2FN", "f6E2M3FN", "f4E2M1FN", "i4")
WIDTH = {"i16": 16, "i32": 32, "i64": 64}

_INTEGER = {
    "addi": "add.s{w}", "subi": "sub.s{w}", "muli": "mul.lo.s{w}", "mulhs": "mul.hi.s{w}", "mulhu": "mul.hi.u{w}",
    "andi": "and.b{w}", "ori": "or.b{w}", "xori": "xor.b{w}", "absi": "abs.s{w}", "mins": "min.s{w}", "maxs": "max.s{w}",
    "minu": "min.u{w}", "maxu": "max.u{w}",
}
_DIVISIONS = {"divs": "div.s{w}", "divu": "div.u{w}", "rems": "rem.s{w}", "remu": "rem.u{w}"}
_SHIFTS = {"shl": "shl.b{w}", "shrs": "shr.s{w}", "shru": "shr.u{w}"}
_INTEGER_COMPARES = {
    "eqi": "eq.s", "nei": "ne.s", "lts": "lt.s", "les": "le.s", "gts": "gt.s", "ges": "ge.s", "ltu": "lt.u", "leu": "le.u",
    "gtu": "gt.u", "geu": "ge.u",
}
_FLOAT_COMPARES = {"eqf": "eq", "nef": "neu", "ltf": "lt", "lef": "le", "gtf": "gt", "gef": "ge"}
COMPARES = tuple(
    [f"setp.{op}{width}" for op in _INTEGER_COMPARES.values() for width in WIDTH.values()]
    + [f"setp.{op}.{name}" for op in (*_FLOAT_COMPARES.values(), "nan") for name in ("f32", "f64", "f16")]
)
_PREDICATE = {"andi": "and.pred", "ori": "or.pred", "xori": "xor.pred"}

# f32: approximations without .ftz keep subnormals; their errors (PTX ISA, "Floating-Point Instructions"): div.full 2 ulp,
# sqrt.approx 1 ulp, rsqrt.approx 2^-22.9, ex2.approx 2 ulp, lg2.approx 2^-22 absolute in [0.5, 2], else 2^-22. exp2 has .ftz, as in
# Triton: the chip's instruction flushes by itself, and ptxas keeps subnormals by a compare and two products around each one, a
# quarter of the instructions of attention's loop. Its error rule (tile/elementwise/error.py) lets approximations flush.
_F32 = {
    "divf": "div.full.f32", "div_rn": "div.rn.f32", "negf": "neg.f32", "absf": "abs.f32", "minf": "min.f32", "maxf": "max.f32",
    "minf_nan": "min.NaN.f32", "maxf_nan": "max.NaN.f32", "fma": "fma.rn.f32", "sqrt": "sqrt.approx.f32", "sqrt_rn": "sqrt.rn.f32",
    "rsqrt": "rsqrt.approx.f32", "exp2": "ex2.approx.ftz.f32", "log2": "lg2.approx.f32", "floor": "cvt.rmi.f32.f32",
    "ceil": "cvt.rpi.f32.f32", "trunc": "cvt.rzi.f32.f32", "round_even": "cvt.rni.f32.f32",
}
_F64 = {
    "divf": "div.rn.f64", "div_rn": "div.rn.f64", "negf": "neg.f64", "absf": "abs.f64", "minf": "min.f64", "maxf": "max.f64",
    "fma": "fma.rn.f64", "sqrt": "sqrt.rn.f64", "sqrt_rn": "sqrt.rn.f64", "floor": "cvt.rmi.f64.f64", "ceil": "cvt.rpi.f64.f64",
    "trunc": "cvt.rzi.f64.f64", "round_even": "cvt.rni.f64.f64",
}
_F16 = {
    "negf": "neg.f16", "absf": "abs.f16", "minf": "min.f16", "maxf": "max.f16", "minf_nan": "min.NaN.f16",
    "maxf_nan": "max.NaN.f16", "fma": "fma.rn.f16", "floor": "cvt.rmi.f16.f16", "ceil": "cvt.rpi.f16.f16",
    "trunc": "cvt.rzi.f16.f16", "round_even": "cvt.rni.f16.f16",
}
_F16X2 = {
    "addf": "add.{rn}f16x2", "subf": "sub.{rn}f16x2", "mulf": "mul.{rn}f16x2", "fma": "fma.rn.f16x2", "negf": "neg.f16x2",
    "absf": "abs.f16x2", "minf": "min.f16x2", "maxf": "max.f16x2", "minf_nan": "min.NaN.f16x2", "maxf_nan": "max.NaN.f16x2",
}
# bf16 add, sub and mul came later than fma.rn, which with 1, -1 and -0 rounds once and gives the same.
_BF16 = {
    "fma": "fma.rn.bf16", "negf": "neg.bf16", "absf": "abs.bf16", "minf": "min.bf16", "maxf": "max.bf16",
    "minf_nan": "min.NaN.bf16", "maxf_nan": "max.NaN.bf16",
}


def _one(opcode: str, form: str) -> Emits:
    """One instruction on its operands in order."""
    return Emits((opcode,), template(opcode, form))


# By row: what serves where the chip lacks the preferred instruction.
_OTHERWISE = {
    "divf.f32": (_one("div.rn.f32", "w32"),), "sqrt.f32": (_one("sqrt.rn.f32", "w32"),),
    **{row: (emits,) for row, emits in eight_bits.E5M2.items()},
}


@cache
def rules(chip: Chip, fusion: bool) -> Mapping[str, Rule]:
    """The chip's rules; without `fusion` adds and multiplications are `.rn`, which ptxas never contracts to fma.

    A row of the base set stays in any case, as core has no expansion of it: what the chip lacks is then told as it is emitted.
    """
    instructions = instruction_set(chip)
    table = _arithmetic(fusion) | _selects() | _casts() | eight_bits.conversions()
    found: dict[str, Rule] = {}
    for row, preferred in table.items():
        listed = (preferred, *_OTHERWISE.get(row, ()))
        served = next((each for each in listed if all(instructions.opcode(opcode).exists for opcode in each.opcodes)), None)
        if served is not None or row in BASE_ROWS:
            found[row] = (served or preferred).rule
    return found


def _arithmetic(fusion: bool) -> Table:
    rn = "" if fusion else "rn."
    table: Table = {}
    for name, width in WIDTH.items():
        form = FORM[name]
        table |= {f"{row}.{name}": _one(op.format(w=width), form) for row, op in _INTEGER.items()}
        table |= {f"{row}.{name}": _one(f"setp.{op}{width}", "i1") for row, op in _INTEGER_COMPARES.items()}
        table |= {f"{row}.{name}": _shift(op.format(w=width), name) for row, op in _SHIFTS.items()}
        table |= {f"{row}.{name}": _division(op.format(w=width), name) for row, op in _DIVISIONS.items()}
    for name, rows in (("f32", _F32), ("f64", _F64), ("f16", _F16), ("bf16", _BF16)):
        table |= {f"{row}.{name}": _one(op, FORM[name]) for row, op in rows.items()}
    for name in ("f32", "f64", "f16"):
        table |= {f"{row}.{name}": _one(f"{row[:3]}.{rn}{name}", FORM[name]) for row in ("addf", "subf", "mulf")}
        table |= {f"{row}.{name}": _one(f"setp.{op}.{name}", "i1") for row, op in _FLOAT_COMPARES.items()}
        table[f"isnan.{name}"] = _isnan(name)
    table |= {f"{row}.f16x2": _one(op.format(rn=rn), "w32") for row, op in _F16X2.items()}
    table |= {f"{row}.bf16x2": _one(op.replace("bf16", "bf16x2"), "w32") for row, op in _BF16.items()}
    for suffix, form in (("bf16", "e16"), ("bf16x2", "w32")):
        table |= {f"{row}.{suffix}": _bf16_arithmetic(row, suffix, form) for row in ("addf", "subf", "mulf")}
    table |= {f"{row}.i1": _one(op, "i1") for row, op in _PREDICATE.items()}
    for packed in ("i8x4", "i16x2"):
        table |= {f"{row}.{packed}": _one(f"{op[:-5]}.b32", "w32") for row, op in _PREDICATE.items()}
    table["exp.f32"] = _scaled_first("ex2.approx.f32", 0x3FB8AA3B)  # log2(e)
    table["log.f32"] = _scaled_after("lg2.approx.f32", 0x3F317218)  # ln(2)
    for row in ("clz", "popc"):
        table[f"{row}.i32"] = _one(f"{row}.b32", "w32")
        table[f"{row}.i64"] = _count64(row)
    return table


def _shift(opcode: str, name: str) -> Emits:
    """The amount is a .u32, clamped at the width by the hardware; wide amounts are clamped before they are narrowed."""

    def rule(code: Code, x: Element, y: Element) -> Element:
        chip = code.chip
        if isinstance(y, Const):
            y = Const("i32", min(y.bits, WIDTH[name]))
        elif name == "i64":
            y = code.inst("cvt.u32.u64", "w32", code.inst("min.u64", "w64", chip.operand(code, y), 64))
        elif name == "i16":
            y = code.inst("cvt.u32.u16", "w32", chip.operand(code, y))
        return code.inst(opcode, FORM[name], chip.operand(code, x), chip.operand(code, y))

    return Emits((opcode, "cvt.u32.u64", "min.u64", "cvt.u32.u16"), rule)


def _division(opcode: str, name: str) -> Emits:
    """PTX leaves division by zero to the machine ("Integer Arithmetic Instructions: div", "rem"): the row's result is selected."""
    divide = template(opcode, FORM[name])

    def rule(code: Code, x: Element, y: Element) -> Element:
        found = divide(code, x, y)
        if isinstance(y, Const) and y.bits:
            return found
        by_zero = x if opcode.startswith("rem") else Const(name, (1 << WIDTH[name]) - 1)
        return code(f"select.{name}", code(f"eqi.{name}", y, Const(name, 0)), by_zero, found)

    return Emits((opcode,), rule)


def _count64(row: str) -> Emits:
    def rule(code: Code, x: Element) -> Element:
        chip = code.chip
        return code.inst("cvt.u64.u32", "w64", code.inst(f"{row}.b64", "w32", chip.operand(code, x)))

    return Emits((f"{row}.b64", "cvt.u64.u32"), rule)


def _scaled_first(opcode: str, factor: int) -> Emits:
    def rule(code: Code, x: Element) -> Element:
        return code.inst(opcode, "w32", code("mulf.f32", x, Const("f32", factor)))

    return Emits((opcode,), rule)


def _scaled_after(opcode: str, factor: int) -> Emits:
    def rule(code: Code, x: Element) -> Element:
        return code("mulf.f32", template(opcode, "w32")(code, x), Const("f32", factor))

    return Emits((opcode,), rule)


def _isnan(name: str) -> Emits:
    def rule(code: Code, x: Element) -> Element:
        chip = code.chip
        source = chip.operand(code, x)
        return code.inst(f"setp.nan.{name}", "i1", source, source)

    return Emits((f"setp.nan.{name}",), rule)


def _bf16_arithmetic(row: str, suffix: str, form: str) -> Emits:
    one, minus_one, minus_zero = (0x3F80, 0xBF80, 0x8000) if form == "e16" else (0x3F803F80, 0xBF80BF80, 0x80008000)
    fma, move = f"fma.rn.{suffix}", "mov.b16" if form == "e16" else "mov.b32"

    def rule(code: Code, first: Element, second: Element) -> Element:
        chip = code.chip
        x, y = chip.operand(code, first), chip.operand(code, second)
        if row == "mulf":
            return code.inst(fma, form, x, y, code.inst(move, form, minus_zero))
        if row == "addf":
            return code.inst(fma, form, x, code.inst(move, form, one), y)
        return code.inst(fma, form, y, code.inst(move, form, minus_one), x)

    return Emits((fma,), rule)


def _selects() -> Table:
    def select(opcode: str, form: str) -> Emits:
        def rule(code: Code, condition: Element, x: Element, y: Element) -> Element:
            chip = code.chip
            return code.inst(opcode, form, chip.operand(code, x), chip.operand(code, y), chip.operand(code, condition))

        return Emits((opcode,), rule)

    table = {f"select.{name}": select(f"selp.b{_bits(form)}", form) for name, form in FORM.items() if name != "i1"}
    return table | {f"select.{name}": select("selp.b32", "e8") for name in SMALL}


def _bits(form: str) -> int:
    return {"e8": 32, "e16": 16, "w32": 32, "w64": 64}[form]


_FLOAT_BITS = {"f16": 16, "f32": 32, "f64": 64}


def _casts() -> Table:
    table: Table = {}
    ints = {"i8": 8, **WIDTH}
    for source, bits in ints.items():
        for to, wider in ints.items():
            if wider > bits:
                table[f"exts.{source}.{to}"] = _one(f"cvt.s{wider}.s{bits}", FORM[to])
                table[f"extu.{source}.{to}"] = _one(f"cvt.u{wider}.u{bits}", FORM[to])
            elif wider < bits:
                # An i8 lives in a 32-bit register whose upper bits are undefined.
                table[f"trunci.{source}.{to}"] = _truncate(bits, max(wider, 32) if to == "i8" else wider, FORM[to])
        for to in _FLOAT_BITS:
            table[f"s2f.{source}.{to}"] = _one(f"cvt.rn.{to}.s{bits}", FORM[to])
            table[f"u2f.{source}.{to}"] = _one(f"cvt.rn.{to}.u{bits}", FORM[to])
            table[f"s2f_rtz.{source}.{to}"] = _one(f"cvt.rz.{to}.s{bits}", FORM[to])
            table[f"u2f_rtz.{source}.{to}"] = _one(f"cvt.rz.{to}.u{bits}", FORM[to])
            table[f"f2s.{to}.{source}"] = _to_int(f"cvt.rzi.s{bits}.{to}", to, source)
            table[f"f2u.{to}.{source}"] = _to_int(f"cvt.rzi.u{bits}.{to}", to, source)
    for source, bits in _FLOAT_BITS.items():
        for to, other in _FLOAT_BITS.items():
            if bits < other:
                table[f"castf.{source}.{to}"] = _one(f"cvt.{to}.{source}", FORM[to])
            elif bits > other:
                table[f"castf.{source}.{to}"] = _one(f"cvt.rn.{to}.{source}", FORM[to])
                table[f"castf_rtz.{source}.{to}"] = _one(f"cvt.rz.{to}.{source}", FORM[to])
    for to in ("f16", "bf16"):
        table[f"castf.f32.{to}x2"] = _pair(f"cvt.rn.{to}x2.f32")
        table[f"castf_rtz.f32.{to}x2"] = _pair(f"cvt.rz.{to}x2.f32")
    table["castf.f32.bf16"] = _one("cvt.rn.bf16.f32", "e16")
    table["castf_rtz.f32.bf16"] = _one("cvt.rz.bf16.f32", "e16")
    table["castf.bf16.f32"] = Emits((), _upper_half)
    return table


def _upper_half(code: Code, x: Element) -> Element:
    """A bf16 is the upper half of an f32."""
    chip = code.chip
    return code.inst("mov.b32", "w32", code.inst("mov.b16", "e16", 0), chip.operand(code, x))


def _truncate(bits: int, wider: int, form: str) -> Emits:
    return Emits((), alias) if bits == wider else _one(f"cvt.u{wider}.u{bits}", form)


def _pair(opcode: str) -> Emits:
    """PTX ISA, cvt: "for .f16x2, .bf16x2, the converted values are packed, a in the upper half"."""

    def rule(code: Code, low: Element, high: Element) -> Element:
        chip = code.chip
        return code.inst(opcode, "w32", chip.operand(code, high), chip.operand(code, low))

    return Emits((opcode,), rule)


def _to_int(opcode: str, source: str, to: str) -> Emits:
    """Saturates as the row wants; NaN gives 0 but, from f64 or to 64 bits, 1 << (bits - 1) (PTX ISA, cvt): select there."""

    def rule(code: Code, x: Element) -> Element:
        chip = code.chip
        value = code.inst(opcode, FORM[to], chip.operand(code, x))
        if source != "f64" and to != "i64":
            return value
        nan = code(f"isnan.{source}", x)
        return code.inst(f"selp.b{_bits(FORM[to])}", FORM[to], 0, value, nan)

    return Emits((opcode,), rule)
