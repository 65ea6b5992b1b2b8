"""Float formats as LLVM's lines: patterns to floats and back, each rounded once, as `tilefw.sim.floats` does it."""

from __future__ import annotations

from tilefw.sim.compiled.lines import Lines, NotPrinted, Printed
from tilefw.sim.floats import FORMATS, FloatFormat

_QUIET_F64 = 0x7FFFFFFFFFFFFFFF


def decoded(lines: Lines, a: Printed, name: str) -> Printed:
    """The value of a pattern: double for f64, else float; exact."""
    if name in ("f32", "f64"):
        return lines.as_float(a)
    if name == "f16":
        return lines.widened(lines.as_float(a), "float")
    if name == "bf16":
        return lines.as_float(lines.binary("shl", lines.cast("zext", a, "i32"), lines.literal(16, "i32")))
    if name == "tf32":
        return lines.as_float(lines.both(a, lines.literal(0xFFFFE000, "i32")))
    if name == "f8E8M0FNU":
        raise NotPrinted(name)
    form = FORMATS[name]
    word = lines.cast("zext", a, "i32")
    magnitude = lines.both(word, lines.literal((1 << form.bits - 1) - 1, "i32"))
    # The fields at their places in f32, whose exponents begin elsewhere: one exact product moves them, subnormals too.
    placed = lines.as_float(lines.binary("shl", magnitude, lines.literal(23 - form.mantissa, "i32")))
    value = lines.binary("fmul", placed, lines.real(2.0 ** (127 - form.bias), "float"))
    special = _special(lines, word, magnitude, value, form)
    sign = lines.binary("shl", lines.both(word, lines.literal(1 << form.bits - 1, "i32")), lines.literal(32 - form.bits, "i32"))
    return lines.as_float(lines.either(lines.as_bits(special), sign))


def _special(lines: Lines, word: Printed, magnitude: Printed, value: Printed, form: FloatFormat) -> Printed:
    """The value without its sign, infinities and NaN put right."""
    nan = lines.as_float(lines.literal(0x7FC00000, "i32"))
    if form.specials == "finite":
        return value
    if form.specials == "fnuz":
        only = lines.both(word, lines.literal((1 << form.bits) - 1, "i32"))
        return lines.select(lines.compare("icmp eq", only, lines.literal(1 << form.bits - 1, "i32")), nan, value)
    if form.specials == "fn":
        return lines.select(lines.compare("icmp eq", magnitude, lines.literal((1 << form.bits - 1) - 1, "i32")), nan, value)
    top = lines.literal(((1 << form.exponent) - 1) << form.mantissa, "i32")
    value = lines.select(lines.compare("icmp eq", magnitude, top), lines.as_float(lines.literal(0x7F800000, "i32")), value)
    return lines.select(lines.compare("icmp ugt", magnitude, top), nan, value)


def flushed(lines: Lines, a: Printed, name: str) -> Printed:
    """Subnormals to zero of their sign."""
    form, element = FORMATS[name], a.element
    twice = lines.binary("sub", lines.binary("add", a, a), lines.literal(1, element))
    tiny = lines.compare("icmp ult", twice, lines.literal((1 << form.mantissa + 1) - 1, element))
    return lines.select(tiny, lines.both(a, lines.literal(1 << form.bits - 1, element)), a)


def unit(lines: Lines, x: Printed) -> Printed:
    """Clamped to [0, 1], NaN and -0 to +0."""
    one, zero = lines.real(1.0, x.element), lines.real(0.0, x.element)
    most = lines.select(lines.compare("fcmp olt", x, one), x, one)
    return lines.select(lines.compare("fcmp ogt", x, zero), most, zero)


def add_odd(lines: Lines, a: Printed, b: Printed) -> Printed:
    """a + b of doubles, rounded to odd (Knuth's sum and its error)."""
    total = lines.binary("fadd", a, b)
    other = lines.binary("fsub", total, a)
    error = lines.binary(
        "fadd", lines.binary("fsub", a, lines.binary("fsub", total, other)), lines.binary("fsub", b, other)
    )
    zero = lines.real(0.0, "double")
    finite = lines.compare("fcmp olt", lines.call("fabs", total), lines.as_float(lines.literal(0x7FF << 52, "i64")))
    bits = lines.as_bits(total)
    even = lines.compare("icmp eq", lines.both(bits, lines.literal(1, "i64")), lines.literal(0, "i64"))
    fix = lines.both(lines.both(lines.compare("fcmp one", error, zero), even), finite)
    away = lines.binary("xor", lines.compare("fcmp ogt", error, zero), lines.compare("fcmp ogt", total, zero))
    moved = lines.binary("add", bits, lines.select(away, lines.literal(-1, "i64"), lines.literal(1, "i64")))
    return lines.as_float(lines.select(fix, moved, bits))


