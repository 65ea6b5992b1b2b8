"""The campaign: so many damaged programs, what became of each kind, and the slowest attempt.

    python -m damaged.campaign --count 100000 --seed 1 --report bench/spatial-damaged-files.md

with plugins/spatial/tests on PYTHONPATH. `--only KIND:NUMBER` repeats one attempt and shows its trace.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from damaged.attempts import DAMAGES, subjects
from tilefw.testing import damaged
from tilefw.testing.damaged import DamageCampaign, SeenEndings

CAMPAIGN = DamageCampaign(DAMAGES, subjects)


def report(found: Mapping[str, SeenEndings], seed: int) -> str:
    """The result as Markdown."""
    return "\n".join([
        "# Damaged programs for spatial-sdm1, and what comes of them", "",
        f"{damaged.summary(found, seed)}, made of {len(subjects())} whole programs. Tracebacks and hangs: "
        f"{len(damaged.failures(found))}.", "",
        "A file is read, written as text, assembled again to the same bytes and launched; text is assembled and launched.", "",
        *damaged.tables(found, ["ran"]), "",
    ])


if __name__ == "__main__":
    sys.exit(damaged.main(CAMPAIGN, report, __doc__ or ""))
