"""Lanes on their own: executes primitives and meanings of rows on NumPy arrays, without a program around them.

    lanes = executing_lanes(wave_size=32)
    lanes.add(a, b)
"""

from __future__ import annotations

from tilefw.api.device import LaunchOptions
from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.engine.frame import Frame
from tilefw.sim.engine.observers import Observers
from tilefw.sim.engine.state import Diagnostics, ExecutionOrder, Geometry, LaunchMemory, LaunchState
from tilefw.sim.matrix.unit import MatrixUnit
from tilefw.sim.memory.regions import GlobalMemory, Region
from tilefw.sim.program import Program, SimulatedChip


def executing_lanes(
    wave_size: int, waves: int = 1, *, hardware: bool = False, follow_undefined: bool = False
) -> NumpyLanes:
    """Lanes of one workgroup; values are arrays [1, waves, wave_size], or of shapes that broadcast to it.

    `hardware`: matrix products are summed as the chip does it. `follow_undefined`: values may carry undefined bits.
    """
    chip = SimulatedChip("lanes", wave_size=wave_size)
    diagnostics = Diagnostics(observers=Observers(follows_undefined=follow_undefined))
    options = LaunchOptions()
    state = LaunchState(
        chip, Program("lanes", (), ()), options, Geometry((1, 1, 1), (waves * wave_size, 1, 1), wave_size),
        LaunchMemory(GlobalMemory(), Region(0, 0), Region(0, 0), 0, 0, 0), ExecutionOrder((), options, diagnostics), diagnostics,
    )
    lanes = NumpyLanes(state, MatrixUnit(hardware))
    lanes.frame = Frame.of_batch(1, waves, wave_size)
    return lanes
