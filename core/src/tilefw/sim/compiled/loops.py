"""Functions with loops, branches and arrays, written with llvmlite's builder: for what is more than lane by lane.

A function has the type of all of this package: an array of words (addresses and numbers), and two counts. Values are LLVM's own;
an `ArrayPointer` says what stands at an address.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tilefw.sim.compiled.nests import NAME

Value = Any
"""A value of llvmlite.ir, which has no types of its own."""


@dataclass(frozen=True, slots=True)
class ArrayPointer:
    """The address of an array whose elements have `bits`."""

    address: Value
    bits: int


class Loops:
    """One function as it is written. `counts` are its last two parameters."""

    def __init__(self) -> None:
        from llvmlite import ir

        self.ir = ir
        self.word, self.bit, self.byte = ir.IntType(64), ir.IntType(1), ir.IntType(8)
        self._pointer = ir.PointerType()
        self._module = ir.Module()
        kind = ir.FunctionType(ir.IntType(32), [self._pointer, self.word, self.word])
        self._function = ir.Function(self._module, kind, NAME)
        words, *self.counts = self._function.args
        self._words = ArrayPointer(words, 64)
        self._entry = self._function.append_basic_block("entry")
        self.code = ir.IRBuilder(self._function.append_basic_block("body"))
        self._first = self.code.block
        self._next = 0

    def text(self) -> str:
        """The module; the function is at its end."""
        self.ir.IRBuilder(self._entry).branch(self._first)
        return str(self._module)

    # --- values --------------------------------------------------------------------------------------------------------

    def number(self, value: int, bits: int = 64) -> Value:
        return self.ir.Constant(self.ir.IntType(bits), value)

    def argument(self) -> Value:
        """The next word that the function is given."""
        self._next += 1
        return self.get(self._words, self.number(self._next - 1))

    def array(self, bits: int) -> ArrayPointer:
        """The next word, as an address."""
        return ArrayPointer(self.code.inttoptr(self.argument(), self._pointer), bits)

    def at(self, address: Value, bits: int) -> ArrayPointer:
        return ArrayPointer(self.code.inttoptr(address, self._pointer), bits)

    def get(self, array: ArrayPointer, place: Value) -> Value:
        kind = self.ir.IntType(array.bits)
        return self.code.load(self.code.gep(array.address, [place], source_etype=kind), align=array.bits // 8, typ=kind)

    def put(self, array: ArrayPointer, place: Value, value: Value) -> None:
        kind = self.ir.IntType(array.bits)
        self.code.store(value, self.code.gep(array.address, [place], source_etype=kind), align=array.bits // 8)

    def variable(self, value: Value) -> Value:
        """A place that keeps a value across loops; `load` and `store` are of it."""
        place = self.ir.IRBuilder(self._entry).alloca(value.type)
        self.code.store(value, place)
        return place

    def load(self, place: Value) -> Value:
        return self.code.load(place, typ=place.allocated_type)

    def store(self, place: Value, value: Value) -> None:
        self.code.store(value, place)

    def wide(self, value: Value) -> Value:
        """An integer as a word, zeros above."""
        return self.code.zext(value, self.word) if value.type.width < 64 else value

    def is_zero(self, value: Value) -> Value:
        return self.code.icmp_unsigned("==", value, self.ir.Constant(value.type, 0))

    def equal(self, a: Value, b: Value) -> Value:
        return self.code.icmp_unsigned("==", a, b)

    def both(self, a: Value, b: Value) -> Value:
        return self.code.and_(a, b)

    # --- flow ----------------------------------------------------------------------------------------------------------

    @contextmanager
    def loop(self, count: Value) -> Iterator[Value]:
        """What is written within is done for every number below `count`."""
        code = self.code
        before, head = code.block, code.append_basic_block("loop")
        body, end = code.append_basic_block("turn"), code.append_basic_block("done")
        code.branch(head)
        code.position_at_end(head)
        place = code.phi(self.word)
        place.add_incoming(self.number(0), before)
        code.cbranch(code.icmp_unsigned("<", place, count), body, end)
        code.position_at_end(body)
        yield place
        place.add_incoming(code.add(place, self.number(1)), code.block)
        code.branch(head)
        code.position_at_end(end)

    @contextmanager
    def when(self, holds: Value, likely: bool | None = None) -> Iterator[None]:
        with self.code.if_then(holds, likely=likely):
            yield

    def leave(self, answer: int) -> None:
        """The function ends here with `answer`."""
        self.code.ret(self.number(answer, 32))

    def leave_when(self, holds: Value, answer: int) -> None:
        with self.when(holds, likely=False):
            self.leave(answer)
