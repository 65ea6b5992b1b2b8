"""A kernel's listing of another compiler as machine code, without its waits and pauses, and back to a listing with new ones.

The instructions keep their lines, so that what runs is the other compiler's code to the letter, but for what the passes put in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tilefw.api.machine import Function, Inst, Operand, Slice
from tilefw_amd.isa.model import BranchTarget, MCInst, RegisterTuple
from tilefw_amd.isa.registers import VECTORS
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.isa.text.parser import parse
from tilefw_amd.isa.text.printer import text as printed
from tilefw_amd.machine.machine_inst import instruction

_LABEL = re.compile(r"^(?P<name>[.\w$]+):")
_INSTRUCTION = re.compile(r"^\s+(?P<text>(?:s|v|ds|global|buffer|flat|scratch)_\w+\b[^;]*)")
_COMMA = re.compile(r",(?![^\[\]()]*[\])])")  # outside of brackets
_WAITING = ("s_waitcnt", "s_nop")
_LEAVING = ("s_setpc", "s_swappc", "s_call")
FILES = {"v": VECTORS, "a": VECTORS, "s": 128}


@dataclass
class Listing:
    """A listing, and its code between the kernel's label and its end as a machine function."""

    isa: InstructionSet
    function: Function
    lines: list[str]
    body: range
    """The lines that the function is made of."""
    line_of: dict[Inst, int] = field(default_factory=dict)
    encoded: dict[Inst, MCInst] = field(default_factory=dict)

    def text(self) -> str:
        """The listing with the function's instructions as they stand now: those that came in are printed."""
        before: dict[int, list[str]] = {}
        new: list[str] = []
        for inst in self.function.insts():
            line = self.line_of.get(inst)
            if line is None:
                new.append("\t" + printed(instruction(self.isa, inst)))
            else:
                before[line] = new
                new = []
        kept = {self.line_of[inst] for inst in self.function.insts() if inst in self.line_of}
        out: list[str] = []
        for number, line in enumerate(self.lines):
            dropped = number in self.body and number not in kept and _INSTRUCTION.match(line)
            out += before.get(number, []) if not dropped else []
            out += [] if dropped else [line]
        return "\n".join(out) + "\n"


def read(isa: InstructionSet, text: str, entry: str, stripped: bool = True) -> Listing | None:
    """The kernel `entry` of a listing, `stripped` or as it is; None where it calls functions or goes to computed addresses."""
    lines = text.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"{entry}:"))
    end = next(n for n in range(start, len(lines)) if lines[n].startswith((".Lfunc_end", f".L{entry}_end:")))
    listing = Listing(isa, Function(entry, isa.chip.target), lines, range(start, end))
    block = listing.function.block(entry)
    for number in listing.body:
        if (label := _LABEL.match(lines[number])) and label["name"] != entry:
            block = listing.function.block(label["name"])
        elif found := _INSTRUCTION.match(lines[number]):
            statement = found["text"].strip()
            if statement.startswith(_LEAVING) or "@" in statement:
                return None
            if stripped and statement.startswith(_WAITING):
                continue
            inst = machine(isa, listing.function, statement)
            listing.line_of[inst], listing.encoded[inst] = number, parse(isa, statement)
            block.insts.append(inst)
    return listing


def counts(text: str) -> dict[str, int]:
    """How many waits a listing has, how many pauses, and the wait states of these together."""
    statements = [found["text"].split() for line in text.splitlines() if (found := _INSTRUCTION.match(line))]
    pauses = [int(words[1], 0) + 1 for words in statements if words[0] == "s_nop"]
    return {"waits": sum(words[0] == "s_waitcnt" for words in statements), "pauses": len(pauses), "states": sum(pauses)}


def machine(isa: InstructionSet, function: Function, statement: str) -> Inst:
    """One instruction for the machine layer; signs of operands are left out, as they change no register."""
    if statement.startswith("s_waitcnt"):
        return Inst("s_waitcnt", (), statement.split()[1:])
    encoded = parse(isa, statement)
    written = [item.strip() for item in _COMMA.split(statement.partition(" ")[2])]
    defs: list[Slice] = []
    uses: list[Operand] = []
    kept: list[int] = []
    targets: tuple[str, ...] = ()
    for operand, of, item in zip(encoded.operands, encoded.form.operands, written, strict=False):
        if isinstance(operand, BranchTarget):
            targets = (item,)
        elif isinstance(operand, RegisterTuple) and (operand.file != "s" or operand.index < 128):
            piece = function.file(operand.file, FILES[operand.file]).slice(operand.index, operand.count)
            if of.role == "destination":
                kept += [len(defs)] if of.read else []
                defs.append(piece)
            else:
                uses.append(piece)
        else:
            uses.append(operand if isinstance(operand, int) else item.split()[0].strip("-|"))
    uses += written[-1].split()[bool(encoded.operands) :]  # modifiers stand behind the last operand
    tied = tuple((definition, len(uses) + n) for n, definition in enumerate(kept))
    uses += [defs[definition] for definition in kept]
    return Inst(encoded.form.row.mnemonic, defs, uses, tied=tied, targets=targets)
