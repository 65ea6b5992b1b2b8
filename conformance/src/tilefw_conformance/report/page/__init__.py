"""One self-contained HTML page of reports: the matrix feature × target, and behind each cell all that its result says.

`payload` packs the results, `summary` writes what is there before any script runs, and `page.html`, `page.css` and the scripts are
the page itself. Nothing is fetched: the page's own policy forbids it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.page_template import filled
from tilefw_conformance.report.page.payload import pack, payload
from tilefw_conformance.report.page.summary import facts, summary, title, words
from tilefw_conformance.report.reading import Report

# In this order they are one script: each uses what those before it define.
SCRIPTS = ("model.js", "query.js", "rows.js", "matrix.js", "panel.js", "page.js")


def page(reports: Sequence[Report], against: Sequence[Report] = ()) -> str:
    """The page of `reports`, each of other targets, with what changed since `against`; raises UsageError TFW0981."""
    data = payload(reports, against)
    slots = {
        "title": title(reports), "facts": facts(reports), "summary": summary(data), "words": words(), "data": pack(data),
    }
    return filled(__name__, SCRIPTS, slots)
