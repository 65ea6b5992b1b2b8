"""One target's run with its report, into which results go as they come: what `tilefw conformance` and pytest share."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from tilefw.api.errors import UsageError
from tilefw_conformance.case import Case
from tilefw_conformance.outcomes import GOOD
from tilefw_conformance.progress import Progress
from tilefw_conformance.report import records
from tilefw_conformance.report.records import Record
from tilefw_conformance.report.totals import footer
from tilefw_conformance.report.writing import ReportWriter
from tilefw_conformance.reproduction import message
from tilefw_conformance.running import TargetRun
from tilefw_conformance.summary import summary

EMPTY = 5  # the exit code of a run in which nothing passed


def refuse_lone_resume(resume: bool, folder: str | None) -> None:
    if resume and not folder:
        raise UsageError("--resume continues a report, which --report names", code="TFW0911", help="give both")


class Campaign:
    """`run` fills `header`, `results` and `footer`; without a `folder` nothing is written. `quiet` leaves stdout alone."""

    def __init__(self, target: TargetRun, cases: Sequence[Case], folder: str | None, *, quiet: bool = False) -> None:
        self.target, self.folder, self.quiet = target, folder, quiet
        self.selected = target.selected(cases)
        self.of_other_parts = target.of_other_parts(cases)
        self.faults = target.faults(cases)
        self.header: Record = {}
        self.results: list[Record] = []
        self.footer: Record = {}
        self._writer: ReportWriter | None = None
        self._began = 0.0

    @property
    def exit_code(self) -> int:
        """1 where a case or an expectation is wrong, 5 where nothing passed, else 0: also where other parts have all the cases."""
        if self.faults or any(one["outcome"] not in GOOD for one in self.results):
            return 1
        return 0 if self.of_other_parts or any(one["outcome"] == "pass" for one in self.results) else EMPTY

    def begin(self, argv: Sequence[str], *, resume: bool = False) -> list[Case]:
        """Open the report; returns the cases to run: with `resume`, those that an earlier run left."""
        self.header = self.target.header(argv)
        self._began = time.perf_counter()
        if self.folder is not None:
            self._writer = ReportWriter(self.folder, self.header, map(records.case, self.selected), resume=resume)
            self.results += self._writer.results
        done = {one["case"] for one in self.results}
        return [case for case in self.selected if case.id not in done]

    def take(self, record: Record) -> None:
        """One more result, which is in the report when this returns."""
        self.results.append(record)
        if self._writer is not None:
            self._writer.add(record)

    def finish(self) -> None:
        """Every case is done: make the report whole, and what is derived from it."""
        seconds = time.perf_counter() - self._began
        if self._writer is None or self.folder is None:
            self.footer = footer(self.results, seconds, "")
        else:
            from tilefw_conformance.report.derived import derive  # the page and its like, only where they are written

            self.footer = self._writer.finish(seconds)
            derive(self.folder)

    def leave(self) -> None:
        """Close the report as it is: without its footer, it can be resumed."""
        if self._writer is not None:
            self._writer.close()

    def run(self, argv: Sequence[str], *, resume: bool = False) -> None:
        """All of it, told on the terminal. Ctrl-C leaves a report that can be resumed."""
        for fault in self.faults:
            print(fault, file=sys.stderr)
        cases = self.begin(argv, resume=resume)
        try:
            self._run(cases)
            self.finish()
        finally:
            self.leave()
        if not self.quiet:
            print(summary(self.header, self.results, self.footer["seconds"]))
            if self.folder is not None:
                print(f"report: {self.folder}")

    def update(self, file: str | None) -> str:
        """Write what fails now into the plugin's expectations, or into `file`; says what was done."""
        from tilefw_conformance.updating import update

        return update(self.target.ready, self.results, file)

    def _run(self, cases: Sequence[Case]) -> None:
        with Progress(self.target.target, len(self.results), len(self.selected)) as progress:
            try:
                for record in self.target.results(cases):
                    self.take(record)
                    progress.advance(record)
                    if record["outcome"] not in GOOD:
                        progress.tell(message(record) + "\n")
            except KeyboardInterrupt:
                progress.tell(self._interrupted())
                raise

    def _interrupted(self) -> str:
        done = f"{len(self.results)} of {len(self.selected)} cases are done"
        return done if self.folder is None else f"{done}; --resume goes on after the report in {self.folder}"


def shown(campaign: Campaign) -> dict[str, Any]:
    """For `--json`."""
    return {"header": campaign.header, "results": campaign.results, "footer": campaign.footer}
