"""The numbers of AMD GPUs in a code object's header, for messages (LLVM AMDGPUUsage, "AMDGPU e_flags")."""

from __future__ import annotations

from tilefw_amd.chips import chips

MACHINE_MASK = 0xFF  # the machine is in the low byte of e_flags
# Chips that have no page.
_OTHERS = {0x3F: "gfx90a", 0x30: "gfx908", 0x40: "gfx940", 0x4B: "gfx941", 0x2F: "gfx906"}


def machine_name(flags: int) -> str:
    """The chip that e_flags name."""
    machine = flags & MACHINE_MASK
    own = {chip.elf_machine: chip.name for chip in chips().values()}
    return own.get(machine) or _OTHERS.get(machine) or f"machine 0x{machine:02x}"
