"""Quick estimates of launches that are not compiled; a program's work is found once for all configurations that share tile IR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilefw.api.backend import CompileOptions
from tilefw.api.errors import LaunchError, UnsupportedError
from tilefw.runtime.arguments.arrays import array_argument, is_array
from tilefw.runtime.compilation.compiler import Compilation
from tilefw.runtime.compilation.kernel_source import ModuleSource
from tilefw.runtime.plugins.loader import Target
from tilefw.timing.chip_timing import KINDS, ChipTiming
from tilefw.timing.estimate.estimated_time import Estimate, estimated_time
from tilefw.timing.estimate.program_parts import ProgramWork
from tilefw.timing.estimate.program_work import program_work

FEW = 4096
"""Integers of an array that are looked at: offsets and lengths that decide how long loops are."""


def _contents(value: Any) -> np.ndarray | None:
    """The integers of a small array of the host, as they lie in memory."""
    kept = getattr(array_argument(value), "keep", ())
    array = kept[0] if kept else None
    if isinstance(array, np.ndarray) and array.dtype.kind in "iu" and array.size <= FEW and array.flags.c_contiguous:
        return array.reshape(-1).astype(np.int64)
    return None


def has_estimates(target: Target) -> bool:
    """Whether the target has lanes, and a model of time that tells what estimates need."""
    try:
        return target.backend.timing().typical.keys() >= set(KINDS) and target.backend.lane_machine(CompileOptions()) is not None
    except UnsupportedError:
        return False


@dataclass
class Estimates:
    """The estimates of one kernel's launches on a target."""

    target: Target
    chip: ChipTiming = field(init=False)
    _work: dict[Any, ProgramWork] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chip = self.target.backend.timing()

    @property
    def there(self) -> bool:
        """Whether the target's model of time tells what estimates need, and the target has lanes."""
        return has_estimates(self.target)

    @property
    def works(self) -> tuple[ProgramWork, ...]:
        """The programs that were estimated so far, by their work."""
        return tuple(self._work.values())

    def of(
        self, source: ModuleSource, request: CompileOptions, values: Mapping[str, Any], grid: tuple[int, int, int]
    ) -> Estimate:
        """The estimate of a launch of `source` over `values`, by name. Raises what the front end and the passes raise, LaunchError
        TFW0667 where nothing runs."""
        machine = self.target.backend.lane_machine(request)
        assert machine is not None, "asked where there are none"
        if not all(grid):
            raise LaunchError(f"the grid of {source.name} is empty: nothing runs, and there is no time to tell", code="TFW0667")
        extents = {name: array_argument(value).nbytes for name, value in values.items() if is_array(value)}
        scalars = {name: value for name, value in values.items() if name not in extents and value is not None}
        contents = {name: held for name, value in values.items() if name in extents and (held := _contents(value)) is not None}
        key = (
            source.key, grid, tuple(sorted(extents.items())), tuple(sorted((n, str(v)) for n, v in scalars.items())),
            tuple(sorted((name, held.tobytes()) for name, held in contents.items())),
        )
        work = None if source.key is None else self._work.get(key)
        if work is None:
            compilation = Compilation(source, self.target)
            module = compilation.simplify(compilation.build(), request)
            work = program_work(module, scalars, extents, grid, contents)
            module.erase()
            if source.key is not None:
                self._work[key] = work
        return estimated_time(self.chip, machine, work, request.num_stages)
