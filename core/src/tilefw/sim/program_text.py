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

_LINE = re.compile(r"(?:r(\d{1,7}):(\S+?)(?:x(\d{1,4}))? = )?([a-z][\w.]*)(?: (.+))?", re.ASCII)
_REGISTER, _LITERAL = re.compile(r"r(\d{1,7})", re.ASCII), re.compile(r"(\d{1,20}):(\S+)", re.ASCII)
_KERNEL = re.compile(r"\.kernel (\w+) ([0-9]{1,12})")
_PARAMETER = re.compile(r"\.param (\w+) (pointer|scalar|struct) (\w+) ([0-9]{1,6}) ([0-9]{1,6}) (\S+)")
_OPENS = ("loop", "if", "forever")

COMMON = {
    "param": "rl", "id": "rl", "programs": "rl", "number": "r", "repeat": "rt", "part": "rtl", "bits": "rn", "narrow": "rw",
    "low": "rd", "high": "rd", "join": "rww", "copy": "rt", "var": "r", "set": "at", "loop": "rttt", "if": "c", "forever": "",
    "leave": "c", "end": "", "trap": "l", "load.local": "rivii?b?t", "load.global": "rivii?b?t", "store.local": "iviia?b",
    "store.global": "iviia?b", "cas": "ritt",
}
"""The operands of what every such machine has: `r` a result, `i` an i64 and `c` an i1 of one lane, `v` an i64 and `b` an i1 of any
lanes, `l` a literal of i64, `w` an i32, `n` a type of at most 32 bits and `d` one of 64, `t` the type of the result (without one,
of the first operand), `a` any; behind `?` one that may be left out."""


CASTS = ("exts", "extu", "trunci", "castf", "castf_rtz", "s2f", "u2f", "f2s", "f2u", "bitcast")
_ONE = (
    "absi", "clz", "popc", "negf", "absf", "sqrt", "sqrt_rn", "rsqrt", "exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf",
    "log1p", "expm1", "floor", "ceil", "trunc", "round_even", "isnan", *CASTS,
)
ARITIES = {**dict.fromkeys(_ONE, 1), **dict.fromkeys(("fma", "select", "clampf", "clampf_nan"), 3)}
"""How many operands rows have that have not two."""
_RESULTS = {**dict.fromkeys(("bits", "low", "high", "id", "programs"), "i32"), "number": "i64"}
_TYPES = {**dict.fromkeys("ivl", "i64"), **dict.fromkeys("bc", "i1"), "w": "i32"}
_SINGLE = ("param", "id", "programs", "loop", "cas")  # whose result has one lane
_LANE_BY_LANE = ("bits", "narrow", "low", "high", "join", "copy")  # whose result has as many as the operands


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
    """What a machine has: the keys of its rows, operands of its other instructions, lanes of a register, bytes of its own memory.

    `others` has a letter for each operand, with `r` before them where there is a result: `i` an i64 of one lane, `l` a literal of
    i64, `v` an i64 and `b` an i1 of any lanes, `a` any; `?` before what may be left out."""

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
        names: set[str] = set()
        for number, line in self.lines:
            self.number, self.line = number, line
            match = _KERNEL.fullmatch(line)
            if match is None:
                raise self.error("expected '.kernel NAME BYTES'")
            if match[1] in names:
                raise self.error(f"kernel {match[1]} is there already")
            names.add(match[1])
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
            self.check_number(made, kernel.entry)
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
        if made.opcode == "select" and made.operands[0].type != "i1":
            raise self.error(f"'select' takes i1 where {made.operands[0].type} is")
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
        own = made.result.type if made.result is not None else made.operands[0].type if made.operands else ""
        if own != _RESULTS.get(made.opcode, own):
            raise self.error(f"'{made.opcode}' gives {_RESULTS[made.opcode]}, not {own}")
        for operand, kind in zip(made.operands, kinds, strict=False):
            self.check_operand(made.opcode, operand, kind, own)
        if made.opcode in COMMON:
            self.check_lanes(made)

    def check_operand(self, opcode: str, operand: ProgramOperand, kind: str, own: str) -> None:
        """Raises CodeError where an operand is not of its kind; `own` is the type of the result, or of the first operand."""
        wanted, bits = _TYPES.get(kind, operand.type), 8 * WORDS[operand.type]().itemsize
        if kind == "t" and operand.type != own:
            raise self.error(f"'{opcode}' has two types here")
        if (kind == "n" and bits > 32) or (kind == "d" and bits < 64):
            wanted = "at most 32 bits" if kind == "n" else "64 bits"
        if operand.type != wanted:
            raise self.error(f"'{opcode}' takes {wanted} where {operand.type} is")
        if kind == "l" and operand.register is not None:
            raise self.error(f"'{opcode}' takes a literal where a register is")
        if kind in "ic" and operand.lanes > 1:
            raise self.error(f"'{opcode}' takes one lane where {operand.lanes} are")

    def check_lanes(self, made: TextInstruction) -> None:
        """Raises CodeError where the lanes of operands and result do not fit."""
        given = [operand.lanes for operand in made.operands]
        most = max(given, default=1) if made.result is None else made.result.lanes
        if made.opcode == "part":
            if made.operands[1].literal + most > given[0]:
                raise self.error(f"there are {given[0]} lanes to take a part of")
            return
        own = given[0] if made.opcode == "set" else max(given) if made.opcode in _LANE_BY_LANE else most
        own = 1 if made.opcode in _SINGLE else own
        if most != own or any(lanes not in (1, most) for lanes in given):
            raise self.error("operands have one lane, or as many as the result")

    def check_number(self, made: TextInstruction, entry: Entry) -> None:
        """Raises CodeError where a number names nothing: a parameter, an axis of the grid, a variable."""
        if made.opcode in ("id", "programs") and made.operands[0].literal > 2:
            raise self.error("the axes of a grid are 0, 1 and 2")
        if made.opcode == "loop" and made.operands[0].type not in ("i8", "i16", "i32", "i64"):
            raise self.error(f"no loop counts in {made.operands[0].type}")
        if made.opcode == "set" and made.operands[0].register is None:
            raise self.error("'set' takes a variable where a literal is")
        if made.opcode != "param" or made.result is None:
            return
        if made.operands[0].literal >= len(entry.parameters):
            raise self.error(f"{entry.name} has {len(entry.parameters)} parameters")
        parameter, size = entry.parameters[made.operands[0].literal], WORDS[made.result.type]().itemsize
        if size > parameter.size or (size < parameter.size and parameter.kind != "struct"):
            raise self.error(f"parameter {parameter.name} has {parameter.size} bytes, {made.result.type} has {size}")


def _compares(row: str) -> bool:
    return (row[:2] in ("eq", "ne", "lt", "le", "gt", "ge") and row != "negf") or row == "isnan"
