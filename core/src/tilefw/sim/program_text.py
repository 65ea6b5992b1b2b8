"""Assembly text of a machine that executes programs one by one, read: kernels of instructions, all checked before anything runs.

    .kernel NAME BYTES, .param NAME KIND TYPE OFFSET SIZE HIDDEN, then one instruction a line up to .end. A result is declared where
    it is made, `r3:f32x64 = addf r1, r2`; literals have types, `64:i64`. `loop`, `if` and `forever` begin blocks that `end` ends,
    and what a block declares is known inside it. `TextMachine` (`tilefw.api.tile`) writes such text.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

from tilefw.api.artifact import Entry, Parameter
from tilefw.api.errors import CodeError, Place
from tilefw.sim.row_meanings import WORDS

_LINE = re.compile(r"(?:r(\d+):(\S+?)(?:x(\d+))? = )?([a-z][\w.]*)(?: (.+))?", re.ASCII)
_REGISTER, _LITERAL = re.compile(r"r(\d+)", re.ASCII), re.compile(r"(\d+):(\S+)", re.ASCII)
_PARAMETER = re.compile(r"\.param (\w+) (pointer|scalar|struct) (\w+) (\d+) (\d+) (\S+)", re.ASCII)
_OPENS = ("loop", "if", "forever")

COMMON = {
    "param": "rl", "id": "rl", "programs": "rl", "number": "r", "repeat": "ra", "part": "ral", "bits": "ra", "narrow": "ra",
    "low": "ra", "high": "ra", "join": "raa", "copy": "ra", "var": "r", "set": "aa", "loop": "raaa", "if": "b", "forever": "",
    "leave": "b", "end": "", "trap": "l", "load.local": "riiii?b?a", "load.global": "riiii?b?a", "store.local": "iiiia?b",
    "store.global": "iiiia?b", "cas": "riaa",
}
"""The operands of what every such machine has: `r` a result, `i` an i64, `b` an i1, `l` a literal, `a` any; behind `?` one that
may be left out."""


CASTS = ("exts", "extu", "trunci", "castf", "castf_rtz", "s2f", "u2f", "f2s", "f2u", "bitcast")
_ONE = (
    "absi", "clz", "popc", "negf", "absf", "sqrt", "sqrt_rn", "rsqrt", "exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf",
    "log1p", "expm1", "floor", "ceil", "trunc", "round_even", "isnan", *CASTS,
)
ARITIES = {**dict.fromkeys(_ONE, 1), **dict.fromkeys(("fma", "select", "clampf", "clampf_nan"), 3)}
"""How many operands rows have that have not two."""
_RESULTS = {**dict.fromkeys(("bits", "low", "high", "id", "programs"), "i32"), "number": "i64"}
_ALIKE = ("copy", "repeat", "part", "set")  # the first operand has the result's type, or the other operand's


@dataclass(frozen=True, slots=True)
class ProgramOperand:
    """A register by its number, or a literal's bits."""

    type: str
    lanes: int = 1
    register: int | None = None
    literal: int = 0


@dataclass(slots=True)
class TextInstruction:
    """One instruction. `other` is the number of that which ends its block, or begins the block that it ends or leaves."""

    line: int
    text: str
    opcode: str
    result: ProgramOperand | None
    operands: tuple[ProgramOperand, ...]
    other: int = -1

    def row(self, rows: Container[str]) -> str:
        """Its key in the elementwise table, where it is a row."""
        if not self.operands:
            return self.opcode
        own = self.operands[1 if self.opcode == "select" and len(self.operands) > 1 else 0].type
        cast = f"{self.opcode}.{own}.{self.result.type if self.result else ''}"
        return cast if cast in rows else f"{self.opcode}.{own}"


@dataclass(slots=True)
class TextKernel:
    """A kernel of a file."""

    entry: Entry
    instructions: list[TextInstruction] = field(default_factory=list)


@dataclass(frozen=True)
class TextTable:
    """What a machine has: the keys of its rows, operands of its other instructions as in `COMMON`, which it has too, lanes of a
    register, and bytes of its own memory."""

    name: str
    rows: Container[str]
    others: Mapping[str, str]
    lanes: int
    local_bytes: int

    def operands(self, opcode: str) -> str | None:
        """The operands of an instruction that is no row."""
        return COMMON.get(opcode) if opcode in COMMON else self.others.get(opcode)


def parse_programs(text: str, file: str, table: TextTable) -> list[TextKernel]:
    """The kernels of a file; raises CodeError TFW0702 at the line that is wrong. `file` is for messages."""
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return list(_TextReader(file, table, ((n, line) for n, line in lines if line and not line.startswith("//"))).kernels())


