"""PTX that tilefw did not make, as an artifact: what its entries say of parameters, workgroup size and shared memory."""

from __future__ import annotations

from typing import Literal

from tilefw.api import Artifact, CodeError, Entry, Parameter
from tilefw_nvidia import isa
from tilefw_nvidia.chips import Chip

# PTX types of parameters as element types; `.b` types carry bits alone and count as unsigned, pointers are untyped 64-bit.
_DTYPES = {
    **{f"{letter}{n}": f"{kind}{n}" for letter, kind in (("u", "uint"), ("b", "uint"), ("s", "int")) for n in (8, 16, 32, 64)},
    "f16": "fp16", "f32": "fp32", "f64": "fp64",
}


def artifact(data: str | bytes, name: str, chip: Chip) -> Artifact:
    """The artifact of a PTX text; raises CodeError with the line for what is malformed, no text, or no instruction of the chip."""
    try:
        text = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError as error:
        message = f"{name} is no text: {error.reason} at byte {error.start}"
        raise CodeError(message, code="TFW0617", help="cubins are not read; give the PTX") from None
    module, instructions = isa.parse(text, name), isa.instruction_set(chip)
    isa.check_target(module, instructions)
    for entry in module.entries:
        isa.program(module, entry, instructions)  # decoded again at the launch: refused here, before data is made
    entries = tuple(_entry(module, function) for function in module.entries.values())
    metadata = {"version": ".".join(map(str, module.version)), "ptx_target": module.target}
    return Artifact(chip.target, "ptx", text, entries, metadata=metadata)


def _entry(module: isa.PtxModule, function: isa.PtxFunction) -> Entry:
    parameters = tuple(
        Parameter(p.name, _kind(p), _DTYPES.get(p.type.name, "uint8"), p.offset, p.size, p.alignment) for p in function.parameters
    )
    workgroup = function.required_workgroup or (0, 0, 0)
    return Entry(function.name, parameters, workgroup, shared_bytes=module.shared_bytes(isa.inlined(module, function)))


def _kind(parameter: isa.PtxParameter) -> Literal["pointer", "scalar", "struct"]:
    """A struct by value is an array of bytes in PTX (`.param .align 8 .b8 p[24]`)."""
    if parameter.pointer:
        return "pointer"
    return "struct" if 8 * parameter.size > parameter.type.bits else "scalar"
