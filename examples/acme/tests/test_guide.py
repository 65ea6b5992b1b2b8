"""Every command on acme that the backend author's guide shows runs as it stands there, and its code is this package's."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tilefw_acme

GUIDE = Path(__file__).parents[3] / "docs" / "backend-authors-guide.md"
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
# Installing is what brought this test here; the scaffolded project is followed in core's tests.
COMMANDS = [
    line[2:] for block in BLOCKS for line in block.splitlines() if not line.startswith("$ pip install")
    and not re.search("mychip|mynpu", line)
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_guide_runs(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path / "cache"))
    words = command.split()
    assert words[0] == "tilefw"
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "acme" in done.stdout or "compile" in words


@pytest.mark.parametrize("block", SNIPPETS, ids=lambda block: block.split("\n", 1)[0])
def test_code_of_the_guide_stands_in_the_package(block: str) -> None:
    first, code = block.split("\n", 1)
    source = Path(tilefw_acme.__file__).parent / first.removeprefix("# ")
    assert code.strip("\n") in source.read_text(encoding="utf-8")


def test_the_guide_shows_commands_and_code() -> None:
    assert len(COMMANDS) >= 5 and len(SNIPPETS) >= 5
