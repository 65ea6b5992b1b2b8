"""What changed between two runs, result by result: added, deleted, changed, unchanged, as wpt.fyi's diff has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tilefw.api.errors import UsageError
from tilefw_conformance.outcomes import GOOD
from tilefw_conformance.report.reading import Report
from tilefw_conformance.report.records import Record

KINDS = {"A": "added", "D": "deleted", "C": "changed", "U": "unchanged"}
# What makes two results hard to compare, beside the code under test. Reports differ in these often, and it must be said.
_CONDITIONS = ("edition", "level", "stage", "seed", "expression", "options")


@dataclass(frozen=True, slots=True)
class Change:
    """One (target, case) of two runs: `old` and `new` are its outcomes, None where a run has none."""

    kind: str
    target: str
    case: str
    old: str | None
    new: str | None

    @property
    def worse(self) -> bool:
        """It was well (or was not there), and is not."""
        return self.new is not None and self.new not in GOOD and (self.old is None or self.old in GOOD)

    @property
    def better(self) -> bool:
        """It was not well and is, or is a pass that was none."""
        known = self.old is not None and self.new is not None and self.old != self.new
        return known and ((self.new in GOOD and self.old not in GOOD) or self.new == "pass")


@dataclass(frozen=True, slots=True)
class Difference:
    """All changes on the targets that both runs have, by target and case; `conditions` are those in which the runs differ."""

    changes: tuple[Change, ...]
    conditions: tuple[str, ...]

    def of(self, kinds: str) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.kind in kinds)

    @property
    def counts(self) -> dict[str, int]:
        return {kind: len(self.of(kind)) for kind in KINDS}


def difference(old: Report, new: Report) -> Difference:
    """Raises UsageError TFW0981 where the two have no target in common."""
    shared = [name for name in new.targets if name in old.targets]
    if not shared:
        raise UsageError(
            "the two reports have no target in common", code="TFW0981",
            note=f"{old.file}: {', '.join(old.targets)}\n{new.file}: {', '.join(new.targets)}",
        )
    changes = [change for target in shared for change in between(old.results, new.results, target)]
    return Difference(tuple(changes), tuple(_conditions(old, new, shared)))


Results = Mapping[tuple[str, str], Record]


def between(old: Results, new: Results, target: str) -> Iterator[Change]:
    """The changes on one target, by case."""
    keys = sorted(key for key in old.keys() | new.keys() if key[0] == target)
    for key in keys:
        before, after = old[key]["outcome"] if key in old else None, new[key]["outcome"] if key in new else None
        kind = "A" if before is None else "D" if after is None else "U" if before == after else "C"
        yield Change(kind, target, key[1], before, after)


def _conditions(old: Report, new: Report, shared: Sequence[str]) -> Iterator[str]:
    for name in _CONDITIONS:
        if old.header[name] != new.header[name]:
            yield f"{name}: {_shown(old.header[name])}, then {_shown(new.header[name])}"
    for name in shared:
        before, after = old.facts(name), new.facts(name)
        if before["executor"] != after["executor"]:
            yield f"executor of {name}: {before['executor']}, then {after['executor']}"
        if before["capability_digest"] != after["capability_digest"]:
            yield f"claims of {name}: {before['capabilities']} capabilities, then {after['capabilities']}"


def _shown(value: object) -> str:
    return "none" if value is None or value == {} else str(value)
