"""Rows of the elementwise table, conversions and moves of lanes as instructions of LLVM IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilefw.api.floats import float_bits
from tilefw_cpu import rows as table
from tilefw_cpu.function_text import LlvmText
from tilefw_cpu.quiet_values import QuietValues
from tilefw_cpu.spelling import BITS, LlvmValue, literal, llvm_type, overload, vector

_BITWISE = ("andi", "ori", "xori")
_QUIETING = frozenset({"addf", "subf", "mulf", "divf", "div_rn", "fma", "sqrt", "sqrt_rn", "minf", "maxf", "scalef"})
"""Rows whose results are no signalling NaN."""


class LlvmArithmetic(LlvmText):
    """Writes values that are made of values. `fences`: a choice is kept apart from the bits that it chooses among;
    `ranges`, `scales`: the processor has VRANGE, VSCALEF in vectors of 512 bits.

    LLVM 22 makes one masked vpternlog of `select(m, a, (a & signs) | (b & ~signs))`, in which a constant that is broadcast from
    memory stands in another place than the instruction's truth table says: signs come out wrong. So bits are chosen behind an
    `llvm.arithmetic.fence`, which is no instruction.
    """

    def __init__(self, fences: bool = False, ranges: bool = False, scales: bool = False) -> None:
        super().__init__()
        self._fences, self._ranges, self._scales = fences, ranges, scales
        self._bitwise: set[str] = set()
        self._quiet = QuietValues()

    def repeated(self, value: LlvmValue, lanes: int) -> LlvmValue:
        if value.lanes == lanes:
            return value
        return self._quiet.moved(self._repeated(value, lanes), value)

    def _repeated(self, value: LlvmValue, lanes: int) -> LlvmValue:
        if value.number is not None:
            return LlvmValue(f"splat ({llvm_type(value.type)} {value.text})", value.type, lanes, number=value.number)
        kind = llvm_type(value.type)
        first = self.emit(f"insertelement <{lanes} x {kind}> poison, {kind} {value.text}, i32 0", value.type, lanes)
        return self.emit(
            f"shufflevector <{lanes} x {kind}> {first.text}, <{lanes} x {kind}> poison, <{lanes} x i32> zeroinitializer",
            value.type, lanes,
        )

    def together(self, values: tuple[LlvmValue, ...]) -> tuple[list[LlvmValue], int]:
        """Operands in as many lanes as the widest has."""
        lanes = max(value.lanes for value in values)
        return [self.repeated(value, lanes) for value in values], lanes

    def const(self, pattern: int, type_: str) -> LlvmValue:
        return LlvmValue(literal(pattern, llvm_type(type_)), type_, number=pattern)

    def op(self, row: str, operands: tuple[LlvmValue, ...], result: str) -> LlvmValue:
        if row == "divf" and result == "f32" and operands[1].lanes == 1 < operands[0].lanes:
            # One quotient for all lanes: two roundings, 1.5 ulp where `divf` is promised within 2.5.
            one = self.const(float_bits(1.0, result), result)
            return self.op("mulf", (operands[0], self.op("divf", (one, operands[1]), result)), result)
        if operands[0].pointer:  # an address of the program's own memory, moved
            found = self.emit(f"getelementptr i8, ptr {operands[0].text}, i64 {operands[1].text}", result, 1)
            return LlvmValue(found.text, result, pointer=True)
        found = self._row(row, operands, result)
        if row in _QUIETING:
            self._quiet.made(found.text)
        return found

    def assign(self, variable: LlvmValue, value: LlvmValue) -> None:
        self._quiet.assigned(variable.text, value)
        super().assign(variable, value)

    def read(self, variable: LlvmValue) -> LlvmValue:
        found = super().read(variable)
        self._quiet.read(found.text, variable.text)
        return found

    def _row(self, row: str, operands: tuple[LlvmValue, ...], result: str) -> LlvmValue:
        values, lanes = self.together(operands)
        own = values[1 if row == "select" else 0].type
        kind = vector(llvm_type(own), lanes)
        texts = [value.text for value in values]
        if row in ("minf", "maxf") and self._ranges:
            return self._extreme(row, values)
        if row in table.INSTRUCTIONS:
            found = self.emit(f"{table.INSTRUCTIONS[row]} {kind} {texts[0]}, {texts[1]}", result, lanes)
            if row in _BITWISE:
                self._bitwise.add(found.text)
            return found
        if row in table.COMPARES:
            return self.emit(f"{table.COMPARES[row]} {kind} {texts[0]}, {texts[1]}", "i1", lanes)
        if row in table.INTRINSICS or row in table.FLAGGED:
            name = table.INTRINSICS.get(row) or table.FLAGGED[row]
            arguments = [f"{kind} {text}" for text in texts] + (["i1 false"] if row in table.FLAGGED else [])
            return self.emit(self.call(f"llvm.{name}.{overload(own, lanes)}", kind, arguments), result, lanes)
        if row in table.SHIFTS:
            return self._shift(row, values, lanes)
        if row in table.QUOTIENTS:
            return self._quotient(row, values, lanes)
        if row in ("mulhs", "mulhu"):
            return self._high(row, values, lanes)
        if row == "select":
            condition = vector("i1", lanes)
            texts[1:] = [self._fenced(value) for value in values[1:]]
            return self.emit(f"select {condition} {texts[0]}, {kind} {texts[1]}, {kind} {texts[2]}", own, lanes)
        if row == "negf":
            return self.emit(f"fneg {kind} {texts[0]}", own, lanes)
        if row == "scalef":
            return self._scaled(values[0], values[1])
        if row == "isnan":
            return self.emit(f"fcmp uno {kind} {texts[0]}, {texts[0]}", "i1", lanes)
        return self.cast(row, values[0], result)

    def _fenced(self, value: LlvmValue) -> str:
        """A value that is chosen: one made of bits of others behind a fence, where it must be."""
        real = {"i32": "f32", "f32": "f32", "i64": "f64", "f64": "f64"}.get(value.type)
        if not self._fences or value.lanes == 1 or real is None or value.text not in self._bitwise:
            return value.text
        bits, kind = self.as_type(value, real), vector(llvm_type(real), value.lanes)
        call = self.call(f"llvm.arithmetic.fence.{overload(real, value.lanes)}", kind, [f"{kind} {bits.text}"])
        return self.as_type(self.emit(call, real, value.lanes), value.type).text

    def cast(self, row: str, value: LlvmValue, to: str) -> LlvmValue:
        """A row that changes the type; `row` is `castf` or one of the table's."""
        source, target = llvm_type(value.type), llvm_type(to)
        kind, made = vector(source, value.lanes), vector(target, value.lanes)
        if row == "castf":
            word = "fpext" if BITS[source] < BITS[target] else "fptrunc"
        else:
            word = table.CASTS[row]
        if row in ("f2s", "f2u"):
            return self._clamped(row, value, to)
        return self.emit(f"{word} {kind} {value.text} to {made}", to, value.lanes)

    def _clamped(self, row: str, value: LlvmValue, to: str) -> LlvmValue:
        """A float as an integer: LLVM's own saturating conversion is a single element at a time on x86."""
        bits, lanes = BITS[llvm_type(to)], value.lanes
        signed = row == "f2s"
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        least, beyond = (self.const(float_bits(float(number), value.type), value.type) for number in (low, high + 1))
        above = self.op("gef", (value, beyond), "i1")
        below = self.op("ltf", (value, least), "i1")
        outside = self.op("ori", (self.op("ori", (above, below), "i1"), self.op("isnan", (value,), "i1")), "i1")
        inside = self.op("select", (outside, self.const(0, value.type), value), value.type)
        kind, made = vector(llvm_type(value.type), lanes), vector(llvm_type(to), lanes)
        found = self.emit(f"{table.CASTS[row]} {kind} {inside.text} to {made}", to, lanes)
        found = self.op("select", (above, self.const(high, to), found), to)
        return self.op("select", (below, self.const(low % (1 << bits), to), found), to)

    def _scaled(self, value: LlvmValue, exponent: LlvmValue) -> LlvmValue:
        """VSCALEF, or powers of two as codes. A lane whose result is surely 0 is masked off: a processor takes a hundred cycles for
        one that underflows."""
        if not self._scales:
            return self._scaled_by_code(value, exponent)
        least = self.const(float_bits(-151.0 if value.type == "f32" else -1076.0, value.type), value.type)
        tiny = self.op("ltf", (exponent, least), "i1")
        there = self.op("xori", (tiny, self.const(1, "i1")), "i1")

        def write(kind: str, whole: int, operands: Sequence[LlvmValue]) -> str:
            number, power, mask = operands
            bits = self.emit(f"bitcast <{whole} x i1> {mask.text} to i{whole}", f"i{whole}", 1)
            name = f"llvm.x86.avx512.mask.scalef.{'ps' if value.type == 'f32' else 'pd'}.512"
            vectors = [f"{kind} {text}" for text in (number.text, power.text, "zeroinitializer")]
            return self.call(name, kind, [*vectors, f"i{whole} {bits.text}", "i32 4"])

        return self._by_whole_vectors(value.type, (value, exponent, there), write)

    def _scaled_by_code(self, value: LlvmValue, exponent: LlvmValue) -> LlvmValue:
        """Where every lane's result is surely a normal number, the exponent is added to the code of a value from 1/2 to 2. The
        lowest bits of a sum that has no room for a fraction are the whole number."""
        (value, exponent), lanes = self.together((value, exponent))
        real = value.type
        integer, mantissa, most = ("i32", 23, 125) if real == "f32" else ("i64", 52, 1021)
        whole = self.op("addf", (exponent, self.const(float_bits(1.5 * 2.0**mantissa, real), real)), real)
        added = self.op("shl", (self.as_type(whole, integer), self.const(mantissa, integer)), integer)
        normal = self.as_type(self.op("addi", (self.as_type(value, integer), added), integer), real)
        within = self.op("lef", (self.op("absf", (exponent,), real), self.const(float_bits(float(most), real), real)), "i1")
        before, rare, end = self.label, self.fresh("rare"), self.fresh("end")
        self.lines.append(f"  br i1 {self._in_all_lanes(within)}, label %{end}, label %{rare}")
        self.begin_block(rare)
        other, last = self._scaled_twice(value, exponent, self.as_type(whole, integer)), self.label
        self.lines.append(f"  br label %{end}")
        self.begin_block(end)
        kind = vector(llvm_type(real), lanes)
        return self.emit(f"phi {kind} [ {normal.text}, %{before} ], [ {other.text}, %{last} ]", real, lanes)

    def _in_all_lanes(self, condition: LlvmValue) -> str:
        if condition.lanes == 1:
            return condition.text
        name = f"llvm.vector.reduce.and.v{condition.lanes}i1"
        return self.emit(self.call(name, "i1", [f"<{condition.lanes} x i1> {condition.text}"]), "i1", 1).text

    def _scaled_twice(self, value: LlvmValue, exponent: LlvmValue, whole: LlvmValue) -> LlvmValue:
        """By the halves of the exponent, whose powers are normal numbers, so that the last product alone is rounded."""
        real, integer = value.type, whole.type
        mantissa, bias, least = (23, 127, -151.0) if real == "f32" else (52, 1023, -1076.0)
        tiny = self.op("ltf", (exponent, self.const(float_bits(least, real), real)), "i1")
        number = self.op("subi", (whole, self.const(float_bits(1.5 * 2.0**mantissa, real), integer)), integer)
        half = self.op("shrs", (number, self.const(1, integer)), integer)
        for part in (half, self.op("subi", (number, half), integer)):
            biased = self.op("addi", (part, self.const(bias, integer)), integer)
            power = self.as_type(self.op("shl", (biased, self.const(mantissa, integer)), integer), real)
            value = self.op("mulf", (value, power), real)
        return self.op("select", (tiny, self.const(0, real), value), real)

    def _extreme(self, row: str, values: Sequence[LlvmValue]) -> LlvmValue:
        """VRANGE orders zeros and takes a number rather than a quiet NaN (Intel SDM, volume 2C); of a signalling one with itself it
        makes a quiet one, which a value that arithmetic has made is already."""

        def write(kind: str, whole: int, operands: Sequence[LlvmValue]) -> str:
            a, b = (quieted(kind, whole, each) for each in operands)
            return ranged(kind, whole, a, b)

        def quieted(kind: str, whole: int, value: LlvmValue) -> str:
            if self._quiet.surely(value):
                return value.text
            found = self.emit(ranged(kind, whole, value.text, value.text), value.type, whole).text
            self._quiet.quieted(value.text, len(self.lines) - 1, f"  {found} = bitcast {kind} {value.text} to {kind}")
            return found

        def ranged(kind: str, whole: int, a: str, b: str) -> str:
            name = f"llvm.x86.avx512.mask.range.{'ps' if whole == 16 else 'pd'}.512"
            which = 4 if row == "minf" else 5  # and the sign of the result is that of what was chosen
            arguments = [f"{kind} {a}", f"{kind} {b}", f"i32 {which}", f"{kind} zeroinitializer", f"i{whole} -1", "i32 4"]
            return self.call(name, kind, arguments)

        return self._by_whole_vectors(values[0].type, values, write)

    def _by_whole_vectors(
        self, type_: str, values: Sequence[LlvmValue], write: Callable[[str, int, Sequence[LlvmValue]], str]
    ) -> LlvmValue:
        """What `write` makes of vectors of 512 bits, of operands of as many lanes: fewer are filled up, more are taken in parts."""
        kind, lanes = llvm_type(type_), values[0].lanes
        whole = 512 // BITS[kind]
        if lanes > whole:
            half = lanes // 2
            low, high = (self._by_whole_vectors(type_, [self.part(v, at, half) for v in values], write) for at in (0, half))
            return self.shuffled(low, high, range(lanes))
        filled = [self._filled(value, whole) for value in values]
        found = self.emit(write(vector(kind, whole), whole, filled), type_, whole)
        return found if lanes == whole else self.part(found, 0, lanes)

    def _filled(self, value: LlvmValue, lanes: int) -> LlvmValue:
        if value.lanes in (1, lanes):
            return self.repeated(value, lanes)
        return self.shuffled(value, value, [min(lane, value.lanes) for lane in range(lanes)])

    def _shift(self, row: str, values: list[LlvmValue], lanes: int) -> LlvmValue:
        """LLVM's are poison for amounts of the width and more."""
        value, amount = values
        own = value.type
        kind, bits = vector(llvm_type(own), lanes), BITS[llvm_type(own)]
        word = table.SHIFTS[row]
        if amount.number is not None and amount.number < bits:
            return self.emit(f"{word} {kind} {value.text}, {amount.text}", own, lanes)
        limit = self.repeated(self.const(bits - 1, own), lanes)
        least = self.op("minu", (amount, limit), own)
        shifted = self.emit(f"{word} {kind} {value.text}, {least.text}", own, lanes)
        if row == "shrs":
            return shifted
        within = self.op("leu", (amount, limit), "i1")
        return self.op("select", (within, shifted, self.const(0, own)), own)

    def _quotient(self, row: str, values: list[LlvmValue], lanes: int) -> LlvmValue:
        """A processor traps on quotients by zero, and on the smallest integer over -1: both divisors give way to 1."""
        value, divisor = values
        own = value.type
        kind, bits = vector(llvm_type(own), lanes), BITS[llvm_type(own)]
        ones = (1 << bits) - 1
        word = table.QUOTIENTS[row]
        if divisor.number not in (None, 0, ones):
            return self.emit(f"{word} {kind} {value.text}, {divisor.text}", own, lanes)
        zero, one = self.const(0, own), self.const(1, own)
        none = self.op("eqi", (divisor, zero), "i1")
        minus = self.op("eqi", (divisor, self.const(ones, own)), "i1") if word[0] == "s" else None
        unsafe = none if minus is None else self.op("ori", (none, minus), "i1")
        safe = self.op("select", (unsafe, one, divisor), own)
        found = self.emit(f"{word} {kind} {value.text}, {safe.text}", own, lanes)
        quotient = row.startswith("div")
        if minus is not None:
            found = self.op("select", (minus, self.op("subi", (zero, value), own) if quotient else zero, found), own)
        return self.op("select", (none, self.const(ones, own) if quotient else value, found), own)

    def _high(self, row: str, values: list[LlvmValue], lanes: int) -> LlvmValue:
        own = values[0].type
        bits = BITS[llvm_type(own)]
        kind, wide = vector(llvm_type(own), lanes), vector(f"i{2 * bits}", lanes)
        word = "sext" if row == "mulhs" else "zext"
        a, b = (self.emit(f"{word} {kind} {v.text} to {wide}", own, lanes).text for v in values)
        product = self.emit(f"mul {wide} {a}, {b}", own, lanes).text
        amount = f"splat (i{2 * bits} {bits})" if lanes > 1 else str(bits)
        high = self.emit(f"lshr {wide} {product}, {amount}", own, lanes).text
        return self.emit(f"trunc {wide} {high} to {kind}", own, lanes)

    def bits(self, value: LlvmValue) -> LlvmValue:
        code = self.as_type(value, f"i{BITS[llvm_type(value.type)]}")
        return code if code.type == "i32" else self.cast("extu", code, "i32")

    def narrow(self, value: LlvmValue, type_: str) -> LlvmValue:
        width = BITS[llvm_type(type_)]
        if type_ == "i4":
            value = self.op("andi", (value, self.const(15, "i32")), "i32")
        code = value if width == 32 else self.cast("trunci", value, f"i{width}")
        return self.as_type(code, type_)

    def as_type(self, value: LlvmValue, type_: str) -> LlvmValue:
        """The same bits as another type of the same width."""
        source, target = llvm_type(value.type), llvm_type(type_)
        if source == target:
            return LlvmValue(value.text, type_, value.lanes, number=value.number)
        lanes = value.lanes
        found = self.emit(f"bitcast {vector(source, lanes)} {value.text} to {vector(target, lanes)}", type_, lanes)
        if value.text in self._bitwise:
            self._bitwise.add(found.text)
        return found

    def split(self, value: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
        whole = self.as_type(value, "i64")
        high = self.op("shru", (whole, self.const(32, "i64")), "i64")
        return self.cast("trunci", whole, "i32"), self.cast("trunci", high, "i32")

    def join(self, low: LlvmValue, high: LlvmValue, type_: str) -> LlvmValue:
        (low, high), _ = self.together((low, high))
        upper = self.op("shl", (self.cast("extu", high, "i64"), self.const(32, "i64")), "i64")
        return self.as_type(self.op("ori", (self.cast("extu", low, "i64"), upper), "i64"), type_)

    def numbered(self, lanes: int) -> LlvmValue:
        if lanes == 1:
            return self.const(0, "i64")
        return LlvmValue(f"<{', '.join(f'i64 {n}' for n in range(lanes))}>", "i64", lanes)

    def part(self, value: LlvmValue, first: int, count: int) -> LlvmValue:
        kind = vector(llvm_type(value.type), value.lanes)
        if count == 1:
            return self._quiet.moved(self.emit(f"extractelement {kind} {value.text}, i32 {first}", value.type, 1), value)
        lanes = ", ".join(f"i32 {first + n}" for n in range(count))
        text = f"shufflevector {kind} {value.text}, {kind} poison, <{count} x i32> <{lanes}>"
        return self._quiet.moved(self.emit(text, value.type, count), value)

    def transposed(self, rows: Sequence[LlvmValue]) -> Sequence[LlvmValue]:
        """By halves: pairs of vectors exchange blocks of 1, 2, 4, … lanes beside the diagonal."""
        rows = list(rows)
        lanes, step = len(rows), 1
        while step < lanes:
            for i in range(lanes):
                if not i & step:
                    a, b = rows[i], rows[i + step]
                    rows[i] = self.shuffled(a, b, [k if not k & step else lanes + k - step for k in range(lanes)])
                    rows[i + step] = self.shuffled(a, b, [k + step if not k & step else lanes + k for k in range(lanes)])
            step *= 2
        return rows

    def shuffled(self, a: LlvmValue, b: LlvmValue, order: Sequence[int]) -> LlvmValue:
        """Lanes of two vectors; those of the second count on from the first's."""
        kind, lanes = vector(llvm_type(a.type), a.lanes), len(order)
        numbers = ", ".join(f"i32 {n}" for n in order)
        found = self.emit(f"shufflevector {kind} {a.text}, {kind} {b.text}, <{lanes} x i32> <{numbers}>", a.type, lanes)
        return self._quiet.moved(found, a, b)

    def permuted(self, value: LlvmValue, order: Sequence[int]) -> LlvmValue:
        return self.repeated(value, len(order)) if value.lanes == 1 else self.shuffled(value, value, order)

    def numbers(self, numbers: Sequence[int]) -> LlvmValue:
        return LlvmValue(f"<{', '.join(f'i64 {n}' for n in numbers)}>", "i64", len(numbers))

    def finished(self) -> None:
        """The function is written: what only that tells is put into its lines."""
        self._quiet.settle(self.lines)
