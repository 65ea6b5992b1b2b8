"""The verdicts of a campaign as a file, a line for each kernel: a campaign that was cut short goes on behind them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oracles.site import Site


@dataclass(frozen=True)
class Verdict:
    """What became of one mutant. `detail` is the finding, the mismatch, or the argument."""

    kernel: str
    site: Site
    outcome: str
    detail: str


@dataclass(frozen=True)
class KernelVerdicts:
    """Those of a kernel, and the processor's seconds that they took. `code` is the digest of the code that they are about."""

    kernel: str
    verdicts: tuple[Verdict, ...]
    seconds: float
    code: str = ""

    @property
    def survivors(self) -> bool:
        """Whether there are any."""
        return any(v.outcome == "survived" for v in self.verdicts)


def key(site: Site) -> tuple[str, int, str, str]:
    """What tells a kernel's sites apart."""
    return site.kind, site.line, site.before, site.after


def digest(sites: Sequence[Site]) -> str:
    """Of the code of a kernel, which any of its sites has but for one place: another one where anything of it has changed."""
    return hashlib.sha256(repr(([key(site) for site in sites], [site.code for site in sites[:1]])).encode()).hexdigest()


def append(log: Path, one: KernelVerdicts) -> None:
    """Sites without their changed texts, which nobody reads again; in the place of a last line that was cut off."""
    told = [[v.site.kind, v.site.line, v.site.before, v.site.after, v.outcome, v.detail] for v in one.verdicts]
    line = json.dumps({"kernel": one.kernel, "seconds": one.seconds, "code": one.code, "verdicts": told}) + "\n"
    whole = log.read_bytes().rfind(b"\n") + 1 if log.exists() else 0
    with log.open("ab") as file:
        file.truncate(whole)
        file.write(line.encode())


def read(log: Path | None, kernels: Sequence[str]) -> dict[str, KernelVerdicts]:
    """Of these kernels, the last verdicts that a log has; a last line that was cut off is none."""
    lines = log.read_text("utf-8").splitlines(keepends=True) if log is not None and log.exists() else []
    told = [json.loads(line) for line in lines if line.endswith("\n")]
    return {one["kernel"]: _kernel(one) for one in told if one["kernel"] in kernels}


def _kernel(told: dict[str, Any]) -> KernelVerdicts:
    name = told["kernel"]
    verdicts = tuple(
        Verdict(name, Site(kind, line, before, after, ""), outcome, detail)
        for kind, line, before, after, outcome, detail in told["verdicts"]
    )
    return KernelVerdicts(name, verdicts, told["seconds"], told.get("code", ""))
