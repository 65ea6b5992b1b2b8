"""Instructions as we write, encode, read and decode them, beside llvm-mc: what differs, in words."""

from __future__ import annotations

from collections.abc import Sequence

from cdna3 import llvm
from tilefw.api import CodeError
from tilefw_amd.isa.encoding.decode import decode
from tilefw_amd.isa.encoding.encode import encode
from tilefw_amd.isa.model import MCInst
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.isa.text.parser import parse
from tilefw_amd.isa.text.printer import text


def differences(isa: InstructionSet, instructions: Sequence[MCInst]) -> list[str]:
    """Our text assembles to our bytes, our bytes disassemble to our text, and both are read back as the same instruction."""
    texts = [text(inst) for inst in instructions]
    codes = [encode(inst) for inst in instructions]
    found: list[str] = []
    rows = zip(instructions, texts, codes, llvm.assemble(texts, isa.chip), llvm.disassemble(codes, isa.chip), strict=True)
    for inst, written, code, assembled, disassembled in rows:
        if assembled.data != code:
            found.append(f"{written}: {code.hex()}, llvm-mc {assembled.data.hex() or assembled.error}")
        if disassembled.text != written or disassembled.error:
            found.append(f"{code.hex()}: {written}, llvm-mc {disassembled.text} {disassembled.error}")
        found += _own(isa, inst, written, code)
    return found


def _own(isa: InstructionSet, inst: MCInst, written: str, code: bytes) -> list[str]:
    """Our two readers against each other, without LLVM."""
    found: list[str] = []
    for name, read in (("text", lambda: parse(isa, written)), ("bytes", lambda: decode(isa, code))):
        try:
            again = read()
        except CodeError as error:
            found.append(f"{written} ({code.hex()}): its {name} are not read: {error.message}")
            continue
        if again != inst:
            found.append(f"{written} ({code.hex()}): its {name} are read as {again.form} {again.operands} {again.modifiers}")
    return found
