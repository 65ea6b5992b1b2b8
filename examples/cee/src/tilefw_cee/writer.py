"""C as text, written by the kit: a `ScalarMachine` whose values are C's variables and expressions, one element each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tilefw.api.tile import ElementMemory, LoopAtomic, ScalarMachine, by_exchange
from tilefw_cee.rows import ROWS, c_type


@dataclass(frozen=True, slots=True, eq=False)
class CValue:
    """One element: an expression of C that may be written any number of times, and its type by tile IR."""

    text: str
    type: str
    lanes: int = 1


class CWriter(ScalarMachine[CValue]):
    """Writes the body of one program; `lines` are its statements, `variables` stand at its top."""

    rows = ROWS

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.variables: list[str] = []
        self._count = 0

    def _named(self, text: str, type_: str) -> CValue:
        self._count += 1
        self.lines.append(f"{c_type(type_)} v{self._count} = {text};")
        return CValue(f"v{self._count}", type_)

    # -- values

    def const(self, pattern: int, type_: str) -> CValue:
        if type_ == "f32":
            return CValue(f"float_of({pattern}u)", type_)
        return CValue(f"double_of({pattern}ull)" if type_ == "f64" else f"({c_type(type_)}){pattern}ull", type_)

    def op(self, row: str, operands: tuple[CValue, ...], result: str) -> CValue:
        type_ = operands[1 if row == "select" else 0].type
        key = f"{row}.{type_}"
        return self._named(ROWS.get(f"{key}.{result}", ROWS.get(key, "")).format(*(value.text for value in operands)), result)

    def bits(self, value: CValue) -> CValue:
        return CValue(f"bits_f32({value.text})" if value.type == "f32" else f"(uint32_t){value.text}", "i32")

    def narrow(self, value: CValue, type_: str) -> CValue:
        if type_ == "f32":
            return CValue(f"float_of({value.text})", type_)
        mask = {"i1": " & 1", "i4": " & 15"}.get(type_, "")
        return CValue(f"({c_type(type_)})({value.text}{mask})", type_)

    def split(self, value: CValue) -> tuple[CValue, CValue]:
        whole = f"bits_f64({value.text})" if value.type == "f64" else value.text
        return CValue(f"(uint32_t){whole}", "i32"), CValue(f"(uint32_t)({whole} >> 32)", "i32")

    def join(self, low: CValue, high: CValue, type_: str) -> CValue:
        whole = f"((uint64_t){low.text} | (uint64_t){high.text} << 32)"
        return CValue(f"double_of({whole})" if type_ == "f64" else whole, type_)

    # -- memory

    def scratch(self, offset: int) -> CValue:
        return CValue(f"((uint64_t)scratch + {offset})", "i64")

    def _cell(self, memory: ElementMemory[CValue], type_: str) -> str:
        kind = "uint8_t" if type_ == "i1" else c_type(type_)
        size = {"uint8_t": 1, "uint16_t": 2, "uint32_t": 4, "float": 4}.get(kind, 8)
        volatile = "volatile " if memory.volatile else ""
        if memory.address is None:
            return f"*({volatile}{kind} *)({memory.offset.text})"
        return f"*({volatile}{kind} *)({memory.address.text} + {memory.offset.text} * {size}u)"

    def load(
        self, memory: ElementMemory[CValue], type_: str, lanes: int, mask: CValue | None = None, other: CValue | None = None
    ) -> CValue:
        cell = self._cell(memory, type_) + {"i1": " != 0", "i4": " & 15"}.get(type_, "")
        if mask is None:
            return self._named(cell, type_)
        found = self._named("0" if other is None else other.text, type_)
        self.lines.append(f"if ({mask.text}) {found.text} = {cell};")
        return found

    def store(self, memory: ElementMemory[CValue], value: CValue, mask: CValue | None = None) -> None:
        condition = "" if mask is None else f"if ({mask.text}) "
        self.lines.append(f"{condition}{self._cell(memory, value.type)} = {value.text};")

    def atomic(self, access: LoopAtomic[CValue]) -> CValue:
        """A compare-and-swap; the kit makes all others of it."""
        if access.kind != "cas":
            return by_exchange(self, access)
        expected, value = (self._word(operand) for operand in access.operands)
        found = self._named(expected.text, expected.type)
        kind = c_type(expected.type)
        self.lines.append(
            f"__atomic_compare_exchange_n(({kind} *){access.address.text}, &{found.text}, {value.text}, 0, __ATOMIC_SEQ_CST, "
            "__ATOMIC_SEQ_CST);"
        )
        floats = {"f32": "float_of", "f64": "double_of"}
        return CValue(f"{floats.get(access.type, '')}({found.text})", access.type)

    def _word(self, value: CValue) -> CValue:
        if value.type in ("f32", "f64"):
            return CValue(f"bits_{value.type}({value.text})", "i32" if value.type == "f32" else "i64")
        return value

    # -- the program

    def parameter(self, number: int, type_: str) -> CValue:
        return CValue(f"arg{number}", type_)

    def program_id(self, axis: int) -> CValue:
        return CValue(f"id{axis}", "i32")

    def programs(self, axis: int) -> CValue:
        return CValue(f"grid{axis}", "i32")

    def observe(self, what: str) -> CValue:
        """A tick is a nanosecond."""
        return self._named("(uint32_t)sched_getcpu()", "i32") if what == "processor" else self._named("nanoseconds()", "i64")

    def stop(self, number: int) -> None:
        self.lines.append(f"return {number};")

    # -- control flow

    def variable(self, type_: str, lanes: int = 1) -> CValue:
        self._count += 1
        self.variables.append(f"{c_type(type_)} x{self._count} = 0;")
        return CValue(f"x{self._count}", type_)

    def assign(self, variable: CValue, value: CValue) -> None:
        self.lines.append(f"{variable.text} = {value.text};")

    def read(self, variable: CValue) -> CValue:
        return self._named(variable.text, variable.type)

    @contextmanager
    def loop(self, begin: CValue, end: CValue, step: CValue) -> Iterator[CValue]:
        self._count += 1
        name, kind, plain = f"n{self._count}", f"int{begin.type[1:]}_t", c_type(begin.type)
        self.lines.append(f"if (({kind}){step.text} > 0)")
        self.lines.append(f"for ({plain} {name} = {begin.text}; ({kind}){name} < ({kind}){end.text};) {{")
        yield CValue(name, begin.type)
        self.lines.append(f"if (({plain})({end.text} - {name}) <= {step.text}) break;")  # the counter itself may wrap
        self.lines.append(f"{name} += {step.text}; }}")

    @contextmanager
    def branch(self, condition: CValue) -> Iterator[None]:
        self.lines.append(f"if ({condition.text}) {{")
        yield
        self.lines.append("}")

    @contextmanager
    def forever(self) -> Iterator[None]:
        self.lines.append("for (;;) {")
        yield
        self.lines.append("}")

    def leave(self, condition: CValue) -> None:
        self.lines.append(f"if ({condition.text}) break;")
