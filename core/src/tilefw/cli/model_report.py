"""What `tilefw run MODEL` tells: the run, the certificate, the profile, for people and as JSON; and how far a long run has come."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from tilefw.graph.certificate import Certificate
    from tilefw.graph.plan import ModelPlan
    from tilefw.graph.profile import ModelProfile

_PATIENCE = 10.0  # seconds without a word
NODES_SHOWN = 15


class RunProgress:
    """A line on stderr every few seconds: how many launches are over, and which was the last."""

    def __init__(self, launches: int) -> None:
        self._launches, self._over = launches, 0
        self._begun = self._told = time.monotonic()

    def __call__(self, label: str) -> None:
        """A launch is over."""
        self._over += 1
        now = time.monotonic()
        if now - self._told >= _PATIENCE:
            self._told = now
            print(f"{self._over} of {self._launches} launches in {now - self._begun:.0f} s, {label}", file=sys.stderr, flush=True)


def facts(plan: ModelPlan) -> dict[str, Any]:
    """Launches, kernels and bytes of a plan."""
    from tilefw.graph.memory import arranged, lives

    layout = arranged(lives(plan))
    return {
        "launches": len(plan.steps), "links": [[one.first, one.count, one.ended] for one in plan.links],
        "kernels": len(plan.kernels), "constant_bytes": plan.constant_bytes,
        "arena_bytes": layout.nbytes, "least_arena_bytes": layout.least,
    }


def summary(known: Mapping[str, Any]) -> str:
    """The facts as a sentence."""
    return (
        f"{known['launches']} launches of {known['kernels']} kernels, constants {known['constant_bytes']:,} bytes, "
        f"arena {known['arena_bytes']:,} bytes (at least {known['least_arena_bytes']:,})"
    )


def render(
    fields: Mapping[str, Any], plan: ModelPlan, outputs: Mapping[str, np.ndarray[Any, Any]], certificate: Certificate | None
) -> str:
    """The run for people."""
    headline = {None: "ran ", "pass": "pass", "fail": "FAIL"}[fields["verdict"]]
    lines = [f"{headline}  {fields['model']} on {fields['target']} ({fields['executor']})", f"  {summary(fields)}"]
    lines += [f"  {line}" for line in _linked(plan)]
    if fields["cycles"] is not None:
        predicted = fields["cycles_predicted"]
        lines.append(f"  {fields['cycles']:,} cycles" + ("" if predicted is None else f", {predicted:,} predicted"))
    lines += [f"  {name}: {plan.outputs[name].dtype}{list(array.shape)}" for name, array in outputs.items()]
    lines.append("  seconds: " + ", ".join(f"{name} {value:.3f}" for name, value in fields["seconds"].items()))
    if certificate is None:
        return "\n".join([*lines, "  unjudged: --check launches compares every launch with the reference"])
    return "\n".join(lines + judgement_lines(certificate))


def _linked(plan: ModelPlan) -> list[str]:
    """Which launches are one program."""
    found = [f"{link.count} launches from {plan.steps[link.first].label} on are one program" for link in plan.links]
    return [line + (f"; the next is not: {link.ended}" if link.ended else "") for line, link in zip(found, plan.links, strict=True)]


def judgement_lines(certificate: Certificate) -> list[str]:
    """What a certificate says, for people."""
    worst = max(certificate.launches, key=lambda launch: launch.worst, default=None)
    wrong = [launch for launch in certificate.launches if not launch.ok]
    lines = [f"  {len(certificate.launches) - len(wrong)} of {len(certificate.launches)} launches within their bounds"]
    if sampled := [launch for launch in certificate.launches if launch.sampled]:
        ran, every = sum(launch.programs for launch in sampled), sum(launch.all_programs for launch in sampled)
        lines.append(f"  {len(sampled)} of them by a sample of their programs: {ran:,} of {every:,}")
    if worst is not None:
        lines.append(f"  largest error over bound {worst.worst:.3g}, in {worst.label}")
    differing = "is not what it is where every step's results are stored"
    lines += [f"  {name} {differing}: {c}" for name, c in certificate.linked.items() if not c.ok]
    for name, error in certificate.measured.items():
        lines.append(f"  {name}: {error.absolute:.3g} from the reference's run as measured, of at most {error.magnitude:.3g}")
    for launch in wrong:
        lines += [f"  {launch.label} ({launch.kernel}), {buffer}: {c}" for buffer, c in launch.comparisons.items() if not c.ok]
    return lines


def certificate_to_json(certificate: Certificate) -> dict[str, Any]:
    return {
        "launches": [
            {
                "label": launch.label, "kernel": launch.kernel, "ok": launch.ok, "error_over_bound": launch.worst,
                "programs": launch.programs, "all_programs": launch.all_programs,
            }
            for launch in certificate.launches
        ],
        "measured": {
            name: {"absolute": error.absolute, "magnitude": error.magnitude} for name, error in certificate.measured.items()
        },
        "linked": {name: comparison.ok for name, comparison in certificate.linked.items()},
    }


def render_profile(profile: ModelProfile) -> str:
    """Kernels and nodes, that which takes longest first."""
    whole = max(profile.seconds, 1e-12)
    on_device = sum(launch.device_seconds for launch in profile.launches)
    lines = [f"  {profile.seconds * 1e3:.3f} ms in launches, {on_device * 1e3:.3f} ms of them on the device", "  by kernel:"]
    lines += [
        f"    {one.seconds * 1e3:10.3f} ms {one.seconds / whole:6.1%}  {one.kernel}, {one.launches} launches"
        for one in profile.by_kernel()
    ]
    lines.append("  by node:")
    lines += [
        f"    {one.seconds * 1e3:10.3f} ms {one.seconds / whole:6.1%}  {one.label} ({one.kernel}), "
        f"grid {'x'.join(map(str, one.grid))}"
        for one in profile.slowest(NODES_SHOWN)
    ]
    if len(profile.launches) > NODES_SHOWN:
        lines.append(f"    and {len(profile.launches) - NODES_SHOWN} more, in --json and --timeline")
    return "\n".join(lines)


def profile_to_json(profile: ModelProfile) -> dict[str, Any]:
    return {
        "seconds": profile.seconds,
        "kernels": [{"kernel": one.kernel, "launches": one.launches, "seconds": one.seconds} for one in profile.by_kernel()],
        "nodes": [
            {
                "label": one.label, "kernel": one.kernel, "grid": list(one.grid), "begin": one.begin, "seconds": one.seconds,
                "device_seconds": one.device_seconds, "counters": dict(one.counters),
            }
            for one in profile.launches
        ],
    }
