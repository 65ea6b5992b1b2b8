"""What the HIP runtime tells of a card: its name, its chip, its memory."""

from __future__ import annotations

import ctypes
import re

from tilefw.api import UnsupportedError
from tilefw.api.hardware import CardInfo, DriverLibrary

# `hipDeviceProp_tR0600` (`hip_runtime_api.h`, HIP 6.0 to 7.2): 1,472 bytes, of which `gcnArchName` is 256 from byte 1,160 on. Only
# that is read of it, and nothing of another layout is taken for a chip. Room for what a later version may append.
_PROPERTIES_BYTES = 8192
_CHIP_OFFSET, _CHIP_BYTES = 1160, 256
# LLVM's processor, and features behind it: `:sramecc+:xnack-` (LLVM AMDGPUUsage, "Target ID").
_TARGET_ID = re.compile(r"(gfx[0-9a-f]+)(:\w+[+-])*")
_NAME_BYTES = 256


def card_info(library: DriverLibrary, number: int) -> CardInfo:
    """A card by its number. Raises DriverError, and UnsupportedError TFW0605 for a layout that is not known."""
    name = ctypes.create_string_buffer(_NAME_BYTES)
    library.call("hipDeviceGetName", name, _NAME_BYTES, number)
    memory = ctypes.c_size_t()
    library.call("hipDeviceTotalMem", ctypes.byref(memory), number)
    return CardInfo(number, name.value.decode("utf-8", "replace") or "unnamed", _chip(library, number), memory.value)


def _chip(library: DriverLibrary, number: int) -> str:
    properties = ctypes.create_string_buffer(_PROPERTIES_BYTES)
    library.call("hipGetDevicePropertiesR0600", ctypes.addressof(properties), number)
    text = properties.raw[_CHIP_OFFSET : _CHIP_OFFSET + _CHIP_BYTES].partition(b"\0")[0].decode("ascii", "replace")
    found = _TARGET_ID.fullmatch(text)
    if found is None:
        raise UnsupportedError(
            f"{library.path} describes card {number} in a way that is not known: {text!r} is the name of no chip", code="TFW0605",
            help="install another version of ROCm",
        )
    return found[1]
