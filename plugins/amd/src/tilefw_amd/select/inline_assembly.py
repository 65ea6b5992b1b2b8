"""Inline assembly: each statement of the text becomes an instruction of the machine layer, on virtual registers.

The assembler reads the text first, with registers in the place of `$0`, `$1`, …, and refuses what the chip does not have. Waits
and wait states are then those of all code, and `vcc` is a lane mask like any other. What the machine layer would have to be told of
the text alone is refused: registers that it names itself, branches, and what changes SCC, M0 or EXEC.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from tilefw.api import CodeError, CompileError
from tilefw.api.machine import Operand, Slice
from tilefw.api.simt import AsmOperand, Code, Const, Element, InlineAssembly, LaneChip
from tilefw_amd.assembler.assemble import assemble_code
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.select.operands import in_vector

_FORMS = {("v", 1): "w32", ("v", 2): "w64", ("s", 1): "uw32", ("s", 2): "uw64"}
_NUMBER = re.compile(r"\$(?:(\d+)|\{(\d+)\})")
_COMMENT = re.compile(r"/\*.*?\*/|(?:;|//|#)[^\n]*", re.DOTALL)
_PIECE = re.compile(r"(?:\([^()]*\)|\[[^\[\]]*\]|[^\s,\[\]()])+|,")
_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|\d+)$")
_OWN_REGISTER = re.compile(r"(?:v|s|a|ttmp)(?:\d+|\[.*)$|(?:exec|vcc|flat_scratch)_?(?:lo|hi)?$|m0$|scc$")
_PLACEHOLDER_MASK = "s[100:101]"  # where the assembler reads `vcc`
_KNOWN_IMPLICIT = frozenset({"exec", "pc"})


@dataclass(frozen=True, slots=True)
class AsmStatement:
    """One instruction: its opcode, its definitions and uses in order, registers of the text as `$0`; `reads` are the definitions,
    by their place, that are read too."""

    opcode: str
    defs: tuple[str, ...]
    uses: tuple[str | int, ...]
    reads: tuple[int, ...]


def run(chip: LaneChip, isa: InstructionSet, code: Code, assembly: InlineAssembly) -> Sequence[Element]:
    """The registers of the results, after the text ran. Raises CompileError (TFW0619)."""
    kinds = [_kind(letter, bits, True) for letter, bits in assembly.results]
    registers = [code.new_register(_FORMS[kind]) for kind in kinds]
    results = tuple(registers)
    for operand in assembly.operands:
        tied = operand.constraint
        if isinstance(tied, int):
            chip.move(code, results[tied], operand.element)
            kinds.append(kinds[tied])
            registers.append(results[tied])
        else:
            kinds.append(_kind(tied, operand.bits, False))
            registers.append(_held(chip, code, operand, kinds[-1]))
    read = statements(isa, assembly.text, tuple(kinds))
    mask = code.new_register("i1") if any("vcc" in (*statement.defs, *statement.uses) for statement in read) else None

    def operand_of(word: str | int) -> Operand:
        if isinstance(word, str) and word.startswith("$"):
            return registers[int(word[1:])]
        return mask if mask is not None and word == "vcc" else word

    for statement in read:
        defs = [operand_of(word) for word in statement.defs]
        uses = [operand_of(word) for word in statement.uses]
        tied_uses = tuple((index, len(uses) + k) for k, index in enumerate(statement.reads))
        changed = [definition for definition in defs if isinstance(definition, Slice)]
        code.effect(statement.opcode, changed, [*uses, *(defs[index] for index in statement.reads)], tied=tied_uses)
    return results


def _kind(letter: str, bits: int, result: bool) -> tuple[str, int]:
    """The file and the registers of a value."""
    known = ("v",) if result else ("v", "s")
    if letter not in known:
        raise CompileError(
            f"there are no registers for the constraint '{letter}' of {'a result' if result else 'an operand'}", "TFW0619",
            help=f"the letters are {' and '.join(known)}",
        )
    return letter, 2 if bits > 32 else 1


def _held(chip: LaneChip, code: Code, operand: AsmOperand, kind: tuple[str, int]) -> Slice:
    """A register of the file with the operand in it."""
    element = operand.element
    if isinstance(element, Const):
        register = code.new_register(_FORMS[kind])
        chip.move(code, register, element)
        return register
    if kind[0] == "v":
        return in_vector(code, element)
    if element.reg.cls != "s":
        raise CompileError(
            "an operand of the constraint 's' is equal in all lanes, and this one is not", "TFW0619", help="write 'v' for it"
        )
    return element


@cache
def statements(isa: InstructionSet, text: str, kinds: tuple[tuple[str, int], ...]) -> tuple[AsmStatement, ...]:
    """The instructions of a text on registers of these kinds. Raises CompileError (TFW0619) for what cannot be one of them."""
    plain = _NUMBER.sub(lambda found: f"${found[1] or found[2]}", _COMMENT.sub("", text))
    names = [f"{file}{2 * i}" if count == 1 else f"{file}[{2 * i}:{2 * i + 1}]" for i, (file, count) in enumerate(kinds)]
    try:
        read = re.sub(r"\$(\d+)", lambda found: names[int(found[1])], plain)
    except IndexError:
        raise _refusal(f"it names a register beyond ${len(kinds) - 1}, the last of its constraints") from None
    try:
        assemble_code(isa, re.sub(r"\bvcc\b", _PLACEHOLDER_MASK, read), "tl.inline_asm_elementwise")
    except CodeError as error:
        raise _refusal(f"{isa.chip.name} does not take it: {error.message}", error.help) from None
    return tuple(_statement(isa, line.strip()) for line in plain.split("\n") if line.strip())


def _statement(isa: InstructionSet, line: str) -> AsmStatement:
    opcode, _, rest = line.partition(" ")
    if opcode.endswith(":") or opcode.startswith("."):
        raise _refusal(f"'{line}' is a label or a directive, and the text has instructions alone")
    row = isa.row(opcode)
    hidden = {o.name for o in row.operands if o.role.startswith("implicit")} - _KNOWN_IMPLICIT
    if row.flow or hidden:
        what = "goes elsewhere" if row.flow else f"reads or changes {' and '.join(sorted(hidden))}"
        raise _refusal(f"'{opcode}' {what}, which text in a kernel cannot")
    operands, modifiers = _operands(rest)
    destinations = [o for o in row.operands if o.role == "destination"]
    returns = len(destinations) if "returns" not in row.facts or "sc0" in modifiers else 0
    defs = operands[:returns]
    if any(not isinstance(word, str) or not (word.startswith("$") or word == "vcc") for word in defs):
        raise _refusal(f"'{line}' writes to what is no register")
    reads = tuple(index for index, destination in enumerate(destinations[:returns]) if destination.read)
    return AsmStatement(opcode, tuple(map(str, defs)), (*operands[returns:], *modifiers), reads)


def _operands(rest: str) -> tuple[list[str | int], list[str]]:
    """The operands, and the modifiers behind them."""
    operands: list[str | int] = []
    modifiers: list[str] = []
    begins = True
    for word in _PIECE.findall(rest):
        if word == ",":
            begins = True
        elif not begins and not word.endswith(")"):  # vmcnt(0) lgkmcnt(0) are one operand, without a comma
            modifiers.append(word)
        else:
            operands.append(_operand(word))
            begins = False
    return operands, modifiers


def _operand(word: str) -> str | int:
    if _INTEGER.match(word):
        value = int(word, 0)
        return value if value >= -16 else value & 0xFFFFFFFF
    if word.startswith(("-$", "|", "-|")):
        raise _refusal(f"'{word}' has its sign changed at the operand", "write it as a modifier: `neg:[1,0]`, `abs:[1,0]`")
    if word != "vcc" and _OWN_REGISTER.match(word):
        raise _refusal(f"it names the register {word} itself", "name results and operands as $0, $1, …; `vcc` is any lane mask")
    return word


def _refusal(what: str, help: str | None = None) -> CompileError:
    return CompileError(f"the text of tl.inline_asm_elementwise is refused: {what}", "TFW0619", help=help)
