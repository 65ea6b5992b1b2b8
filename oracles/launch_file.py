"""An item's launch as `tilefw simulate` reads it: a launch file with the arrays beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from oracles.case import InOut, Input, Number, Output
from oracles.corpus import Item


def write(item: Item, folder: Path) -> Path:
    """The launch file in `folder`; inputs that are not initialised are given as zeros."""
    launch = item.launch
    lines = [
        f"kernel: {item.entry}", f"grid: {list(launch.grid)}", f"block: {list(launch.block)}",
        f"dynamic_shared: {launch.dynamic_shared}", "args:",
    ]
    for name, argument in item.inputs.items():
        match argument:
            case Number():
                lines.append(f"  - {{value: {argument.value}, dtype: {argument.dtype}}}")
            case Output():
                lines.append(
                    f"  - {{out: {name}, shape: {list(argument.shape)}, dtype: {np.dtype(argument.dtype).name}, fill: nan}}"
                )
            case Input():
                np.save(folder / f"{name}.npy", argument.array)
                lines.append(f"  - {{in: {name}.npy}}")
            case InOut():
                np.save(folder / f"{name}.npy", argument.array)
                lines.append(f"  - {{inout: {name}.npy, name: {name}}}")
    path = folder / "launch.yaml"
    path.write_text("\n".join(lines + ["  - {pointer: 0}"] * launch.hidden) + "\n")
    return path
