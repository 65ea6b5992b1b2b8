"""The search for the configuration of a kernel that is fastest on a chip by the model of time.

Where the chip has estimates (`timing/estimate`), all configurations are ranked by them, or of many those on the way of a descent,
and the best are timed in detail: as long as the estimates leave it open who wins, and at most a part of all. Where it has none,
configurations are timed parameter by parameter: from the best so far each parameter goes through its values while the others stay;
when none is better any more, the search has ended. A configuration whose instructions alone take longer than the best so far is not
timed further.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from tilefw.api.errors import CapacityError, CompileError, KernelError, LaunchError, UsageError
from tilefw.kernels.index import KernelInfo, ParameterInfo
from tilefw.runtime.launchable import Launchable
from tilefw.runtime.recording import record
from tilefw.runtime.tuned_choices import plain
from tilefw.timing.bounds import least_seconds
from tilefw.timing.estimate.choosing import TIMED_PART, may_be_faster
from tilefw.timing.launch_time import launch_time

BESIDE = 64
"""Workgroups whose beginnings are recorded of a configuration."""
ALL_ESTIMATED = 512
"""Configurations that are all estimated; of more those that descents meet."""
MOST_TIMED = 16
"""Configurations that are timed at most where nobody says which part of all."""
Configuration = dict[str, Any]
_TILES, _WARPS, _STAGES, _GROUPS = (16, 32, 64, 128, 256), (1, 2, 4, 8), (1, 2, 3, 4), (1, 4, 8)
_BLOCKS = (128, 256, 512, 1024, 2048, 4096)


@dataclass(frozen=True, slots=True)
class Trial:
    """A configuration: its `seconds` by the model, or why it has none. `bounded`: it was left at a bound, which `seconds` is."""

    configuration: Mapping[str, Any]
    seconds: float | None
    why: str = ""
    bounded: bool = False


Timer = Callable[[Sequence[Configuration], float | None], Iterable[Trial]]
"""Times configurations in detail, in any order; the seconds are those of the best so far, which bounds are compared with."""


def space(info: KernelInfo) -> dict[str, tuple[Any, ...]]:
    """The values of a library kernel's parameters that shape code and leave its result as it is."""
    found = {parameter.name: _values(parameter) for parameter in info.parameters}
    return {name: values for name, values in found.items() if len(values) > 1}


def _values(parameter: ParameterInfo) -> tuple[Any, ...]:
    if parameter.name in ("block_m", "block_n", "block_k"):
        values: Sequence[Any] = _TILES
    elif parameter.name == "block" and isinstance(parameter.default, int):
        values = _BLOCKS
    else:
        values = {"num_warps": _WARPS, "num_stages": _STAGES, "group_m": _GROUPS}.get(parameter.name, ())
    return tuple(value for value in values if not parameter.choices or value in parameter.choices)


def timed(launch: Callable[[Configuration], Launchable], configuration: Configuration, best: float | None) -> Trial:
    """A configuration compiled, recorded and timed; or left where its bound is beyond the seconds of the `best`."""
    try:
        made = launch(configuration)
        chip, recorded = made.target.backend.timing(), record(made, BESIDE).launch
    except (CapacityError, CompileError, LaunchError, UsageError) as error:
        return Trial(configuration, None, error.message)
    bound = least_seconds(chip, recorded)
    if best is not None and bound >= best:
        return Trial(configuration, bound, bounded=True)
    return Trial(configuration, launch_time(chip, recorded, tells=False).seconds)


