"""Flags of a program's checks: out-of-bounds accesses that data asked for, which the device reports when the launch is over.

A parameter of kind `check` is memory of the device's own, a byte a flag, all clear before the launch. The program sets those whose
condition is broken; `metadata["checks"]` has the user's line of each such parameter, in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilefw.api import Finding, Place
from tilefw_spatial.program import BoundParameter, SpatialProgram

CHECK = "check"  # the kind of such a parameter; they come after all others
CODE = "TFW0801"


def arguments(program: SpatialProgram) -> list[BoundParameter]:
    """The parameters that a launch gives arguments for."""
    return [parameter for parameter in program.parameters if parameter.kind != CHECK]


def flags(program: SpatialProgram) -> list[NDArray[np.uint8]]:
    """Clear memory for each check."""
    return [np.zeros(parameter.nbytes, np.uint8) for parameter in program.parameters if parameter.kind == CHECK]


def broken(program: SpatialProgram, found: Sequence[NDArray[np.uint8]]) -> Iterator[Finding]:
    """A finding for each check of which a flag is set."""
    checks = [parameter for parameter in program.parameters if parameter.kind == CHECK]
    for number, (parameter, data) in enumerate(zip(checks, found, strict=True)):
        count = int(np.count_nonzero(data))
        if count:
            yield Finding("bounds", CODE, f"out-of-bounds {parameter.name}", source=place_of(program, number), count=count)


def place_of(program: SpatialProgram, number: int) -> Place | None:
    """The user's line of a check; None where the program's metadata lack it."""
    sites: Any = program.metadata.get("checks")
    site: Any = sites[number] if isinstance(sites, list) and number < len(sites) else None
    if not isinstance(site, list) or [type(part) for part in site] != [str, int, int, int, str]:
        return None
    file, line, column, end, text = site
    return Place(file, line, column, end, text)