def _magnitude_f32(lines: Lines, x: Printed, rounding: str) -> tuple[Printed, Printed]:
    """The pattern of |x|, a double, as f32, rounded by a mode or to "odd", and whether x is negative."""
    negative = lines.compare("icmp slt", lines.as_bits(x), lines.literal(0, "i64"))
    size = lines.call("fabs", x)
    nearest = lines.cast("fptrunc", size, "float")
    bits, back = lines.as_bits(nearest), lines.widened(nearest, "double")
    if rounding == "rn":
        return bits, negative
    low, high = lines.compare("fcmp olt", back, size), lines.compare("fcmp ogt", back, size)
    one, none = lines.literal(1, "i32"), lines.literal(0, "i32")
    up = lines.binary("add", bits, lines.select(low, one, none))
    down = lines.binary("sub", bits, lines.select(high, one, none))
    if rounding == "odd":
        even = lines.compare("icmp eq", lines.both(bits, one), none)
        return lines.select(even, lines.select(low, up, down), bits), negative
    if rounding == "rz":
        return down, negative
    if rounding == "rna":
        raise NotPrinted("ties away")
    away = negative if rounding == "rm" else lines.inverted(negative)
    return lines.select(away, up, down), negative


def _signed(lines: Lines, code: Printed, negative: Printed, form: FloatFormat) -> Printed:
    sign = lines.select(negative, lines.literal(1 << form.bits - 1, "i32"), lines.literal(0, "i32"))
    if form.specials == "fnuz":  # without a negative zero
        zero = lines.compare("icmp eq", code, lines.literal(0, "i32"))
        sign = lines.select(zero, lines.literal(0, "i32"), sign)
    return lines.either(code, sign)


def encoded(lines: Lines, x: Printed, name: str, rounding: str = "rn", saturate: bool = False) -> Printed:
    """A float or double to a pattern, rounded once. `saturate` clamps overflow and infinities to the largest finite value."""
    if name == "f64":
        return _encoded_f64(lines, x, rounding, saturate)
    if not saturate and rounding == "rn" and name in ("f32", "f16"):
        lines.refuse_nan(x)
        if name == "f32":
            return lines.as_bits(x if x.element == "float" else lines.cast("fptrunc", x, "float"))
        return lines.as_bits(lines.cast("fptrunc", odd_f32(lines, x), "half"))
    if name == "f8E8M0FNU":
        raise NotPrinted(name)
    form = FORMATS["f32" if name == "tf32" else name]
    if name == "f32":
        code, negative = _magnitude_f32(lines, lines.widened(x, "double"), rounding)
        code = _overflown(lines, code, lines.literal(0, "i1"), form, form.maximum_code, "rn", saturate)
    else:
        mantissa = 10 if name == "tf32" else form.mantissa
        code, negative = _narrow(lines, lines.as_bits(odd_f32(lines, x)), form, mantissa, rounding, saturate)
    patterns = {"fnuz": 1 << form.bits - 1, "finite": form.maximum_code}
    nan = lines.literal(patterns.get(form.specials, (1 << form.bits - 1) - 1), "i32")
    return lines.resized(lines.select(lines.is_nan(x), nan, _signed(lines, code, negative, form)), form.storage)


def _encoded_f64(lines: Lines, x: Printed, rounding: str, saturate: bool) -> Printed:
    if saturate:
        raise NotPrinted("a clamped f64")
    if rounding == "rn":
        if x.element == "float":
            lines.refuse_nan(x)
        return lines.as_bits(lines.widened(x, "double"))
    quiet = lines.literal(_QUIET_F64, "i64")
    return lines.select(lines.is_nan(x), quiet, lines.as_bits(lines.widened(x, "double")))


