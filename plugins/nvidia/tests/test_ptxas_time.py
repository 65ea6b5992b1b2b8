"""A ptxas that does not end, or cannot be run, is named with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tilefw.api import CompileError, UsageError
from tilefw_nvidia import ptxas


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    for asked in (ptxas.find_ptxas, ptxas.version):
        asked.cache_clear()
    yield
    for asked in (ptxas.find_ptxas, ptxas.version):
        asked.cache_clear()


def _program(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_one_that_does_not_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFW_PTXAS", _program(tmp_path / "ptxas", "#!/bin/sh\nexec sleep 60\n"))
    monkeypatch.setattr(ptxas, "TIME_LIMIT", 0.2)
    with pytest.raises(CompileError, match=r"did not end within 0\.2 seconds") as caught:
        ptxas.run_ptxas(".version 7.0", "sm_80")
    assert caught.value.code == "TFW0624" and "num_warps" in (caught.value.help or "")


def test_one_that_cannot_be_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFW_PTXAS", str(tmp_path / "none"))
    with pytest.raises(UsageError, match="cannot run") as caught:
        ptxas.version()
    assert caught.value.code == "TFW0615"


def test_one_that_does_not_tell_its_version_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFW_PTXAS", _program(tmp_path / "ptxas", "#!/bin/sh\nexec sleep 60\n"))
    monkeypatch.setattr(ptxas, "VERSION_TIME_LIMIT", 0.2)
    with pytest.raises(UsageError, match=r"--version did not end within 0\.2 seconds") as caught:
        ptxas.version()
    assert caught.value.code == "TFW0615"
