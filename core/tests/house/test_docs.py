"""What the documentation shows works: its commands run, its Python runs, the files it names exist."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from tree import CORE, PLUGINS, ROOT

DOCS = sorted((ROOT / "docs").glob("*.md"))
COMMANDS = [
    (page.name, line[2:])
    for page in DOCS
    for block in re.findall(r"^```console\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
    if line.startswith("$ ")
]


@pytest.mark.parametrize("page, command", COMMANDS, ids=[f"{page}: {command}" for page, command in COMMANDS])
def test_a_command_of_the_documentation_runs(page, command, tmp_path, monkeypatch):
    monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path / "cache"))
    words = command.split()
    assert words[0] == "tilefw", f"{page} shows a command that is not ours"
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_kernel_of_the_readme_runs(tmp_path):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    script = tmp_path / "readme.py"
    script.write_text(program)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "add on nvidia-sm80" in done.stdout


@pytest.mark.parametrize("page", [*DOCS, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name)
def test_every_file_that_is_named_exists(page):
    text = page.read_text(encoding="utf-8")
    names = {p.name for folder in (CORE, *PLUGINS.values()) for p in folder.rglob("*.py")}
    named = re.findall(r"`([\w/]+\.py)`", text)
    missing = [name for name in named if name.rpartition("/")[2] not in names and not (ROOT / name).exists()]
    links = [link for link in re.findall(r"\]\(([\w./-]+)\)", text) if not (page.parent / link).exists()]
    assert not missing and not links
