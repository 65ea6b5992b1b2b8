"""A code object of any compiler, read: its kernels with descriptor and metadata, its functions, and its image in memory.

Conventions: LLVM's AMDGPUUsage, section "ELF Code Object"; `ld.lld -shared` makes the files that a loader takes.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.api import CodeError
from tilefw_amd.chips import Chip
from tilefw_amd.chips.machines import MACHINE_MASK, machine_name
from tilefw_amd.code_object import descriptor, metadata
from tilefw_amd.code_object.descriptor import Descriptor
from tilefw_amd.code_object.elf import (
    DAMAGED,
    ET_DYN,
    ET_REL,
    PF_W,
    PT_DYNAMIC,
    PT_GNU_RELRO,
    PT_LOAD,
    PT_NOTE,
    STT_FUNC,
    STT_OBJECT,
    Elf,
    ElfSymbol,
)
from tilefw_amd.code_object.metadata import Document, KernelMetadata

EM_AMDGPU = 224
ELFOSABI_AMDGPU_HSA = 64
# AMDGPUUsage, "AMDGPU ABI versions": 1 to 4 are those of code objects 3 to 6.
ABI_VERSIONS = {1: 3, 2: 4, 3: 5, 4: 6}
# The largest image that a loader of ours makes: a damaged size must not fill the host's memory.
MAX_IMAGE_BYTES = 1 << 28

R_AMDGPU_ABS64, R_AMDGPU_RELATIVE64 = 3, 13


@dataclass(frozen=True, slots=True)
class ObjectKernel:
    """`address` and `size` are of its code, `descriptor_address` of its descriptor, in the image."""

    name: str
    address: int
    size: int
    descriptor_address: int
    descriptor: Descriptor
    metadata: KernelMetadata


@dataclass(frozen=True, slots=True)
class DeviceFunction:
    """Code that kernels may call."""

    name: str
    address: int
    size: int


@dataclass(frozen=True, slots=True)
class ImageRelocation:
    """The loader adds the image's address to `addend` and stores the 64 bits at `offset` of the image."""

    offset: int
    addend: int


@dataclass(frozen=True, slots=True)
class CodeObject:
    """`image` is what stands in memory, from the object's address 0 on; all addresses are offsets into it."""

    name: str
    elf: Elf
    kernels: tuple[ObjectKernel, ...]
    functions: tuple[DeviceFunction, ...]
    image: bytes
    fixups: tuple[ImageRelocation, ...]
    document: Document

    @property
    def has_variables(self) -> bool:
        """Whether kernels may store to some of the image: not to what only the loader writes, the dynamic section and relocated
        constants."""
        loaders = [(s.address, s.address + s.memory_size) for s in self.elf.segments if s.type in (PT_DYNAMIC, PT_GNU_RELRO)]
        return any(
            s.type == PT_LOAD and s.flags & PF_W
            and not any(low <= s.address and s.address + s.memory_size <= high for low, high in loaders)
            for s in self.elf.segments
        )

    def kernel(self, name: str) -> ObjectKernel | None:
        return next((k for k in self.kernels if k.name == name), None)


def read(data: bytes, name: str, chip: Chip) -> CodeObject:
    """Raises CodeError (TFW0724) for what is not a code object for the chip, cut short, or at odds with itself."""
    elf = Elf(data, name)
    _check_header(elf, chip)
    image = _image(elf)
    document = _document(elf)
    symbols = {s.name: s for s in elf.symbols if s.section}
    kernels = tuple(_kernel(elf, image, symbols, entry) for entry in metadata.kernels(document, name))
    if not kernels:
        raise elf.error("has no kernel", "its metadata names none")
    known = {k.name for k in kernels}
    functions = tuple(
        _function(elf, image, s) for s in elf.symbols if s.type == STT_FUNC and s.section and s.size and s.name not in known
    )
    return CodeObject(name, elf, kernels, functions, image, _fixups(elf, image), document)


def _check_header(elf: Elf, chip: Chip) -> None:
    header = elf.header
    if header.machine != EM_AMDGPU:
        raise elf.error(f"is code for another machine (ELF machine {header.machine})", f"AMD GPUs have number {EM_AMDGPU}")
    if header.os_abi != ELFOSABI_AMDGPU_HSA:
        raise elf.error(f"is for another runtime (ELF OS ABI {header.os_abi})", f"HSA has number {ELFOSABI_AMDGPU_HSA}")
    if header.abi_version not in ABI_VERSIONS:
        raise elf.error(f"is a code object of ABI version {header.abi_version}", "versions 1 to 4 (code objects 3 to 6) are read")
    if header.flags & MACHINE_MASK != chip.elf_machine:
        raise elf.error(f"is code for {machine_name(header.flags)}, not for {chip.name}")
    if header.type == ET_REL:
        raise CodeError(
            f"{elf.name} is not linked", DAMAGED, note="it is a relocatable object file",
            help="link it with `ld.lld -shared`, or give the assembly text",
        )
    if header.type != ET_DYN:
        raise elf.error(f"is an ELF file of type {header.type}", f"code objects are shared objects, type {ET_DYN}")


