"""`report.jsonl` as it grows: a line as soon as it is known, so that what is done survives whatever ends the run.

The footer comes last. A file without it is an interrupted run, which a writer told to `resume` goes on with.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, BinaryIO

from tilefw.api.errors import CodeError, Place, UsageError
from tilefw_conformance.report.reading import check_form, record_of
from tilefw_conformance.report.records import FILE, Record
from tilefw_conformance.report.totals import footer

# What two runs must have in common for one to go on where the other stopped.
IDENTITY = ("schema", "edition", "targets", "level", "stage", "seed", "expression", "options", "versions")


class ReportWriter:
    """Streams one report into `folder`; `done` are the (target, case) pairs whose results were there before.

    Without `resume` an older report in the folder is replaced. With it, complete lines are kept, a torn last one and a footer are
    dropped. Raises UsageError TFW0954 where the folder cannot be written, or another run is writing there; TFW0975 where the report
    in it is of another run, and CodeError TFW0976 with the line where it was damaged, TFW0978 where it was whole and was edited.
    """

    def __init__(self, folder: str, header: Record, cases: Iterable[Record], *, resume: bool = False) -> None:
        self.folder, self.path = folder, os.path.join(folder, FILE)
        self.results: list[Record] = []
        self._content = hashlib.sha256()
        self._file = _locked(folder, self.path)
        try:
            self._begin(header, cases, resume)
        except BaseException:
            self.close()  # which gives the lock back as well
            raise

    def _begin(self, header: Record, cases: Iterable[Record], resume: bool) -> None:
        """Take over what an older run left, cut off the rest, and say what this one is about."""
        try:
            kept = _kept(self.path, self._file.read(), header) if resume else []
            for line, record in kept:
                self._keep(line, record)
            self._file.seek(sum(len(line) for line, _ in kept))
            self._file.truncate()
        except OSError as error:
            raise _unwritable(self.folder, error) from None
        self.done = frozenset(_key(one) for one in self.results)
        known = {record["case"] for _, record in kept if record["kind"] == "case"}
        if not kept:
            self.add(header)
        for case in cases:
            if case["case"] not in known:
                self.add(case)

    def __enter__(self) -> ReportWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def add(self, record: Record) -> None:
        """Write one record, at once and whole."""
        line = encode(record)
        self._keep(line, record)
        try:
            self._file.write(line)
            self._file.flush()
        except OSError as error:
            raise _unwritable(self.folder, error) from None

    def finish(self, seconds: float) -> Record:
        """Write the footer, which makes the report whole, and return it."""
        last = footer(self.results, seconds, self._content.hexdigest())
        self.add(last)
        self.close()
        return last

    def close(self) -> None:
        """Without a footer, the report stays one that can be resumed."""
        self._file.close()

    def _keep(self, line: bytes, record: Record) -> None:
        self._content.update(line)
        if record["kind"] == "result":
            self.results.append(record)


def encode(record: Mapping[str, Any]) -> bytes:
    """A record as its line. Text that is not Unicode (a worker's garbage) becomes JSON's own escapes."""
    text = json.dumps(record, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _made(path: str, flags: int) -> int:
    """Open a file, which is made where there is none."""
    return os.open(path, flags | os.O_CREAT, 0o666)


def _locked(folder: str, path: str) -> BinaryIO:
    """The file at `path`, made where there is none, for this run alone; two would write through each other."""
    try:
        os.makedirs(folder, exist_ok=True)
        file = open(path, "r+b", opener=_made)  # noqa: SIM115 (closed by `ReportWriter.close`)
    except OSError as error:
        raise _unwritable(folder, error) from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise UsageError(
            f"another run is writing its report to {folder}", code="TFW0954", help="report into another folder, or wait for it"
        ) from None
    except OSError:
        pass  # a file system without locks: nothing can be said about others
    return file


def _kept(path: str, data: bytes, header: Record) -> list[tuple[bytes, Record]]:
    """The lines of an interrupted report to go on after, each with its record; none where not even the header was whole."""
    lines = data.split(b"\n")[:-1]
    kept: list[tuple[bytes, Record]] = []
    for number, line in enumerate(lines, 1):
        place = Place(path, number)
        try:
            record = record_of(line, place)
            if number == 1:
                _check_same_run(path, record, header)
            check_form(record, place)
        except CodeError:
            if number == len(lines):
                break  # torn where the system went down: its case runs again
            raise
        if record["kind"] != "footer":
            kept.append((line + b"\n", record))
        elif record["content"] != hashlib.sha256(b"".join(text for text, _ in kept)).hexdigest():
            raise CodeError(f"{path} was edited after the run that wrote it", code="TFW0978", place=place)
    _check_once(path, kept)
    return kept


def _check_once(path: str, kept: Iterable[tuple[bytes, Record]]) -> None:
    """Two results of one case may disagree, and neither is to be trusted: better told now than when the run is done."""
    seen: set[tuple[str, str]] = set()
    for _, record in kept:
        if record["kind"] != "result":
            continue
        if _key(record) in seen:
            raise CodeError(f"{path} has two results of {record['case']} on {record['target']}", code="TFW0975")
        seen.add(_key(record))


def _key(result: Record) -> tuple[str, str]:
    return result["target"], result["case"]


def _check_same_run(path: str, old: Record, new: Record) -> None:
    if old.get("kind") != "header":
        raise UsageError(f"{path} does not begin with a header", code="TFW0975", help="report into another folder")
    for name in IDENTITY:
        if old.get(name) != json.loads(encode(new))[name]:
            raise UsageError(
                f"{path} is of another run: its {name} was {_shown(old.get(name))}, and is {_shown(new[name])} now", code="TFW0975",
                help="resume with the options of that run, or report into another folder",
            )


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else text[:100] + "…"


def _unwritable(folder: str, error: OSError) -> UsageError:
    return UsageError(f"the report cannot be written to {folder}: {error.strerror or error}", code="TFW0954")
