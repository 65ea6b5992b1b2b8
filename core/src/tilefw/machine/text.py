"""The text form of machine functions: printed for people and filecheck, parsed back by a fast line parser.

    func @add target "chip"
      attributes {"workgroup": [128, 1, 1]}
      regs b32: 0-2 5
      regs pair x2 a2: 3 4
      file v: 64
    entry:
      %0 = mov "%tid.x"
      @!%5 %1, %3[0:1] = load %4, 16 {buffer=0, targets=exit} // "k.py":3:5

An operand is `%n` (a whole virtual register), `%n[first:count]`, `$cls[first:count]` (physical), an integer, or a quoted
string. Parsing what was printed gives an equal text again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache

from tilefw.api.errors import IRError, Place
from tilefw.machine.function_attributes import FunctionAttributes
from tilefw.machine.inst import Block, Function, Inst, Operand, Reg, Slice


def print_function(function: Function) -> str:
    """The function as text, which `parse_function` reads back; it ends in a newline."""
    lines = [f'func @{function.name} target "{function.target}"']
    if attributes := function.attributes.to_json():
        lines.append("  attributes " + json.dumps(attributes))
    lines += _register_lines(function)
    lines += [f"  file {file.cls}: {file.width}" for file in function.files.values()]
    texts = _OperandTexts()
    for block in function.blocks:
        lines.append(f"{block.label}:")
        lines += [_printed(inst, texts) for inst in block.insts]
    return "\n".join(lines) + "\n"


def print_inst(inst: Inst) -> str:
    """One instruction as the line that `print_function` has for it: indented by two spaces, without a newline."""
    return _printed(inst, _OperandTexts())


class _OperandTexts(dict[Operand, str]):
    """The text of each operand of a function, made once: the same ones occur again and again."""

    def __missing__(self, operand: Operand) -> str:
        text = self[operand] = _operand(operand)
        return text


def _printed(inst: Inst, texts: _OperandTexts) -> str:
    text = "  "
    if inst.predicate is not None:
        text += f"@{'!' if inst.predicate_not else ''}{texts[inst.predicate]} "
    if inst.defs:
        text += ", ".join([texts[piece] for piece in inst.defs]) + " = "
    text += inst.opcode
    if inst.uses:
        text += " " + ", ".join([texts[use] for use in inst.uses])
    if extras := _extras(inst, texts):
        text += " {" + ", ".join(extras) + "}"
    if inst.place is not None:
        text += f" // {_quoted(inst.place.file)}:{inst.place.line}:{inst.place.column}"
    return text


_quoted = lru_cache(64)(json.dumps)  # few names of files, each at thousands of instructions


def _extras(inst: Inst, texts: _OperandTexts) -> list[str]:
    extras: list[str] = []
    if inst.buffer is not None:
        extras.append(f"buffer={inst.buffer}")
    if inst.volatile:
        extras.append("volatile")
    if inst.tied:
        extras.append("tied=" + "+".join(f"{d}:{u}" for d, u in inst.tied))
    if inst.implicit_defs:
        extras.append("writes=" + "+".join([texts[piece] for piece in inst.implicit_defs]))
    if inst.implicit_uses:
        extras.append("reads=" + "+".join([texts[piece] for piece in inst.implicit_uses]))
    if inst.targets:
        extras.append("targets=" + "+".join(inst.targets))
    if inst.no_wrap:
        extras.append("no_wrap" if inst.no_wrap == "exact" else f"no_wrap={inst.no_wrap}")
    if inst.wide:
        extras.append("wide=" + "+".join(f"{d}:{r}" for d, r in inst.wide))
    return extras


def _operand(operand: Operand) -> str:
    if not isinstance(operand, Slice):
        return str(operand) if isinstance(operand, int) else json.dumps(operand)
    reg = operand.reg
    if reg.physical:
        return f"${reg.cls}[{operand.first}:{operand.count}]"
    return f"%{reg.id}" if operand.first == 0 and operand.count == reg.width else f"%{reg.id}[{operand.first}:{operand.count}]"


def _register_lines(function: Function) -> Iterator[str]:
    groups: dict[tuple[str, int, int], list[int]] = {}
    for reg in function.registers:
        groups.setdefault((reg.cls, reg.width, reg.align), []).append(reg.id)
    for (cls, width, align), ids in groups.items():
        shape = "" if (width, align) == (1, 1) else f" x{width} a{align}"
        yield f"  regs {cls}{shape}: {' '.join(_ranges(ids))}"


def _ranges(ids: list[int]) -> Iterator[str]:
    start = last = ids[0]
    for i in [*ids[1:], None]:
        if i is not None and i == last + 1:
            last = i
            continue
        yield str(start) if start == last else f"{start}-{last}"
        if i is not None:
            start = last = i


_HEADER = re.compile(r'func @([\w.$]+) target "([^"]*)"\s*$')
_REGS = re.compile(r"  regs (\w+)(?: x(\d+) a(\d+))?: ([\d\- ]+)$")
_FILE = re.compile(r"  file (\w+): (\d+)$")
_LABEL = re.compile(r"([\w.$]+):$")
_STRING = r'"(?:[^"\\]|\\.)*"'
_SLICE = r"(?:%\d+|\$\w+)(?:\[\d+:\d+\])?"
_INST = re.compile(
    rf"  (?:@(!?)({_SLICE}) )?(?:({_SLICE}(?:, {_SLICE})*) = )?([\w.:]+)(?: ((?:{_STRING}|[^{{/\"])*?))?"
    rf"(?: \{{(.*?)\}})?(?: // ({_STRING}):(\d+):(\d+))?$"
)
_OPERAND = re.compile(rf"({_STRING})|({_SLICE})|(-?\d+)")
_PIECE = re.compile(r"(?:%(\d+)|\$(\w+))(?:\[(\d+):(\d+)\])?$")


class _Parser:
    def __init__(self, text: str, file: str, first_line: int) -> None:
        self.lines = text.splitlines()
        self.file = file
        self.first_line = first_line
        self.at = 0
        self.regs: dict[int, Reg] = {}
        # By their text: the same few stand in every other line.
        self.pieces: dict[str, Slice] = {}
        self.places: dict[tuple[str, str, str], Place] = {}

    def error(self, message: str) -> IRError:
        text = self.lines[self.at] if self.at < len(self.lines) else ""
        return IRError(message, code="TFW0620", place=Place(self.file, self.first_line + self.at, text=text))

    def function(self) -> Function:
        header = _HEADER.match(self.lines[0]) if self.lines else None
        if header is None:
            raise self.error('machine text begins with: func @name target "chip"')
        function = Function(header[1], header[2])
        block: Block | None = None
        for at, line in enumerate(self.lines[1:], 1):
            self.at = at
            if not line.strip():
                continue
            label = _LABEL.match(line)
            if label is not None:
                block = function.block(label[1])
            elif block is None:
                self.declaration(function, line)
            else:
                block.insts.append(self.inst(function, line))
        function.registers = [self.regs[i] for i in sorted(self.regs)]
        return function

    def declaration(self, function: Function, line: str) -> None:
        if line.startswith("  attributes "):
            try:
                function.attributes = FunctionAttributes.from_json(json.loads(line[len("  attributes ") :]))
            except (ValueError, RecursionError) as error:
                raise self.error(f"these are not attributes of a function: {error}") from None
        elif m := _REGS.match(line):
            width, align = int(m[2] or 1), int(m[3] or 1)
            for part in m[4].split():
                first, _, last = part.partition("-")
                if int(last or first) - int(first) > 1_000_000:
                    raise self.error(f"too many registers: {part}")
                for i in range(int(first), int(last or first) + 1):
                    self.regs[i] = Reg(i, m[1], width, align)
        elif m := _FILE.match(line):
            function.file(m[1], int(m[2]))
        else:
            raise self.error("expected attributes, regs, file or a label")

    def inst(self, function: Function, line: str) -> Inst:
        m = _INST.match(line)
        if m is None:
            raise self.error("malformed instruction")
        negated, guard, defs, opcode, uses, extras, file, row, column = m.groups()
        inst = Inst(
            opcode,
            [self.piece(function, d) for d in defs.split(", ")] if defs else (),
            list(self.operands(function, uses)) if uses else (),
            predicate=self.piece(function, guard) if guard else None,
            predicate_not=bool(negated),
            place=self.place(file, row, column) if file else None,
        )
        inst.line = self.first_line + self.at
        for extra in extras.split(", ") if extras else ():
            self.extra(function, inst, extra)
        return inst

    def place(self, file: str, row: str, column: str) -> Place:
        written = file, row, column
        found = self.places.get(written)
        if found is None:
            found = self.places[written] = Place(json.loads(file), int(row), int(column))
        return found

    def extra(self, function: Function, inst: Inst, text: str) -> None:
        key, _, value = text.partition("=")
        parts = value.split("+")
        if key == "buffer" and value.lstrip("-").isdigit():
            inst.buffer = int(value)
        elif text == "volatile":
            inst.volatile = True
        elif key == "targets":
            inst.targets = tuple(parts)
        elif text == "no_wrap":
            inst.no_wrap = "exact"
        elif key == "no_wrap" and (value == "proven" or value == "lost"):
            inst.no_wrap = value
        elif key in ("tied", "wide") and all(re.fullmatch(r"\d+:\d+", p) for p in parts):
            setattr(inst, key, tuple((int(p.split(":")[0]), int(p.split(":")[1])) for p in parts))
        elif key == "writes":
            inst.implicit_defs = tuple(self.piece(function, p) for p in parts)
        elif key == "reads":
            inst.implicit_uses = tuple(self.piece(function, p) for p in parts)
        else:
            raise self.error(f"unknown or malformed {text}")

    def operands(self, function: Function, text: str) -> Iterator[Operand]:
        at = 0
        while True:
            m = _OPERAND.match(text, at)
            if m is None:
                raise self.error(f"expected an operand at: {text[at:]}")
            yield json.loads(m[1]) if m[1] else self.piece(function, m[2]) if m[2] else int(m[3])
            at = m.end()
            if at == len(text):
                return
            if not text.startswith(", ", at):
                raise self.error(f"expected a comma at: {text[at:]}")
            at += 2

    def piece(self, function: Function, text: str) -> Slice:
        found = self.pieces.get(text)
        if found is None:
            found = self.pieces[text] = self.new_piece(function, text)
        return found

    def new_piece(self, function: Function, text: str) -> Slice:
        m = _PIECE.match(text)
        reg = None if m is None else self.regs.get(int(m[1])) if m[1] else function.files.get(m[2])
        if m is None or reg is None:
            raise self.error(f"{text} is not declared")
        if m[3] is None:
            return reg.whole
        first, count = int(m[3]), int(m[4])
        if count < 1 or first + count > reg.width:
            raise self.error(f"{text} is outside its register, which has width {reg.width}")
        return reg.slice(first, count)


def parse_functions(text: str, file: str = "<machine>") -> list[Function]:
    """The functions of a text in the form of `print_function`, in order; none in an empty text. `file` is its name in messages.

    Raises IRError (TFW0620) with the line of the first fault.
    """
    starts = [m.start() for m in re.finditer(r"^func @", text, re.MULTILINE)]
    # What precedes the first one is not a function, and so the first error.
    starts[:1] = [0]
    pieces = zip(starts, [*starts[1:], len(text)], strict=True)
    return [parse_function(text[a:b], file, text.count("\n", 0, a) + 1) for a, b in pieces]


def parse_function(text: str, file: str = "<machine>", first_line: int = 1) -> Function:
    """The one function of a text in the form of `print_function`. `file` and `first_line` (from 1) are for messages.

    Raises IRError (TFW0620) with the line of the first fault.
    """
    return _Parser(text, file, first_line).function()
