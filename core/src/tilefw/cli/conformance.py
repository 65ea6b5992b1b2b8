"""`tilefw conformance`: hands over to the distribution tilefw-conformance, when it is installed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from tilefw.api.errors import UsageError


def main(summary: str, argv: list[str]) -> int:
    if find_spec("tilefw_conformance") is None:
        raise UsageError("the conformance suite is not installed", code="TFW0915", help="pip install tilefw-conformance")
    return import_module("tilefw_conformance.cli").main(argv)
