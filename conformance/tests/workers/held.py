"""`tilefw`, held at a known line of its report: `python held.py COUNT conformance …` writes COUNT results and then waits."""

from __future__ import annotations

import signal
import sys
import time

from tilefw.cli.main import main
from tilefw_conformance.report.records import Record
from tilefw_conformance.report.writing import ReportWriter


def hold_after(count: int) -> None:
    """Make every report of this process wait, without end, once `count` results are in its file."""
    write = ReportWriter.add

    def add(self: ReportWriter, record: Record) -> None:
        write(self, record)
        if len(self.results) == count:
            time.sleep(3600)

    ReportWriter.add = add


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts its background jobs with the signal ignored
    hold_after(int(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
