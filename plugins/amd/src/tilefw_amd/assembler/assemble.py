"""AMDGPU assembly text to a code object: what llvm-mc and ld.lld make of the same text, in one step and without them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from tilefw.api import CodeError, Place
from tilefw_amd.assembler.directives import DIRECTIVES
from tilefw_amd.assembler.file import Facts, File, KernelBlock
from tilefw_amd.assembler.sections import Fixup, patch
from tilefw_amd.code_object import descriptor, elf, line_program
from tilefw_amd.code_object.directives import DirectiveError, fields
from tilefw_amd.code_object.line_table import LineRow
from tilefw_amd.code_object.metadata import VERSION, Document, kernels, read_text
from tilefw_amd.code_object.writer import CodeObjectWriter, OutputSection, OutputSymbol
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.isa.text import expression as ex
from tilefw_amd.isa.text.expression import Expression
from tilefw_amd.isa.text.source import SYMBOLS, Fault


def assemble(isa: InstructionSet, text: str, filename: str, own_lines: bool = False) -> bytes:
    """A code object of version 5 for the chip. Raises CodeError with the place in the text for the first mistake.

    Its line information is what `.loc` says; where none does, `own_lines` gives the lines of the text itself.
    """
    file = File(isa, text, filename, DIRECTIVES)
    file.read()
    return _Linker(file).link(_own_rows(file) if own_lines and not file.lines else _said_rows(file))


def assemble_code(isa: InstructionSet, text: str, filename: str = "<text>") -> bytes:
    """The bytes of `.text` alone, at address 0: no kernels, no symbols of other sections."""
    file = File(isa, text, filename, DIRECTIVES)
    file.read()
    linker = _Linker(file)
    linker.addresses = dict.fromkeys(file.sections, 0)
    linker.patch_all()
    return bytes(file.sections[".text"].data)


def _own_rows(file: File) -> dict[str, list[LineRow]]:
    """Each instruction at its line of the text."""
    rows: dict[str, list[LineRow]] = defaultdict(list)
    for section, offset, position in file.positions:
        place = file.source.place(position, position + 1)
        rows[section.name].append(LineRow(offset, place.file, place.line, 0))
    return rows


def _said_rows(file: File) -> dict[str, list[LineRow]]:
    """What `.loc` says."""
    rows: dict[str, list[LineRow]] = defaultdict(list)
    for entry in file.lines:
        folder, name = file.files[entry.file]
        path = name if not folder or name.startswith("/") else f"{folder}/{name}"
        rows[entry.section.name].append(LineRow(entry.offset, path, entry.line, entry.column))
    return rows


_VARIANTS = frozenset({"", "rel32@lo", "rel32@hi"})


def _absolute(fixup: Fixup, variant: str) -> Fault:
    """What only a loader can fill in: this assembler writes no relocations."""
    what = f"@{variant} asks for an address" if variant else "an address in data is one"
    return Fault(
        f"{what} that is known when the file is loaded, and relocations are not written", fixup.start, fixup.end, code=SYMBOLS,
        help="use a distance (`label - .`, `label@rel32@lo+4`), or let llvm-mc and ld.lld make the file: it runs as it is",
    )


class _Linker:
    """From sections with places that wait to the file: places everything, then fills in what depends on it."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.addresses: dict[str, int] = {}

    def link(self, rows: Mapping[str, Sequence[LineRow]]) -> bytes:
        """`rows` are lines by section, at offsets in it."""
        file = self.file
        kept = [s for s in file.sections.values() if s.flags & elf.SHF_ALLOC and s.data]
        output = [OutputSection(s.name, s.type, s.flags, s.alignment, s.data, len(s.data), s.entry_size) for s in kept]
        for section, out in zip(kept, output, strict=True):
            if section.type == elf.SHT_NOBITS:
                out.data = bytearray()
        debug = OutputSection(".debug_line", data=bytearray(self._lines(rows)))
        document = self._document()
        kernels = {kernel.name: kernel for kernel in file.kernels}
        for kernel in file.kernels:
            self._descriptor(kernel)
        symbols = [*self._symbols(kernels, {s.name for s in kept})]
        writer = CodeObjectWriter([*output, debug] if any(rows.values()) else output, symbols, document, file.isa.chip.elf_flags)
        self.addresses = writer.addresses
        self.patch_all()
        debug.data[:] = self._lines(rows)
        return writer.write()

    def _lines(self, rows: Mapping[str, Sequence[LineRow]]) -> bytes:
        """The line program with sections where they are known to stand by now."""
        sequences = []
        for name, said in rows.items():
            base = self.addresses.get(name, 0)
            end = base + len(self.file.sections[name].data)
            sequences.append((end, [LineRow(base + row.address, row.file, row.line, row.column) for row in said]))
        return line_program.encode(sequences)

    def patch_all(self) -> None:
        for section in self.file.sections.values():
            base = self.addresses.get(section.name)
            if base is None:
                continue
            for fixup in section.fixups:
                try:
                    patch(section, fixup, lambda f, base=base: self._fixed(f, base))
                except Fault as fault:
                    raise self.file.source.error(fault) from None

    # --- values --------------------------------------------------------------------------------------------------------

    def _fixed(self, fixup: Fixup, base: int) -> int:
        value = self._value(fixup.expression, fixup.start, fixup.end)
        place = base + fixup.offset
        if fixup.use == "branch":
            return value - place - 4
        variant = next((s.variant for s in ex.symbols(fixup.expression) if s.variant), "")
        if variant not in _VARIANTS or (fixup.use != "literal" and self._is_address(fixup.expression)):
            raise _absolute(fixup, variant)
        if fixup.use != "literal":
            return value
        # Without a variant LLVM takes the distance, unless symbols are subtracted (AMDGPUMCCodeEmitter.cpp, needsPCRel).
        relative = variant.startswith("rel32") or (not variant and self._is_address(fixup.expression))
        value -= place if relative else 0
        return value >> 32 & 0xFFFFFFFF if variant.endswith("hi") else value & 0xFFFFFFFF

    def _is_address(self, expression: Expression) -> bool:
        match expression:
            case ex.SymbolExpression(name):
                return name in self.file.labels
            case ex.Binary(operator, left, right):
                return operator != "-" and (self._is_address(left) or self._is_address(right))
            case ex.Unary(_, operand):
                return self._is_address(operand)
        return False

    def _value(self, expression: Expression, start: int, end: int) -> int:
        try:
            return ex.evaluate(expression, self._resolve)
        except LookupError as unknown:
            name = str(unknown.args[0])
            raise Fault(f"the symbol {name} is not defined", start, end, code=SYMBOLS) from None
        except ZeroDivisionError:
            raise Fault("division by zero", start, end, code=SYMBOLS) from None
        except TypeError:
            raise Fault("a function with other arguments than it takes", start, end, code=SYMBOLS) from None
        except RecursionError:
            raise Fault("the symbol's value is made of itself", start, end, code=SYMBOLS) from None

    def _resolve(self, name: str) -> int:
        label = self.file.labels.get(name)
        if label is not None:
            return self.addresses.get(label.section.name, 0) + label.offset
        if name in self.file.assigned:
            return ex.evaluate(self.file.assigned[name], self._resolve)
        if name in self.file.sections:
            return self.addresses.get(name, 0)
        raise LookupError(name)

    # --- kernels -------------------------------------------------------------------------------------------------------

    def _descriptor(self, kernel: KernelBlock) -> None:
        """The 64 bytes of a block; the distance to the code waits for the addresses."""
        file = self.file
        label = file.labels.get(kernel.name)
        try:
            if label is None:
                raise Fault(f"the kernel {kernel.name} has no code", kernel.start, kernel.end, code=SYMBOLS,
                            help=f"a label {kernel.name}: is before its first instruction")
            given = {name: self._value(*value) for name, value in kernel.given.items()}
            found = fields(given)
        except DirectiveError as error:
            _, start, end = kernel.given.get(error.name, (0, kernel.start, kernel.end))
            raise file.source.error(Fault(str(error), start, end, code=SYMBOLS)) from None
        except Fault as fault:
            raise file.source.error(fault) from None
        data = descriptor.encode(found)
        kernel.section.data[kernel.offset : kernel.offset + len(data)] = data
        entry = descriptor.FIELD["entry_offset"].offset
        distance = ex.Binary("-", ex.SymbolExpression(kernel.name), ex.SymbolExpression(f"{kernel.name}.kd"))
        file.labels[f"{kernel.name}.kd"] = type(label)(kernel.section, kernel.offset)
        kernel.section.fixups.append(Fixup(kernel.offset + entry, 8, "data", distance, kernel.start, kernel.end))

    def _document(self) -> Document:
        file = self.file
        if file.metadata is None:
            if file.kernels:
                first = file.kernels[0]
                fault = Fault(f"the kernel {first.name} has no metadata", first.start, first.end, code=SYMBOLS,
                              help="an .amdgpu_metadata block describes its arguments to the runtime")
                raise file.source.error(fault)
            return {"amdhsa.version": list(VERSION), "amdhsa.kernels": []}
        text, start = file.metadata
        try:
            document = read_text(text, file.source.filename)
            list(kernels(document, file.source.filename))  # what no loader takes is told here, where its text is
            return document
        except CodeError as error:
            place: Place = file.source.place(start, start + len(".amdgpu_metadata"))
            raise CodeError(error.message, error.code, place, error.note, error.help) from None

    # --- symbols -------------------------------------------------------------------------------------------------------

    def _symbols(self, kernels: dict[str, KernelBlock], kept: set[str]):
        file = self.file
        for name, label in file.labels.items():
            if name.startswith(".L") or label.section.name not in kept:
                continue
            facts = file.facts.get(name, Facts(0))
            visibility = facts.visibility
            kernel = kernels.get(name.removesuffix(".kd")) if name.endswith(".kd") else None
            if kernel is not None:
                code = file.facts.get(kernel.name, Facts(0))
                at = label.section.name, label.offset
                yield OutputSymbol(name, *at, descriptor.SIZE, elf.STT_OBJECT, code.binding, code.visibility)
                continue
            if name in kernels and visibility == elf.STV_DEFAULT:
                visibility = elf.STV_PROTECTED  # so that the descriptor may refer to it (AMDGPUTargetStreamer.cpp)
            size = 0 if facts.size is None else self._size(facts)
            yield OutputSymbol(name, label.section.name, label.offset, size, facts.type, facts.binding, visibility)

    def _size(self, facts: Facts) -> int:
        assert facts.size is not None
        try:
            return self._value(facts.size, facts.start, facts.start + 1)
        except Fault as fault:
            raise self.file.source.error(fault) from None

