"""The page of the machine is what the table and the machine file say, and every number of the file has its origin."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilefw_spatial.machine import ORIGINS, MachineFileError, load, read
from tilefw_spatial.page import page

DOCS = Path(__file__).parents[4] / "docs"
MACHINE = load()


def test_the_page_is_made_from_the_table() -> None:
    assert (DOCS / "sdm-1.md").read_text(encoding="utf-8") == page(), "python -m tilefw_spatial.isa > docs/sdm-1.md"


def test_the_machine_has_the_published_shape() -> None:
    assert MACHINE.lanes == 320
    assert MACHINE.capacity == 220 << 20
    assert len(MACHINE.queues) == 144
    assert [MACHINE.position(unit) for unit in ("MXM.W", "VXM", "MEM.E0", "MXM.E")] == [0, 46, 47, MACHINE.last_position]
    assert {quantity.origin for quantity in MACHINE.quantities.values()} <= set(ORIGINS)


def test_streams_flow_one_way() -> None:
    assert MACHINE.passes(4, 46, 50) == 4 and MACHINE.passes(4, 50, 46) is None
    assert MACHINE.passes(36, 50, 46) == 4 and MACHINE.passes(36, 46, 50) is None
    assert MACHINE.diagonal(4, 46, 10) == MACHINE.diagonal(4, 50, 14)
    assert MACHINE.diagonal(36, 50, 10) == MACHINE.diagonal(36, 46, 14)


def test_both_ends_of_a_link_are_each_others() -> None:
    pairs = [(a, b) for a in range(8) for b in range(8) if a != b]
    assert all(MACHINE.peer(a, MACHINE.link(a, b)) == b and MACHINE.peer(b, MACHINE.link(b, a)) == a for a, b in pairs)


def _file() -> str:
    return (Path(__file__).parents[2] / "src" / "tilefw_spatial" / "data" / "sdm-1.yaml").read_text(encoding="utf-8")


def test_the_hash_is_that_of_the_values() -> None:
    assert read(_file() + "# a remark").hash == MACHINE.hash
    assert read(_file().replace("read: {value: 5,", "read: {value: 6,")).hash != MACHINE.hash


@pytest.mark.parametrize(("old", "new"), [
    ("origin: ours, source: \"row on the stream\"", "source: \"row on the stream\""),
    ("streams: {value: 32, origin: published", "streams: {value: 32, origin: guessed"),
    ("streams: {value: 32,", "streams: {value: many,"),
    ("alus: {", "adders: {"),
])
def test_a_file_without_origins_or_names_is_refused(old: str, new: str) -> None:
    assert old in _file()
    with pytest.raises(MachineFileError):
        read(_file().replace(old, new))
