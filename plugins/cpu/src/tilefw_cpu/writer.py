"""LLVM IR as text, written by the kit: a `LoopMachine` whose values are LLVM's.

Text, not llvmlite's builder: it takes less time, and is the artifact anyway.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tilefw.api import Place
from tilefw.api.expand import Legal
from tilefw.api.tile import ElementMemory, LoopAtomic, LoopMachine
from tilefw_cpu import rows as table
from tilefw_cpu.processor import Processor
from tilefw_cpu.spelling import (
    BITS,
    LlvmValue,
    bytes_of_type,
    literal,
    llvm_type,
    overload,
    overload_of,
    stored_type,
    type_in,
    vector,
)

_ORDERS = {"relaxed": "monotonic", "acquire": "acquire", "release": "release", "acq_rel": "acq_rel"}
_FAILURE = {"monotonic": "monotonic", "acquire": "acquire", "release": "monotonic", "acq_rel": "acquire"}
_RMW = {"add": "add", "maxs": "max", "maxu": "umax", "mins": "min", "minu": "umin", **{w: w for w in ("and", "or", "xor", "xchg")}}


@dataclass(frozen=True, slots=True)
class Trap:
    """Where a kernel gives up, and with what message."""

    message: str
    place: Place | None


class LlvmWriter(LoopMachine[LlvmValue]):
    """Writes the body of one program; `lines` are its instructions, `variables` stand in the first block."""

    def __init__(self, processor: Processor, parameters: list[LlvmValue]) -> None:
        self.processor = processor
        self.rows: Container[str] = table.rows(processor.converts_halves)
        self.lines: list[str] = []
        self.variables: list[str] = []
        self.declarations: dict[str, str] = {}
        self.traps: list[Trap] = []
        self._parameters = parameters
        self._count = 0
        self._label = "begin"
        self._exits: list[str] = []

    product_tile = (8, 2)

    def vector_lanes(self, bits: int) -> int:
        return self.processor.vector_bits // bits

    # -- text

    def _emit(self, text: str, type_: str, lanes: int) -> LlvmValue:
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"  {name} = {text}")
        return LlvmValue(name, type_, lanes)

    def _block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self._label = label

    def _fresh(self, word: str) -> str:
        self._count += 1
        return f"{word}{self._count}"

    def _call(self, name: str, result: str, arguments: list[str]) -> str:
        """The text of a call of an intrinsic; an argument is a type and a value."""
        kinds = ", ".join(type_in(argument) for argument in arguments)
        self.declarations[name] = f"declare {result} @{name}({kinds})"
        return f"call {result} @{name}({', '.join(arguments)})"

    def repeated(self, value: LlvmValue, lanes: int) -> LlvmValue:
        if value.lanes == lanes:
            return value
        if value.number is not None:
            return LlvmValue(f"splat ({llvm_type(value.type)} {value.text})", value.type, lanes, number=value.number)
        kind = llvm_type(value.type)
        first = self._emit(f"insertelement <{lanes} x {kind}> poison, {kind} {value.text}, i32 0", value.type, lanes)
        return self._emit(
            f"shufflevector <{lanes} x {kind}> {first.text}, <{lanes} x {kind}> poison, <{lanes} x i32> zeroinitializer",
            value.type, lanes,
        )

    def _together(self, values: tuple[LlvmValue, ...]) -> tuple[list[LlvmValue], int]:
        lanes = max(value.lanes for value in values)
        return [self.repeated(value, lanes) for value in values], lanes

    # -- values

    def const(self, pattern: int, type_: str) -> LlvmValue:
        return LlvmValue(literal(pattern, llvm_type(type_)), type_, number=pattern)

    def op(self, row: str, operands: tuple[LlvmValue, ...], result: str) -> LlvmValue:
        values, lanes = self._together(operands)
        own = values[1 if row == "select" else 0].type
        kind = vector(llvm_type(own), lanes)
        texts = [value.text for value in values]
        if row in table.INSTRUCTIONS:
            return self._emit(f"{table.INSTRUCTIONS[row]} {kind} {texts[0]}, {texts[1]}", result, lanes)
        if row in table.COMPARES:
            return self._emit(f"{table.COMPARES[row]} {kind} {texts[0]}, {texts[1]}", "i1", lanes)
        if row in table.INTRINSICS or row in table.FLAGGED:
            name = table.INTRINSICS.get(row) or table.FLAGGED[row]
            arguments = [f"{kind} {text}" for text in texts] + (["i1 false"] if row in table.FLAGGED else [])
            return self._emit(self._call(f"llvm.{name}.{overload(own, lanes)}", kind, arguments), result, lanes)
        if row in table.SHIFTS:
            return self._shift(row, values, lanes)
        if row in table.QUOTIENTS:
            return self._quotient(row, values, lanes)
        if row in ("mulhs", "mulhu"):
            return self._high(row, values, lanes)
        if row == "select":
            condition = vector("i1", lanes)
            return self._emit(f"select {condition} {texts[0]}, {kind} {texts[1]}, {kind} {texts[2]}", own, lanes)
        if row == "negf":
            return self._emit(f"fneg {kind} {texts[0]}", own, lanes)
        if row == "isnan":
            return self._emit(f"fcmp uno {kind} {texts[0]}, {texts[0]}", "i1", lanes)
        return self._cast(row, values[0], result)

    def _cast(self, row: str, value: LlvmValue, to: str) -> LlvmValue:
        source, target = llvm_type(value.type), llvm_type(to)
        kind, made = vector(source, value.lanes), vector(target, value.lanes)
        if row == "castf":
            word = "fpext" if BITS[source] < BITS[target] else "fptrunc"
        else:
            word = table.CASTS[row]
        if word.startswith("llvm."):
            name = f"{word}.{overload(to, value.lanes)}.{overload(value.type, value.lanes)}"
            return self._emit(self._call(name, made, [f"{kind} {value.text}"]), to, value.lanes)
        return self._emit(f"{word} {kind} {value.text} to {made}", to, value.lanes)

    def _shift(self, row: str, values: list[LlvmValue], lanes: int) -> LlvmValue:
        """LLVM's are poison for amounts of the width and more."""
        value, amount = values
        own = value.type
        kind, bits = vector(llvm_type(own), lanes), BITS[llvm_type(own)]
        word = table.SHIFTS[row]
        if amount.number is not None and amount.number < bits:
            return self._emit(f"{word} {kind} {value.text}, {amount.text}", own, lanes)
        limit = self.repeated(self.const(bits - 1, own), lanes)
        least = self.op("minu", (amount, limit), own)
        shifted = self._emit(f"{word} {kind} {value.text}, {least.text}", own, lanes)
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
            return self._emit(f"{word} {kind} {value.text}, {divisor.text}", own, lanes)
        zero, one = self.const(0, own), self.const(1, own)
        none = self.op("eqi", (divisor, zero), "i1")
        minus = self.op("eqi", (divisor, self.const(ones, own)), "i1") if word[0] == "s" else None
        unsafe = none if minus is None else self.op("ori", (none, minus), "i1")
        safe = self.op("select", (unsafe, one, divisor), own)
        found = self._emit(f"{word} {kind} {value.text}, {safe.text}", own, lanes)
        quotient = row.startswith("div")
        if minus is not None:
            found = self.op("select", (minus, self.op("subi", (zero, value), own) if quotient else zero, found), own)
        return self.op("select", (none, self.const(ones, own) if quotient else value, found), own)

    def _high(self, row: str, values: list[LlvmValue], lanes: int) -> LlvmValue:
        own = values[0].type
        bits = BITS[llvm_type(own)]
        kind, wide = vector(llvm_type(own), lanes), vector(f"i{2 * bits}", lanes)
        word = "sext" if row == "mulhs" else "zext"
        a, b = (self._emit(f"{word} {kind} {v.text} to {wide}", own, lanes).text for v in values)
        product = self._emit(f"mul {wide} {a}, {b}", own, lanes).text
        amount = f"splat (i{2 * bits} {bits})" if lanes > 1 else str(bits)
        high = self._emit(f"lshr {wide} {product}, {amount}", own, lanes).text
        return self._emit(f"trunc {wide} {high} to {kind}", own, lanes)

    def bits(self, value: LlvmValue) -> LlvmValue:
        code = self._as(value, f"i{BITS[llvm_type(value.type)]}")
        return code if code.type == "i32" else self._cast("extu", code, "i32")

    def narrow(self, value: LlvmValue, type_: str) -> LlvmValue:
        width = BITS[llvm_type(type_)]
        if type_ == "i4":
            value = self.op("andi", (value, self.const(15, "i32")), "i32")
        code = value if width == 32 else self._cast("trunci", value, f"i{width}")
        return self._as(code, type_)

    def _as(self, value: LlvmValue, type_: str) -> LlvmValue:
        """The same bits as another type of the same width."""
        source, target = llvm_type(value.type), llvm_type(type_)
        if source == target:
            return LlvmValue(value.text, type_, value.lanes, number=value.number)
        lanes = value.lanes
        return self._emit(f"bitcast {vector(source, lanes)} {value.text} to {vector(target, lanes)}", type_, lanes)

    def split(self, value: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
        whole = self._as(value, "i64")
        high = self.op("shru", (whole, self.const(32, "i64")), "i64")
        return self._cast("trunci", whole, "i32"), self._cast("trunci", high, "i32")

    def join(self, low: LlvmValue, high: LlvmValue, type_: str) -> LlvmValue:
        (low, high), _ = self._together((low, high))
        upper = self.op("shl", (self._cast("extu", high, "i64"), self.const(32, "i64")), "i64")
        return self._as(self.op("ori", (self._cast("extu", low, "i64"), upper), "i64"), type_)

    def numbered(self, lanes: int) -> LlvmValue:
        if lanes == 1:
            return self.const(0, "i64")
        return LlvmValue(f"<{', '.join(f'i64 {n}' for n in range(lanes))}>", "i64", lanes)

    def part(self, value: LlvmValue, first: int, count: int) -> LlvmValue:
        kind = vector(llvm_type(value.type), value.lanes)
        if count == 1:
            return self._emit(f"extractelement {kind} {value.text}, i32 {first}", value.type, 1)
        lanes = ", ".join(f"i32 {first + n}" for n in range(count))
        return self._emit(f"shufflevector {kind} {value.text}, {kind} poison, <{count} x i32> <{lanes}>", value.type, count)

    # -- memory

    def scratch(self, offset: int) -> LlvmValue:
        if not offset:
            return _SCRATCH
        return LlvmValue(self._emit(f"getelementptr i8, ptr %scratch, i64 {offset}", "i64", 1).text, "i64", pointer=True)

    def _base(self, address: LlvmValue) -> str:
        return address.text if address.pointer else self._emit(f"inttoptr i64 {address.text} to ptr", "i64", 1).text

    def _pointer(self, memory: ElementMemory[LlvmValue], kind: str, back: int = 0) -> str:
        """Of the first element, or of the one `back` elements before it."""
        base = self._base(memory.address)
        offset = memory.offset
        if back:
            offset = self.op("subi", (offset, self.const(back, "i64")), "i64")
        return self._emit(f"getelementptr {kind}, ptr {base}, i64 {offset.text}", "i64", 1).text

    def _pointers(self, memory: ElementMemory[LlvmValue], kind: str, lanes: int) -> str:
        base = self._base(memory.address)
        offset: LlvmValue = memory.offset
        if offset.lanes == 1:
            stride = memory.stride
            step = self.const(stride % (1 << 64), "i64") if isinstance(stride, int) else stride
            offset = self.op("addi", (offset, self.op("muli", (self.numbered(lanes), step), "i64")), "i64")
        return self._emit(f"getelementptr {kind}, ptr {base}, <{lanes} x i64> {offset.text}", "i64", lanes).text

    def load(
        self, memory: ElementMemory[LlvmValue], type_: str, lanes: int, mask: LlvmValue | None = None,
        other: LlvmValue | None = None,
    ) -> LlvmValue:
        kind = stored_type(type_)
        code = None if other is None else self._code(self.repeated(other, lanes))
        if mask is not None and mask.lanes != lanes:
            mask = self.repeated(mask, lanes)
        found = self._loaded(memory, kind, lanes, mask, "poison" if code is None else code.text)
        if type_ == "i1":
            return self._emit(f"trunc {vector('i8', lanes)} {found.text} to {vector('i1', lanes)}", "i1", lanes)
        return LlvmValue(found.text, type_, lanes)

    def _loaded(self, memory: ElementMemory[LlvmValue], kind: str, lanes: int, mask: LlvmValue | None, other: str) -> LlvmValue:
        held = vector(kind, lanes)
        volatile = "volatile " if memory.volatile else ""
        if lanes == 1:
            if mask is None:
                return self._emit(f"load {volatile}{kind}, ptr {self._pointer(memory, kind)}, align {memory.alignment}", "i64", 1)
            before, then, end = self._label, self._fresh("then"), self._fresh("end")
            self.lines.append(f"  br i1 {mask.text}, label %{then}, label %{end}")
            self._block(then)
            found = self._emit(f"load {volatile}{kind}, ptr {self._pointer(memory, kind)}, align {memory.alignment}", "i64", 1)
            self.lines.append(f"  br label %{end}")
            self._block(end)
            return self._emit(f"phi {kind} [ {found.text}, %{then} ], [ {other}, %{before} ]", "i64", 1)
        if memory.stride in (1, -1) and memory.offset.lanes == 1:
            back = memory.stride == -1
            pointer = self._pointer(memory, kind, lanes - 1 if back else 0)
            align = bytes_of_type(kind) if back else memory.alignment
            if mask is None:
                found = self._emit(f"load {volatile}{held}, ptr {pointer}, align {align}", "i64", lanes)
            else:
                shown = self._turned(mask.text, "i1", lanes) if back else mask.text
                passed = self._turned(other, kind, lanes) if back and other != "poison" else other
                name = f"llvm.masked.load.v{lanes}{overload_of(kind)}.p0"
                arguments = [f"ptr align {align} {pointer}", f"<{lanes} x i1> {shown}", f"{held} {passed}"]
                found = self._emit(self._call(name, held, arguments), "i64", lanes)
            return LlvmValue(self._turned(found.text, kind, lanes), "i64", lanes) if back else found
        pointers = self._pointers(memory, kind, lanes)
        every = "splat (i1 true)" if mask is None else mask.text
        name = f"llvm.masked.gather.v{lanes}{overload_of(kind)}.v{lanes}p0"
        arguments = [f"<{lanes} x ptr> align {bytes_of_type(kind)} {pointers}", f"<{lanes} x i1> {every}", f"{held} {other}"]
        return self._emit(self._call(name, held, arguments), "i64", lanes)

    def _turned(self, text: str, kind: str, lanes: int) -> str:
        held = f"<{lanes} x {kind}>"
        order = ", ".join(f"i32 {lanes - 1 - n}" for n in range(lanes))
        return self._emit(f"shufflevector {held} {text}, {held} poison, <{lanes} x i32> <{order}>", "i64", lanes).text

    def _code(self, value: LlvmValue) -> LlvmValue:
        """As it stands in memory: an i1 takes a byte."""
        return self._cast("extu", value, "i8") if value.type == "i1" else value

    def store(self, memory: ElementMemory[LlvmValue], value: LlvmValue, mask: LlvmValue | None = None) -> None:
        lanes = max(value.lanes, memory.offset.lanes, 1 if mask is None else mask.lanes)
        value = self._code(self.repeated(value, lanes))
        kind = stored_type(value.type)
        held = vector(kind, lanes)
        volatile = "volatile " if memory.volatile else ""
        if lanes == 1:
            if mask is None:
                pointer = self._pointer(memory, kind)
                self.lines.append(f"  store {volatile}{kind} {value.text}, ptr {pointer}, align {memory.alignment}")
                return
            with self.branch(mask):
                self.store(memory, value)
            return
        shown = None if mask is None else self.repeated(mask, lanes).text
        if memory.stride in (1, -1) and memory.offset.lanes == 1:
            back = memory.stride == -1
            pointer = self._pointer(memory, kind, lanes - 1 if back else 0)
            align = bytes_of_type(kind) if back else memory.alignment
            text = self._turned(value.text, kind, lanes) if back else value.text
            if shown is None:
                self.lines.append(f"  store {volatile}{held} {text}, ptr {pointer}, align {align}")
                return
            shown = self._turned(shown, "i1", lanes) if back else shown
            name = f"llvm.masked.store.v{lanes}{overload_of(kind)}.p0"
            arguments = [f"{held} {text}", f"ptr align {align} {pointer}", f"<{lanes} x i1> {shown}"]
        else:
            pointers = self._pointers(memory, kind, lanes)
            name = f"llvm.masked.scatter.v{lanes}{overload_of(kind)}.v{lanes}p0"
            every = "splat (i1 true)" if shown is None else shown
            placed = f"<{lanes} x ptr> align {bytes_of_type(kind)} {pointers}"
            arguments = [f"{held} {value.text}", placed, f"<{lanes} x i1> {every}"]
        self.lines.append("  " + self._call(name, "void", arguments))

    # -- atomics

    def atomic(self, access: LoopAtomic[LlvmValue]) -> LlvmValue:
        pointer = self._base(access.address)
        order = _ORDERS[access.order]
        operands: tuple[LlvmValue, ...] = access.operands
        kind = llvm_type(access.type)
        word = f"i{BITS[kind]}"
        if access.kind == "cas":
            expected, value = operands
            return self._exchanged(pointer, word, expected, value, access.type, order)
        if access.kind == "add" and access.type in ("f32", "f64"):
            return self._emit(f"atomicrmw fadd ptr {pointer}, {kind} {operands[0].text} {order}", access.type, 1)
        if access.kind in _RMW and (access.type.startswith("i") or access.kind == "xchg"):
            value = self._as(operands[0], word)
            found = self._emit(f"atomicrmw {_RMW[access.kind]} ptr {pointer}, {word} {value.text} {order}", word, 1)
            return self._as(found, access.type)
        return self._retried(access, pointer, word, order)

    def _exchanged(
        self, pointer: str, word: str, expected: LlvmValue, value: LlvmValue, type_: str, order: str
    ) -> LlvmValue:
        before, after = self._as(expected, word), self._as(value, word)
        pair = self._emit(
            f"cmpxchg ptr {pointer}, {word} {before.text}, {word} {after.text} {order} {_FAILURE[order]}", "i64", 1
        )
        return self._as(self._emit(f"extractvalue {{ {word}, i1 }} {pair.text}, 0", word, 1), type_)

    def _retried(self, access: LoopAtomic[LlvmValue], pointer: str, word: str, order: str) -> LlvmValue:
        """What the processor has no instruction for: read, compute, exchange, until nobody came between."""
        legal = Legal(self, self.rules)
        (operand,) = access.operands
        old = self.variable(word)
        self.assign(old, self._emit(f"load atomic {word}, ptr {pointer} monotonic, align {bytes_of_type(word)}", word, 1))
        with self.forever():
            seen = self.read(old)
            value = self._as(seen, access.type)
            if access.kind == "add":
                made = legal("addf", value, operand)
            else:  # maxf and minf order codes as totalOrder does: the bits below the sign count down where it is set
                keys = [self._ordered(self._as(v, word)) for v in (value, operand)]
                first = legal("ges" if access.kind == "maxf" else "les", *keys)
                made = legal("select", first, value, operand)
            found = self._exchanged(pointer, word, seen, made, word, order)
            self.assign(old, found)
            self.leave(self.op("eqi", (found, seen), "i1"))
        return self._as(self.read(old), access.type)

    def _ordered(self, code: LlvmValue) -> LlvmValue:
        bits = BITS[code.type]
        sign = self.op("shrs", (code, self.const(bits - 1, code.type)), code.type)
        below = self.op("andi", (sign, self.const((1 << (bits - 1)) - 1, code.type)), code.type)
        return self.op("xori", (code, below), code.type)

    # -- the program

    def parameter(self, number: int, type_: str) -> LlvmValue:
        return self._parameters[number]

    def program_id(self, axis: int) -> LlvmValue:
        return LlvmValue(f"%id{axis}", "i32")

    def programs(self, axis: int) -> LlvmValue:
        return LlvmValue(f"%grid{axis}", "i32")

    def observe(self, what: str) -> LlvmValue:
        """By the C library of the process; a tick is a nanosecond."""
        if what == "processor":
            self.declarations["sched_getcpu"] = "declare i32 @sched_getcpu()"
            return self._emit("call i32 @sched_getcpu()", "i32", 1)
        self.declarations["clock_gettime"] = "declare i32 @clock_gettime(i32, ptr)"
        clock = f"%{self._fresh('clock')}"
        self.variables.append(f"  {clock} = alloca [2 x i64]")
        self._emit(f"call i32 @clock_gettime(i32 {time.CLOCK_MONOTONIC}, ptr {clock})", "i32", 1)
        seconds = self._emit(f"load i64, ptr {clock}", "i64", 1)
        rest = self._emit(f"getelementptr i64, ptr {clock}, i64 1", "i64", 1)
        whole = self.op("muli", (seconds, self.const(10**9, "i64")), "i64")
        return self.op("addi", (whole, self._emit(f"load i64, ptr {rest.text}", "i64", 1)), "i64")

    def trap(self, message: str, place: Place | None) -> None:
        self.traps.append(Trap(message, place))
        self.lines.append(f"  ret i32 {len(self.traps)}")
        self._block(self._fresh("never"))

    # -- control flow

    def variable(self, type_: str, lanes: int = 1) -> LlvmValue:
        name = f"%{self._fresh('x')}"
        self.variables.append(f"  {name} = alloca {vector(llvm_type(type_), lanes)}")
        return LlvmValue(name, type_, lanes, pointer=True)

    def assign(self, variable: LlvmValue, value: LlvmValue) -> None:
        self.lines.append(f"  store {vector(llvm_type(variable.type), variable.lanes)} {value.text}, ptr {variable.text}")

    def read(self, variable: LlvmValue) -> LlvmValue:
        kind = vector(llvm_type(variable.type), variable.lanes)
        return self._emit(f"load {kind}, ptr {variable.text}", variable.type, variable.lanes)

    @contextmanager
    def loop(self, begin: LlvmValue, end: LlvmValue, step: LlvmValue) -> Iterator[LlvmValue]:
        kind = llvm_type(begin.type)
        head, body, exit_ = self._fresh("head"), self._fresh("body"), self._fresh("exit")
        before = self._label
        self.lines.append(f"  br label %{head}")
        self._block(head)
        following = f"%{self._fresh('next')}"
        at = len(self.lines)
        counter = self._emit("", begin.type, 1)
        more = self._emit(f"icmp slt {kind} {counter.text}, {end.text}", "i1", 1)
        self.lines.append(f"  br i1 {more.text}, label %{body}, label %{exit_}")
        self._block(body)
        yield counter
        self.lines[at] = f"  {counter.text} = phi {kind} [ {begin.text}, %{before} ], [ {following}, %{self._label} ]"
        self.lines.append(f"  {following} = add {kind} {counter.text}, {step.text}")
        self.lines.append(f"  br label %{head}")
        self._block(exit_)

    @contextmanager
    def branch(self, condition: LlvmValue) -> Iterator[None]:
        then, end = self._fresh("then"), self._fresh("end")
        self.lines.append(f"  br i1 {condition.text}, label %{then}, label %{end}")
        self._block(then)
        yield
        self.lines.append(f"  br label %{end}")
        self._block(end)

    @contextmanager
    def forever(self) -> Iterator[None]:
        head, exit_ = self._fresh("head"), self._fresh("exit")
        self._exits.append(exit_)
        self.lines.append(f"  br label %{head}")
        self._block(head)
        yield
        self._exits.pop()
        self.lines.append(f"  br label %{head}")
        self._block(exit_)

    def leave(self, condition: LlvmValue) -> None:
        going = self._fresh("on")
        self.lines.append(f"  br i1 {condition.text}, label %{self._exits[-1]}, label %{going}")
        self._block(going)


_SCRATCH = LlvmValue("%scratch", "i64", pointer=True)
