"""The model of time for plugins: a chip's figures from a file, and what a backend makes of them (`Backend.timing`)."""

from tilefw.timing.chip_file import ChipFigures, Figure, packaged_figures, read_chip_file
from tilefw.timing.chip_timing import ChipTiming, InstructionCost, MemoryLevel, Purpose, Role

__all__ = [
    "ChipFigures", "ChipTiming", "Figure", "InstructionCost", "MemoryLevel", "Purpose", "Role", "packaged_figures",
    "read_chip_file",
]
