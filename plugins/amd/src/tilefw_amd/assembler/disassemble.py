"""A code object to assembly text: sections with symbols and labels, kernels, metadata, so that `assemble` makes the same code.

Every byte that is loaded is said: what is not an instruction as `.long`, other sections as data. Line information is not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from tilefw.api import CodeError
from tilefw_amd import code_object
from tilefw_amd.code_object import descriptor, elf, metadata
from tilefw_amd.code_object.directives import DirectiveError, lines
from tilefw_amd.code_object.elf import DAMAGED, ElfSection, ElfSymbol
from tilefw_amd.code_object.reader import CodeObject
from tilefw_amd.isa.encoding import decode
from tilefw_amd.isa.model import BranchTarget, MCInst
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.isa.text import printer

# Sections that a writer makes anew.
_MADE = {".note", ".dynsym", ".gnu.hash", ".hash", ".dynstr", ".dynamic", ".relro_padding", ".rela.dyn", ".got", ".got.plt"}
_BYTES_A_LINE = 16
_TYPES = {elf.STT_FUNC: "@function", elf.STT_OBJECT: "@object"}
_VISIBILITIES = {elf.STV_HIDDEN: ".hidden", elf.STV_PROTECTED: ".protected"}


def disassemble(isa: InstructionSet, data: bytes, name: str) -> str:
    """The text of a code object for the chip. Raises CodeError (TFW0724) for what is none, or holds what no text says."""
    found = code_object.read(data, name, isa.chip)
    if found.fixups:
        raise CodeError(
            f"{name} has addresses that a loader fills in, which text cannot express", DAMAGED,
            note=f"{len(found.fixups)} relocations", help="`tilefw simulate` runs it as it is",
        )
    return "\n".join([*_lines(isa, found), ""])


def _lines(isa: InstructionSet, found: CodeObject) -> Iterator[str]:
    yield f'\t.amdgcn_target "{isa.chip.triple}"'
    yield "\t.amdhsa_code_object_version 5"
    symbols = _symbols_by_section(found)
    descriptors = {k.descriptor_address: k.name for k in found.kernels}
    for number, section in enumerate(found.elf.sections):
        if not section.flags & elf.SHF_ALLOC or section.name in _MADE or not section.size:
            continue
        yield ""
        yield f"\t.section {_quoted(section.name)},{_quoted(_flags(section))},{_kind(section)}"
        yield f"\t.p2align {max(1, section.alignment).bit_length() - 1}, 0x0"
        if section.flags & elf.SHF_EXECINSTR:
            yield from _code(isa, section, symbols[number], found)
        else:
            yield from _data(section, symbols[number], descriptors, found)
    yield ""
    yield "\t.amdgpu_metadata"
    yield metadata.write_text(found.document).rstrip("\n")
    yield "\t.end_amdgpu_metadata"


def _symbols_by_section(found: CodeObject) -> dict[int, list[ElfSymbol]]:
    """Named symbols by section number, in order of their addresses."""
    by_section: dict[int, list[ElfSymbol]] = defaultdict(list)
    for symbol in sorted(found.elf.symbols, key=lambda s: (s.value, s.name)):
        if symbol.name and symbol.type in (elf.STT_NOTYPE, elf.STT_OBJECT, elf.STT_FUNC) and symbol.name != "_DYNAMIC":
            by_section[symbol.section].append(symbol)
    return by_section


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _flags(section: ElfSection) -> str:
    letters = ((elf.SHF_ALLOC, "a"), (elf.SHF_WRITE, "w"), (elf.SHF_EXECINSTR, "x"))
    return "".join(letter for flag, letter in letters if section.flags & flag)


def _kind(section: ElfSection) -> str:
    return "@nobits" if section.type == elf.SHT_NOBITS else "@progbits"


# --- code ----------------------------------------------------------------------------------------------------------------


def _code(isa: InstructionSet, section: ElfSection, symbols: list[ElfSymbol], found: CodeObject) -> Iterator[str]:
    read = list(_instructions(isa, section, found.name))
    kernels = {k.address for k in found.kernels}
    named = {s.value - section.address for s in symbols}
    starts = {offset for offset, _ in read}
    targets = {at + inst.size + 4 * t.offset for at, inst in read if isinstance(inst, MCInst) for t in _targets(inst)}
    labels = {at: f".L{at:x}" for at in sorted(targets & starts - named)}
    labels |= {s.value - section.address: s.name for s in symbols}
    at_offset: dict[int, list[ElfSymbol]] = defaultdict(list)
    for symbol in symbols:
        at_offset[symbol.value - section.address].append(symbol)
    for offset, inst in read:
        for symbol in at_offset.get(offset, ()):
            if symbol.value in kernels:
                yield "\t.p2align 8"
            yield from _label(symbol)
        if offset in labels and offset not in at_offset:
            yield f"{labels[offset]}:"
        if isinstance(inst, bytes):
            yield "\t.long " + ", ".join(f"0x{int.from_bytes(inst[i : i + 4], 'little'):08x}" for i in range(0, len(inst), 4))
        else:
            yield "\t" + printer.text(_labelled(inst, offset, labels))
    yield from _sizes(symbols)


def _instructions(isa: InstructionSet, section: ElfSection, name: str) -> Iterator[tuple[int, MCInst | bytes]]:
    """(Offset, instruction, or the bytes of a word that is none)."""
    offset, code = 0, section.data
    while offset < len(code):
        inst: MCInst | bytes
        try:
            inst = decode.decode(isa, code, offset, name)
            size = inst.size
        except CodeError:
            inst = code[offset : offset + 4]
            size = 4
        yield offset, inst
        offset += size


def _targets(inst: MCInst) -> list[BranchTarget]:
    return [operand for operand in inst.operands if isinstance(operand, BranchTarget)]


def _labelled(inst: MCInst, offset: int, labels: dict[int, str]) -> MCInst:
    """The instruction with its branch's target by name, where something stands there."""
    if not _targets(inst):
        return inst
    named = [
        BranchTarget(o.offset, labels.get(offset + inst.size + 4 * o.offset, "")) if isinstance(o, BranchTarget) else o
        for o in inst.operands
    ]
    return replace(inst, operands=tuple(named))


