"""The clock that a chip's power limit leaves, by how much its matrix units work.

Matrix units that switch random data take most of the power of a chip that has a limit. Their power grows with the part of the
cycles in which they work and with the third power of the clock (voltage follows the clock: P = C·V²·f). The limit is reached by
units that always work at `matrix_clock`, a figure of the chip file, and so by units that work a part u of the time at
matrix_clock / u^⅓.
"""

from __future__ import annotations

from tilefw.timing.chip_file import ChipFigures


def clock_under_power(chip: ChipFigures, load: float) -> float:
    """The highest clock in MHz at which matrix units may work a part `load` of the cycles: at most `clock`."""
    top = chip["clock"]
    if load <= 0.0:
        return top
    return min(top, chip["matrix_clock"] / load ** (1 / 3))
