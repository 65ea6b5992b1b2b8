"""Integer, bit, comparison and width primitives of the lane algebra as LLVM's lines; each means what `IntegerLanes` computes."""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.sim.compiled.lines import Lines, NotPrinted, Printed

_SIGNED = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_UNSIGNED = {"lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge"}


class PrintedIntegers:
    """One method for each primitive that has lines, with the primitive's own parameters; values are integers of their width."""

    lines: Lines

    def const(self, value: int, bits: int) -> Printed:
        return self.lines.literal(value, self._element(bits))

    def undefined(self, bits: int) -> Printed:
        raise NotPrinted("an undefined value")

    def zero_extend(self, a: Printed, bits: int) -> Printed:
        return a if a.bits == bits else self.lines.cast("zext", a, self._element(bits))

    def sign_extend(self, a: Printed, bits: int) -> Printed:
        return a if a.bits == bits else self.lines.cast("sext", a, self._element(bits))

    def truncate(self, a: Printed, bits: int) -> Printed:
        return a if a.bits == bits else self.lines.cast("trunc", a, self._element(bits))

    def join(self, parts: Sequence[Printed]) -> Printed:
        lines, bits = self.lines, parts[0].bits
        element = self._element(bits * len(parts))
        if len(parts) == 1:
            return parts[0]
        value = lines.cast("zext", parts[0], element)
        for place, part in enumerate(parts[1:], 1):
            moved = lines.binary("shl", lines.cast("zext", part, element), lines.literal(place * bits, element))
            value = lines.either(value, moved)
        return value

    def split(self, a: Printed, bits: int) -> tuple[Printed, ...]:
        lines = self.lines
        if a.bits == bits:
            return (a,)
        parts = [a, *(lines.binary("lshr", a, lines.literal(i * bits, a.element)) for i in range(1, a.bits // bits))]
        return tuple(lines.cast("trunc", part, f"i{bits}") for part in parts)

    # --- arithmetic --------------------------------------------------------------------------------------------------------

    def add(self, a: Printed, b: Printed) -> Printed:
        return self.lines.binary("add", a, b)

    def sub(self, a: Printed, b: Printed) -> Printed:
        return self.lines.binary("sub", a, b)

    def mul(self, a: Printed, b: Printed) -> Printed:
        return self.lines.binary("mul", a, b)

    def neg(self, a: Printed) -> Printed:
        return self.lines.binary("sub", self.lines.literal(0, a.element), a)

    def mul_wide(self, a: Printed, b: Printed, signed: bool) -> Printed:
        lines, element = self.lines, self._element(2 * a.bits)
        extend = "sext" if signed else "zext"
        return lines.binary("mul", lines.cast(extend, a, element), lines.cast(extend, b, element))

    def mul_high(self, a: Printed, b: Printed, signed: bool) -> Printed:
        lines, element, bits = self.lines, f"i{2 * a.bits}", a.bits
        extend = "sext" if signed else "zext"
        product = lines.binary("mul", lines.cast(extend, a, element), lines.cast(extend, b, element))
        return lines.cast("trunc", lines.binary("lshr", product, lines.literal(bits, element)), a.element)

    def div(self, a: Printed, b: Printed, signed: bool) -> Printed:
        lines = self.lines
        zero, divisor = self._divisor(b)
        if signed:
            magnitude = lines.binary("udiv", self.abs(a), self.abs(divisor))
            negative = lines.compare("icmp slt", lines.binary("xor", a, divisor), lines.literal(0, a.element))
            quotient = lines.select(negative, self.neg(magnitude), magnitude)
        else:
            quotient = lines.binary("udiv", a, divisor)
        return lines.select(zero, lines.literal(-1, a.element), quotient)

    def rem(self, a: Printed, b: Printed, signed: bool) -> Printed:
        lines = self.lines
        zero, divisor = self._divisor(b)
        if signed:
            magnitude = lines.binary("urem", self.abs(a), self.abs(divisor))
            negative = lines.compare("icmp slt", a, lines.literal(0, a.element))
            rest = lines.select(negative, self.neg(magnitude), magnitude)
        else:
            rest = lines.binary("urem", a, divisor)
        return lines.select(zero, a, rest)

    def _divisor(self, b: Printed) -> tuple[Printed, Printed]:
        """Where it is zero, and a divisor that is not."""
        zero = self.lines.compare("icmp eq", b, self.lines.literal(0, b.element))
        return zero, self.lines.select(zero, self.lines.literal(1, b.element), b)

    def min(self, a: Printed, b: Printed, signed: bool) -> Printed:
        return self.lines.call("smin" if signed else "umin", a, b)

    def max(self, a: Printed, b: Printed, signed: bool) -> Printed:
        return self.lines.call("smax" if signed else "umax", a, b)

    def abs(self, a: Printed) -> Printed:
        return self.lines.call("abs", a, flag="false")

    def add_carry(self, a: Printed, b: Printed, carry: Printed) -> tuple[Printed, Printed]:
        lines = self.lines
        first = lines.binary("add", a, b)
        total = lines.binary("add", first, lines.cast("zext", carry, a.element))
        return total, lines.either(lines.compare("icmp ult", first, a), lines.compare("icmp ult", total, first))

    def sub_borrow(self, a: Printed, b: Printed, borrow: Printed) -> tuple[Printed, Printed]:
        lines = self.lines
        first = lines.binary("sub", a, b)
        total = lines.binary("sub", first, lines.cast("zext", borrow, a.element))
        return total, lines.either(lines.compare("icmp ult", a, b), lines.compare("icmp ult", first, total))

    def add_saturate(self, a: Printed, b: Printed, signed: bool) -> Printed:
        return self.lines.call("sadd.sat" if signed else "uadd.sat", a, b)

    def sub_saturate(self, a: Printed, b: Printed, signed: bool) -> Printed:
        return self.lines.call("ssub.sat" if signed else "usub.sat", a, b)

    # --- bits --------------------------------------------------------------------------------------------------------------

    def and_(self, a: Printed, b: Printed) -> Printed:
        return self.lines.both(a, b)

    def or_(self, a: Printed, b: Printed) -> Printed:
        return self.lines.either(a, b)

    def xor(self, a: Printed, b: Printed) -> Printed:
        return self.lines.binary("xor", a, b)

    def not_(self, a: Printed) -> Printed:
        return self.lines.inverted(a)

    def lookup3(self, a: Printed, b: Printed, c: Printed, table: int) -> Printed:
        lines = self.lines
        result = lines.literal(0, a.element)
        for term in range(8):
            if table >> term & 1:
                chosen = [x if term & bit else lines.inverted(x) for x, bit in ((a, 4), (b, 2), (c, 1))]
                result = lines.either(result, lines.both(lines.both(chosen[0], chosen[1]), chosen[2]))
        return result

    def shl(self, a: Printed, amount: Printed) -> Printed:
        return self._shifted("shl", a, amount, self.lines.literal(0, a.element))

    def shr(self, a: Printed, amount: Printed, signed: bool) -> Printed:
        lines = self.lines
        if not signed:
            return self._shifted("lshr", a, amount, lines.literal(0, a.element))
        limited = lines.call("umin", amount, lines.literal(a.bits - 1, amount.element))
        return lines.binary("ashr", a, lines.resized(limited, a.bits))

    def _shifted(self, operation: str, a: Printed, amount: Printed, beyond: Printed) -> Printed:
        lines = self.lines
        inside = lines.compare("icmp ult", amount, lines.literal(a.bits, amount.element))
        limited = lines.both(amount, lines.literal(a.bits - 1, amount.element))
        return lines.select(inside, lines.binary(operation, a, lines.resized(limited, a.bits)), beyond)

    def popcount(self, a: Printed) -> Printed:
        return self.lines.resized(self.lines.call("ctpop", a), 32)

    def leading_zeros(self, a: Printed) -> Printed:
        return self.lines.resized(self.lines.call("ctlz", a, flag="false"), 32)

    def reverse_bits(self, a: Printed) -> Printed:
        return self.lines.call("bitreverse", a)

    def permute_bytes(self, a: Printed, b: Printed, selector: Printed) -> Printed:
        lines = self.lines
        pair = self.join((a, b))
        result = lines.literal(0, "i32")
        for place in range(4):
            nibble = lines.binary("lshr", selector, lines.literal(4 * place, "i32"))
            number = lines.both(nibble, lines.literal(7, "i32"))
            moved = lines.binary("lshr", pair, lines.resized(lines.binary("shl", number, lines.literal(3, "i32")), 64))
            byte = lines.cast("trunc", moved, "i8")
            sign = lines.binary("ashr", byte, lines.literal(7, "i8"))
            wanted = lines.compare("icmp ne", lines.both(nibble, lines.literal(8, "i32")), lines.literal(0, "i32"))
            word = lines.cast("zext", lines.select(wanted, sign, byte), "i32")
            result = lines.either(result, lines.binary("shl", word, lines.literal(8 * place, "i32")))
        return result

    # --- comparison and choice ---------------------------------------------------------------------------------------------

    def compare(self, a: Printed, b: Printed, op: str, signed: bool) -> Printed:
        return self.lines.compare(f"icmp {(_SIGNED if signed else _UNSIGNED).get(op, op)}", a, b)

    def select(self, p: Printed, a: Printed, b: Printed) -> Printed:
        return self.lines.select(p, a, b)

    def _element(self, bits: int) -> str:
        if bits > 64:
            raise NotPrinted(f"a value of {bits} bits")
        return f"i{bits}"
