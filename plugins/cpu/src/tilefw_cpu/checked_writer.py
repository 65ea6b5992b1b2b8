"""Checked code: each access to the kernel's arguments is told to the checks before it is made, and is not made where one fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilefw.api import Place
from tilefw.api.ir import place_of
from tilefw.api.tile import ElementMemory, LoopAtomic
from tilefw_cpu.checked_access import FOUND, Touch
from tilefw_cpu.debug_lines import DebugLines
from tilefw_cpu.processor import Processor
from tilefw_cpu.spelling import LlvmValue, bytes_of_type, llvm_type, stored_type, vector
from tilefw_cpu.writer import LlvmWriter

SITES, SMALLEST = "check_sites", "smallest_access"
"""Keys of the artifact's metadata: what can be found where, and the least number of bytes of an access."""
_LANES = 64  # of a vector at most
_VERBS = {
    Touch.READ: "load of", Touch.VOLATILE_READ: "load of", Touch.WRITE: "store of", Touch.VOLATILE_WRITE: "store of",
    Touch.ATOMIC: "atomic access to",
}
_ORDERS = {"relaxed": 0, "acquire": 1, "release": 2, "acq_rel": 3}
_PROLOGUE = """  %program.row = mul i32 %id2, %grid1
  %program.line = add i32 %program.row, %id1
  %program.first = zext i32 %program.line to i64
  %program.width = zext i32 %grid0 to i64
  %program.begin = mul i64 %program.first, %program.width
  %program.column = zext i32 %id0 to i64
  %program = add i64 %program.begin, %program.column
  call void @"tilefw.begins"(i64 %program)"""


class CheckedWriter(LlvmWriter):
    """`sites` are the accesses: what is done, with how many bytes, where; `smallest` is the least number of bytes of an access."""

    def __init__(self, processor: Processor, debug: DebugLines) -> None:
        super().__init__(processor, debug)
        self.sites: list[tuple[str, int, Place | None]] = []
        self.smallest = 8
        self._told = False
        self.prologue.append(_PROLOGUE)
        self.variables += [
            f"  %checked.addresses = alloca [{_LANES} x i64]", f"  %checked.mask = alloca [{_LANES} x i8]",
            f"  %checked.values = alloca [{_LANES} x i64]",
        ]

    def load(
        self, memory: ElementMemory[LlvmValue], type_: str, lanes: int, mask: LlvmValue | None = None,
        other: LlvmValue | None = None,
    ) -> LlvmValue:
        if not memory.local and not self._told:
            self._watch(memory, stored_type(type_), lanes, mask, Touch.VOLATILE_READ if memory.volatile else Touch.READ, None)
        return super().load(memory, type_, lanes, mask, other)

    def store(self, memory: ElementMemory[LlvmValue], value: LlvmValue, mask: LlvmValue | None = None) -> None:
        if memory.local or self._told:
            super().store(memory, value, mask)
            return
        lanes = max(value.lanes, memory.offset.lanes, 1 if mask is None else mask.lanes)
        held = self._code(self.repeated(value, lanes))
        self._watch(memory, stored_type(value.type), lanes, mask, Touch.VOLATILE_WRITE if memory.volatile else Touch.WRITE, held)
        self._told = True
        super().store(memory, value, mask)
        self._told = False

    def atomic(self, access: LoopAtomic[LlvmValue]) -> LlvmValue:
        if self._told:
            return super().atomic(access)
        kind = llvm_type(access.type)
        memory = ElementMemory(access.address, self.const(0, "i64"), alignment=bytes_of_type(kind))
        self._watch(memory, kind, 1, None, Touch.ATOMIC, None)
        if _ORDERS[access.order]:
            self.lines.append(f'  call void @"tilefw.orders"(i64 {self._address(access.address)}, i64 {_ORDERS[access.order]})')
        self._told = True
        found = super().atomic(access)
        self._told = False
        return found

    def _address(self, address: LlvmValue) -> str:
        return self.emit(f"ptrtoint ptr {address.text} to i64", "i64", 1).text if address.pointer else address.text

    def _watch(
        self, memory: ElementMemory[LlvmValue], kind: str, lanes: int, mask: LlvmValue | None, how: Touch, value: LlvmValue | None
    ) -> None:
        size = bytes_of_type(kind)
        self.smallest = min(self.smallest, size)
        self.sites.append((_VERBS[how], size, place_of(self.origin)))
        pointers = self._pointer(memory, kind) if lanes == 1 else self._pointers(memory, kind, lanes)
        integer = vector("i64", lanes)
        addresses = self.emit(f"ptrtoint {vector('ptr', lanes)} {pointers} to {integer}", "i64", lanes)
        self.lines.append(f"  store {integer} {addresses.text}, ptr %checked.addresses, align 8")
        on = self._on(mask, lanes)
        self.lines.append(f"  store {vector('i8', lanes)} {on}, ptr %checked.mask, align 1")
        if value is not None:
            self.lines.append(f"  store {vector(kind, lanes)} {value.text}, ptr %checked.values, align 8")
        bad = self.emit(
            f'call i1 @"tilefw.access"(ptr %checked.addresses, ptr %checked.mask, ptr %checked.values, i64 {lanes}, i64 {size}, '
            f"i64 {how.value}, i64 {len(self.sites) - 1}, i64 %program)", "i1", 1,
        )
        stop, on_label = self.fresh("stop"), self.fresh("on")
        self.lines.append(f"  br i1 {bad.text}, label %{stop}, label %{on_label}")
        self.begin_block(stop)
        self.lines.append(f"  ret i32 {FOUND}")
        self.begin_block(on_label)

    def _on(self, mask: LlvmValue | None, lanes: int) -> str:
        if mask is None:
            return "1" if lanes == 1 else "splat (i8 1)"
        every = self.repeated(mask, lanes)
        return self.emit(f"zext {vector('i1', lanes)} {every.text} to {vector('i8', lanes)}", "i8", lanes).text


def _site(verb: str, size: int, place: Place | None) -> dict[str, Any]:
    where = {} if place is None else {"file": place.file, "line": place.line, "column": place.column}
    return {"verb": verb, "bytes": size, **where}


def metadata_of_checks(written: Mapping[str, CheckedWriter]) -> dict[str, Any]:
    """What the device has to know of checked code, by entry, as plain JSON values."""
    return {
        SITES: {name: [_site(*one) for one in writer.sites] for name, writer in written.items()},
        SMALLEST: {name: writer.smallest for name, writer in written.items()},
    }
