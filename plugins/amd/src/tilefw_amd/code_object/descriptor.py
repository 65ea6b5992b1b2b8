"""The kernel descriptor: 64 bytes that tell the hardware how to start a kernel, as named bit fields in one table.

Source: LLVM's AMDGPUUsage, sections "Kernel Descriptor", "compute_pgm_rsrc1 for GFX6-GFX12", "compute_pgm_rsrc2 for GFX6-GFX12" and
"compute_pgm_rsrc3 for GFX90A, GFX942", and the table of `.amdhsa_` directives. A field is called as its directive, without the
prefix, where there is one.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from tilefw.api import CodeError
from tilefw.api.integers import ceil_div
from tilefw_amd.code_object.elf import DAMAGED

SIZE = 64
ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class DescriptorField:
    """Bits [low, low + width) of the little-endian word of `word_bytes` bytes at byte `offset`."""

    name: str
    offset: int
    word_bytes: int
    low: int
    width: int


def _words(offset: int, word_bytes: int, *fields: tuple[str, int, int]) -> list[DescriptorField]:
    return [DescriptorField(name, offset, word_bytes, low, width) for name, low, width in fields]


_RSRC3, _RSRC1, _RSRC2, _PROPERTIES, _PRELOAD = 44, 48, 52, 56, 58

FIELDS: tuple[DescriptorField, ...] = (
    DescriptorField("group_segment_fixed_size", 0, 4, 0, 32),
    DescriptorField("private_segment_fixed_size", 4, 4, 0, 32),
    DescriptorField("kernarg_size", 8, 4, 0, 32),
    DescriptorField("entry_offset", 16, 8, 0, 64),  # from the descriptor to the code, signed
    *_words(_RSRC3, 4, ("granulated_accum_offset", 0, 6), ("tg_split", 16, 1)),
    *_words(
        _RSRC1, 4, ("granulated_vgpr_count", 0, 6), ("granulated_sgpr_count", 6, 4), ("priority", 10, 2),
        ("float_round_mode_32", 12, 2), ("float_round_mode_16_64", 14, 2), ("float_denorm_mode_32", 16, 2),
        ("float_denorm_mode_16_64", 18, 2), ("priv", 20, 1), ("dx10_clamp", 21, 1), ("debug_mode", 22, 1), ("ieee_mode", 23, 1),
        ("bulky", 24, 1), ("cdbg_user", 25, 1), ("fp16_overflow", 26, 1),
    ),
    *_words(
        _RSRC2, 4, ("enable_private_segment", 0, 1), ("user_sgpr_count", 1, 5), ("trap_handler", 6, 1),
        ("system_sgpr_workgroup_id_x", 7, 1), ("system_sgpr_workgroup_id_y", 8, 1), ("system_sgpr_workgroup_id_z", 9, 1),
        ("system_sgpr_workgroup_info", 10, 1), ("system_vgpr_workitem_id", 11, 2), ("exception_address_watch", 13, 1),
        ("exception_memory", 14, 1), ("granulated_lds_size", 15, 9), ("exception_fp_ieee_invalid_op", 24, 1),
        ("exception_fp_denorm_src", 25, 1), ("exception_fp_ieee_div_zero", 26, 1), ("exception_fp_ieee_overflow", 27, 1),
        ("exception_fp_ieee_underflow", 28, 1), ("exception_fp_ieee_inexact", 29, 1), ("exception_int_div_zero", 30, 1),
    ),
    *_words(
        _PROPERTIES, 2, ("user_sgpr_private_segment_buffer", 0, 1), ("user_sgpr_dispatch_ptr", 1, 1),
        ("user_sgpr_queue_ptr", 2, 1), ("user_sgpr_kernarg_segment_ptr", 3, 1), ("user_sgpr_dispatch_id", 4, 1),
        ("user_sgpr_flat_scratch_init", 5, 1), ("user_sgpr_private_segment_size", 6, 1), ("wavefront_size32", 10, 1),
        ("uses_dynamic_stack", 11, 1),
    ),
    *_words(_PRELOAD, 2, ("user_sgpr_kernarg_preload_length", 0, 7), ("user_sgpr_kernarg_preload_offset", 7, 9)),
)
FIELD = {field.name: field for field in FIELDS}

# User SGPRs in the order in which they are set up, with how many each takes (AMDGPUUsage, "Initial Kernel Execution State").
USER_SGPRS: tuple[tuple[str, int], ...] = (
    ("user_sgpr_private_segment_buffer", 4), ("user_sgpr_dispatch_ptr", 2), ("user_sgpr_queue_ptr", 2),
    ("user_sgpr_kernarg_segment_ptr", 2), ("user_sgpr_dispatch_id", 2), ("user_sgpr_flat_scratch_init", 2),
    ("user_sgpr_private_segment_size", 1),
)
MAX_USER_SGPRS = 16  # AMDGPUUsage, "Initial Kernel Execution State"
# The kernel proper stands so many bytes behind an entry whose arguments are preloaded; what is before it serves firmware that
# does not preload (AMDGPUUsage, "Preloaded Kernel Arguments").
PRELOAD_PROLOGUE_BYTES = 256

# LLVM counts scalar registers by 8 (AMDGPUBaseInfo.cpp, getSGPREncodingGranule), where AMDGPUUsage says
# 2 * max(0, ceil(sgprs_used / 16) - 1) of gfx9; the hardware of gfx9 gives every wave the same number whatever stands there.
VGPR_GRANULE, ACCUM_GRANULE, SGPR_GRANULE = 8, 4, 8
_UNUSED = [*range(12, 16), *range(24, 44), *range(60, 64)]


class Descriptor(dict[str, int]):
    """Fields by name; those that were not given are 0."""

    def __getattr__(self, name: str) -> int:
        if name not in FIELD:
            raise AttributeError(name)
        return self.get(name, 0)

    @property
    def vgprs(self) -> int:
        """Vector registers of a lane, accumulation registers among them."""
        return (self.granulated_vgpr_count + 1) * VGPR_GRANULE

    @property
    def accum_offset(self) -> int:
        """Vector registers before the first accumulation register."""
        return (self.granulated_accum_offset + 1) * ACCUM_GRANULE

    @property
    def sgprs(self) -> int:
        return (self.granulated_sgpr_count + 1) * SGPR_GRANULE


def decode(data: bytes, name: str) -> Descriptor:
    """The fields of 64 bytes; raises CodeError where a reserved byte is set or the kernel is for another wave size."""
    if len(data) != SIZE:
        raise _error(name, f"a kernel descriptor of {len(data)} bytes", f"it has {SIZE}")
    used = [i for i in _UNUSED if data[i]]
    if used:
        raise _error(name, f"the kernel descriptor has reserved byte {used[0]} set")
    found = Descriptor()
    for field in FIELDS:
        word = int.from_bytes(data[field.offset : field.offset + field.word_bytes], "little")
        value = word >> field.low & ((1 << field.width) - 1)
        if value:
            found[field.name] = value
    if found.entry_offset >= 1 << 63:
        found["entry_offset"] -= 1 << 64
    if found.user_sgpr_kernarg_preload_length > MAX_USER_SGPRS:
        preloaded = found.user_sgpr_kernarg_preload_length
        raise _error(name, f"{preloaded} registers of arguments are preloaded", f"a wave has {MAX_USER_SGPRS} user SGPRs")
    if found.wavefront_size32:
        raise _error(name, "the kernel is for waves of 32 lanes", "this chip has waves of 64")
    return found


def encode(fields: Mapping[str, int]) -> bytes:
    """64 bytes; raises ValueError for a value that does not fit its field, KeyError for an unknown field."""
    data = bytearray(SIZE)
    for name, value in fields.items():
        field = FIELD[name]
        unsigned = value + (1 << field.width) if name == "entry_offset" and value < 0 else value
        if not 0 <= unsigned < 1 << field.width:
            raise ValueError(f"{name} is {value}; it has {field.width} bits")
        word = struct.unpack_from(_FORMAT[field.word_bytes], data, field.offset)[0]
        struct.pack_into(_FORMAT[field.word_bytes], data, field.offset, word | unsigned << field.low)
    return bytes(data)


_FORMAT = {2: "<H", 4: "<I", 8: "<Q"}


def granulated(vgprs: int, sgprs: int, accum_offset: int) -> dict[str, int]:
    """The count fields of a kernel that uses so many registers (`vgprs`: accumulation registers among them)."""
    return {
        "granulated_vgpr_count": max(0, ceil_div(max(1, vgprs), VGPR_GRANULE) - 1),
        "granulated_sgpr_count": max(0, ceil_div(max(1, sgprs), SGPR_GRANULE) - 1),
        "granulated_accum_offset": max(0, accum_offset // ACCUM_GRANULE - 1),
    }


def _error(name: str, message: str, note: str | None = None) -> CodeError:
    return CodeError(f"{name}: {message}", DAMAGED, note=note)
