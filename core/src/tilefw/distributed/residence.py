"""How many workgroups of a launch its device holds at once: what waits for a workgroup beyond those waits for ever."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from tilefw.api.errors import LaunchError, UnsupportedError
from tilefw.distributed.rank_launch import RankLaunch
from tilefw.runtime.launchable import Launchable


def residence_of(made: Launchable) -> int | None:
    """By the target's model of time, from the occupancy of the code or, where no tool has told it, from the waves alone; None where
    nobody knows."""
    try:
        chip = made.target.backend.timing()
    except UnsupportedError:
        return None
    threads = math.prod(made.block or made.entry.workgroup or (0,))
    if not threads:
        return None
    waves = math.ceil(threads / made.target.info.limits["lanes"])
    occupancy = made.compiled.artifact.resources.occupancy
    waves_of_processor = chip.resident_waves if occupancy is None else round(occupancy * chip.resident_waves)
    return max(1, waves_of_processor // waves) * chip.processors


def check_co_residence(launches: Sequence[RankLaunch], held: Sequence[int | None]) -> None:
    """Raises LaunchError TFW0877 where cooperative launches of a rank have more programs than its device holds at once, of each
    launch alone as many as `held` says."""
    taken: dict[int, Fraction] = {}
    for one, most in zip(launches, held, strict=True):
        if not one.cooperative or most is None:
            continue
        programs = math.prod(one.made.grid)
        before = taken.get(one.rank, Fraction(0))
        room = int((1 - before) * most)
        taken[one.rank] = before + Fraction(programs, most)
        if programs > room:
            others = "" if not before else " beside the others that were launched with it"
            raise LaunchError(
                f"rank {one.rank}: the {programs} programs of {one.made.name} cannot be on the device at once: it holds "
                f"{room} of them{others}", code="TFW0877", place=one.place,
                note=f"grid {one.made.grid}, launched with launch_cooperative_grid=True",
                help=f"launch at most {room} programs, each for more of the work" if room else "launch one after the other",
            )
