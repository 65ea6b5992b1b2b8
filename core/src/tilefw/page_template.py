"""Self-contained HTML pages from files beside their modules: a template with slots, style, scripts; nothing is fetched by them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

_SLOT = re.compile(r"<!--slot (\w+)-->|/\*slot (\w+)\*/")


def filled(package: str, scripts: Sequence[str], slots: Mapping[str, str]) -> str:
    """`page.html` of a package with its slots filled; `style` is `page.css`, and `script` all `scripts` as one, in their order."""
    style, script = page_text(package, "page.css"), "\n".join(page_text(package, name) for name in scripts)
    given = {"style": style, "script": script, **slots}
    return _SLOT.sub(lambda found: given[found[1] or found[2]], page_text(package, "page.html"))


@cache
def page_text(package: str, name: str) -> str:
    """A file of a page, without what only its readers here need: indents and lines of comment."""
    lines = (files(package) / name).read_text("utf-8").splitlines()
    return "\n".join(line for line in map(str.strip, lines) if line and not line.startswith("// "))
