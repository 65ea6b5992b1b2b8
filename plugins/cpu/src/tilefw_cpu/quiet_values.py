"""Which values of a function can be no signalling NaN, so that nothing needs to make them quiet.

Of what a variable holds it is known when the function has been written: until then a line that makes it quiet stands there, which
goes where all that is assigned is quiet.
"""

from __future__ import annotations

from math import isnan
from struct import pack, unpack

from tilefw_cpu.spelling import LlvmValue

_ALWAYS: frozenset[str] = frozenset()


class QuietValues:
    """Of values by name, the variables that must hold quiet ones for them to be quiet."""

    def __init__(self) -> None:
        self._needs: dict[str, frozenset[str]] = {}
        self._assigned: dict[str, list[frozenset[str] | None]] = {}
        self._unsure: list[tuple[int, frozenset[str], str]] = []  # a line, what it is not needed for, and what stands there then

    def made(self, name: str) -> None:
        """Arithmetic has made a value."""
        self._needs[name] = _ALWAYS

    def moved(self, value: LlvmValue, *sources: LlvmValue) -> LlvmValue:
        """A value has lanes of others alone."""
        needs = [self._of(source) for source in sources]
        known = [need for need in needs if need is not None]
        if len(known) == len(needs):
            self._needs[value.text] = _ALWAYS.union(*known)
        return value

    def read(self, name: str, variable: str) -> None:
        """A value is what a variable holds."""
        self._needs[name] = frozenset((variable,))

    def assigned(self, variable: str, value: LlvmValue) -> None:
        """A variable holds a value from here on."""
        self._assigned.setdefault(variable, []).append(self._of(value))

    def surely(self, value: LlvmValue) -> bool:
        """Whether a value is known to be quiet by now."""
        return self._of(value) == _ALWAYS

    def quieted(self, name: str, line: int, plain: str) -> None:
        """A line of the function makes a value quiet; `plain` does for one that is."""
        needs = self._needs.get(name)
        if needs is not None:
            self._unsure.append((line, needs, plain))

    def _of(self, value: LlvmValue) -> frozenset[str] | None:
        if value.number is not None:
            return None if _signals(value) else _ALWAYS
        return self._needs.get(value.text)

    def settle(self, lines: list[str]) -> None:
        """Leave out of a function's lines what the whole of it shows not to be needed."""
        loud = {variable for variable, values in self._assigned.items() if None in values}
        while more := {v for v, values in self._assigned.items() if v not in loud and any(n and n & loud for n in values)}:
            loud |= more
        for number, needs, plain in self._unsure:
            if not needs & loud:
                _, _, place = lines[number].partition(", !dbg ")
                lines[number] = f"{plain}, !dbg {place}" if place else plain


def _signals(value: LlvmValue) -> bool:
    """Whether a constant is a signalling NaN: the highest bit of its fraction is 0."""
    number = value.number
    assert number is not None
    if value.type not in ("f32", "f64"):
        return False
    wide = value.type == "f64"
    (real,) = unpack("<d" if wide else "<f", pack("<Q" if wide else "<I", number))
    return isnan(real) and not number >> (51 if wide else 22) & 1
