"""LLVM's own vector files of a chip and of its elders (`vector_files`), beside our assembler and disassembler, both ways.

    git clone --depth 1 --branch llvmorg-22.1.8 --filter=blob:none --sparse https://github.com/llvm/llvm-project
    git -C llvm-project sparse-checkout set llvm/test/MC/AMDGPU llvm/test/MC/Disassembler/AMDGPU
    python -m cdna3.vectors llvm-project --out ../../../bench/llvm-vectors.md        # in plugins/amd/tests

What a file's RUN lines run for the chip itself is compared with the checks of that file. Other statements of the family's files are
asked of llvm-mc for the chip, which is the judge of them: of an elder chip's instruction it says new bytes, or refuses it.
"""

from __future__ import annotations

import argparse
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from served import ISAS

from cdna3 import llvm, vector_files
from cdna3.vector_files import Statement, Vector, VectorFile
from tilefw.api import CodeError
from tilefw_amd.isa.encoding.decode import decode_all
from tilefw_amd.isa.encoding.encode import encode
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.isa.text.parser import parse
from tilefw_amd.isa.text.printer import text

VARIABLE = "TILEFW_LLVM_TESTS"
FAMILY = re.compile(r"gfx9\w\w|gfx9-generic|gfx9-4-generic")
REFUSED = "refused"

EXPLAINED: tuple[tuple[str, str], ...] = (
    (r"ds_gws_", "The global wave sync of the graphics pipeline is not in the instruction table."),
    (r"src_lds_direct", "LLVM's disassembler names `src_lds_direct`, which no chip of the family has; its assembler refuses it."),
    (r"tbuffer_.* dfmt:", "`dfmt:` and `nfmt:` are an older spelling of the formats of typed buffers; `format:` is served."),
    (r"^s_\w+_e32 ", "LLVM drops `_e32` of any instruction; scalar ones have no such encoding."),
    (r"s_(nop|sleep|setprio) takes 0 to", "An immediate of which the hardware reads a part is refused."),
    (r"^v_nop|^f[9a]00007e", "v_nop is in the table in its short encoding only."),
    (r"v_pk_fmac_f16_sdwa .*(-v|sext)|^f9040a7801060616", "LLVM encodes these signs and does not print them (a FIXME of its own)."),
    (r"sext\(.*BYTE_1", "LLVM's disassembler prints this sext, its assembler refuses it; ours are one: both take it."),
    (r"^v_dot2_f32_f16 .*lit\(", "LLVM writes the code of a literal and no literal behind it."),
    (r"^v_add_f16 .*v\[2:3\].* row_shl", "LLVM takes a pair here and encodes its first register; the operand has 16 bits."),
    (r"^s_getreg_b32 .*\{\}", "LLVM takes an empty structure for all defaults; a register must be named here."),
    (r"^s_atc_probe_buffer|^44009ec0ffff1f00", "LLVM prints the unsigned offset of this instruction as a negative number."),
)
"""Why a difference is none of the tables: a pattern of (statement, what ours is), and the reason."""


@dataclass(frozen=True, slots=True)
class Difference:
    file: str
    line: int
    chip: str
    what: str
    ours: str
    theirs: str

    @property
    def reason(self) -> str:
        """The class of EXPLAINED that it belongs to, or ""."""
        subject = (self.what, self.ours, self.theirs)
        return next((reason for pattern, reason in EXPLAINED if any(re.search(pattern, of) for of in subject)), "")

    def __str__(self) -> str:
        return f"{self.chip} {self.file}:{self.line}: {self.what}: {self.ours}, LLVM {self.theirs}"


@dataclass
class Outcome:
    """Of one file and chip: statements by what judged them, those that both refuse, and differences."""

    file: str
    chip: str
    said: int = 0
    asked: int = 0
    refused: int = 0
    symbols: int = 0
    differences: list[Difference] = field(default_factory=list)


def folder() -> Path | None:
    """The checkout that the variable names, or None."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


def files(checkout: Path) -> list[VectorFile]:
    return list(vector_files.files(checkout / "llvm" / "test" / "MC", FAMILY))


def outcomes(isa: InstructionSet, several: Sequence[VectorFile]) -> Iterator[Outcome]:
    """Each file that says something of the chip."""
    judge = _Judge(isa, several)
    for file in several:
        vectors, _ = file.vectors(isa.chip.name)
        found = Outcome(file.name, isa.chip.name, said=len({v.statement.line for v in vectors}))
        said = {vector.statement.line for vector in vectors}
        for statement in file.statements:
            if statement.line not in said and not _names_symbol(statement, file):
                judged = judge.vector(statement)
                if judged is not None:
                    vectors.append(judged)
                    found.asked += 1
                    continue
            found.symbols += statement.line not in said
        for vector in vectors:
            differing = [
                Difference(file.name, vector.statement.line, isa.chip.name, *d) for d in _differences(isa, vector, judge.read)
            ]
            found.differences += differing
            found.refused += bool(vector.refused) and not differing
        if vectors:
            yield found


def _names_symbol(statement: Statement, file: VectorFile) -> bool:
    return not statement.data and not file.symbols.isdisjoint(re.findall(r"[A-Za-z_]\w*", statement.text.partition(" ")[2]))


class _Judge:
    """llvm-mc for one chip, asked once for all statements of all files; without it nothing is judged."""

    def __init__(self, isa: InstructionSet, several: Sequence[VectorFile]) -> None:
        texts = sorted({s.text for file in several for s in file.statements if not s.data})
        codes = sorted({s.data for file in several for s in file.statements if s.data})
        there = llvm.llvm_mc() is not None
        self._texts = dict(zip(texts, llvm.assemble(texts, isa.chip), strict=True)) if there else {}
        self._codes = dict(zip(codes, llvm.disassemble(codes, isa.chip), strict=True)) if there else {}
        made = sorted({answer.data for answer in self._texts.values() if answer.data})
        self._printed = dict(zip(made, llvm.disassemble(made, isa.chip), strict=True)) if there else {}
        said = [vector.text for file in several for vector in file.vectors(isa.chip.name)[0]]
        answers = [*self._codes.values(), *self._printed.values()]
        printed = sorted({*filter(None, said), *(answer.text for answer in answers if answer.text)})
        self._read = dict(zip(printed, llvm.assemble(printed, isa.chip), strict=True)) if there else {}

    def vector(self, statement: Statement) -> Vector | None:
        answer = self._codes.get(statement.data) if statement.data else self._texts.get(statement.text)
        if answer is None or answer.symbolic:
            return None
        if answer.error:
            return Vector(statement, refused=answer.error)
        if statement.data:
            return Vector(statement, answer.text, answer.data)
        return Vector(statement, self._printed[answer.data].text, answer.data)


    def read(self, printed: str, data: bytes) -> str:
        """What LLVM's assembler makes of a text that its disassembler printed of `data`: not always that, and some it refuses."""
        answer = self._read.get(printed)
        if answer is None or answer.symbolic:
            return data.hex()
        return f"{REFUSED} ({answer.error})" if answer.error else answer.data.hex()


