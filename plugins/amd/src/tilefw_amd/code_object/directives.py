"""The `.amdhsa_` directives of an `.amdhsa_kernel` block, as fields of a kernel descriptor and back.

Source: LLVM's AMDGPUUsage, "Code Object V3 and Above Assembler Directives", table "amdhsa Kernel Assembler Directives", and
AMDGPUAsmParser.cpp (`ParseDirectiveAMDHSAKernel`) for what it demands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilefw_amd.code_object.descriptor import FIELD, SGPR_GRANULE, USER_SGPRS, Descriptor, granulated

# Directives that are a field of the descriptor under their own name.
_FIELDS = frozenset(FIELD) - {
    "entry_offset", "granulated_accum_offset", "granulated_vgpr_count", "granulated_sgpr_count", "priority", "priv", "debug_mode",
    "bulky", "cdbg_user", "trap_handler", "exception_address_watch", "exception_memory", "granulated_lds_size",
    "wavefront_size32", "user_sgpr_private_segment_buffer", "user_sgpr_flat_scratch_init",
}
# Directives from which counts are made; `reserve_` ones count registers that a name stands for.
_COUNTS = ("next_free_vgpr", "next_free_sgpr", "accum_offset", "reserve_vcc", "reserve_xnack_mask")
_REQUIRED = ("next_free_vgpr", "next_free_sgpr", "accum_offset")
NAMES = (*sorted(_FIELDS), *_COUNTS)
DEFAULTS = {
    "system_sgpr_workgroup_id_x": 1, "float_denorm_mode_16_64": 3, "dx10_clamp": 1, "ieee_mode": 1, "reserve_vcc": 1,
    "reserve_xnack_mask": 1,
}
MAX_VGPRS, MAX_SGPRS, MAX_ACCUM_OFFSET, MAX_USER_SGPRS = 512, 102, 256, 16
# With architected flat scratch six registers behind the numbered ones are always taken: flat_scratch, xnack_mask and vcc
# (AMDGPUBaseInfo.cpp, getNumExtraSGPRs).
EXTRA_SGPRS = 6


class DirectiveError(ValueError):
    """A directive that is unknown, missing or out of its range; `name` is without the prefix."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


def fields(given: Mapping[str, int]) -> dict[str, int]:
    """The descriptor's fields of a block's directives (names without `.amdhsa_`); raises DirectiveError."""
    for name, value in given.items():
        _check(name, value)
    for name in _REQUIRED:
        if name not in given:
            raise DirectiveError(name, f".amdhsa_{name} is missing")
    said = {**DEFAULTS, **given}
    found = {name: value for name, value in said.items() if name in _FIELDS and value}
    found["user_sgpr_count"] = _user_sgprs(said)
    found |= granulated(said["next_free_vgpr"], said["next_free_sgpr"] + EXTRA_SGPRS, said["accum_offset"])
    return {name: value for name, value in found.items() if value}


def _check(name: str, value: int) -> None:
    limits = {"next_free_vgpr": MAX_VGPRS, "next_free_sgpr": MAX_SGPRS, "accum_offset": MAX_ACCUM_OFFSET}
    if name not in NAMES:
        raise DirectiveError(name, f".amdhsa_{name} is not a directive for this chip")
    most = limits.get(name, (1 << FIELD[name].width) - 1 if name in FIELD else 1)
    if not 0 <= value <= most:
        raise DirectiveError(name, f".amdhsa_{name} is {value}; it goes from 0 to {most}")
    if name == "accum_offset" and (value < 4 or value % 4):
        raise DirectiveError(name, f".amdhsa_accum_offset is {value}; it is a multiple of 4 from 4 to {MAX_ACCUM_OFFSET}")


def _user_sgprs(said: Mapping[str, int]) -> int:
    """How many SGPRs hold what the descriptor asks for; a count that is said may be larger, never smaller."""
    needed = sum(count for name, count in USER_SGPRS if said.get(name)) + said.get("user_sgpr_kernarg_preload_length", 0)
    count = said.get("user_sgpr_count", needed)
    if count < needed:
        raise DirectiveError("user_sgpr_count", f".amdhsa_user_sgpr_count is {count}, and {needed} are asked for")
    if count > MAX_USER_SGPRS:
        raise DirectiveError("user_sgpr_count", f"{count} user SGPRs are asked for; there are {MAX_USER_SGPRS}")
    return count


def lines(name: str, descriptor: Descriptor) -> Iterator[str]:
    """The block of a descriptor; `fields` of it gives the same descriptor. Raises DirectiveError where no directive says it."""
    odd = sorted(set(descriptor) - _FIELDS - {
        "entry_offset", "granulated_vgpr_count", "granulated_sgpr_count", "granulated_accum_offset",
    })
    if odd:
        raise DirectiveError(odd[0], f"the descriptor of {name} has {odd[0]} set, for which there is no directive")
    if descriptor.sgprs - EXTRA_SGPRS >= MAX_SGPRS + SGPR_GRANULE:
        raise DirectiveError("next_free_sgpr", f"the descriptor of {name} asks for {descriptor.sgprs} SGPRs; there are {MAX_SGPRS}")
    yield f".amdhsa_kernel {name}"
    for field in FIELD:
        if field in _FIELDS and (field in descriptor or field in DEFAULTS):
            yield f"  .amdhsa_{field} {descriptor.get(field, 0)}"
    yield f"  .amdhsa_next_free_vgpr {descriptor.vgprs}"
    yield f"  .amdhsa_next_free_sgpr {min(MAX_SGPRS, descriptor.sgprs - EXTRA_SGPRS)}"
    yield f"  .amdhsa_accum_offset {descriptor.accum_offset}"
    yield ".end_amdhsa_kernel"
