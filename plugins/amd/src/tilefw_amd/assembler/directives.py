"""The directives that llc and Triton write, each a function of the file, its arguments' text and their offset.

What debuggers and other tools alone read (call frames, identification) is checked for its name and left out. A directive that is
not in the table is refused by its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tilefw_amd.assembler.file import File, KernelBlock, LineEntry
from tilefw_amd.assembler.sections import MAX_BYTES, Fixup
from tilefw_amd.code_object import descriptor, elf
from tilefw_amd.isa.text import expression as ex
from tilefw_amd.isa.text.cursor import Cursor
from tilefw_amd.isa.text.expression import Expression
from tilefw_amd.isa.text.source import RANGE, SYMBOLS, Fault

Directive = Callable[[File, str, int], None]

_VERSIONS = (4, 5, 6)
_ESCAPE = re.compile(r'\\(?:x([0-9a-fA-F]+)|([0-7]{1,3})|(.))', re.DOTALL)
_ESCAPES = {"n": 10, "t": 9, "r": 13, "b": 8, "f": 12, '"': 34, "\\": 92}


def _numbers(file: File, text: str) -> list[int]:
    cursor = Cursor(text, 0, file.absolute)
    found = [cursor.absolute()]
    while cursor.accept(","):
        found.append(cursor.absolute())
    cursor.end()
    return found


def _few(file: File, text: str, least: int, most: int) -> list[int]:
    found = _numbers(file, text)
    if not least <= len(found) <= most:
        raise Fault(f"expected {least} to {most} numbers, found {len(found)}", 0, len(text))
    return found


def _ignored(file: File, text: str, start: int) -> None:
    """Said for other tools."""


# --- target ----------------------------------------------------------------------------------------------------------


def _target(file: File, text: str, start: int) -> None:
    said = Cursor(text).string("the target in quotes")
    chip = said.rpartition("-")[2]
    served = file.isa.chip.name
    if chip.partition(":")[0] != served:
        message = f"the file is for {chip.partition(':')[0] or 'no chip'}, this assembler for {served}"
        raise Fault(message, 0, len(text), code=SYMBOLS)
    if ":" in chip:
        raise Fault(f"target features ({chip.partition(':')[2]}) are not served", 0, len(text), code=SYMBOLS,
                    note="code is for any setting of xnack and sramecc")


def _version(file: File, text: str, start: int) -> None:
    (version,) = _few(file, text, 1, 1)
    if version not in _VERSIONS:
        note = "files are written as version 5; versions 4 to 6 are equivalent for this chip"
        raise Fault(f"code objects of version {version} are not served", 0, len(text), code=SYMBOLS, note=note)


# --- sections and alignment --------------------------------------------------------------------------------------------


def _section(file: File, text: str, start: int) -> None:
    """`.section name,"flags",@type,entry size`."""
    cursor = Cursor(text, 0, file.absolute)
    name = cursor.name("the name of a section")
    while cursor.next.text == "-":  # .note.GNU-stack
        cursor.take()
        name += "-" + cursor.name("the rest of the name")
    flags = kind = None
    entry_size = 0
    if cursor.accept(","):
        flags = cursor.string("the section's flags in quotes")
        if cursor.accept(","):
            kind = _at_name(cursor, "the section's type")
            entry_size = cursor.absolute() if cursor.accept(",") else 0
    cursor.end()
    file.switch(name, flags, kind, entry_size)


def _at_name(cursor: Cursor, what: str) -> str:
    """`@progbits`: the mark is not a part of a name."""
    if cursor.next.text == "@" or cursor.next.text == "%":
        cursor.take()
    return cursor.name(what)


def _known_section(name: str) -> Directive:
    def switch(file: File, text: str, start: int) -> None:
        Cursor(text).end()
        file.switch(name)

    return switch


def _align(power: bool, width: int) -> Directive:
    """`.p2align 8,fill,most`; with `width`, the fill has so many bytes."""

    def align(file: File, text: str, start: int) -> None:
        parts = [part.strip() for part in text.split(",")]
        values = [_numbers(file, part)[0] if part else None for part in parts]
        amount = values[0]
        if amount is None or len(values) > 3:
            raise Fault("expected the alignment, then perhaps a fill and the most bytes to skip", 0, len(text))
        if (power and not 0 <= amount <= 16) or (not power and (not 0 < amount <= 1 << 16 or amount & (amount - 1))):
            raise Fault(f"{amount} is not an alignment up to 64 KiB", 0, len(text), code=RANGE)
        fill = None if len(values) < 2 or values[1] is None else _bytes(values[1], width, text)
        file.section.align(1 << amount if power else amount, fill, values[2] if len(values) > 2 else None)

    return align


def _bytes(value: int, width: int, text: str) -> bytes:
    bits = 8 * width
    if not -(1 << (bits - 1)) <= value < 1 << bits:
        raise Fault(f"{value} has more than {bits} bits", 0, len(text), code=RANGE)
    return (value & (1 << bits) - 1).to_bytes(width, "little")


# --- data ------------------------------------------------------------------------------------------------------------


def _data(width: int) -> Directive:
    def data(file: File, text: str, start: int) -> None:
        cursor = Cursor(text, 0, file.absolute)
        while True:
            first = cursor.next.start
            value = file.here(cursor.evaluated(cursor.expression()))
            last = cursor.last.end
            if not isinstance(value, int):
                place = start + first, start + last
                file.fixup(Fixup(len(file.section.data), width, "data", value, *place))
                value = 0
            elif value < 0 and width == 8:
                value &= (1 << 64) - 1
            file.section.data += _bytes(value, width, text)
            if not cursor.accept(","):
                break
        cursor.end()

    return data


def _string(end: bytes) -> Directive:
    def string(file: File, text: str, start: int) -> None:
        for match in re.finditer(r'\s*"((?:[^"\\]|\\.)*)"\s*(,|$)|(.)', text):
            if match[3]:
                raise Fault("expected strings in quotes", match.start(3), match.end(3))
            file.section.data += _unescaped(match[1]) + end

    return string


def _unescaped(text: str) -> bytes:
    out = bytearray()
    at = 0
    for match in _ESCAPE.finditer(text):
        out += text[at : match.start()].encode()
        code = int(match[1], 16) if match[1] else int(match[2], 8) if match[2] else _ESCAPES.get(match[3], ord(match[3]))
        out.append(code & 0xFF)
        at = match.end()
    return bytes(out + text[at:].encode())


def _fill(file: File, text: str, start: int) -> None:
    """`.fill repeat,size,value`; of the value, 4 bytes at most are used (GNU as, ".fill")."""
    repeat, size, value = [*_few(file, text, 1, 3), 1, 0][:3] if text.count(",") < 2 else _few(file, text, 3, 3)
    if text.count(",") == 1:
        value = 0
    if repeat < 0 or not 0 <= size <= 8 or repeat * size > MAX_BYTES:
        raise Fault(f"{repeat} times {size} bytes cannot be", 0, len(text), code=RANGE)
    file.section.grow(repeat * size)
    unit = (value & 0xFFFFFFFF).to_bytes(4, "little")[: min(size, 4)] + bytes(max(0, size - 4))
    file.section.data += unit * repeat


def _zero(file: File, text: str, start: int) -> None:
    count, value = [*_few(file, text, 1, 2), 0][:2]
    if not 0 <= count <= MAX_BYTES:
        raise Fault(f"{count} bytes cannot be", 0, len(text), code=RANGE)
    file.section.grow(count)
    file.section.data += _bytes(value, 1, text) * count


def _common(file: File, text: str, start: int) -> None:
    """`.comm name,size,alignment`: zeros in `.bss`, where linkers put what no file gives a value. There is no other file here."""
    cursor = Cursor(text, 0, file.absolute)
    name = cursor.name("a symbol")
    cursor.expect(",", "',' and the size")
    size = cursor.absolute()
    alignment = cursor.absolute() if cursor.accept(",") else 1
    cursor.end()
    if not 0 <= size <= MAX_BYTES or not 0 < alignment <= 1 << 16 or alignment & (alignment - 1):
        raise Fault(f"{size} bytes at a multiple of {alignment} cannot be", 0, len(text), code=RANGE)
    current = file.section
    file.switch(".bss")
    file.section.align(alignment, None, None)
    file.label(name, 0, len(name))
    file.fact(name).size = size
    file.section.grow(size)
    file.section.data += bytes(size)
    file.section = current


def _leb(signed: bool) -> Directive:
    def leb(file: File, text: str, start: int) -> None:
        for value in _numbers(file, text):
            if value < 0 and not signed:
                value &= (1 << 64) - 1
            while True:
                byte, value = value & 0x7F, value >> 7
                done = value == -(byte >> 6) if signed else value == 0
                file.section.data.append(byte if done else byte | 0x80)
                if done:
                    break

    return leb


# --- symbols ---------------------------------------------------------------------------------------------------------


def _binding(attribute: str, value: int) -> Directive:
    def bind(file: File, text: str, start: int) -> None:
        cursor = Cursor(text)
        while True:
            setattr(file.fact(cursor.name("a symbol")), attribute, value)
            if not cursor.accept(","):
                break
        cursor.end()

    return bind


def _type(file: File, text: str, start: int) -> None:
    name, _, kind = (part.strip() for part in text.partition(","))
    types = {"function": elf.STT_FUNC, "object": elf.STT_OBJECT, "notype": elf.STT_NOTYPE, "amdgpu_hsa_kernel": 10}
    bare = kind.lstrip("@%").strip('"').lower()
    if bare not in types:
        raise Fault(f"the symbol type {kind!r} is not served", 0, len(text), code=SYMBOLS, note=f"served are {', '.join(types)}")
    file.fact(name.strip('"')).type = types[bare]


def _size(file: File, text: str, start: int) -> None:
    cursor = Cursor(text, 0, file.absolute)
    name = cursor.name("a symbol")
    cursor.expect(",", "',' and the size")
    file.fact(name).size = file.here(cursor.expression())
    cursor.end()


def _set(file: File, text: str, start: int) -> None:
    cursor = Cursor(text, 0, file.absolute)
    name = cursor.name("a symbol")
    cursor.expect(",", "',' and the value")
    file.assign(name, file.here(_without_itself(cursor, name)))
    cursor.end()


def _without_itself(cursor: Cursor, name: str) -> Expression:
    """The value; one that speaks of its own symbol takes the value so far."""
    value = cursor.expression()
    if any(symbol.name == name for symbol in ex.symbols(value)):
        try:
            return ex.evaluate(value, cursor.resolve)
        except (LookupError, ZeroDivisionError):
            raise Fault(f"{name} is made of itself", code=SYMBOLS) from None
    return value


# --- kernels ---------------------------------------------------------------------------------------------------------


def _kernel(file: File, text: str, start: int) -> None:
    cursor = Cursor(text)
    name = cursor.name("the kernel's name")
    cursor.end()
    if any(kernel.name == name for kernel in file.kernels):
        raise Fault(f"the kernel {name} occurs twice", 0, len(text), code=SYMBOLS)
    section = file.section
    section.align(descriptor.ALIGNMENT, None, None)
    file.block = KernelBlock(name, section, len(section.data), start, start + len(text))
    file.kernels.append(file.block)
    section.data += bytes(descriptor.SIZE)


def _kernel_field(file: File, text: str, start: int) -> None:
    """Any `.amdhsa_` directive of an open block: its value may need symbols that come later."""
    block = file.block
    if block is None:
        raise Fault("no .amdhsa_kernel block is open", 0, len(text), code=SYMBOLS)
    cursor = Cursor(text, 0, file.absolute)
    name = cursor.name("a directive").removeprefix(".amdhsa_")
    if name in block.given:
        raise Fault(f".amdhsa_{name} occurs twice", 0, len(text), code=SYMBOLS)
    value = cursor.evaluated(cursor.expression())
    cursor.end()
    block.given[name] = (value, start, start + len(text))


def _end_kernel(file: File, text: str, start: int) -> None:
    Cursor(text).end()
    if file.block is None:
        raise Fault("no .amdhsa_kernel block is open", -len(".end_amdhsa_kernel"), 0, code=SYMBOLS)
    file.block = None


def _metadata(file: File, text: str, start: int) -> None:
    Cursor(text).end()
    if file.metadata is not None:
        raise Fault("a second .amdgpu_metadata block", -len(".amdgpu_metadata"), 0, code=SYMBOLS)


# --- lines -----------------------------------------------------------------------------------------------------------


def _file(file: File, text: str, start: int) -> None:
    """`.file 1 "folder" "name"`; without a number it names the file for symbols, which nobody reads here."""
    cursor = Cursor(text)
    if cursor.next.kind == "string":
        return
    number = cursor.absolute()
    first = cursor.string("a file's name in quotes")
    folder, name = (first, cursor.string("a name")) if cursor.next.kind == "string" else ("", first)
    file.files[number] = (folder, name)


def _loc(file: File, text: str, start: int) -> None:
    """`.loc file line column …`."""
    words = text.split()
    if len(words) < 2 or not all(w.isdecimal() and len(w) < 10 for w in words[:2]):
        raise Fault("expected a file's number and a line", 0, len(text))
    if int(words[0]) not in file.files:
        raise Fault(f"no .file has the number {words[0]}", 0, len(words[0]), code=SYMBOLS)
    column = int(words[2]) if len(words) > 2 and words[2].isdecimal() and len(words[2]) < 10 else 0
    statement = "is_stmt 0" not in text
    entry = LineEntry(
        file.section, len(file.section.data), int(words[0]), int(words[1]), column, statement, "prologue_end" in words
    )
    file.lines.append(entry)


DIRECTIVES: dict[str, Directive] = {
    ".amdgcn_target": _target, ".amdhsa_code_object_version": _version,
    ".text": _known_section(".text"), ".rodata": _known_section(".rodata"), ".data": _known_section(".data"),
    ".bss": _known_section(".bss"), ".section": _section,
    ".p2align": _align(True, 1), ".p2alignw": _align(True, 2), ".p2alignl": _align(True, 4), ".align": _align(False, 1),
    ".balign": _align(False, 1), ".balignw": _align(False, 2), ".balignl": _align(False, 4),
    ".byte": _data(1), ".short": _data(2), ".2byte": _data(2), ".hword": _data(2), ".long": _data(4), ".4byte": _data(4),
    ".int": _data(4), ".word": _data(4), ".quad": _data(8), ".8byte": _data(8), ".ascii": _string(b""), ".asciz": _string(b"\0"),
    ".string": _string(b"\0"), ".fill": _fill, ".zero": _zero, ".skip": _zero, ".space": _zero, ".comm": _common,
    ".uleb128": _leb(False), ".sleb128": _leb(True),
    ".globl": _binding("binding", elf.STB_GLOBAL), ".global": _binding("binding", elf.STB_GLOBAL),
    ".weak": _binding("binding", elf.STB_WEAK), ".local": _binding("binding", elf.STB_LOCAL),
    ".hidden": _binding("visibility", elf.STV_HIDDEN), ".protected": _binding("visibility", elf.STV_PROTECTED),
    ".internal": _binding("visibility", 1),
    ".type": _type, ".size": _size, ".set": _set, ".equ": _set,
    ".amdhsa_kernel": _kernel, ".amdhsa_": _kernel_field, ".end_amdhsa_kernel": _end_kernel, ".amdgpu_metadata": _metadata,
    ".file": _file, ".loc": _loc,
    **{name: _ignored for name in (
        ".ident", ".addrsig", ".addrsig_sym", ".no_dead_strip", ".cfi_sections", ".cfi_startproc", ".cfi_endproc", ".cfi_escape",
        ".cfi_undefined", ".cfi_def_cfa", ".cfi_def_cfa_register", ".cfi_def_cfa_offset", ".cfi_offset", ".cfi_register",
        ".cfi_llvm_def_aspace_cfa", ".cfi_llvm_register_pair", ".cfi_llvm_vector_registers", ".cfi_llvm_vector_offset",
        ".cfi_llvm_vector_register_mask", ".cfi_same_value", ".cfi_remember_state", ".cfi_restore_state",
        ".amdgpu_resource_usage", ".amdgpu_info", ".end_amdgpu_info",
    )},
}  # fmt: skip
