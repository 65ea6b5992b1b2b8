"""A file while it is assembled: sections, symbols, kernels, and the statements that fill them, line by line.

Text is LLVM's for `amdgcn-amd-amdhsa`, as llc, Triton and people write it: one statement a line, comments behind `;`, `//`, `#`
at the line's start, or between `/*` and `*/`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tilefw.api.source_text import SourceText
from tilefw_amd.assembler.sections import MAX_BYTES, AssembledSection, Fixup, new_section
from tilefw_amd.code_object import elf
from tilefw_amd.isa.encoding.encode import encode
from tilefw_amd.isa.model import BranchTarget
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.isa.text import expression as ex
from tilefw_amd.isa.text.expression import Expression
from tilefw_amd.isa.text.parser import statement
from tilefw_amd.isa.text.source import RANGE, SYMBOLS, Fault

_LABEL = re.compile(r'\s*(?P<name>[A-Za-z_.$][\w.$]*|"[^"\n]+")\s*:(?!:)')
_BLOCK_COMMENT = re.compile(r'"[^"\n]*"|;[^\n]*|//[^\n]*|/\*.*?\*/|/\*', re.DOTALL)
_LINE_COMMENT = re.compile(r'"[^"\n]*"|;.*|//.*')
_ASSIGNMENT = re.compile(r"[A-Za-z_.$][\w.$]*\s*=(?!=)")
_NOT_NEWLINE = re.compile(r"[^\n]")


@dataclass(frozen=True, slots=True)
class Label:
    section: AssembledSection
    offset: int


@dataclass(slots=True)
class Facts:
    """What directives say of a symbol; `start` is the offset of the first of them in the file."""

    start: int
    binding: int = elf.STB_LOCAL
    visibility: int = elf.STV_DEFAULT
    type: int = elf.STT_NOTYPE
    size: Expression | None = None


@dataclass(slots=True)
class KernelBlock:
    """An .amdhsa_kernel block: its 64 bytes stand at `offset` of `section`. `given` are the directives, with their places."""

    name: str
    section: AssembledSection
    offset: int
    start: int
    end: int
    given: dict[str, tuple[Expression, int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LineEntry:
    """A `.loc`: from `offset` of `section` on, code is of that line."""

    section: AssembledSection
    offset: int
    file: int
    line: int
    column: int
    is_statement: bool
    prologue_end: bool


class File:
    """`statement_start` is the offset of the statement at hand; `block` the kernel block that is open; `positions` are
    (section, offset in it, offset in the text) of every instruction."""

    def __init__(
        self, isa: InstructionSet, text: str, filename: str, directives: Mapping[str, Callable[[File, str, int], None]]
    ) -> None:
        self.isa = isa
        self.source = SourceText(text, filename)
        self.sections: dict[str, AssembledSection] = {".text": new_section(".text", None, None, 0)}
        self.section = self.sections[".text"]
        self.labels: dict[str, Label] = {}
        self.assigned: dict[str, Expression] = {}
        self.facts: dict[str, Facts] = {}
        self.kernels: list[KernelBlock] = []
        self.block: KernelBlock | None = None
        self.metadata: tuple[str, int] | None = None
        self.files: dict[int, tuple[str, str]] = {}
        self.lines: list[LineEntry] = []
        self.positions: list[tuple[AssembledSection, int, int]] = []
        self.statement_start = 0
        self._directives = directives
        self._absolute: dict[str, int] = {}

    def read(self) -> None:
        """All statements. Raises CodeError at the first that is wrong."""
        try:
            text = _without_blocks(self.source.text)
            lines = iter(text.split("\n"))
            position = 0
            for line in lines:
                self.statement_start = position
                position += len(line) + 1
                if ";" in line or "/" in line or "#" in line:
                    line = _without_comment(line)
                if line and not line.isspace():
                    position += self._line(line, lines)
            if self.block is not None:
                raise Fault("the block has no .end_amdhsa_kernel", self.block.start - self.statement_start, code=SYMBOLS)
        except Fault as fault:
            raise self.source.error(fault, self.statement_start) from None

    def _line(self, line: str, lines) -> int:
        """One line; returns how many characters of further lines it took."""
        if ":" in line:
            line = self._labels(line)
        code = line.strip()
        if not code:
            return 0
        if code[0] == "." or ("=" in code and _ASSIGNMENT.match(code)):
            return self._directive(line, code, lines)
        self._instruction(line, code)
        return 0

    def _labels(self, line: str) -> str:
        """The line with its labels taken off, as spaces, so that offsets stay true."""
        while match := _LABEL.match(line):
            self.label(match["name"].strip('"'), match.start("name"), match.end("name"))
            line = " " * match.end() + line[match.end() :]
        return line

    # --- statements ----------------------------------------------------------------------------------------------------

    def _instruction(self, line: str, code: str) -> None:
        section = self.section
        try:
            inst, expression = statement(self.isa, code, self.absolute)
        except Fault as fault:
            shift = line.index(code)
            fault.start, fault.end = fault.start + shift, fault.end + shift
            raise
        if not section.executable:
            raise Fault(f"an instruction in section {section.name}, which is not executable", 0, len(line), code=SYMBOLS)
        offset = len(section.data)
        self.positions.append((section, offset, self.statement_start))
        section.data += encode(inst)
        if expression is not None:
            self.fixup(Fixup(offset + inst.size - 4, 4, "literal", self.here(expression), *self._span(line, code)))
        elif type(inst.operands[-1] if inst.operands else None) is BranchTarget and inst.operands[-1].label:  # type: ignore[union-attr]
            label = self.here(ex.SymbolExpression(inst.operands[-1].label), offset)  # type: ignore[union-attr]
            self.fixup(Fixup(offset, 2, "branch", label, *self._span(line, code)))

    def _span(self, line: str, code: str) -> tuple[int, int]:
        start = self.statement_start + line.index(code)
        return start, start + len(code)

    def _directive(self, line: str, code: str, lines) -> int:
        name, _, rest = code.partition(" ") if "\t" not in code else _first_word(code)
        if self.block is not None and name.startswith(".amdhsa_"):
            name, rest = ".amdhsa_", code
        found = self._directives.get(name)
        at = line.index(code)
        if found is not None:
            start = at + len(code) - len(rest)
            if self.block is not None and name not in (".amdhsa_", ".end_amdhsa_kernel"):
                raise Fault(f"{name} inside of an .amdhsa_kernel block", at, at + len(name), code=SYMBOLS)
            try:
                found(self, rest, self.statement_start + start)
            except Fault as fault:
                fault.start, fault.end = fault.start + start, fault.end + start
                raise
            return self._raw_block(lines) if name == ".amdgpu_metadata" else 0
        if _ASSIGNMENT.match(code):
            symbol, _, value = code.partition("=")
            self._directives[".set"](self, f"{symbol.strip()}, {value}", self.statement_start + at)
            return 0
        raise Fault(f"the directive {name} is not served", at, at + len(name), code=SYMBOLS, note=_SERVED)

    def _raw_block(self, lines) -> int:
        """The lines up to .end_amdgpu_metadata, as they stand."""
        taken: list[str] = []
        for line in lines:
            if line.strip() == ".end_amdgpu_metadata":
                self.metadata = ("\n".join(taken), self.statement_start)
                return sum(len(t) + 1 for t in taken) + len(line) + 1
            taken.append(line)
        raise Fault("the block has no .end_amdgpu_metadata", code=SYMBOLS)

    # --- symbols -------------------------------------------------------------------------------------------------------

    def fixup(self, fixup: Fixup) -> None:
        self.section.fixups.append(fixup)

    def fact(self, name: str) -> Facts:
        return self.facts.setdefault(name, Facts(self.statement_start))

    def label(self, name: str, start: int, end: int) -> None:
        """The name stands for the end of the current section; it is written from `start` to `end` of the line."""
        if name in self.labels or name in self.assigned:
            raise Fault(f"{name} occurs twice", start, end, code=SYMBOLS)
        self.labels[name] = Label(self.section, len(self.section.data))

    def switch(self, name: str, flags: str | None = None, kind: str | None = None, entry_size: int = 0) -> None:
        """Make a section the current one."""
        if name not in self.sections:
            self.sections[name] = new_section(name, flags, kind, entry_size)
        self.section = self.sections[name]
        if sum(len(section.data) for section in self.sections.values()) > MAX_BYTES:
            raise Fault(f"the sections have more than {MAX_BYTES} bytes together", code=RANGE)

    def assign(self, name: str, value: Expression) -> None:
        if name in self.labels:
            raise Fault(f"{name} is a label", code=SYMBOLS)
        self.assigned[name] = value
        self._absolute.clear()

    def absolute(self, name: str) -> int:
        """The value of a symbol that is a number already. Raises LookupError."""
        found = self._absolute.get(name)
        if found is None:
            found = self._absolute[name] = self._evaluate_now(name, 0)
        return found

    def _evaluate_now(self, name: str, depth: int) -> int:
        if depth > ex.DEPTH or name not in self.assigned:
            raise LookupError(name)
        return ex.evaluate(self.assigned[name], lambda other: self._evaluate_now(other, depth + 1))

    def here(self, expression: Expression, offset: int | None = None) -> Expression:
        """The expression with `.` bound to this place."""
        if not any(symbol.name == "." for symbol in ex.symbols(expression)):
            return expression
        name = f".L here {len(self.labels)}"  # no label of the text has spaces
        self.labels[name] = Label(self.section, len(self.section.data) if offset is None else offset)
        return ex.renamed(expression, ".", name)


_SERVED = "served are sections, labels, symbols, data, alignment, .loc and .file, and the .amdhsa_ and .amdgpu_ directives"


def _first_word(code: str) -> tuple[str, str, str]:
    word = code.split(None, 1)[0]
    return word, " ", code[len(word) :].lstrip()


def _blank(match: re.Match[str]) -> str:
    found = match.group()
    if not found.startswith("/*"):
        return found
    if not found.endswith("*/") or len(found) < 4:
        raise Fault("the comment has no end", match.start(), match.end())
    return _NOT_NEWLINE.sub(" ", found)


def _without_blocks(text: str) -> str:
    """The text with `/* */` as spaces."""
    return _BLOCK_COMMENT.sub(_blank, text) if "/*" in text else text


def _without_comment(line: str) -> str:
    if line.lstrip()[:1] == "#":
        return ""
    if '"' not in line:
        cut = line.find(";")
        slashes = line.find("//")
        cut = slashes if cut < 0 or 0 <= slashes < cut else cut
        return line if cut < 0 else line[:cut]
    return _LINE_COMMENT.sub(lambda m: m.group() if m.group()[0] == '"' else "", line)
