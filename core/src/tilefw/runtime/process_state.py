"""What of the process decides launches, as it was: the environment and the folders from which modules are imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any


class ProcessState:
    """The process's settings at one time. Every launch asks whether they are still these, which must be quick: so all of them are
    compared at once, whoever reads them."""

    __slots__ = ("_environment", "_path", "_steady")

    def __init__(self) -> None:
        self._environment = dict(_environment())
        self._path = sys.path.copy()
        self._steady = "TILEFW_PLUGIN_DIR" not in os.environ  # there are as many plugins as the folder has files

    def unchanged(self) -> bool:
        """Whether nothing has changed since."""
        return self._steady and _environment() == self._environment and sys.path == self._path


def _environment() -> Mapping[Any, Any]:
    """The variables, as `os.environ` keeps them: it encodes and decodes each one that it gives, which takes 30 times as long."""
    return getattr(os.environ, "_data", os.environ)
