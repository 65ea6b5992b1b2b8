"""Which pauses (`s_nop`) of LLVM's code the hardware asks for; the others can be left out, so that to leave one out is not a
defect.

LLVM pauses in two places without the manual's asking (GCNHazardRecognizer.cpp, LLVM 22):

- between memory instructions of a clause, for XNACK (`checkSoftClauseHazards`): a load that a page fault replays must not find its
  address overwritten. Nothing replays here, and the results that arrive are the simulator's to watch;
- between a packed or mixed instruction and whoever touches its result (`checkVALUHazardsHelper`,
  `getDstSelForwardingOperand`): LLVM takes op_sel_hi of the first source for op_sel of the destination, as the two share a bit
  (SISrcMods::DST_OP_SEL).

The rule looks at text alone, and is narrow: where anything else around the pause could need it, the pause counts as needed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence

from tilefw_amd.chips import chips

_LABEL = re.compile(r"^(?!\.Ltmp|\.Lfunc)[.\w$]+:")  # those two are for debuggers alone
_INSTRUCTION = re.compile(r"^\s*(?P<opcode>[a-z]\w*)(?:\s+(?P<operands>.*))?$")
_VECTOR_MEMORY = re.compile(r"^(global|buffer|flat|scratch)_(load|store)_")
_SCALAR_LOAD = re.compile(r"^s_(buffer_)?load_")
_PRODUCTS = ("v_mfma", "v_smfmac")
_PACKED = re.compile(r"^v_(pk_|fma_mix|mad_mix)")
_SPAN = re.compile(r"\b(?P<file>[vas])(?:\[(?P<low>\d+):(?P<high>\d+)\]|(?P<only>\d+))|\b(?P<named>vcc|exec|m0)")
# Who waits longer than one state for a vector result, or for other things than vector results (CDNA3 ISA 4.5, 7.5; of exchanges
# between lanes LLVM, checkPermlaneHazards).
_PATIENT = re.compile(r"^v_(mfma|smfmac|readlane|readfirstlane|writelane|permlane|div_fmas|cmpx)|_dpp\b|_sdwa\b")
_LONGEST = max(chip.matrix_hazards.most for chip in chips().values())  # wait states: no hazard of any chip reaches further
_SCALAR_REACH = 5  # of a scalar register that vector arithmetic writes (CDNA3 ISA 4.5, cases 5, 6, 7, 10)


def needed(lines: Sequence[str], index: int) -> bool:
    """Whether the pause at lines[index] is one that the hardware asks for, as far as the code around it shows."""
    before = list(_recent(lines[:index]))
    after = next((found for line in lines[index + 1 :] if (found := _parsed(line))), None)
    if not before or after is None:
        return True
    if _spans_a_scalar(before, after):
        return True
    if ("label", "") in before and _has_products(lines):
        return True
    products = [operands for opcode, operands in before if opcode.startswith(_PRODUCTS)]
    if _breaks_a_clause(before[0], after):
        return not all(_waited_for(product, before[0], after) for product in products)
    return bool(products) or not _follows_packed(before[0], after)


def _recent(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The instructions before, the nearest first, as far back as a hazard reaches."""
    states = 0
    for found in filter(None, map(_parsed, reversed(lines))):
        yield found
        opcode, operands = found
        states += int(operands, 0) + 1 if opcode == "s_nop" else opcode != "label"
        if states >= _LONGEST:
            return


def _parsed(line: str) -> tuple[str, str] | None:
    """(opcode, operands) of an instruction, a label that a branch may go to among them; None for directives and comments."""
    text = line.split(";")[0].split("//")[0].rstrip()
    if _LABEL.match(text):
        return "label", ""
    match = _INSTRUCTION.match(text)
    return (match["opcode"], match["operands"] or "") if match else None


def _breaks_a_clause(first: tuple[str, str], after: tuple[str, str]) -> bool:
    return any(kind.match(first[0]) and kind.match(after[0]) for kind in (_VECTOR_MEMORY, _SCALAR_LOAD))


def _waited_for(product: str, first: tuple[str, str], after: tuple[str, str]) -> bool:
    """Whether the pause is not there for the product's sake: `after` touches none of its registers, or `first`, which stands right
    before the pause, touches its result, for which any memory instruction waits equally long (CDNA3 ISA 7.5)."""
    concerned = not registers(product).isdisjoint(registers(after[1]))
    return not concerned or not registers(_result(product)).isdisjoint(registers(first[1]))


def _has_products(lines: Sequence[str]) -> bool:
    return any(line.strip().startswith(_PRODUCTS) for line in lines)


def _follows_packed(first: tuple[str, str], after: tuple[str, str]) -> bool:
    opcode, operands = first
    if not _PACKED.match(opcode) or _PATIENT.search(after[0]) or not after[0].startswith("v_"):
        return False
    return not registers(_result(operands)).isdisjoint(registers(after[1]))


def _spans_a_scalar(before: Sequence[tuple[str, str]], after: tuple[str, str]) -> bool:
    """Whether the pause may also stand between vector arithmetic that writes a scalar register and its reader."""
    if ("label", "") in before[:_SCALAR_REACH]:
        return any(register[0] not in "va" for register in registers(after[1]))
    written = {
        register
        for opcode, operands in before[:_SCALAR_REACH]
        if opcode.startswith("v_")
        for register in registers(_scalar_result(opcode, operands))
        if register[0] not in "va"
    }
    return not written.isdisjoint(registers(after[1]))


def _result(operands: str) -> str:
    return operands.split(",")[0]


def _scalar_result(opcode: str, operands: str) -> str:
    """The operands that may be scalar results: the first, and the second of sums with a carry; VCC where it is not named."""
    carries = "_co_" in opcode or opcode.startswith("v_div_scale")
    return ",".join(operands.split(",")[: 2 if carries else 1])


@functools.cache
def registers(operands: str) -> frozenset[tuple[str, int]]:
    """Those that are written out in the operands, each of 32 bits: (file, number)."""
    found: set[tuple[str, int]] = set()
    for match in _SPAN.finditer(operands):
        if match["named"]:
            found.add((match["named"], 0))
        else:
            low = int(match["low"] or match["only"])
            found |= {(match["file"], n) for n in range(low, int(match["high"] or low) + 1)}
    return frozenset(found)
