"""What of a plugin can change its machine code changes its fingerprint: a file of its package, what it depends on, its tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tilefw.api import Artifact, Backend, TargetInfo
from tilefw.runtime.compilation import fingerprint as module
from tilefw.runtime.compilation.fingerprint import fingerprint
from tilefw.runtime.plugins.loader import Target
from tilefw.runtime.plugins.plugin import Plugin

FILES = ("hooks.py", "table.json", "kernel.h", "runtime.c", "libchip.so", "page.in")
PLUGIN = Plugin("chip", "tilefw-chip", "1.0", "chip_plugin.backend.hooks", "ok")


def distribute(
    site: Path, name: str, version: str = "1.0", *, requires: tuple[str, ...] = (), record: str = "", url: str = ""
) -> None:
    info = site / f"{name.replace('-', '_')}.dist-info"
    info.mkdir(exist_ok=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {one}" for one in requires)]
    (info / "METADATA").write_text("\n".join(lines) + "\n")
    (info / "RECORD").write_text(record)
    if url:
        (info / "direct_url.json").write_text(json.dumps({"dir_info": {"editable": True}, "url": url}))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A plugin with a package of several kinds of files, which requires one distribution that requires another."""
    site = tmp_path / "site with space"
    package = site / "chip_plugin" / "backend"
    package.mkdir(parents=True)
    (site / "chip_plugin" / "__init__.py").touch()
    for name in ("__init__.py", *FILES):
        (package / name).write_text(name)
    (site / "library").mkdir()
    (site / "library" / "encode.py").write_text("x")
    distribute(site, "tilefw-chip", requires=("Chip.Tables>=1", "tilefw-core", "absent", "pytest; extra == 'dev'"))
    distribute(site, "chip-tables", requires=("chip_library", "tilefw-chip"), record="tables.bin,sha256=1,4\n")
    distribute(site, "chip-library", url=(site / "library").as_uri())
    monkeypatch.syspath_prepend(str(site))
    yield site
    forget()


def forget() -> None:
    """As the next process begins."""
    module._package.cache_clear()
    module._dependencies.cache_clear()


def edit(path: str) -> Callable[[Path], object]:
    return lambda site: (site / path).write_text("an edit")


CHANGES: dict[str, Callable[[Path], object]] = {
    **{name: edit(f"chip_plugin/backend/{name}") for name in FILES},
    "beside the hooks": edit("chip_plugin/__init__.py"),
    "a new file": edit("chip_plugin/more.py"),
    "a dependency's version": lambda site: distribute(site, "chip-tables", "1.1", record="tables.bin,sha256=1,4\n"),
    "a dependency's file": lambda site: distribute(site, "chip-tables", requires=("chip_library",), record="tables,sha256=2"),
    "an editable dependency": edit("library/encode.py"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_seen_by_the_next_process(site: Path, change: Callable[[Path], object]) -> None:
    before = fingerprint(PLUGIN)
    forget()
    assert fingerprint(PLUGIN) == before, "nothing has changed"
    change(site)
    forget()
    assert fingerprint(PLUGIN) != before


@pytest.mark.parametrize("written", ["chip_plugin/__pycache__/hooks.pyc", "chip_plugin/.cache/log", "other.txt"])
def test_what_is_no_code_of_the_plugin_changes_nothing(site: Path, written: str) -> None:
    before = fingerprint(PLUGIN)
    (site / written).parent.mkdir(exist_ok=True)
    (site / written).write_text("x")
    forget()
    assert fingerprint(PLUGIN) == before


class Tooled(Backend):
    toolchain_variables = ("PATH", "CHIP_HOME")
    asked = 0

    def pipeline(self, options):
        return []

    def emit(self, module, options):
        return Artifact(self.target.name, "text", "", ())

    def toolchain_digest(self):
        Tooled.asked += 1
        return f"assembler {Tooled.asked}"


def test_a_backend_tells_its_tools_once_and_again_when_they_may_be_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tooled, "asked", 0)
    monkeypatch.delenv("CHIP_HOME", raising=False)
    target = Target(TargetInfo("t-1", "t", "1", "s", f"{__name__}:Tooled", frozenset({"emit"})), None)
    monkeypatch.setattr(target, "_backend", Tooled(target.info))
    assert [target.toolchain_digest() for _ in range(3)] == ["assembler 1"] * 3
    monkeypatch.setenv("CHIP_HOME", "/elsewhere")
    assert [target.toolchain_digest() for _ in range(2)] == ["assembler 2"] * 2
    monkeypatch.setenv("CHIP_NAME", "no variable of its tools")
    assert target.toolchain_digest() == "assembler 2"
