"""One self-contained HTML page of reports: the matrix feature × target, and behind each cell all that its result says.

`payload` packs the results, `summary` writes what is there before any script runs, and `page.html`, `page.css` and the scripts are
the page itself. Nothing is fetched: the page's own policy forbids it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from tilefw_conformance.report.page.payload import pack, payload
from tilefw_conformance.report.page.summary import facts, summary, title, words
from tilefw_conformance.report.reading import Report

# In this order they are one script: each uses what those before it define.
SCRIPTS = ("model.js", "query.js", "rows.js", "matrix.js", "panel.js", "page.js")
_SLOT = re.compile(r"<!--slot (\w+)-->|/\*slot (\w+)\*/")


def page(reports: Sequence[Report], against: Sequence[Report] = ()) -> str:
    """The page of `reports`, each of other targets, with what changed since `against`; raises UsageError TFW0981."""
    data = payload(reports, against)
    slots = {
        "title": title(reports), "facts": facts(reports), "summary": summary(data), "words": words(),
        "style": _text("page.css"), "script": "\n".join(_text(name) for name in SCRIPTS), "data": pack(data),
    }
    return _SLOT.sub(lambda found: slots[found[1] or found[2]], _text("page.html"))


@cache
def _text(name: str) -> str:
    """A file of the page, without what only its readers here need: indents and lines of comment."""
    lines = (files("tilefw_conformance") / "report" / "page" / name).read_text("utf-8").splitlines()
    return "\n".join(line for line in map(str.strip, lines) if line and not line.startswith("// "))
