"""The files beside report.jsonl, all made from it alone: report.html, report.md, junit.xml and badges."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from tilefw.api.errors import UsageError
from tilefw.runtime import atomic_write
from tilefw_conformance.report.badge import badges
from tilefw_conformance.report.junit import junit
from tilefw_conformance.report.markdown import markdown
from tilefw_conformance.report.page import page
from tilefw_conformance.report.reading import read


def derive(folder: str) -> tuple[str, ...]:
    """Write them into the folder of a whole report and return their paths; raises as `read` does, and TFW0954."""
    report = read(folder)
    texts = {"report.html": page([report]), "report.md": markdown(report), "junit.xml": junit(report)}
    texts |= {name: json.dumps(badge, ensure_ascii=False) + "\n" for name, badge in badges(report).items()}
    return tuple(write(os.path.join(folder, name), text) for name, text in texts.items())


def merge(folder: str, parts: Sequence[str]) -> str:
    """Write one page of the reports in the folders `parts`, each of other targets, into `folder`; returns its path."""
    return write(os.path.join(folder, "report.html"), page([read(part) for part in parts]))


def write(path: str, text: str) -> str:
    """Write a file and return its path; raises UsageError TFW0954."""
    try:
        atomic_write.write(path, text)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}", code="TFW0954") from None
    return path


