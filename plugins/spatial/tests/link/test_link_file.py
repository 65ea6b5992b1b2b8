"""Links in a model's file: rows that do not fit the plan are told, and nothing of them is run."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from linked_model import LinkedModel

from tilefw.api.errors import CodeError
from tilefw.graph import plan_file
from tilefw.graph.compile_graph import compile_graph

Row = list[Any]
FIRST, COUNT, BUFFERS, OBSERVED, ENDED = range(2, 7)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of (x + weights) + x."""
    model = LinkedModel(16)
    first = model.added("first", model.x, model.constant("weights"), model.rows("h"))
    model.made.output("y", model.added("second", first, model.x, model.rows("y")))
    path = tmp_path_factory.mktemp("saved") / "model.tfm"
    plan_file.save(compile_graph(model.made.graph(), "spatial-sdm1"), path)
    return path.read_bytes()


def _changed(whole: bytes, links: list[Row]) -> bytes:
    """The file with other rows of links, and a digest that fits."""
    magic, _, body = whole.partition(b"\n")
    length, _, rest = body.partition(b"\n")
    header = json.dumps({**json.loads(rest[: int(length)]), "links": links}, separators=(",", ":")).encode()
    start = len(magic) + 1 + len(length) + 1 + int(length)
    made = b"%d\n%b" % (len(header), header)
    blobs = rest[int(length) :][-start % 64 :]
    made += bytes(-(len(magic) + 1 + len(made)) % 64) + blobs
    return magic.partition(b" ")[0] + b" " + hashlib.sha256(made).hexdigest().encode() + b"\n" + made


def _links(whole: bytes) -> list[Row]:
    length, _, rest = whole.partition(b"\n")[2].partition(b"\n")
    return json.loads(rest[: int(length)])["links"]


def _with(place: int, value: Any):
    return lambda row: [[*row[:place], value, *row[place + 1 :]]]


DAMAGES = {
    "a step before the first": _with(FIRST, -1),
    "a step behind the last": _with(FIRST, 1),
    "no step's number": _with(FIRST, "0"),
    "too many steps": _with(COUNT, 3),
    "one step": _with(COUNT, 1),
    "a truth for a number": _with(COUNT, True),
    "no buffers": _with(BUFFERS, []),
    "a buffer too many": lambda row: _with(BUFFERS, [*row[BUFFERS], 0])(row),
    "a buffer that is not there": lambda row: _with(BUFFERS, [99, *row[BUFFERS][1:]])(row),
    "a negative buffer": lambda row: _with(BUFFERS, [-1, *row[BUFFERS][1:]])(row),
    "a constant that is written": lambda row: _with(BUFFERS, [*row[BUFFERS][:-1], row[BUFFERS][1]])(row),
    "buffers that are no list": _with(BUFFERS, 0),
    "an observed buffer that is not there": lambda row: _with(OBSERVED, [*row[OBSERVED][:-1], 99])(row),
    "a reason that is no text": _with(ENDED, 5),
    "a row too short": lambda row: [row[:-1]],
    "a row too long": lambda row: [[*row, 0]],
    "no row": lambda row: [0],
    "two links of the same steps": lambda row: [row, row],
    "code that is longer than the file": _with(0, 1 << 40),
    "code of a negative length": _with(1, -1),
    "code that is cut short": lambda row: _with(0, row[0] - 1)(row),
}


def _loaded(folder: Path, data: bytes):
    path = folder / "damaged.tfm"
    path.write_bytes(data)
    return plan_file.load(path)


def test_the_file_is_read_where_nothing_is_changed(whole: bytes, tmp_path: Path) -> None:
    (link,) = _loaded(tmp_path, _changed(whole, _links(whole))).links
    assert (link.first, link.count) == (0, 2)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_row_that_cannot_be_is_told(damage: str, whole: bytes, tmp_path: Path) -> None:
    (row,) = _links(whole)
    with pytest.raises(CodeError) as caught:
        _loaded(tmp_path, _changed(whole, DAMAGES[damage](row)))
    assert caught.value.code == "TFW0782"
