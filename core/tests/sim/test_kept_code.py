"""Machine code of the simulator is kept from process to process, and not where the cache is off."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tilefw.runtime.compilation import fingerprint
from tilefw.sim.compiled import kept_code
from tilefw.sim.compiled.pricing import LazyFunction, address_of, numbers
from tilefw.sim.compiled.unread_stores import NOT_HERE, OK, WORDS, unread

pytest.importorskip("llvmlite")


def compiles(monkeypatch: pytest.MonkeyPatch, text: str) -> bool:
    """Whether the object of a text is compiled anew."""
    asked: list[str] = []
    plain = kept_code.object_of
    monkeypatch.setattr(kept_code, "object_of", lambda text, loops: (asked.append(text), plain(text, loops))[1])
    made = kept_code.object_for(text, loops=True)
    monkeypatch.undo()
    assert made
    return bool(asked)


def test_code_is_compiled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = unread(0)
    for first in (True, False):
        monkeypatch.setenv("TILEFW_CACHE", "1")
        monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path))
        assert compiles(monkeypatch, text) == first


def test_code_that_another_core_has_made_is_compiled_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The text says nothing of the passes, of how far addresses reach, and the like."""
    text = unread(0)
    for core, new in (("one", True), ("one", False), ("another", True)):
        monkeypatch.setenv("TILEFW_CACHE", "1")
        monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path))
        monkeypatch.setattr(fingerprint, "_core", lambda core=core: core)
        assert compiles(monkeypatch, text) == new


def test_a_damaged_entry_is_compiled_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEFW_CACHE", "1")
    monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path))
    text = unread(0)
    good = kept_code.object_for(text, loops=True)
    (entry,) = (path for path in tmp_path.rglob("*") if path.is_file())
    entry.write_bytes(entry.read_bytes()[:-8] + bytes(8))
    assert kept_code.kept_object(text, loops=True) is None
    assert kept_code.object_for(text, loops=True) == good == kept_code.kept_object(text, loops=True)


def test_nothing_is_kept_where_the_cache_is_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for _ in range(2):
        monkeypatch.setenv("TILEFW_CACHE", "0")
        monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path))
        assert compiles(monkeypatch, unread(0))
    assert list(tmp_path.iterdir()) == []


def test_kept_code_does_what_it_did(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A store by wave 1 of two places of 4 bytes, then a load of both, then a store that finds one of them unread."""
    monkeypatch.setenv("TILEFW_JIT", "always")
    function = LazyFunction(unread, 0, len(WORDS))
    assert function.ready()
    index, writers, read = np.array([0, 8], np.int64), np.zeros(4, np.int32), np.zeros(8, np.uint8)
    waves = np.array([1], np.int64)

    def call(stores: bool, writer: int, shift: int = 3) -> int:
        words = [
            address_of(index), address_of(numbers(2)), shift, address_of(waves), 2, address_of(writers), address_of(read), stores,
            writer,
        ]
        return function.call(words, len(index), 1)

    assert call(True, 3) == OK and writers.tolist() == [4, 0, 4, 0]
    assert call(True, 5) == NOT_HERE and writers.tolist() == [4, 0, 4, 0]
    assert call(False, 0) == OK and writers.tolist() == [0] * 4 and read[4]
