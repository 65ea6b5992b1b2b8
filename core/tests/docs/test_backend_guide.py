"""The backend author's guide, followed: its commands run in order and its changes are made to the project that it scaffolds.

The whole `core` level after each step is a campaign of its own (`-m campaign`); here the commands of the page speak for it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tilefw.testing import distribution

GUIDE = Path(__file__).parents[3] / "docs" / "backend-authors-guide.md"
OTHER_CHIP = Path(__file__).with_name("other_chip.diff")
PAGE = GUIDE.read_text(encoding="utf-8")
WALK = PAGE.partition("\n## 2. ")[0]
BLOCKS, NPU = (
    re.findall(r"^```(sh|diff)\n(.*?)^```$", part, re.MULTILINE | re.DOTALL) for part in (WALK, PAGE.partition("\n## 11. ")[2])
)
DIFFS = [text for kind, text in BLOCKS if kind == "diff"]
# `| step 1: … | at least 150 | 10 |`: what the page says of the core level after each step.
ROWS = re.findall(r"^\| (?:the scaffold|step \d: [^|]*) \| at least (\d+) \| (\d+) \|$", WALK, re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Project:
    """The reader's folder, and the environment in which the project of the page is installed."""

    folder: Path
    name: str = "mychip"

    @property
    def package(self) -> Path:
        return self.folder / f"tilefw-{self.name}"

    @property
    def environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(self.package / "src"), *(p for p in sys.path if p)])
        return {**os.environ, "PYTHONPATH": path, "TILEFW_CACHE_DIR": str(self.folder / "cache")}

    def run(self, command: str) -> str:
        """The output of a command of the page; `pip install -e` is an entry point beside the sources."""
        words = shlex.split(command)
        if words[:3] == ["pip", "install", "-e"]:
            assert words[3:] == [f"tilefw-{self.name}[test]"]
            return self.install()
        assert words[0] == "tilefw", command
        done = subprocess.run(
            [sys.executable, "-m", *words], capture_output=True, text=True, cwd=self.folder, timeout=600, env=self.environment
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def install(self) -> str:
        distribution.write(self.package / "src", self.name, f"tilefw_{self.name}.plugin", version="0.1.0")
        return ""

    def change(self, diff: str) -> None:
        """Make one change of the page: every hunk fits one place of its file."""
        for part in re.split(r"^--- ", diff, flags=re.MULTILINE)[1:]:
            name, _, hunks = part.partition("\n")
            file = self.package / name
            text = file.read_text(encoding="utf-8")
            for hunk in re.split(r"^@@\n", hunks, flags=re.MULTILINE)[1:]:
                lines = hunk.splitlines()
                old = "".join(line[1:] + "\n" for line in lines if not line.startswith("+"))
                new = "".join(line[1:] + "\n" for line in lines if not line.startswith("-"))
                assert ("\n" + text).count("\n" + old) == 1, f"{name}: {hunk}"
                text = ("\n" + text).replace("\n" + old, "\n" + new)[1:]
            file.write_text(text, encoding="utf-8")


def test_the_page_followed_word_by_word(tmp_path: Path) -> None:
    project = Project(tmp_path)
    counts = []
    for kind, text in BLOCKS:
        if kind == "diff":
            project.change(text)
            continue
        for line in text.splitlines():
            command = line.removeprefix("$ ")
            output = project.run(command)
            if "conformance" in command:
                counts += [int(n) for n in re.findall(r"mychip-v1 \(sim\): (\d+) pass", output)]
    assert len(counts) == 5 and counts[0] >= 20, counts  # the scaffold's own, and a look after each step


def test_a_chip_that_is_unlike_the_scaffolds_follows_the_same_page(tmp_path: Path) -> None:
    """Eight lanes, 64-bit registers of their own, no upper half of a product: all steps at once, twenty core cases."""
    project = Project(tmp_path)
    for command in ("tilefw new-backend mychip --out tilefw-mychip", 'pip install -e "tilefw-mychip[test]"'):
        project.run(command)
    project.change(OTHER_CHIP.read_text(encoding="utf-8"))
    output = project.run('tilefw conformance --target mychip-v1 -k "vector_add/types or vector_add/ragged or softmax/types"')
    (passed,) = re.findall(r"mychip-v1 \(sim\): (\d+) pass", output)
    assert int(passed) >= 20, output
    output = project.run("tilefw compile integer_mix --target mychip-v1 --emit machine")
    assert "$a[" in output and "mulh.u" not in output


def test_the_steps_to_a_machine_without_lanes_followed_word_by_word(tmp_path: Path) -> None:
    project = Project(tmp_path, "mynpu")
    for kind, text in NPU:
        if kind == "diff":
            project.change(text)
            continue
        for line in text.splitlines():
            project.run(line.removeprefix("$ "))
    shape = "--param m=32 --param n=32 --param k=32 --param dtype=fp32"
    text = project.run(f"tilefw compile matmul --target mynpu-v1 --emit asm {shape}")
    assert "mma " in text and "dma.out.2 " in text and " = exp2 " not in text


def test_the_page_counts_its_lines() -> None:
    added = [sum(line.startswith("+") for line in diff.splitlines()) for diff in DIFFS]
    assert [int(lines) for _, lines in ROWS] == [0, *added]
    assert f"in four steps, of {sum(added)} lines together" in WALK.replace("\n", " ")
    own = sum(line.startswith("+") for kind, diff in NPU if kind == "diff" for line in diff.splitlines())
    assert f"Three steps make it an NPU, of {own} lines together" in PAGE


@pytest.mark.campaign
def test_the_core_level_after_each_step_is_what_the_page_says(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for command in ("tilefw new-backend mychip --out tilefw-mychip", 'pip install -e "tilefw-mychip[test]"'):
        project.run(command)
    for diff, (least, _) in zip(("", *DIFFS), ROWS, strict=True):
        project.change(diff)
        (outcome,) = json.loads(project.run("tilefw conformance --target mychip-v1 --json"))["runs"]
        counts = outcome["footer"]["counts"]["core"]
        assert counts["pass"] >= int(least), counts
