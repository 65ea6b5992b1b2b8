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
        message = f"{name} is not text: {error.reason} at byte {error.start}"
        raise CodeError(message, code="TFW0617", help="cubins are not read; give the PTX") from None
    module, instructions = isa.parse(text, name), isa.instruction_set(chip)
    isa.check_target(module, instructions)
    refused = _refused(module, instructions)
    entries = tuple(_entry(module, function, name not in refused) for name, function in module.entries.items())
    metadata = {"version": ".".join(map(str, module.version)), "ptx_target": module.target}
    return Artifact(chip.target, "ptx", text, entries, metadata=metadata)


def _refused(module: isa.PtxModule, instructions: isa.InstructionSet) -> set[str]:
    """Entries that are right PTX but not served yet; a launch of one is refused. Raises CodeError at the first that is wrong, and
    where none is served: here, before anybody makes data."""
    refused: dict[str, CodeError] = {}
    for entry in module.entries:
        try:
            isa.program(module, entry, instructions)  # decoded again at the launch
        except CodeError as error:
            if error.code != isa.NOT_SERVED:
                raise
            refused[entry] = error
    if refused and len(refused) == len(module.entries):
        raise next(iter(refused.values()))
    return set(refused)


def _entry(module: isa.PtxModule, function: isa.PtxFunction, served: bool) -> Entry:
    parameters = tuple(
        Parameter(p.name, _kind(p), _DTYPES.get(p.type.name, "uint8"), p.offset, p.size, p.alignment) for p in function.parameters
    )
    workgroup = function.required_workgroup or (0, 0, 0)
    body = isa.inlined(module, function) if served else function
    return Entry(function.name, parameters, workgroup, shared_bytes=module.shared_bytes(body))


def _kind(parameter: isa.PtxParameter) -> Literal["pointer", "scalar", "struct"]:
    """A struct by value is an array of bytes in PTX (`.param .align 8 .b8 p[24]`)."""
    if parameter.pointer:
        return "pointer"
    return "struct" if 8 * parameter.size > parameter.type.bits else "scalar"
