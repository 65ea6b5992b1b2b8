"""The text of a function of LLVM IR while it is written: its lines, its variables, its blocks, loops and branches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tilefw_cpu.spelling import LlvmValue, llvm_type, type_in, vector


class LlvmText:
    """`lines` are the instructions so far, `variables` stand in the first block, `declarations` are of what is called. `label`
    names the block that is being written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.variables: list[str] = []
        self.declarations: dict[str, str] = {}
        self.label = "begin"
        self._count = 0
        self._exits: list[str] = []

    def emit(self, text: str, type_: str, lanes: int) -> LlvmValue:
        """An instruction with a result."""
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"  {name} = {text}")
        return LlvmValue(name, type_, lanes)

    def begin_block(self, label: str) -> None:
        """What follows stands in a block of this name."""
        self.lines.append(f"{label}:")
        self.label = label

    def fresh(self, word: str) -> str:
        """A name that nothing has yet."""
        self._count += 1
        return f"{word}{self._count}"

    def call(self, name: str, result: str, arguments: list[str]) -> str:
        """The text of a call of an intrinsic; an argument is a type and a value."""
        kinds = ", ".join(type_in(argument) for argument in arguments)
        self.declarations[name] = f"declare {result} @{name}({kinds})"
        return f"call {result} @{name}({', '.join(arguments)})"

    # -- control flow

    def variable(self, type_: str, lanes: int = 1) -> LlvmValue:
        name = f"%{self.fresh('x')}"
        self.variables.append(f"  {name} = alloca {vector(llvm_type(type_), lanes)}")
        return LlvmValue(name, type_, lanes, pointer=True)

    def assign(self, variable: LlvmValue, value: LlvmValue) -> None:
        self.lines.append(f"  store {vector(llvm_type(variable.type), variable.lanes)} {value.text}, ptr {variable.text}")

    def read(self, variable: LlvmValue) -> LlvmValue:
        kind = vector(llvm_type(variable.type), variable.lanes)
        return self.emit(f"load {kind}, ptr {variable.text}", variable.type, variable.lanes)

    @contextmanager
    def loop(self, begin: LlvmValue, end: LlvmValue, step: LlvmValue) -> Iterator[LlvmValue]:
        kind = llvm_type(begin.type)
        body, exit_ = self.fresh("body"), self.fresh("exit")
        some = self.emit(f"icmp slt {kind} {begin.text}, {end.text}", "i1", 1)
        forward = self.emit(f"icmp sgt {kind} {step.text}, 0", "i1", 1)
        enter = self.emit(f"and i1 {some.text}, {forward.text}", "i1", 1)
        before, following = self.label, f"%{self.fresh('next')}"
        self.lines.append(f"  br i1 {enter.text}, label %{body}, label %{exit_}")
        self.begin_block(body)
        at = len(self.lines)
        counter = self.emit("", begin.type, 1)
        yield counter
        self.lines[at] = f"  {counter.text} = phi {kind} [ {begin.text}, %{before} ], [ {following}, %{self.label} ]"
        # The distance to the end, without a sign: the counter itself may wrap where the end is near its type's largest number.
        rest = self.emit(f"sub {kind} {end.text}, {counter.text}", begin.type, 1)
        more = self.emit(f"icmp ugt {kind} {rest.text}, {step.text}", "i1", 1)
        self.lines.append(f"  {following} = add {kind} {counter.text}, {step.text}")
        self.lines.append(f"  br i1 {more.text}, label %{body}, label %{exit_}")
        self.begin_block(exit_)

    @contextmanager
    def branch(self, condition: LlvmValue) -> Iterator[None]:
        then, end = self.fresh("then"), self.fresh("end")
        self.lines.append(f"  br i1 {condition.text}, label %{then}, label %{end}")
        self.begin_block(then)
        yield
        self.lines.append(f"  br label %{end}")
        self.begin_block(end)

    @contextmanager
    def forever(self) -> Iterator[None]:
        head, exit_ = self.fresh("head"), self.fresh("exit")
        self._exits.append(exit_)
        self.lines.append(f"  br label %{head}")
        self.begin_block(head)
        yield
        self._exits.pop()
        self.lines.append(f"  br label %{head}")
        self.begin_block(exit_)

    def leave(self, condition: LlvmValue) -> None:
        going = self.fresh("on")
        self.lines.append(f"  br i1 {condition.text}, label %{self._exits[-1]}, label %{going}")
        self.begin_block(going)
