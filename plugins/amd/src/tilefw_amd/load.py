"""Code objects and assembly text that tilefw did not make, as artifacts: what the metadata says of kernels and their arguments."""

from __future__ import annotations

from typing import Literal

from tilefw.api import Artifact, CodeError, Entry, Parameter
from tilefw.api.artifact import Resources
from tilefw_amd import code_object
from tilefw_amd.code_object import ObjectKernel
from tilefw_amd.code_object.metadata import KernelArgument
from tilefw_amd.isa.set import InstructionSet

_ELF = b"\x7fELF"
# OpenCL's names of types, where the metadata says them (AMDGPUUsage, `.type_name`); else a value counts as an unsigned integer.
_DTYPES = {
    "char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16", "int": "int32", "uint": "uint32", "long": "int64",
    "ulong": "uint64", "half": "fp16", "float": "fp32", "double": "fp64",
}


def artifact(isa: InstructionSet, data: str | bytes, name: str) -> Artifact:
    """The artifact of a code object, or of the assembly text of one; raises CodeError for what is neither."""
    if isinstance(data, str) or not data.startswith(_ELF):
        from tilefw_amd.assembler.assemble import assemble

        text = _text(data, name)
        binary = assemble(isa, text, name, own_lines=True)
    else:
        text, binary = "", data
    found = code_object.read(binary, name, isa.chip)
    resources = _resources(found.kernels[0]) if len(found.kernels) == 1 else Resources(unknown="several kernels")
    return Artifact(isa.chip.target, "hsaco", text, tuple(map(_entry, found.kernels)), binary=binary, resources=resources)


def _text(data: str | bytes, name: str) -> str:
    if isinstance(data, str):
        return data
    try:
        if (at := data.find(0)) >= 0:
            raise UnicodeDecodeError("utf-8", data, at, at + 1, "a zero byte")
        return data.decode()
    except UnicodeDecodeError as error:
        message = f"{name} is neither a code object nor text: {error.reason} at byte {error.start}"
        raise CodeError(message, code="TFW0617", help="give a file that a compiler wrote, whole") from None


def _entry(kernel: ObjectKernel) -> Entry:
    return Entry(
        kernel.name,
        tuple(
            Parameter(a.name, _kind(a), _dtype(a.type_name, a.size), a.offset, a.size, max(1, a.size))
            for a in kernel.metadata.arguments if not a.hidden
        ),
        kernel.metadata.required_workgroup or (0, 0, 0),
        shared_bytes=kernel.descriptor.group_segment_fixed_size,
        scratch_bytes=kernel.descriptor.private_segment_fixed_size,
    )


def _kind(argument: KernelArgument) -> Literal["pointer", "scalar", "struct"]:
    """Metadata tells pointers from values passed by value; one of another size than an element's is a struct."""
    if argument.pointer:
        return "pointer"
    return "scalar" if argument.size in (1, 2, 4, 8) else "struct"


def _dtype(type_name: str, size: int) -> str:
    found = _DTYPES.get(type_name)
    return found if found is not None else f"uint{8 * size}" if size in (1, 2, 4, 8) else "uint8"


def _resources(kernel: ObjectKernel) -> Resources:
    said = kernel.metadata
    counts = {"vector": said.vgprs, "accumulation": said.agprs, "scalar": said.sgprs}
    spills = None if said.vgpr_spills is None else said.vgpr_spills + (said.sgpr_spills or 0)
    return Resources(
        registers={name: count for name, count in counts.items() if count is not None}, spills=spills,
        shared_bytes=kernel.descriptor.group_segment_fixed_size, scratch_bytes=kernel.descriptor.private_segment_fixed_size,
    )
