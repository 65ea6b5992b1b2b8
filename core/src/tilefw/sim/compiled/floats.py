"""Float primitives of the lane algebra as LLVM's lines; each means what `FloatLanes` computes.

No line may be reordered or contracted (there are no fast-math flags). A NaN that arithmetic makes is refused (`Lines.refuse_nan`).
"""

from __future__ import annotations

from tilefw.sim.compiled.formats import add_odd, decoded, encoded, flushed, unit
from tilefw.sim.compiled.lines import Lines, NotPrinted, Printed
from tilefw.sim.floats import FORMATS

_NATIVE = ("f32", "f64")
_ROUND = {"rm": "floor", "rp": "ceil", "rz": "trunc", "rn": "roundeven"}
_ORDERED = {"eq": "oeq", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "ne": "one", "num": "ord", "nan": "uno"}
_UNORDERED = {"eq": "ueq", "lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge", "ne": "une", "num": "ord", "nan": "uno"}


class PrintedFloats:
    """One method for each primitive that has lines, with the primitive's own parameters."""

    lines: Lines

    # --- arithmetic --------------------------------------------------------------------------------------------------------

    def fadd(
        self, a: Printed, b: Printed, fmt: str, rounding: str = "rn", ftz: bool = False, saturate: bool = False
    ) -> Printed:
        return self._binary("fadd", a, b, fmt, rounding, ftz, saturate)

    def fsub(
        self, a: Printed, b: Printed, fmt: str, rounding: str = "rn", ftz: bool = False, saturate: bool = False
    ) -> Printed:
        return self._binary("fsub", a, b, fmt, rounding, ftz, saturate)

    def fmul(
        self, a: Printed, b: Printed, fmt: str, rounding: str = "rn", ftz: bool = False, saturate: bool = False
    ) -> Printed:
        return self._binary("fmul", a, b, fmt, rounding, ftz, saturate)

    def _binary(
        self, operation: str, a: Printed, b: Printed, fmt: str, rounding: str, ftz: bool, saturate: bool
    ) -> Printed:
        lines = self.lines
        a, b = self._flushed(ftz, fmt, a, b)
        x, y = decoded(lines, a, fmt), decoded(lines, b, fmt)
        if rounding == "rn" and fmt in _NATIVE:
            return self._finished(lines.binary(operation, x, y), fmt, ftz, saturate)
        if fmt == "f64":
            raise NotPrinted("f64 in a directed rounding")
        x, y = lines.widened(x, "double"), lines.widened(y, "double")
        if operation == "fmul":
            exact = lines.binary("fmul", x, y)
        else:
            y = lines.put("double", f"fneg {lines.type('double')} {y.text}") if operation == "fsub" else y
            exact = self._zero_sign(add_odd(lines, x, y), x, y, rounding)
        return self._rounded(exact, fmt, rounding, ftz, saturate)

    def ffma(
        self, a: Printed, b: Printed, c: Printed, fmt: str, rounding: str = "rn", ftz: bool = False, saturate: bool = False
    ) -> Printed:
        lines = self.lines
        a, b, c = self._flushed(ftz, fmt, a, b, c)
        x, y, z = (decoded(lines, v, fmt) for v in (a, b, c))
        if rounding == "rn" and fmt in _NATIVE:
            return self._finished(lines.call("fma", x, y, z), fmt, ftz, saturate)
        if fmt == "f64":
            raise NotPrinted("f64 in a directed rounding")
        product = lines.binary("fmul", lines.widened(x, "double"), lines.widened(y, "double"))
        z = lines.widened(z, "double")
        return self._rounded(self._zero_sign(add_odd(lines, product, z), product, z, rounding), fmt, rounding, ftz, saturate)

    def _finished(self, result: Printed, fmt: str, ftz: bool, saturate: bool) -> Printed:
        lines = self.lines
        result = unit(lines, result) if saturate else lines.refuse_nan(result)
        bits = lines.as_bits(result)
        return flushed(lines, bits, fmt) if ftz else bits

    def _rounded(self, exact: Printed, fmt: str, rounding: str, ftz: bool, saturate: bool) -> Printed:
        lines = self.lines
        bits = encoded(lines, unit(lines, exact) if saturate else exact, fmt, rounding)
        return flushed(lines, bits, fmt) if ftz else bits

    def _flushed(self, ftz: bool, fmt: str, *values: Printed) -> tuple[Printed, ...]:
        return tuple(flushed(self.lines, v, fmt) for v in values) if ftz else values

    def _zero_sign(self, exact: Printed, x: Printed, y: Printed, rounding: str) -> Printed:
        """An exact zero sum of nonzero terms, or of zeros of unlike signs, is -0 when rounding down."""
        if rounding != "rm":
            return exact
        lines = self.lines
        zero = lines.compare("fcmp oeq", exact, lines.real(0.0, "double"))
        both = lines.either(lines.as_bits(x), lines.as_bits(y))
        plus = lines.compare("icmp eq", both, lines.literal(0, "i64"))  # +0 and +0
        return lines.select(lines.both(zero, lines.inverted(plus)), lines.real(-0.0, "double"), exact)

    def fdiv(self, a: Printed, b: Printed, fmt: str, rounding: str = "rn", ftz: bool = False) -> Printed:
        lines = self.lines
        if rounding != "rn":
            raise NotPrinted("a quotient in a directed rounding")
        a, b = self._flushed(ftz, fmt, a, b)
        x, y = decoded(lines, a, fmt), decoded(lines, b, fmt)
        if fmt in _NATIVE:
            return self._finished(lines.binary("fdiv", x, y), fmt, ftz, False)
        quotient = lines.binary("fdiv", lines.widened(x, "double"), lines.widened(y, "double"))
        return self._rounded(quotient, fmt, rounding, ftz, False)

    def fsqrt(self, a: Printed, fmt: str, rounding: str = "rn", ftz: bool = False) -> Printed:
        lines = self.lines
        if rounding != "rn":
            raise NotPrinted("a root in a directed rounding")
        (a,) = self._flushed(ftz, fmt, a)
        x = decoded(lines, a, fmt)
        if fmt in _NATIVE:
            return self._finished(lines.call("sqrt", x), fmt, ftz, False)
        return self._rounded(lines.call("sqrt", lines.widened(x, "double")), fmt, rounding, ftz, False)

    def fapprox(self, a: Printed, function: str, fmt: str, ftz: bool = False) -> Printed:
        lines = self.lines
        (a,) = self._flushed(ftz, fmt, a)
        value = decoded(lines, a, fmt)
        x = lines.widened(value, "double")
        one = lines.real(1.0, "double")
        if function == "rcp":
            result = lines.binary("fdiv", one, x)
        elif function == "rsqrt":
            result = lines.binary("fdiv", one, lines.call("sqrt", x))
        elif function == "sqrt":
            result = lines.call("sqrt", value if fmt == "f32" else x)
        else:  # NumPy's own functions, whose last bits no other library has
            raise NotPrinted(function)
        return self._rounded(result, fmt, "rn", ftz, False)

    # --- signs, choices and classes ----------------------------------------------------------------------------------------

    def fneg(self, a: Printed, fmt: str, ftz: bool = False) -> Printed:
        (a,) = self._flushed(ftz, fmt, a)
        return self.lines.binary("xor", a, self.lines.literal(1 << FORMATS[fmt].bits - 1, a.element))

    def fabs(self, a: Printed, fmt: str, ftz: bool = False) -> Printed:
        (a,) = self._flushed(ftz, fmt, a)
        return self.lines.both(a, self.lines.literal((1 << FORMATS[fmt].bits - 1) - 1, a.element))

    def fmin(self, a: Printed, b: Printed, fmt: str, nan: bool = False, ftz: bool = False) -> Printed:
        return self._extreme(a, b, fmt, nan, ftz, True)

    def fmax(self, a: Printed, b: Printed, fmt: str, nan: bool = False, ftz: bool = False) -> Printed:
        return self._extreme(a, b, fmt, nan, ftz, False)

    def _extreme(self, a: Printed, b: Printed, fmt: str, nan: bool, ftz: bool, smaller: bool) -> Printed:
        lines = self.lines
        a, b = self._flushed(ftz, fmt, a, b)
        x, y = decoded(lines, a, fmt), decoded(lines, b, fmt)
        chosen = lines.select(lines.compare("fcmp olt" if smaller else "fcmp ogt", x, y), a, b)
        tie = lines.either(a, b) if smaller else lines.both(a, b)
        chosen = lines.select(lines.compare("fcmp oeq", x, y), tie, chosen)
        first, second = lines.is_nan(x), lines.is_nan(y)
        quiet = lines.literal((1 << FORMATS[fmt].bits - 1) - 1, a.element)
        if nan:
            return lines.select(lines.either(first, second), quiet, chosen)
        return lines.select(first, lines.select(second, quiet, b), lines.select(second, a, chosen))

    def fcompare(
        self, a: Printed, b: Printed, op: str, fmt: str, unordered: bool = False, ftz: bool = False
    ) -> Printed:
        a, b = self._flushed(ftz, fmt, a, b)
        x, y = decoded(self.lines, a, fmt), decoded(self.lines, b, fmt)
        return self.lines.compare(f"fcmp {(_UNORDERED if unordered else _ORDERED)[op]}", x, y)

    def fclass(self, a: Printed, kind: str, fmt: str) -> Printed:
        lines = self.lines
        x = decoded(lines, a, fmt)
        if kind in ("number", "notanumber"):
            return lines.compare("fcmp ord" if kind == "number" else "fcmp uno", x, x)
        size = lines.call("fabs", x)
        infinity = lines.literal(0x7F800000 if x.bits == 32 else 0x7FF << 52, f"i{x.bits}")
        finite = lines.compare("fcmp olt", size, lines.as_float(infinity))
        if kind == "finite":
            return finite
        if kind == "infinite":
            return lines.compare("fcmp oeq", size, lines.as_float(infinity))
        least = lines.real(2.0 ** (1 - FORMATS[fmt].bias), x.element)
        if kind == "normal":
            return lines.both(lines.compare("fcmp oge", size, least), finite)
        return lines.both(lines.compare("fcmp olt", size, least), lines.compare("fcmp ogt", size, lines.real(0.0, x.element)))

    # --- conversions -------------------------------------------------------------------------------------------------------

    def fround(self, a: Printed, fmt: str, rounding: str, ftz: bool = False) -> Printed:
        (a,) = self._flushed(ftz, fmt, a)
        x = decoded(self.lines, a, fmt)
        result = self._away(x) if rounding == "rna" else self.lines.call(_ROUND[rounding], x)
        return encoded(self.lines, result, fmt)

    def _away(self, x: Printed) -> Printed:
        """The nearest integer, ties away from zero, as a double."""
        lines = self.lines
        x = lines.widened(x, "double")
        size = lines.call("floor", lines.binary("fadd", lines.call("fabs", x), lines.real(0.5, "double")))
        sign = lines.both(lines.as_bits(x), lines.literal(1 << 63, "i64"))
        return lines.as_float(lines.either(lines.as_bits(lines.call("fabs", size)), sign))

    def fconvert(
        self, a: Printed, source: str, to: str, rounding: str = "rn", ftz: bool = False, saturate: str = "",
        relu: bool = False,
    ) -> Printed:
        lines = self.lines
        if ftz and source == "f32":
            a = flushed(lines, a, "f32")
        x = decoded(lines, a, source)
        if saturate == "unit":
            x = unit(lines, x)
        if relu:
            negative = lines.compare("icmp slt", lines.as_bits(x), lines.literal(0, f"i{x.bits}"))
            keeps = lines.either(lines.inverted(negative), lines.is_nan(x))
            x = lines.select(keeps, x, lines.real(0.0, x.element))
        if to == "f32" and x.element == "float":
            if source not in ("f32", "tf32", "bf16"):
                lines.refuse_nan(x)
            return lines.as_bits(x)
        if to == "f16" and rounding == "rn" and saturate != "finite":
            bits = encoded(lines, x, "f16")
        elif to == "bf16" and rounding == "rn" and saturate != "finite" and x.element == "float":
            bits = self._bf16(x)
        else:
            bits = encoded(lines, x, to, rounding, saturate == "finite")
        return flushed(lines, bits, "f32") if ftz and to == "f32" else bits

    def _bf16(self, x: Printed) -> Printed:
        lines = self.lines
        bits, place = lines.as_bits(x), lines.literal(16, "i32")
        odd = lines.both(lines.binary("lshr", bits, place), lines.literal(1, "i32"))
        rounded = lines.binary("lshr", lines.binary("add", bits, lines.binary("add", odd, lines.literal(0x7FFF, "i32"))), place)
        return lines.cast("trunc", lines.select(lines.is_nan(x), lines.literal(0x7FFF, "i32"), rounded), "i16")

    def float_to_int(
        self, a: Printed, fmt: str, bits: int, signed: bool, rounding: str = "rz", ftz: bool = False
    ) -> Printed:
        lines = self.lines
        (a,) = self._flushed(ftz, fmt, a)
        x = lines.widened(decoded(lines, a, fmt), "double")
        whole = self._away(x) if rounding == "rna" else lines.call(_ROUND[rounding], x)
        low, high = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if signed else (0.0, 2.0**bits)
        above = lines.compare("fcmp oge", whole, lines.real(high, "double"))
        below = lines.compare("fcmp olt", whole, lines.real(low, "double"))
        outside = lines.either(lines.either(above, below), lines.is_nan(whole))
        safe = lines.cast("fptosi" if signed else "fptoui", lines.select(outside, lines.real(0.0, "double"), whole), f"i{bits}")
        clamped = lines.select(below, lines.literal(int(low), f"i{bits}"), safe)
        return lines.select(above, lines.literal(int(high) - 1, f"i{bits}"), clamped)

    def int_to_float(self, a: Printed, signed: bool, fmt: str, rounding: str = "rn") -> Printed:
        lines = self.lines
        if a.bits == 1:
            raise NotPrinted("the float of a predicate")
        conversion = "sitofp" if signed else "uitofp"
        if rounding == "rn" and fmt in _NATIVE:
            return lines.as_bits(lines.cast(conversion, a, "float" if fmt == "f32" else "double"))
        if a.bits == 64:
            raise NotPrinted("the rounded float of 64 bits")
        return encoded(lines, lines.cast(conversion, a, "double"), fmt, rounding)
