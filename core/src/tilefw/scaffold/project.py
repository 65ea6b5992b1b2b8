"""A new backend's project: the templates of a kind, with the plugin's name put in, as files in an empty folder.

`templates/project` holds what all projects have, `templates/simt` and `templates/custom` what differs. A template's name is that of
its file with `.in` behind it; `package` stands for the package's name, `dot-` for a leading dot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

from tilefw.api.errors import UsageError
from tilefw.api.version import TILEFW_API

# `simt` for chips with lanes; `custom` for machines that execute one program after another.
KINDS = ("simt", "custom")
NAME = re.compile(r"[a-z][a-z0-9]{0,29}", re.ASCII)
# A distribution or a target of tilefw itself is called so.
RESERVED = frozenset({"tilefw", "core", "conformance", "reference"})


@dataclass(frozen=True, slots=True)
class Project:
    """A project before it is written: its target's name, and its files by path."""

    name: str
    kind: str
    target: str
    files: Mapping[str, str]


def project(name: str, kind: str) -> Project:
    """The project of the plugin `name`; raises UsageError TFW0985 for a name that no plugin can have."""
    if not NAME.fullmatch(name):
        rule = "a small letter, then small letters and digits, 30 at most: targets, a package and a class are called after it"
        raise UsageError(f"{name!r} is not a name for a backend", code="TFW0985", help=rule)
    if name in RESERVED:
        raise UsageError(f"the name {name!r} belongs to tilefw itself", code="TFW0985", help="take your own, or your chip's")
    words = _template_words(name)
    return Project(name, kind, words["target"], {
        _path(path, words["package"]): Template(text).substitute(words)
        for folder in ("project", kind) for path, text in _templates(folder)
    })


def write_project(made: Project, folder: Path) -> None:
    """Write the files into `folder`, which is new or empty; raises UsageError TFW0986 where it is not, or cannot be written."""
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{folder} is there already and not an empty folder", code="TFW0986", help="nothing is overwritten")
        for path, text in made.files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{error.filename or folder} cannot be written: {error.strerror or error}", code="TFW0986") from None


def _template_words(name: str) -> dict[str, str]:
    from tilefw import __version__

    major, minor, *_ = __version__.split(".")
    api = ", ".join(map(str, TILEFW_API))
    return {
        "name": name, "title": name.capitalize(), "package": f"tilefw_{name}", "target": f"{name}-v1", "api": api,
        "version": f"{major}.{minor}", "next": f"{major}.{int(minor) + 1}" if major == "0" else str(int(major) + 1),
    }


def _templates(folder: str) -> Iterator[tuple[str, str]]:
    """The templates of a folder, by path."""
    root = files("tilefw.scaffold") / "templates" / folder
    yield from _below(root, "")


def _below(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _below(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".in"):
            yield prefix + entry.name.removesuffix(".in"), entry.read_text(encoding="utf-8")


def _path(template: str, package: str) -> str:
    parts = [package if part == "package" else re.sub("^dot-", ".", part) for part in template.split("/")]
    return "/".join(parts)
