"""The checker: every constraint of a program derived anew from the binary, and what a cycle more or less would do."""

from tilefw_spatial.check.checker import Judged, check, judge
from tilefw_spatial.check.problem import Problem
from tilefw_spatial.check.shift import ShiftVerdict, movable, shift, shifted

__all__ = ["Judged", "Problem", "ShiftVerdict", "check", "judge", "movable", "shift", "shifted"]