class _TextReader:
    def __init__(self, file: str, table: TextTable, lines: Iterator[tuple[int, str]]) -> None:
        self.file, self.table, self.lines = file, table, lines
        self.number, self.line = 0, ""

    def error(self, message: str) -> CodeError:
        return CodeError(message, "TFW0702", Place(self.file, self.number, 1, 1, text=self.line))

    def next(self) -> str:
        self.number, self.line = next(self.lines, (self.number, ""))
        if not self.line:
            raise self.error("expected '.end' of the kernel")
        return self.line

    def kernels(self) -> Iterator[TextKernel]:
        for number, line in self.lines:
            self.number, self.line = number, line
            match = re.fullmatch(r"\.kernel (\w+) (\d+)", line, re.ASCII)
            if match is None:
                raise self.error("expected '.kernel NAME BYTES'")
            if int(match[2]) > self.table.local_bytes:
                raise self.error(f"{self.table.name} has {self.table.local_bytes} bytes of its own")
            parameters: list[Parameter] = []
            while found := _PARAMETER.fullmatch(self.next()):
                name, kind, dtype, offset, size, hidden = found.groups()
                told = None if hidden == "-" else hidden
                spelled = "pointer" if kind == "pointer" else "scalar" if kind == "scalar" else "struct"
                parameters.append(Parameter(name, spelled, dtype, int(offset), int(size), int(size), hidden=told))
            kernel = TextKernel(Entry(match[1], tuple(parameters), (1, 1, 1), scratch_bytes=int(match[2])))
            self.body(kernel)
            yield kernel

    def body(self, kernel: TextKernel) -> None:
        """Instructions up to `.end`; the current line is the first."""
        known: list[dict[int, ProgramOperand]] = [{}]
        blocks: list[int] = []
        code = kernel.instructions
        while self.line != ".end":
            made = self.instruction(known)
            if made.opcode == "end":
                if not blocks:
                    raise self.error("there is no block to end")
                made.other = blocks.pop()
                code[made.other].other = len(code)
                known.pop()
            if made.opcode == "leave":
                made.other = next((begin for begin in reversed(blocks) if code[begin].opcode == "forever"), -1)
                if made.other < 0:
                    raise self.error("'leave' stands in no 'forever'")
            if made.opcode in _OPENS:
                blocks.append(len(code))
                known.append({})
            if made.opcode == "param" and made.operands[0].literal >= len(kernel.entry.parameters):
                raise self.error(f"{kernel.entry.name} has {len(kernel.entry.parameters)} parameters")
            if made.result is not None and made.result.register is not None:
                known[-1][made.result.register] = made.result
            code.append(made)
            self.next()
        if blocks:
            raise self.error(f"the block of line {code[blocks[-1]].line} has no end")

    def instruction(self, known: list[dict[int, ProgramOperand]]) -> TextInstruction:
        match = _LINE.fullmatch(self.line)
        if match is None:
            raise self.error("expected an instruction")
        number, type_, lanes, opcode, rest = match.groups()
        result = None
        if number is not None:
            result = ProgramOperand(type_, int(lanes or 1), int(number))
            if type_ not in WORDS or not 1 <= result.lanes <= self.table.lanes:
                raise self.error(f"{self.table.name} has no register of {type_} in {result.lanes} lanes")
            if any(result.register in scope for scope in known):
                raise self.error(f"r{number} is there already")
        operands = tuple(self.operand(word.strip(), known) for word in (rest or "").split(",") if rest)
        made = TextInstruction(self.number, self.line, opcode, result, operands)
        shape = self.table.operands(opcode)
        if shape is None:
            self.check_row(made)
        else:
            self.check_shape(made, shape)
        return made

    def operand(self, word: str, known: list[dict[int, ProgramOperand]]) -> ProgramOperand:
        if match := _REGISTER.fullmatch(word):
            for scope in reversed(known):
                if int(match[1]) in scope:
                    return scope[int(match[1])]
            raise self.error(f"{word} is not known here")
        match = _LITERAL.fullmatch(word)
        if match is None or match[2] not in WORDS or int(match[1]) >> 64:
            raise self.error(f"{word!r} is neither a register nor a literal")
        return ProgramOperand(match[2], literal=int(match[1]))

    def check_row(self, made: TextInstruction) -> None:
        """Raises CodeError where the machine has no such row, or not for these operands."""
        row = made.row(self.table.rows)
        if row not in self.table.rows or made.result is None:
            raise self.error(f"{self.table.name} has no '{row}'")
        wanted = ARITIES.get(made.opcode, 2)
        if len(made.operands) != wanted:
            raise self.error(f"'{made.opcode}' takes {wanted} operands, not {len(made.operands)}")
        gives = made.result.type if made.opcode in CASTS else "i1" if _compares(made.opcode) else made.operands[-1].type
        if made.result.type != gives:
            raise self.error(f"'{made.opcode}' gives {gives}, not {made.result.type}")
        most = max(operand.lanes for operand in made.operands)
        if made.result.lanes != most or any(operand.lanes not in (1, most) for operand in made.operands):
            raise self.error("operands have one lane, or as many as the result")
        own = sorted({operand.type for operand in made.operands[1 if made.opcode == "select" else 0 :]})
        if len(own) > 1:
            raise self.error(f"operands are of {' and '.join(own)}")

    def check_shape(self, made: TextInstruction, shape: str) -> None:
        """Raises CodeError where an instruction that is no row has other operands."""
        if (made.result is None) == shape.startswith("r"):
            raise self.error(f"'{made.opcode}' has {'no' if made.result else 'a'} result")
        needed, *more = shape.removeprefix("r").split("?")
        kinds = needed + "".join(more)
        if not len(needed) <= len(made.operands) <= len(kinds):
            raise self.error(f"'{made.opcode}' takes {len(needed)} operands, not {len(made.operands)}")
        gives = made.result.type if made.result is not None else ""
        told = made.operands[0].type if made.opcode in _ALIKE else _RESULTS.get(made.opcode, gives)
        if told != (made.operands[1].type if made.opcode == "set" else gives):
            raise self.error(f"'{made.opcode}' has two types here")
        for operand, kind in zip(made.operands, kinds, strict=False):
            wanted = {"i": "i64", "b": "i1"}.get(kind, operand.type)
            if operand.type != wanted or (kind == "l" and operand.register is not None):
                raise self.error(f"'{made.opcode}' takes {'a literal' if kind == 'l' else wanted} where {operand.type} is")


def _compares(row: str) -> bool:
    return (row[:2] in ("eq", "ne", "lt", "le", "gt", "ge") and row != "negf") or row == "isnan"
