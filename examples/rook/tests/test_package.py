"""What a stranger's package is: it sees `tilefw.api` alone, its hooks are light, it is small."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tilefw_rook
from tilefw.api.capabilities import PROFILES, profiles
from tilefw_rook.target import R1

SOURCES = sorted(Path(tilefw_rook.__file__).parent.glob("*.py"))


def imported(source: Path) -> list[str]:
    return re.findall(r"^ *(?:from|import) ([\w.]+)", source.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_only_the_api_is_imported(source: Path) -> None:
    others = [name for name in imported(source) if name.partition(".")[0] not in sys.stdlib_module_names]
    assert all(f"{name}.".startswith(("tilefw.api.", "tilefw_rook.")) for name in others)


def test_the_package_and_its_tests_have_at_most_900_lines() -> None:
    files = [*SOURCES, *Path(__file__).parent.glob("*.py")]
    assert len(files) > len(SOURCES) and sum(file.read_text(encoding="utf-8").count("\n") for file in files) <= 900


def test_the_hooks_load_no_heavy_module() -> None:
    code = "import sys, tilefw_rook.plugin as p; p.tilefw_targets(); print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert not {"numpy", "xdsl", "yaml"} & {name.partition(".")[0] for name in done.stdout.split()}


def test_all_profiles_are_claimed_but_the_one_of_binary64() -> None:
    assert PROFILES.keys() - set(profiles(R1.capabilities)) == {"tile-fp64"}
