"""A profile as data: what is told of a launch's time, and how it reads as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilefw.timing.causes import Cause
from tilefw.timing.launch_time import Residency

SHOWN = 8


@dataclass(frozen=True, slots=True)
class Limit:
    """What cycles went for: issuing, waiting for a pipe or a level of memory, barriers. All limits add up to the launch."""

    cause: str
    cycles: float
    share: float


@dataclass(frozen=True, slots=True)
class Roof:
    """One level of memory: bytes of the whole launch through it, bytes a second, and what the level can move for all processors."""

    level: str
    nbytes: float
    achieved: float
    attainable: float


@dataclass(frozen=True, slots=True)
class StalledCode:
    """An instruction or a source line: how often waves executed it, cycles that they waited before it, all waves together, and for
    what. `source` is the `where` of an instruction's line, "" where the code does not say."""

    where: str
    text: str
    executed: int
    stalled: float
    causes: Mapping[str, float]
    source: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class LaunchProfile:
    """A launch as the model of time sees it. `low` and `high` bound `seconds` by the ranges of the chip's figures. `operations` are
    arithmetic operations a second; `peak` what the matrix units of the chip could do, None where no product was executed."""

    kernel: str
    target: str
    product: str
    grid: tuple[int, int, int]
    cycles: float
    seconds: float
    low: float
    high: float
    clock_hz: float
    residency: Residency
    occupancy: float | None
    limits: tuple[Limit, ...]
    busy: Mapping[str, float]
    roofline: tuple[Roof, ...]
    operations: float
    peak: float | None
    stalls: tuple[StalledCode, ...]
    lines: tuple[StalledCode, ...]
    notes: tuple[str, ...]
    causes: tuple[Cause, ...] = ()

    @property
    def names_lines(self) -> bool:
        """Whether the code says which source lines its instructions come from."""
        return any(row.source for row in self.stalls)

    def __repr__(self) -> str:
        return _rendered(self)

    def to_json(self) -> dict[str, Any]:
        """Plain values by name, as `tilefw profile --json` has them."""
        return _to_json(self)

    def _repr_html_(self) -> str:
        from tilefw.timing.page import framed

        return framed([self.to_json()])


def _rendered(profile: LaunchProfile) -> str:
    """One profile for people: time, limits, memory, the lines where waves wait."""
    spread = profile.residency
    head = (
        f"{profile.kernel} on {profile.target}: {profile.cycles:,.0f} cycles, {shown_time(profile.seconds)} "
        f"({shown_time(profile.low)} to {shown_time(profile.high)}) at {profile.clock_hz / 1e6:,.0f} MHz"
    )
    lines = [head, f"  {spread.workgroups} workgroups, {spread.resident} at once on each of {spread.active} processors"]
    if profile.peak:
        share = profile.operations / profile.peak
        rates = f"{profile.operations / 1e12:,.2f} of {profile.peak / 1e12:,.0f} T operations/s"
        lines.append(f"  {rates} ({share:.0%} of the matrix units)")
    lines.append("  cycles go to " + ", ".join(f"{limit.cause} {limit.share:.0%}" for limit in profile.limits[:5]))
    lines.append("  busy: " + ", ".join(f"{pipe} {share:.0%}" for pipe, share in _ranked(profile.busy)[:5]))
    lines += [
        f"  {roof.level:<5} {shown_bytes(roof.nbytes):>9}, {roof.achieved / 1e9:>8,.0f} of {roof.attainable / 1e9:,.0f} GB/s"
        for roof in profile.roofline
    ]
    lines += [f"  {why.cause}: {why.share:.0%} faster without: {why.change}" for why in profile.causes[:3]]
    if profile.names_lines:
        lines += _table("waits by source line", profile.lines)
    else:
        lines += _table("waits by instruction", sorted(profile.stalls, key=lambda row: -row.stalled))
    lines += [f"  note: {note}" for note in profile.notes]
    return "\n".join(lines)


def _table(title: str, rows: Sequence[StalledCode]) -> list[str]:
    total = sum(row.stalled for row in rows) or 1.0
    lines = [f"  {title}"]
    for row in rows[:SHOWN]:
        cause = max(row.causes.items(), key=lambda item: item[1], default=("", 0.0))[0]
        lines.append(f"    {row.stalled / total:>5.0%}  {row.where.rpartition('/')[2]:<24} {row.text[:70]:<70} {cause}")
    return lines


def _ranked(shares: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(shares.items(), key=lambda item: -item[1])


def shown_time(seconds: float) -> str:
    return f"{seconds * 1e3:,.3f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:,.2f} us"


def shown_bytes(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count:,.0f} B"


def _to_json(profile: LaunchProfile) -> dict[str, Any]:
    spread = profile.residency
    return {
        "kernel": profile.kernel, "target": profile.target, "chip": profile.product, "grid": list(profile.grid),
        "cycles": profile.cycles, "seconds": profile.seconds, "range": [profile.low, profile.high], "clock_hz": profile.clock_hz,
        "residency": {"workgroups": spread.workgroups, "resident": spread.resident, "processors": spread.active},
        "occupancy": profile.occupancy,
        "limits": [{"cause": limit.cause, "cycles": limit.cycles, "share": limit.share} for limit in profile.limits],
        "causes": [
            {"cause": why.cause, "cycles": why.cycles, "share": why.share, "change": why.change} for why in profile.causes
        ],
        "busy": dict(profile.busy),
        "roofline": {
            "operations_per_second": profile.operations, "peak": profile.peak,
            "levels": [
                {"level": roof.level, "bytes": roof.nbytes, "achieved": roof.achieved, "attainable": roof.attainable}
                for roof in profile.roofline
            ],
        },
        "stalls": [_code(row) for row in profile.stalls], "lines": [_code(row) for row in profile.lines],
        "notes": list(profile.notes),
    }


def _code(row: StalledCode) -> dict[str, Any]:
    return {
        "where": row.where, "text": row.text, "executed": row.executed, "cycles": row.stalled, "causes": dict(row.causes),
        "source": row.source,
    }