def odd_f32(lines: Lines, x: Printed) -> Printed:
    """As a float, of which a format with two bits less is rounded right."""
    if x.element == "float":
        return x
    bits, negative = _magnitude_f32(lines, x, "odd")
    sign = lines.select(negative, lines.literal(1 << 31, "i32"), lines.literal(0, "i32"))
    return lines.as_float(lines.either(bits, sign))


def _narrow(
    lines: Lines, bits: Printed, form: FloatFormat, mantissa: int, rounding: str, saturate: bool
) -> tuple[Printed, Printed]:
    """The pattern, without its sign, of a float that is rounded to `mantissa` bits, and whether it is negative."""
    def word(value: int) -> Printed:
        return lines.literal(value, "i32")

    negative = lines.compare("icmp slt", bits, word(0))
    magnitude = lines.both(bits, word(0x7FFFFFFF))
    if form.bias == 127 and form.exponent == 8:  # the exponents of f32: fields round into one another
        whole, base, shift = magnitude, word(0), word(23 - mantissa)
    else:
        exponent = lines.binary("lshr", magnitude, word(23))
        normal = lines.compare("icmp ne", exponent, word(0))
        exponent = lines.select(normal, exponent, word(1))
        whole = lines.either(lines.both(magnitude, word(0x7FFFFF)), lines.select(normal, word(1 << 23), word(0)))
        biased = lines.binary("sub", exponent, word(127 - form.bias))
        below = lines.call("smax", lines.binary("sub", word(1), biased), word(0))
        shift = lines.call("umin", lines.binary("add", below, word(23 - mantissa)), word(31))
        above = lines.call("smax", lines.binary("sub", biased, word(1)), word(0))
        base = lines.binary("shl", above, word(mantissa))
    kept = lines.binary("lshr", whole, shift)
    rest = lines.binary("sub", whole, lines.binary("shl", kept, shift))
    up = _rounds_up(lines, kept, rest, shift, negative, rounding)
    code = lines.binary("add", lines.binary("add", kept, base), lines.cast("zext", up, "i32"))
    unused = form.mantissa - mantissa
    code = lines.binary("shl", code, word(unused)) if unused else code
    infinite = lines.compare("icmp eq", magnitude, word(0x7F800000))
    top = form.maximum_code & ~((1 << unused) - 1)
    return _overflown(lines, code, infinite, form, top, rounding, saturate, negative), negative


def _rounds_up(lines: Lines, kept: Printed, rest: Printed, shift: Printed, negative: Printed, rounding: str) -> Printed:
    none, one = lines.literal(0, "i32"), lines.literal(1, "i32")
    if rounding == "rz":
        return lines.literal(0, "i1")
    if rounding in ("rm", "rp"):
        some = lines.compare("icmp ne", rest, none)
        return lines.both(some, negative if rounding == "rm" else lines.inverted(negative))
    some = lines.compare("icmp ne", shift, none)
    half = lines.binary("lshr", lines.binary("shl", one, shift), one)
    if rounding == "rna":
        return lines.both(lines.compare("icmp uge", rest, half), some)
    tie = lines.both(lines.compare("icmp eq", rest, half), lines.cast("trunc", kept, "i1"))
    return lines.both(lines.either(lines.compare("icmp ugt", rest, half), tie), some)


def _overflown(
    lines: Lines, code: Printed, infinite: Printed, form: FloatFormat, top: int, rounding: str, saturate: bool,
    negative: Printed | None = None,
) -> Printed:
    """What stands for a magnitude above the largest finite value, whose pattern is `top`."""
    over = lines.either(lines.compare("icmp ugt", code, lines.literal(top, "i32")), infinite)
    largest = lines.literal(top, "i32")
    if saturate or form.specials == "finite":
        return lines.select(over, largest, code)
    if form.specials == "ieee":
        special = lines.literal(((1 << form.exponent) - 1) << form.mantissa, "i32")
    elif form.specials == "fn":
        special = lines.literal((1 << form.bits - 1) - 1, "i32")
    else:
        special = lines.literal(1 << form.bits - 1, "i32")
    if rounding in ("rz", "rm", "rp") and negative is not None:
        stays = lines.inverted(infinite)
        if rounding != "rz":
            stays = lines.both(stays, lines.inverted(negative) if rounding == "rm" else negative)
        special = lines.select(stays, largest, special)
    return lines.select(over, special, code)
