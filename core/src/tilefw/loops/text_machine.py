"""TextMachine: a machine whose code is text of typed registers and nested blocks, one instruction a line.

A plugin names the rows that it has, the lanes of a register, and what it has beyond loads, stores, a compare-and-swap and control
flow. `sim/program_text.py` reads the text, and describes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from tilefw.api.artifact import Entry
from tilefw.api.errors import UnsupportedError
from tilefw.loops.buffers import bytes_of
from tilefw.loops.exchange import by_exchange
from tilefw.loops.machine import BlockCopy, ElementMemory, LoopAtomic, LoopMachine


@dataclass(frozen=True, slots=True)
class TextValue:
    """A register, or a literal of one element."""

    text: str
    type: str
    lanes: int = 1


def literal(number: int, type_: str = "i64") -> TextValue:
    """A number as an operand."""
    return TextValue(f"{number}:{type_}", type_)


class TextMachine(LoopMachine[TextValue]):
    """Writes the body of one program; `lanes` are those of a register."""

    lanes: ClassVar[int]

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.variables: list[str] = []
        self._count = 0
        self._depth = 1

    def vector_lanes(self, bits: int) -> int:
        return self.lanes

    def write(self, opcode: str, *operands: TextValue | None) -> None:
        """An instruction without a result; operands that are None are left out."""
        self.lines.append("  " * self._depth + f"{opcode} {', '.join(o.text for o in operands if o is not None)}".rstrip())

    def _register(self, type_: str, lanes: int) -> TextValue:
        self._count += 1
        return TextValue(f"r{self._count}", type_, lanes)

    def made(self, type_: str, lanes: int, opcode: str, *operands: TextValue | None) -> TextValue:
        """An instruction with a result."""
        found = self._register(type_, lanes)
        self.write(f"{_declared(found)} = {opcode}", *operands)
        return found

    # -- values

    def const(self, pattern: int, type_: str) -> TextValue:
        return literal(pattern, type_)

    def op(self, row: str, operands: tuple[TextValue, ...], result: str) -> TextValue:
        return self.made(result, max(value.lanes for value in operands), row, *operands)

    def bits(self, value: TextValue) -> TextValue:
        return self.made("i32", value.lanes, "bits", value)

    def narrow(self, value: TextValue, type_: str) -> TextValue:
        return self.made(type_, value.lanes, "narrow", value)

    def split(self, value: TextValue) -> tuple[TextValue, TextValue]:
        return self.made("i32", value.lanes, "low", value), self.made("i32", value.lanes, "high", value)

    def join(self, low: TextValue, high: TextValue, type_: str) -> TextValue:
        return self.made(type_, max(low.lanes, high.lanes), "join", low, high)

    def repeated(self, value: TextValue, lanes: int) -> TextValue:
        return value if value.lanes == lanes else self.made(value.type, lanes, "repeat", value)

    def numbered(self, lanes: int) -> TextValue:
        return self.made("i64", lanes, "number")

    def part(self, value: TextValue, first: int, count: int) -> TextValue:
        return self.made(value.type, count, "part", value, literal(first))

    # -- memory

    def scratch(self, offset: int) -> TextValue:
        return literal(offset)

    def _place(self, memory: ElementMemory[TextValue], type_: str) -> list[TextValue]:
        """Address, offset, stride between lanes, and the unit of both in bytes."""
        size = 1 if memory.address is None else bytes_of(type_)
        stride = memory.stride if isinstance(memory.stride, TextValue) else literal(memory.stride % (1 << 64))
        return [memory.address or literal(0), memory.offset, stride, literal(size)]

    def load(
        self, memory: ElementMemory[TextValue], type_: str, lanes: int, mask: TextValue | None = None,
        other: TextValue | None = None,
    ) -> TextValue:
        opcode = "load.local" if memory.local else "load.global"
        if mask is not None and other is None:
            other = self.const(0, type_)
        return self.made(type_, lanes, opcode, *self._place(memory, type_), mask, other)

    def store(self, memory: ElementMemory[TextValue], value: TextValue, mask: TextValue | None = None) -> None:
        self.write("store.local" if memory.local else "store.global", *self._place(memory, value.type), value, mask)

    def atomic(self, access: LoopAtomic[TextValue]) -> TextValue:
        """A compare-and-swap; the kit makes all others of it."""
        if access.kind != "cas":
            return by_exchange(self, access)
        return self.made(access.type, 1, "cas", access.address, *access.operands)

    def start_copy(self, copy: BlockCopy[TextValue], tag: int) -> None:
        """The instructions of `tilefw.api.sim.copy_shapes`."""
        dims = zip(copy.counts, copy.strides, map(literal, copy.local_strides), strict=True)
        flat = [operand for dim in dims for operand in dim]
        way = f"dma.{'in' if copy.inward else 'out'}.{len(copy.counts)}"
        self.write(way, literal(tag), literal(copy.width), copy.memory, copy.local, *flat)

    def wait_copy(self, tag: int) -> None:
        """The instructions of `tilefw.api.sim.copy_shapes`."""
        self.write("wait", literal(tag))

    # -- the program

    def parameter(self, number: int, type_: str) -> TextValue:
        return self.made(type_, 1, "param", literal(number))

    def program_id(self, axis: int) -> TextValue:
        return self.made("i32", 1, "id", literal(axis))

    def programs(self, axis: int) -> TextValue:
        return self.made("i32", 1, "programs", literal(axis))

    def observe(self, what: str) -> TextValue:
        raise UnsupportedError(f"the machine has nothing that tells '{what}'", code="TFW0610")

    def stop(self, number: int) -> None:
        self.write("trap", literal(number))

    # -- control flow

    def variable(self, type_: str, lanes: int = 1) -> TextValue:
        made = self._register(type_, lanes)
        self.variables.append(f"  {_declared(made)} = var")
        return made

    def assign(self, variable: TextValue, value: TextValue) -> None:
        self.write("set", variable, value)

    def read(self, variable: TextValue) -> TextValue:
        return self.made(variable.type, variable.lanes, "copy", variable)

    @contextmanager
    def _block(self) -> Iterator[None]:
        self._depth += 1
        yield
        self._depth -= 1
        self.write("end")

    @contextmanager
    def loop(self, begin: TextValue, end: TextValue, step: TextValue) -> Iterator[TextValue]:
        counter = self.made(begin.type, 1, "loop", begin, end, step)
        with self._block():
            yield counter

    @contextmanager
    def branch(self, condition: TextValue) -> Iterator[None]:
        self.write("if", condition)
        with self._block():
            yield

    @contextmanager
    def forever(self) -> Iterator[None]:
        self.write("forever")
        with self._block():
            yield

    def leave(self, condition: TextValue) -> None:
        self.write("leave", condition)


def text_of(entry: Entry, machine: TextMachine) -> str:
    """The text of a kernel: its parameters, the variables at its top, and its instructions."""
    lines = [f".kernel {entry.name} {entry.scratch_bytes}"]
    lines += [f".param {p.name} {p.kind} {p.dtype} {p.offset} {p.size} {p.hidden or '-'}" for p in entry.parameters]
    return "\n".join([*lines, *machine.variables, *machine.lines, ".end", ""])


def _declared(value: TextValue) -> str:
    return f"{value.text}:{value.type}" + (f"x{value.lanes}" if value.lanes > 1 else "")
