"""The search for the configuration of a kernel that is fastest on a chip by the model of time: parameter by parameter.

From the best configuration so far each parameter goes through its values while the others stay; when none is better any more, the
search has ended. A configuration whose instructions alone take longer than the best so far is not timed further.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilefw.api.errors import CapacityError, CompileError, LaunchError, UsageError
from tilefw.kernels.index import KernelInfo, ParameterInfo
from tilefw.runtime.launchable import Launchable
from tilefw.runtime.recording import record
from tilefw.runtime.tuned_choices import plain
from tilefw.timing.bounds import least_seconds
from tilefw.timing.launch_time import launch_time

BESIDE = 64
"""Workgroups whose beginnings are recorded of a configuration."""
Configuration = dict[str, Any]
_TILES, _WARPS, _STAGES, _GROUPS = (16, 32, 64, 128, 256), (1, 2, 4, 8), (1, 2, 3, 4), (1, 4, 8)


@dataclass(frozen=True, slots=True)
class Trial:
    """A configuration: its `seconds` by the model, or why it has none. `bounded`: it was left at a bound, which `seconds` is."""

    configuration: Mapping[str, Any]
    seconds: float | None
    why: str = ""
    bounded: bool = False


def space(info: KernelInfo) -> dict[str, tuple[Any, ...]]:
    """The values of a library kernel's parameters that shape code and leave its result as it is."""
    found = {parameter.name: _values(parameter) for parameter in info.parameters}
    return {name: values for name, values in found.items() if len(values) > 1}


def _values(parameter: ParameterInfo) -> tuple[Any, ...]:
    if parameter.name in ("block_m", "block_n", "block_k"):
        values: Sequence[Any] = _TILES
    elif parameter.name == "block" and isinstance(parameter.default, int):
        values = tuple(size for size in (128, 256, 512, 1024, 2048, 4096))
    else:
        values = {"num_warps": _WARPS, "num_stages": _STAGES, "group_m": _GROUPS}.get(parameter.name, ())
    return tuple(value for value in values if not parameter.choices or value in parameter.choices)


@dataclass
class Search:
    """`over` are the values of each parameter, `start` where the search begins, `launch` makes the launch of a configuration.
    `record`: a file that each trial is written to, and read from when the search goes on; `told` is called after each trial.
    `only`: the configurations that there are, all of which are tried; none: any of those values."""

    over: Mapping[str, Sequence[Any]]
    start: Mapping[str, Any]
    launch: Callable[[Configuration], Launchable]
    record: Path | None = None
    told: Callable[[Trial], None] = lambda _: None
    only: Sequence[Configuration] = ()
    trials: dict[str, Trial] = field(default_factory=dict)

    @property
    def best(self) -> Trial | None:
        """The fastest trial that was timed."""
        timed = [trial for trial in self.trials.values() if trial.seconds is not None and not trial.bounded]
        return min(timed, key=lambda trial: trial.seconds or 0.0, default=None)

    def resume(self) -> int:
        """Take up the trials of before; gives how many."""
        try:
            lines = [] if self.record is None else self.record.read_text(errors="replace").splitlines()
        except OSError:
            return 0
        for line in lines:
            try:
                trial = Trial(**json.loads(line))
            except (TypeError, ValueError):
                continue  # the line that an interruption cut off
            self.trials[_name(trial.configuration)] = trial
        return len(self.trials)

    def run(self) -> Trial | None:
        """Search; gives the fastest, or None where no configuration compiles."""
        for configuration in self.only or [dict(self.start)]:
            self._try(configuration)
        if self.only:
            return self.best
        before: Trial | None = None
        while self.best is not before or before is None:
            before = self.best
            for configuration in self._neighbours(dict(self.start if before is None else before.configuration)):
                self._try(configuration)
            if before is None and self.best is None:
                return None
        return self.best

    def _neighbours(self, configuration: Configuration) -> Iterator[Configuration]:
        for name, values in self.over.items():
            now = configuration if self.best is None else dict(self.best.configuration)
            yield from ({**now, name: value} for value in values if value != now.get(name))

    def _try(self, configuration: Configuration) -> None:
        if _name(configuration) in self.trials:
            return
        trial = self._timed(configuration)
        self.trials[_name(configuration)] = trial
        if self.record is not None:
            told = {"configuration": plain(configuration), "seconds": trial.seconds, "why": trial.why, "bounded": trial.bounded}
            with suppress(OSError):  # a folder that cannot be written: the search goes on, and cannot be resumed
                self.record.parent.mkdir(parents=True, exist_ok=True)
                with self.record.open("a") as file:
                    file.write(json.dumps(told) + "\n")
        self.told(trial)

    def _timed(self, configuration: Configuration) -> Trial:
        best = self.best
        try:
            made = self.launch(configuration)
            chip, recorded = made.target.backend.timing(), record(made, BESIDE).launch
        except (CapacityError, CompileError, LaunchError, UsageError) as error:
            return Trial(configuration, None, error.message)
        bound = least_seconds(chip, recorded)
        if best is not None and best.seconds is not None and bound >= best.seconds:
            return Trial(configuration, bound, bounded=True)
        return Trial(configuration, launch_time(chip, recorded, tells=False).seconds)


def _name(configuration: Mapping[str, Any]) -> str:
    return json.dumps(plain(configuration), sort_keys=True)