def _image(elf: Elf) -> bytes:
    loads = [s for s in elf.segments if s.type == PT_LOAD]
    end = max((s.address + s.memory_size for s in loads), default=0)
    if end > MAX_IMAGE_BYTES:
        raise elf.error(f"needs {end} bytes of memory for its image", f"at most {MAX_IMAGE_BYTES} are given")
    image = bytearray(end)
    for segment in loads:
        image[segment.address : segment.address + len(segment.data)] = segment.data
    return bytes(image)


def _document(elf: Elf) -> Document:
    notes = [s.data for s in elf.segments if s.type == PT_NOTE]
    for data in notes:
        at = 0
        while at + 12 <= len(data):
            name_size, size, kind = (int.from_bytes(data[i : i + 4], "little") for i in (at, at + 4, at + 8))
            start = at + 12 + (name_size + 3 & ~3)
            if start + size > len(data):
                raise elf.error("has a note that is cut short", f"{size} bytes at byte {start} of {len(data)}")
            if kind == metadata.NT_AMDGPU_METADATA and data[at + 12 : at + 12 + name_size] == metadata.NOTE_NAME:
                return metadata.unpack(data[start : start + size], elf.name)
            at = start + (size + 3 & ~3)
    raise elf.error("has no metadata", "a note AMDGPU of type NT_AMDGPU_METADATA names its kernels")


def _kernel(elf: Elf, image: bytes, symbols: dict[str, ElfSymbol], entry: KernelMetadata) -> ObjectKernel:
    symbol = symbols.get(entry.symbol)
    if symbol is None or symbol.type not in (STT_OBJECT, 0) or symbol.value + descriptor.SIZE > len(image):
        raise elf.error(f"has no descriptor of the kernel {entry.name}", f"the metadata gives the symbol {entry.symbol}")
    fields = descriptor.decode(image[symbol.value : symbol.value + descriptor.SIZE], f"{elf.name}, {entry.symbol}")
    wanted = max(fields.kernarg_size, entry.kernarg_size)
    if wanted > metadata.MAX_ARGUMENT_BYTES:
        limit = f"at most {metadata.MAX_ARGUMENT_BYTES} are given"
        raise elf.error(f"needs {wanted} bytes for the arguments of {entry.name}", limit)
    address = symbol.value + fields.entry_offset
    if not 0 <= address < len(image) or address % 4:
        raise elf.error(f"has the code of {entry.name} at address {address}", f"the image has {len(image)} bytes")
    code = next((s for s in symbols.values() if s.type == STT_FUNC and s.value == address), None)
    size = code.size if code is not None and code.size else _to_section_end(elf, address)
    if address + size > len(image):
        raise elf.error(f"is damaged: {entry.name} ends at {address + size} of {len(image)} bytes")
    return ObjectKernel(entry.name, address, size, symbol.value, fields, entry)


def _to_section_end(elf: Elf, address: int) -> int:
    """For code without a sized symbol: all that is left of what is loaded there."""
    for segment in elf.segments:
        if segment.type == PT_LOAD and segment.address <= address < segment.address + len(segment.data):
            return segment.address + len(segment.data) - address
    raise elf.error(f"has no code at address {address}")


def _function(elf: Elf, image: bytes, symbol: ElfSymbol) -> DeviceFunction:
    if symbol.value + symbol.size > len(image) or symbol.value % 4:
        raise elf.error(f"is damaged: {symbol.name} has {symbol.size} bytes at {symbol.value} of {len(image)}")
    return DeviceFunction(symbol.name, symbol.value, symbol.size)


def _fixups(elf: Elf, image: bytes) -> tuple[ImageRelocation, ...]:
    found = []
    for relocation in elf.dynamic_relocations:
        if relocation.offset + 8 > len(image):
            raise elf.error("is damaged", f"a relocation at {relocation.offset} of {len(image)} bytes")
        if relocation.type == R_AMDGPU_RELATIVE64:
            found.append(ImageRelocation(relocation.offset, relocation.addend))
        elif relocation.type == R_AMDGPU_ABS64 and relocation.symbol is not None and relocation.symbol.section:
            found.append(ImageRelocation(relocation.offset, relocation.symbol.value + relocation.addend))
        else:
            what = relocation.symbol.name if relocation.symbol else "nothing"
            raise elf.error(f"needs a symbol that it does not have: {what}", f"relocation type {relocation.type}")
    return tuple(found)