# --- symbols and data ------------------------------------------------------------------------------------------------------


def _label(symbol: ElfSymbol) -> Iterator[str]:
    if symbol.binding != elf.STB_LOCAL:
        yield f"\t{'.weak' if symbol.binding == elf.STB_WEAK else '.globl'} {symbol.name}"
    if symbol.visibility in _VISIBILITIES:
        yield f"\t{_VISIBILITIES[symbol.visibility]} {symbol.name}"
    if symbol.type in _TYPES:
        yield f"\t.type {symbol.name},{_TYPES[symbol.type]}"
    yield f"{symbol.name}:"


def _sizes(symbols: list[ElfSymbol]) -> Iterator[str]:
    for symbol in symbols:
        if symbol.size:
            yield f"\t.size {symbol.name}, {symbol.size}"


def _data(section: ElfSection, symbols: list[ElfSymbol], kernels: dict[int, str], found: CodeObject) -> Iterator[str]:
    described = {at - section.address: kernel for at, kernel in kernels.items() if 0 <= at - section.address < section.size}
    labelled = [s for s in symbols if s.value not in kernels]
    stops = sorted({0, section.size, *(s.value - section.address for s in labelled), *described, *(at + 64 for at in described)})
    for start, end in pairwise(stops):
        for symbol in labelled:
            if symbol.value - section.address == start:
                yield from _label(symbol)
        if start in described:
            yield from _descriptor(described[start], found)
        elif section.type == elf.SHT_NOBITS:
            yield f"\t.zero {end - start}"
        else:
            yield from _bytes(section.data[start:end])
    yield from _sizes(labelled)


def _bytes(data: bytes) -> Iterator[str]:
    if not any(data):
        yield f"\t.zero {len(data)}"
        return
    for at in range(0, len(data), _BYTES_A_LINE):
        yield "\t.byte " + ", ".join(map(str, data[at : at + _BYTES_A_LINE]))


def _descriptor(name: str, found: CodeObject) -> Iterator[str]:
    kernel = found.kernel(name)
    assert kernel is not None
    yield f"\t.p2align {descriptor.ALIGNMENT.bit_length() - 1}, 0x0"
    try:
        for line in lines(name, kernel.descriptor):
            yield f"\t{line}"
    except DirectiveError as error:
        raise CodeError(f"{found.name}: {error}", DAMAGED) from None
