"""A pytest collector for IR files: `// RUN: tilefw opt %s -p … | filecheck %s` runs in this process, in milliseconds.

In a `conftest.py`: `from tilefw.testing.filecheck import pytest_collect_file`. The files stay runnable by lit. A RUN line may
begin with `not`, when the command must fail; its message is what is checked then.
"""

from __future__ import annotations

import contextlib
import io
import shlex
from collections.abc import Iterable
from pathlib import Path

import pytest

SUFFIXES = (".mlir", ".lane", ".machine")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """pytest's hook: files of IR that hold a RUN line."""
    if file_path.suffix in SUFFIXES and "RUN:" in file_path.read_text(encoding="utf-8"):
        return FileCheckFile.from_parent(parent, path=file_path)
    return None


class FileCheckFile(pytest.File):
    """One file; each RUN line is a test."""

    def collect(self) -> Iterable[pytest.Item]:
        for number, line in enumerate(self.path.read_text(encoding="utf-8").splitlines()):
            if "RUN:" in line:
                command = line.split("RUN:", 1)[1].strip()
                yield FileCheckItem.from_parent(self, name=f"run{number + 1}", command=command)


class CommandFailed(Exception):
    """What the command of a RUN line, or filecheck, had to say."""


class FileCheckItem(pytest.Item):
    """One RUN line."""

    def __init__(self, *, command: str, **keywords: object) -> None:
        super().__init__(**keywords)  # type: ignore[arg-type]
        self.command = command

    def runtest(self) -> None:
        producer, _, checker = self.command.partition("|")
        words = shlex.split(producer.replace("%s", str(self.path)))
        output = run_command(words)
        check = shlex.split(checker)
        if not check or check[0] != "filecheck":
            raise CommandFailed(f"a RUN line pipes into filecheck: {self.command}")
        options = [w for w in check[1:] if w != "%s"]
        run_filecheck(output, self.path, options)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> str:  # type: ignore[override]
        if isinstance(excinfo.value, CommandFailed):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.path.name}: {self.command}"


def run_command(words: list[str]) -> str:
    """Run `tilefw …` in this process; its output, or with a leading `not` its error message."""
    from tilefw.cli.main import main

    fails = words[:1] == ["not"]
    words = words[1:] if fails else words
    if words[:1] != ["tilefw"]:
        raise CommandFailed(f"a RUN line runs tilefw, got {' '.join(words)}")
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words[1:])
    if (code != 0) != fails:
        raise CommandFailed(f"`{' '.join(words)}` gave exit code {code}\n{err.getvalue()}")
    return err.getvalue() if fails else out.getvalue()


def run_filecheck(output: str, path: Path, options: list[str]) -> None:
    """Match the checks of a file against text. Raises CommandFailed with filecheck's report."""
    from filecheck.finput import FInput
    from filecheck.matcher import Matcher
    from filecheck.options import parse_argv_options
    from filecheck.parser import Parser

    parsed = parse_argv_options(["filecheck", str(path), *options])
    report = io.StringIO()
    with contextlib.redirect_stderr(report), contextlib.redirect_stdout(report):
        matcher = Matcher(parsed, FInput(str(path), output), Parser.from_opts(parsed))
        code = matcher.run()
    if code:
        raise CommandFailed(f"{report.getvalue()}\n--- the output was\n{output}")
