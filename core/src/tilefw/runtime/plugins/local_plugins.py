"""Plugins that no distribution brings: modules that TILEFW_PLUGINS (`tilefw -p`) names, and the files of TILEFW_PLUGIN_DIR.

Such a plugin is called after its module, without a leading `tilefw_`, or as `NAME=MODULE` says. It is there because somebody
named it, so it comes before an installed one of the same name.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MODULES = "TILEFW_PLUGINS"
FOLDER = "TILEFW_PLUGIN_DIR"


@dataclass(frozen=True, slots=True)
class LocalPlugin:
    """Name and hook module of a plugin, and which setting named it."""

    name: str
    module: str
    named_by: str


def local_plugins() -> tuple[LocalPlugin, ...]:
    """The local plugins, as the environment has them now; their folders go behind everything else that can be imported."""
    found = (*_modules(), *_files())
    if not found:
        return ()
    for folder in (os.getcwd(), os.environ.get(FOLDER, "")):
        if folder and (path := os.path.abspath(folder)) not in sys.path:
            sys.path.append(path)
    return found


def _modules() -> Iterator[LocalPlugin]:
    for word in os.environ.get(MODULES, "").split(","):
        name, equals, module = word.strip().partition("=")
        if equals:
            yield LocalPlugin(name, module, MODULES)
        elif name:
            yield LocalPlugin(_called(name.rpartition(".")[2]), name, MODULES)


def _files() -> Iterator[LocalPlugin]:
    folder = os.environ.get(FOLDER)
    if folder:
        for file in sorted(Path(folder).glob("[!_]*.py")):  # a folder that is not there has none
            yield LocalPlugin(_called(file.stem), file.stem, FOLDER)


def _called(module: str) -> str:
    return module.removeprefix("tilefw_").replace("_", "-")
