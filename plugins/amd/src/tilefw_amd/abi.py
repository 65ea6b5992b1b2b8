"""How a kernel of ours is called: which registers hold what at its start, and where its arguments stand.

LLVM's AMDGPUUsage, "Initial Kernel Execution State": the user SGPRs (here the address of the arguments alone), then the
workgroup's ids; the index of the work-item in v0. "Code Object V5 Metadata": arguments that the runtime adds stand behind the
caller's, where the metadata says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilefw.api import Parameter

KERNEL_ARGUMENTS = 0  # s[0:1]: their address
WORKGROUP_IDS = (2, 3, 4)  # s2, s3, s4: of the axes x, y, z
USER_SGPRS = 2
SGPRS_AT_START = USER_SGPRS + len(WORKGROUP_IDS)
WORK_ITEM = 0  # v0: the index in a workgroup of one axis
GRID_THREADS = 2**32 - 1  # work-items of a launch along an axis (HSA's "AQL Kernel Dispatch Packet": `grid_size_x` has 32 bits)
ARGUMENT_ALIGNMENT = 8  # of the whole block, and of what the runtime adds
_COUNT_BYTES = 4


def workgroup_count_offset(parameters: Sequence[Parameter], axis: int) -> int:
    """The byte of the argument block from which on the number of workgroups along `axis` stands, 32 bits."""
    end = max((p.offset + p.size for p in parameters), default=0)
    return end + -end % ARGUMENT_ALIGNMENT + _COUNT_BYTES * axis


def argument_bytes(parameters: Sequence[Parameter]) -> int:
    """The size of the whole block."""
    end = workgroup_count_offset(parameters, len(WORKGROUP_IDS))
    return end + -end % ARGUMENT_ALIGNMENT


# OpenCL's names of the types of values (AMDGPUUsage, `.type_name`); other formats have none.
_TYPE_NAMES = {
    "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort", "int32": "int", "uint32": "uint", "int64": "long",
    "uint64": "ulong", "fp16": "half", "fp32": "float", "fp64": "double",
}


def arguments(parameters: Sequence[Parameter]) -> list[dict[str, Any]]:
    """`.args` of the kernel's metadata."""
    found = [_argument(p) for p in parameters]
    for axis, letter in enumerate("xyz"):
        found.append({
            ".offset": workgroup_count_offset(parameters, axis), ".size": _COUNT_BYTES,
            ".value_kind": f"hidden_block_count_{letter}",
        })
    return found


def _argument(parameter: Parameter) -> dict[str, Any]:
    name = _TYPE_NAMES.get(parameter.dtype)
    found = {".name": parameter.name, ".offset": parameter.offset, ".size": parameter.size}
    if parameter.kind != "pointer":
        return found | {".value_kind": "by_value"} | ({".type_name": name} if name else {})
    found |= {".value_kind": "global_buffer", ".address_space": "global"} | ({".type_name": f"{name}*"} if name else {})
    return found | ({".actual_access": "read_only"} if parameter.readonly else {})
