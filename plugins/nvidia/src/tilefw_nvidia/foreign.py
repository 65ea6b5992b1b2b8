"""PTX that tilefw did not make, as an artifact: what its entries say of parameters, workgroup size and shared memory."""

from __future__ import annotations

from tilefw.api import Artifact, CodeError, Entry, Parameter
from tilefw_nvidia import isa

# PTX types of parameters as element types; `.b` types carry bits alone and count as unsigned, pointers are untyped 64-bit.
_DTYPES = {"u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "s8": "int8", "s16": "int16", "s32": "int32",
           "s64": "int64", "b8": "uint8", "b16": "uint16", "b32": "uint32", "b64": "uint64", "f16": "fp16", "f32": "fp32", "f64": "fp64"}


def artifact(data: str | bytes, name: str, target: str) -> Artifact:
    """The artifact of a PTX text; raises CodeError with the line for text that is malformed, or is no text."""
    try:
        text = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError as error:
        raise CodeError(f"{name} is no text: {error.reason} at byte {error.start}", code="TFW0701", help="cubins are not read; give the PTX") from None
    module = isa.parse(text, name)
    entries = tuple(_entry(module, function) for function in module.entries.values())
    return Artifact(target, "ptx", text, entries, metadata={"version": ".".join(map(str, module.version)), "ptx_target": module.target})


def _entry(module: isa.Module, function: isa.Function) -> Entry:
    size = function.directives.get("reqntid", ())  # `.maxntid` only bounds the launch
    workgroup = (*size, 1, 1, 1)[:3] if size else (0, 0, 0)
    parameters = tuple(
        Parameter(p.name, "pointer" if p.pointer else "scalar", _DTYPES.get(p.type.name, "uint8"), p.offset, p.size, p.alignment)
        for p in function.parameters
    )
    return Entry(function.name, parameters, workgroup, shared_bytes=module.shared_bytes(function.name))
