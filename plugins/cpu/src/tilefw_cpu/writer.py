"""LLVM IR as text, written by the kit: a `LoopMachine` whose values are LLVM's.

Text, not llvmlite's builder: it takes less time, and is the artifact anyway.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from tilefw.api.hardware import Trap
from tilefw.api.tile import ElementMemory, LoopAtomic, LoopMachine, WholeProduct, by_exchange
from tilefw_cpu import rows as table
from tilefw_cpu.arithmetic import LlvmArithmetic
from tilefw_cpu.debug_lines import DebugLines, LocatedLines
from tilefw_cpu.factor_planes import planes_of
from tilefw_cpu.matrix_engines import engines_of
from tilefw_cpu.processor import Processor
from tilefw_cpu.product_packing import ProductPacking, workspace_bytes
from tilefw_cpu.spelling import BITS, LlvmValue, bytes_of_type, llvm_type, overload_of, stored_type, vector
from tilefw_cpu.tile_products import TileConfigurations, TileProducts
from tilefw_cpu.vector_products import VectorProducts

_ORDERS = {"relaxed": "monotonic", "acquire": "acquire", "release": "release", "acq_rel": "acq_rel"}
_FAILURE = {"monotonic": "monotonic", "acquire": "acquire", "release": "monotonic", "acq_rel": "acquire"}
_RMW = {"add": "add", "maxs": "max", "maxu": "umax", "mins": "min", "minu": "umin", **{w: w for w in ("and", "or", "xor", "xchg")}}
STOPPED = -3
"""What a program answers that ends because the launch is to end."""
_LINE = 64
"""Bytes of a cache line."""
_PAGE = 4096
"""How far ahead of a vector that fills a cache line what is streamed is fetched. The processor's own prefetcher goes no further
than to the end of a page (Intel's optimization manual, on the L2 streamer), where it begins anew."""
_SCRATCH = LlvmValue("%scratch", "i64", pointer=True)


class LlvmWriter(LlvmArithmetic, LoopMachine[LlvmValue]):
    """Writes the body of one program: memory, atomics and what a program knows, beside rows and control flow."""

    transposes = True
    permutes = True
    fetches = True
    takes_whole = True

    def __init__(self, processor: Processor, debug: DebugLines) -> None:
        super().__init__("avx512f" in processor.features, processor.ranges, processor.scales)
        self.lines = LocatedLines(self, debug)
        self.processor = processor
        self.product_tile = (8 if processor.vector_registers == 32 else 6, 2)  # beside the sums stand two of B and one of A
        self.cheap_masked_stores = processor.masks_stores
        self.rows: Container[str] = table.rows(processor.converts_halves)
        self.traps: list[Trap] = []
        self.parameters: list[LlvmValue] = []
        self.looks = False
        """Whether the program looks at the word that ends a launch early."""
        self.prologue: list[str] = []
        """What stands before the program's own lines."""
        self.engines = engines_of(processor)
        self.matrix_types = frozenset((taken, "i32" if taken in ("i8", "u8") else "f32") for taken in self.engines)
        self.matrix_tile = (1, self.vector_lanes(32), 16)
        self.tiles = TileConfigurations(self)

    def vector_lanes(self, bits: int) -> int:
        return self.processor.vector_bits // bits

    # -- memory

    def scratch(self, offset: int) -> LlvmValue:
        if not offset:
            return _SCRATCH
        return LlvmValue(self.emit(f"getelementptr i8, ptr %scratch, i64 {offset}", "i64", 1).text, "i64", pointer=True)

    def _base(self, address: LlvmValue | None) -> str:
        assert address is not None  # single elements and consecutive ones have one
        return address.text if address.pointer else self.emit(f"inttoptr i64 {address.text} to ptr", "i64", 1).text

    def _pointer(self, memory: ElementMemory[LlvmValue], kind: str, back: int = 0) -> str:
        """Of the first element, or of the one `back` elements before it."""
        base = self._base(memory.address)
        offset = memory.offset
        if back:
            offset = self.op("subi", (offset, self.const(back, "i64")), "i64")
        return self.emit(f"getelementptr {kind}, ptr {base}, i64 {offset.text}", "i64", 1).text

    def _pointers(self, memory: ElementMemory[LlvmValue], kind: str, lanes: int) -> str:
        offset = memory.offset
        if memory.address is None:
            return self.emit(f"inttoptr <{lanes} x i64> {self.repeated(offset, lanes).text} to <{lanes} x ptr>", "i64", lanes).text
        base = self._base(memory.address)
        if offset.lanes == 1:
            stride = memory.stride
            step = self.const(stride % (1 << 64), "i64") if isinstance(stride, int) else stride
            offset = self.op("addi", (offset, self.op("muli", (self.numbered(lanes), step), "i64")), "i64")
        return self.emit(f"getelementptr {kind}, ptr {base}, <{lanes} x i64> {offset.text}", "i64", lanes).text

    def load(
        self, memory: ElementMemory[LlvmValue], type_: str, lanes: int, mask: LlvmValue | None = None,
        other: LlvmValue | None = None,
    ) -> LlvmValue:
        kind = stored_type(type_)
        code = None if other is None else self._code(self.repeated(other, lanes))
        if mask is not None and mask.lanes != lanes:
            mask = self.repeated(mask, lanes)
        # Not poison: what a masked-off element takes part in is unspecified, and never undefined.
        found = self._loaded(memory, kind, lanes, mask, "zeroinitializer" if code is None else code.text)
        if type_ == "i1":
            return self.emit(f"icmp ne {vector('i8', lanes)} {found.text}, zeroinitializer", "i1", lanes)
        if type_ == "i4":
            low = self.repeated(self.const(15, "i8"), lanes).text
            return self.emit(f"and {vector('i8', lanes)} {found.text}, {low}", "i4", lanes)
        return LlvmValue(found.text, type_, lanes)

    def _ordered(self, memory: ElementMemory[LlvmValue]) -> None:
        """Keep an access of vectors at its place: LLVM has no volatile form of the masked ones."""
        if memory.volatile:
            self.lines.append('  call void asm sideeffect "", "~{memory}"()')

    def _loaded(self, memory: ElementMemory[LlvmValue], kind: str, lanes: int, mask: LlvmValue | None, other: str) -> LlvmValue:
        held = vector(kind, lanes)
        volatile = "volatile " if memory.volatile else ""
        if lanes == 1:
            if mask is None:
                return self.emit(f"load {volatile}{kind}, ptr {self._pointer(memory, kind)}, align {memory.alignment}", "i64", 1)
            before, then, end = self.label, self.fresh("then"), self.fresh("end")
            self.lines.append(f"  br i1 {mask.text}, label %{then}, label %{end}")
            self.begin_block(then)
            found = self.emit(f"load {volatile}{kind}, ptr {self._pointer(memory, kind)}, align {memory.alignment}", "i64", 1)
            self.lines.append(f"  br label %{end}")
            self.begin_block(end)
            return self.emit(f"phi {kind} [ {found.text}, %{then} ], [ {other}, %{before} ]", "i64", 1)
        self._ordered(memory)
        if memory.stride in (1, -1) and memory.offset.lanes == 1:
            back = memory.stride == -1
            pointer = self._pointer(memory, kind, lanes - 1 if back else 0)
            align = bytes_of_type(kind) if back else memory.alignment
            if memory.ahead is not None:
                self._fetch(pointer, kind, memory.ahead.text)
            if mask is None:
                if memory.streamed and not back and lanes * bytes_of_type(kind) == _LINE:
                    self._fetch(pointer, "i8", str(_PAGE))
                found = self.emit(f"load {volatile}{held}, ptr {pointer}, align {align}", "i64", lanes)
            else:
                shown = self._turned(mask.text, "i1", lanes) if back else mask.text
                passed = self._turned(other, kind, lanes) if back else other
                found = self._masked_load(pointer, align, kind, lanes, shown, passed)
            return LlvmValue(self._turned(found.text, kind, lanes), "i64", lanes) if back else found
        if memory.stride == 2 and memory.offset.lanes == 1 and bytes_of_type(kind) >= 4:
            return self._every_second(memory, kind, lanes, mask, other)
        pointers = self._pointers(memory, kind, lanes)
        every = "splat (i1 true)" if mask is None else mask.text
        name = f"llvm.masked.gather.v{lanes}{overload_of(kind)}.v{lanes}p0"
        arguments = [f"<{lanes} x ptr> align {bytes_of_type(kind)} {pointers}", f"<{lanes} x i1> {every}", f"{held} {other}"]
        return self.emit(self.call(name, held, arguments), "i64", lanes)

    def _masked_load(self, pointer: str, align: int, kind: str, lanes: int, mask: str, other: str) -> LlvmValue:
        held = vector(kind, lanes)
        arguments = [f"ptr align {align} {pointer}", f"<{lanes} x i1> {mask}", f"{held} {other}"]
        return self.emit(self.call(f"llvm.masked.load.v{lanes}{overload_of(kind)}.p0", held, arguments), "i64", lanes)

    def _every_second(
        self, memory: ElementMemory[LlvmValue], kind: str, lanes: int, mask: LlvmValue | None, other: str
    ) -> LlvmValue:
        """By two vectors, of which the second ends with the last element: what lies between elements is read, nothing behind them.
        A gather makes a load for each element (uops.info, VGATHERDPS)."""
        held, half = vector(kind, lanes), lanes // 2
        last = self.op("addi", (memory.offset, self.const(lanes - 1, "i64")), "i64")
        parts: list[str] = []
        for first, offset in ((0, memory.offset), (1, last)):
            pointer = self._pointer(replace(memory, offset=offset), kind)
            if mask is None:
                parts.append(self.emit(f"load {held}, ptr {pointer}, align {bytes_of_type(kind)}", "i64", lanes).text)
                continue
            # Of the second vector's lanes those of odd number are wanted.
            order = [lanes if (n + first) % 2 else n // 2 + first * half for n in range(lanes)]
            shown = self._picked(mask.text, "zeroinitializer", "i1", lanes, order)
            parts.append(self._masked_load(pointer, bytes_of_type(kind), kind, lanes, shown, "zeroinitializer").text)
        found = self._picked(parts[0], parts[1], kind, lanes, [2 * n if n < half else 2 * n + 1 for n in range(lanes)])
        if mask is None or other == "zeroinitializer":
            return LlvmValue(found, "i64", lanes)
        return self.emit(f"select <{lanes} x i1> {mask.text}, {held} {found}, {held} {other}", "i64", lanes)

    def _picked(self, first: str, second: str, kind: str, lanes: int, order: Sequence[int]) -> str:
        """Elements of two vectors, numbered through both."""
        held = f"<{lanes} x {kind}>"
        numbers = ", ".join(f"i32 {n}" for n in order)
        return self.emit(f"shufflevector {held} {first}, {held} {second}, <{len(order)} x i32> <{numbers}>", "i64", lanes).text

    def _fetch(self, pointer: str, kind: str, distance: str) -> None:
        """What is so many elements further. An address that is nobody's is no fault of a prefetch."""
        ahead = self.emit(f"getelementptr {kind}, ptr {pointer}, i64 {distance}", "i64", 1).text
        read, nearest, data = "i32 0", "i32 3", "i32 1"
        self.lines.append("  " + self.call("llvm.prefetch.p0", "void", [f"ptr {ahead}", read, nearest, data]))

    def _turned(self, text: str, kind: str, lanes: int) -> str:
        return self._picked(text, "poison", kind, lanes, range(lanes - 1, -1, -1))

    def _code(self, value: LlvmValue) -> LlvmValue:
        """As it stands in memory: an i1 takes a byte."""
        return self.cast("extu", value, "i8") if value.type == "i1" else value

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
        if mask is not None and mask.lanes == 1 and not self.cheap_masked_stores:
            with self.branch(mask):
                self.store(memory, value)
            return
        self._ordered(memory)
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
        self.lines.append("  " + self.call(name, "void", arguments))

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
            return self.emit(f"atomicrmw fadd ptr {pointer}, {kind} {operands[0].text} {order}", access.type, 1)
        if access.kind in _RMW and (access.type.startswith("i") or access.kind == "xchg"):
            value = self.as_type(operands[0], word)
            found = self.emit(f"atomicrmw {_RMW[access.kind]} ptr {pointer}, {word} {value.text} {order}", word, 1)
            return self.as_type(found, access.type)
        return by_exchange(self, access)

    def _exchanged(
        self, pointer: str, word: str, expected: LlvmValue, value: LlvmValue, type_: str, order: str
    ) -> LlvmValue:
        before, after = self.as_type(expected, word), self.as_type(value, word)
        pair = self.emit(
            f"cmpxchg ptr {pointer}, {word} {before.text}, {word} {after.text} {order} {_FAILURE[order]}", "i64", 1
        )
        return self.as_type(self.emit(f"extractvalue {{ {word}, i1 }} {pair.text}, 0", word, 1), type_)

    # -- products

    def multiplies(self, sizes: tuple[int, int, int], operand_type: str) -> bool:
        return sizes[0] >= planes_of(operand_type).least_rows

    def matrix_workspace(self, sizes: tuple[int, int, int], operand_type: str) -> int:
        return workspace_bytes(sizes, operand_type)

    def multiply_whole(self, product: WholeProduct[LlvmValue]) -> LlvmValue | None:
        engine = self.engines[product.operand_type]
        packing = ProductPacking(self, engine, product)
        undone = packing.write()
        with nullcontext() if undone is None else self.branch(self.op("xori", (undone, self.const(1, "i1")), "i1")):
            if engine.tiles:
                TileProducts(packing, self.tiles).write()
            else:
                VectorProducts(packing).write()
        return undone

    # -- the program

    @contextmanager
    def forever(self) -> Iterator[None]:
        """Which ends the program where the launch is to end."""
        self.looks = True
        with super().forever():
            word = self.emit("getelementptr i64, ptr %next, i64 1", "i64", 1)
            asked = self.emit(f"load atomic i32, ptr {word.text} monotonic, align 8", "i32", 1)
            with self.branch(self.emit(f"icmp ne i32 {asked.text}, 0", "i1", 1)):
                self.lines.append(f"  ret i32 {STOPPED}")
                self.begin_block(self.fresh("never"))
            yield

    def parameter(self, number: int, type_: str) -> LlvmValue:
        return LlvmValue(f"%arg{number}", type_)

    def program_id(self, axis: int) -> LlvmValue:
        return LlvmValue(f"%id{axis}", "i32")

    def programs(self, axis: int) -> LlvmValue:
        return LlvmValue(f"%grid{axis}", "i32")

    def observe(self, what: str) -> LlvmValue:
        """By the C library of the process; a tick is a nanosecond."""
        if what == "processor":
            self.declarations["sched_getcpu"] = "declare i32 @sched_getcpu()"
            return self.emit("call i32 @sched_getcpu()", "i32", 1)
        self.declarations["clock_gettime"] = "declare i32 @clock_gettime(i32, ptr)"
        clock = f"%{self.fresh('clock')}"
        self.variables.append(f"  {clock} = alloca [2 x i64]")
        self.emit(f"call i32 @clock_gettime(i32 {time.CLOCK_MONOTONIC}, ptr {clock})", "i32", 1)
        seconds = self.emit(f"load i64, ptr {clock}", "i64", 1)
        rest = self.emit(f"getelementptr i64, ptr {clock}, i64 1", "i64", 1)
        whole = self.op("muli", (seconds, self.const(10**9, "i64")), "i64")
        return self.op("addi", (whole, self.emit(f"load i64, ptr {rest.text}", "i64", 1)), "i64")

    def stop(self, number: int) -> None:
        self.lines.append(f"  ret i32 {number}")
        self.begin_block(self.fresh("never"))
