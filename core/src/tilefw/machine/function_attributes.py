"""What passes and emitters must know of a machine function besides its instructions: how it is called, what it takes of the chip.

Selection makes the attributes, register assignment adds what it used. In text they are one JSON object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tilefw.api import json_values as values
from tilefw.api.artifact import Parameter, parameter_of, parameter_to_json
from tilefw.api.remark import Remark, remark_of, remark_to_json

Workgroup = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class FunctionAttributes:
    """How a kernel is called and what a workgroup of it takes.

    `workgroup`: threads along x, y and z; None where nobody told, as in a piece of code that a test of a pass takes: it cannot be
    launched. `parameters`: in order, at their offsets in the argument block. `shared_bytes`: shared memory of a workgroup, 0 for
    none, whose first byte is at a multiple of `shared_align` bytes. `acquires`: an atomic or a fence may tell the kernel of what
    others wrote, so that memory that the kernel only reads may change between two loads. `remarks`: what its user should learn.
    `workgroups` make a program together, as a cluster along x.

    Register assignment sets these three, by register file. `registers`: the highest that is used + 1; None before assignment.
    `spills`: how many smallest registers wait elsewhere for a while; none where it is empty. `scratch_bytes`: memory of a lane in
    which they wait.
    """

    workgroup: Workgroup | None = None
    parameters: tuple[Parameter, ...] = ()
    shared_bytes: int = 0
    shared_align: int = 1
    acquires: bool = False
    remarks: tuple[Remark, ...] = ()
    workgroups: int = 1
    spills: Mapping[str, int] = field(default_factory=dict)
    scratch_bytes: int = 0
    registers: Mapping[str, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, without those that are as they are by default; `from_json` makes equal attributes of them."""
        made: dict[str, Any] = {
            "workgroup": None if self.workgroup is None else list(self.workgroup),
            "parameters": [parameter_to_json(parameter) for parameter in self.parameters],
            "shared_bytes": self.shared_bytes,
            "shared_align": self.shared_align,
            "acquires": self.acquires,
            "remarks": [remark_to_json(remark) for remark in self.remarks],
            "workgroups": self.workgroups,
            "spills": dict(self.spills),
            "scratch_bytes": self.scratch_bytes,
            "registers": None if self.registers is None else dict(self.registers),
        }
        return {name: value for name, value in made.items() if value != _ABSENT[name]}

    @classmethod
    def from_json(cls, raw: Any) -> FunctionAttributes:
        """The attributes that `to_json` gave. Raises ValueError with what is wrong: no object, a name that is none, a missing or
        mistyped value."""
        values.checked(raw, dict, "the object of attributes")
        if unknown := sorted(raw.keys() - _ABSENT.keys()):
            raise ValueError(f"there is no attribute {', '.join(map(repr, unknown))}")
        given = {**_ABSENT, **raw}
        try:
            return cls(
                workgroup=_workgroup(given["workgroup"]),
                parameters=tuple(parameter_of(each) for each in values.array(given, "parameters")),
                shared_bytes=_at_least(0, given, "shared_bytes"),
                shared_align=_at_least(1, given, "shared_align"),
                acquires=values.checked(given["acquires"], bool, "acquires"),
                remarks=tuple(remark_of(each) for each in values.array(given, "remarks")),
                workgroups=_at_least(1, given, "workgroups"),
                spills=values.counts(values.checked(given["spills"], dict, "spills"), "spills") or {},
                scratch_bytes=_at_least(0, given, "scratch_bytes"),
                registers=values.counts(given["registers"], "registers"),
            )
        except KeyError as error:
            raise ValueError(f"{error.args[0]} is missing") from None


# What a name stands for that the text leaves out.
_ABSENT: Mapping[str, Any] = {
    "workgroup": None, "parameters": [], "shared_bytes": 0, "shared_align": 1, "acquires": False, "remarks": [],
    "workgroups": 1, "spills": {}, "scratch_bytes": 0, "registers": None,
}


def _workgroup(raw: Any) -> Workgroup | None:
    if raw is None:
        return None
    extents = values.checked(raw, list, "workgroup")
    if len(extents) != 3 or any(values.checked(n, int, "an extent of the workgroup") < 1 for n in extents):
        raise ValueError("workgroup is not three extents of one or more")
    x, y, z = extents
    return x, y, z


def _at_least(least: int, given: dict[str, Any], name: str) -> int:
    found = values.checked(given[name], int, name)
    if found < least:
        raise ValueError(f"{name} is {found}")
    return found