@dataclass
class Search:
    """`over` are the values of each parameter, `start` where the search begins, `timer` times configurations. `estimate`: the quick
    seconds of a configuration, None where the chip has none; KernelError where there is no such launch. `record`: a file that each
    trial is written to, and read from when the search goes on; `told` is called after each trial. `only`: the configurations that
    there are; none: any of those values. `timed_part` of all is timed in detail at most, one at least; None: `TIMED_PART`, at most
    `MOST_TIMED`; `together` at once. `estimated` is called with the number of estimates after each."""

    over: Mapping[str, Sequence[Any]]
    start: Mapping[str, Any]
    timer: Timer
    estimate: Callable[[Configuration], float] | None = None
    record: Path | None = None
    told: Callable[[Trial], None] = lambda _: None
    only: Sequence[Configuration] = ()
    timed_part: float | None = None
    together: int = 1
    estimated: Callable[[int], None] = lambda _: None
    trials: dict[str, Trial] = field(default_factory=dict)
    estimates: dict[str, tuple[float, Configuration]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The configurations that there are."""
        return len(self.only) or prod(map(len, self.over.values()))

    @property
    def best(self) -> Trial | None:
        """The fastest trial that was timed."""
        found = [trial for trial in self.trials.values() if trial.seconds is not None and not trial.bounded]
        return min(found, key=lambda trial: trial.seconds or 0.0, default=None)

    def start_seconds(self) -> tuple[float, bool] | None:
        """How much slower than the best the start is, and whether estimates say so; None where nobody knows."""
        first = self.only[0] if self.only else dict(self.start)
        best, tried = self.best, self.trials.get(_name(first))
        if best is None or not best.seconds:
            return None
        if tried is not None:
            return None if tried.seconds is None or tried.bounded else (tried.seconds / best.seconds, False)
        start, known = self.estimates.get(_name(first)), self.estimates.get(_name(best.configuration))
        return None if start is None or known is None else (start[0] / known[0], True)

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
        return self._by_parameters() if self.estimate is None else self._by_estimates()

    # --- with estimates --------------------------------------------------------------------------------------------------

    def ranked(self) -> list[tuple[float, Configuration]]:
        """The configurations that were estimated, the fastest first."""
        if self.only or self.size <= ALL_ESTIMATED:
            for configuration in self.only or self._all():
                self._estimated(configuration)
        else:
            for start in self._starts():
                self._descend(start)
        return sorted(self.estimates.values(), key=lambda pair: pair[0])

    def _by_estimates(self) -> Trial | None:
        waiting = self.ranked()
        part = self.timed_part
        most = max(1, min(MOST_TIMED, int(self.size * TIMED_PART)) if part is None else int(self.size * part))
        count = 0
        while waiting and (count < most or self.best is None) and self._open(waiting[0]):
            some = [configuration for _, configuration in waiting[: self.together]]
            waiting = waiting[self.together :]
            count += len(some)
            self._try(some)
        return self.best

    def _open(self, first: tuple[float, Configuration]) -> bool:
        """Whether the fastest of those that wait may beat the best: estimates have a factor that is the best's own."""
        best = self.best
        if best is None or best.seconds is None:
            return True
        known = self.estimates.get(_name(best.configuration))
        factor = 1.0 if known is None else best.seconds / known[0]
        return may_be_faster(first[0] * factor, best.seconds)

    def _estimated(self, configuration: Configuration) -> float:
        name = _name(configuration)
        assert self.estimate is not None, "a search without estimates asks for none"
        if name not in self.estimates:
            try:
                self.estimates[name] = self.estimate(configuration), configuration
            except KernelError as error:
                self._keep(Trial(configuration, None, error.message))
                self.estimates[name] = float("inf"), configuration
            self.estimated(len(self.estimates))
        return self.estimates[name][0]

    def _starts(self) -> Iterator[Configuration]:
        """Where descents begin: the start, and every so many of all configurations."""
        yield dict(self.start)
        values = list(self.over.values())
        for place in range(0, self.size, self.size // 7 + 1):
            picked = []
            for choices in values:
                place, index = divmod(place, len(choices))
                picked.append(choices[index])
            yield dict(zip(self.over, picked, strict=True))

    def _descend(self, now: Configuration) -> None:
        """Parameter by parameter, by the estimates."""
        best, before = self._estimated(now), None
        while best != before:
            before = best
            for name, values in self.over.items():
                for value in values:
                    other = {**now, name: value}
                    seconds = self._estimated(other)
                    if seconds < best:
                        best, now = seconds, other

    def _all(self) -> Iterator[Configuration]:
        return (dict(zip(self.over, values, strict=True)) for values in product(*self.over.values()))

    # --- without ---------------------------------------------------------------------------------------------------------

    def _by_parameters(self) -> Trial | None:
        self._try(self.only or [dict(self.start)])
        if self.only:
            return self.best
        before: Trial | None = None
        while self.best is not before or before is None:
            before = self.best
            for name, values in self.over.items():
                now = dict(self.start if self.best is None else self.best.configuration)
                self._try([{**now, name: value} for value in values if value != now.get(name)])
            if before is None and self.best is None:
                return None
        return self.best

    # --- trials ----------------------------------------------------------------------------------------------------------

    def _try(self, configurations: Sequence[Configuration]) -> None:
        """Time those that were not timed yet."""
        new = [configuration for configuration in configurations if _name(configuration) not in self.trials]
        for start in range(0, len(new), self.together):
            best = self.best
            for trial in self.timer(new[start : start + self.together], None if best is None else best.seconds):
                self._keep(trial)

    def _keep(self, trial: Trial) -> None:
        if _name(trial.configuration) in self.trials:
            return
        self.trials[_name(trial.configuration)] = trial
        if self.record is not None:
            told = {
                "configuration": plain(trial.configuration), "seconds": trial.seconds, "why": trial.why, "bounded": trial.bounded,
            }
            with suppress(OSError):  # a folder that cannot be written: the search goes on, and cannot be resumed
                self.record.parent.mkdir(parents=True, exist_ok=True)
                with self.record.open("a") as file:
                    file.write(json.dumps(told) + "\n")
        self.told(trial)


def _name(configuration: Mapping[str, Any]) -> str:
    return json.dumps(plain(configuration), sort_keys=True)