def _differences(
    isa: InstructionSet, vector: Vector, read: Callable[[str, bytes], str] = lambda printed, data: data.hex()
) -> Iterator[tuple[str, str, str]]:
    """What is asked, ours, and LLVM's. `read` is what LLVM makes of a text that it printed."""
    statement = vector.statement
    asked = statement.data.hex() or statement.text
    first = _disassembled(isa, statement.data) if statement.data else [_assembled(isa, statement.text)]
    if vector.refused:
        if not first[0].startswith(REFUSED):
            yield asked, "; ".join(first), f"{REFUSED} ({vector.refused})"
        return
    if statement.data:
        if vector.text not in first:  # of several instructions a file's check is about one
            yield asked, "; ".join(first), vector.text
    elif vector.data and first != [vector.data.hex()]:
        yield asked, first[0], vector.data.hex()
    if vector.data and vector.text:
        again, theirs = _assembled(isa, vector.text), read(vector.text, vector.data)
        if again != theirs and not (again.startswith(REFUSED) and theirs.startswith(REFUSED)):
            yield vector.text, again, theirs
        back = [vector.text] if statement.data else _disassembled(isa, vector.data)
        if back != [vector.text]:
            yield vector.data.hex(), "; ".join(back), vector.text


def _assembled(isa: InstructionSet, line: str) -> str:
    try:
        return encode(parse(isa, line)).hex()
    except CodeError as error:
        return f"{REFUSED} ({error.message})"


def _disassembled(isa: InstructionSet, code: bytes) -> list[str]:
    try:
        return [text(inst) for _, inst in decode_all(isa, code)]
    except CodeError as error:
        return [f"{REFUSED} ({error.note})"]


def page(found: Sequence[Outcome], several: Sequence[VectorFile]) -> str:
    """The page of a run."""
    differences = [difference for outcome in found for difference in outcome.differences]
    reasons = Counter(difference.reason for difference in differences if difference.reason)
    own = {file.name: file for file in several}
    rows = [
        f"| `{o.file}` | {o.chip} | {'own' if own[o.file].named(o.chip) else 'elder'} | {o.said} | {o.asked} | {o.refused} "
        f"| {o.symbols} | {sum(bool(d.reason) for d in o.differences)} | {sum(not d.reason for d in o.differences)} |"
        for o in sorted(found, key=lambda o: (not own[o.file].named(o.chip), o.chip, o.file))
    ]
    totals = [
        f"- {chip}: {sum(o.said for o in of):,} statements judged by the checks of their files, {sum(o.asked for o in of):,} by "
        f"llvm-mc for the chip; {sum(o.refused for o in of):,} of them both refuse; {sum(o.symbols for o in of):,} left out, as "
        f"they name symbols of their file; {sum(bool(d.reason) for o in of for d in o.differences)} differences with a reason, "
        f"{sum(not d.reason for o in of for d in o.differences)} without."
        for chip in sorted({o.chip for o in found}) for of in [[o for o in found if o.chip == chip]]
    ]
    unexplained = [f"- `{difference}`" for difference in differences if not difference.reason]
    return "\n".join([
        "# LLVM 22's vector files beside our assembler and disassembler", "",
        "Text is assembled to LLVM's bytes, its bytes are disassembled to its text, and that text is assembled again, to what",
        "llvm-mc makes of it; what it refuses is refused. `own` files run for the chip itself: their checks judge, and llvm-mc 22",
        "where they say nothing of a statement. Of `elder` files, those of other chips of the family, llvm-mc 22 says what each",
        "statement is on this chip.",
        "", *totals, "",
        "## Differences with a reason", "", "| differences | reason |", "|---:|---|",
        *(f"| {count} | {reason} |" for reason, count in reasons.most_common()), "",
        "## Differences without one", "", *(unexplained or ["None."]), "",
        "## Files", "",
        "| file | chip | of | by its checks | by llvm-mc | refused by both | with symbols | explained | different |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|", *rows, "",
    ])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="of llvm-project, or its unpacked source")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    several = files(arguments.checkout)
    found = [outcome for isa in ISAS for outcome in outcomes(isa, several)]
    arguments.out.write_text(page(found, several), "utf-8")
    return 1 if any(not d.reason for o in found for d in o.differences) else 0


if __name__ == "__main__":
    raise SystemExit(main())
