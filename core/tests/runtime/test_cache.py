"""The disk cache never shows a half-written, damaged or foreign entry, whatever other processes do."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from tilefw.runtime.compilation.cache import DiskCache, digest

KEY = digest("some", "facts")


def test_what_was_put_is_got(tmp_path):
    cache = DiskCache(tmp_path)
    assert cache.get(KEY) is None
    assert cache.put(KEY, b"payload\n\x00") and cache.get(KEY) == b"payload\n\x00"


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "foreign key", "folder", "fifo", "dangling link", "garbage"])
def test_a_damaged_or_foreign_entry_is_a_miss_and_can_be_written_anew(tmp_path, damage):
    cache = DiskCache(tmp_path)
    cache.put(KEY, b"x" * 1000)
    path = cache._path(KEY)
    whole = path.read_bytes()
    path.unlink()
    if damage == "truncate":
        path.write_bytes(whole[:-1])
    elif damage == "flip":
        path.write_bytes(whole[:-1] + b"y")
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "foreign key":
        other = digest("others")
        cache.put(other, b"z")
        path.write_bytes(cache._path(other).read_bytes())
    elif damage == "folder":
        path.mkdir()
    elif damage == "fifo":
        os.mkfifo(path)
    elif damage == "dangling link":
        path.symlink_to(tmp_path / "nowhere")
    else:
        path.write_bytes(os.urandom(500))
    assert cache.get(KEY) is None
    if damage != "folder":
        assert cache.put(KEY, b"new") and cache.get(KEY) == b"new"


def test_looking_for_an_entry_leaves_no_file_open(tmp_path):
    cache = DiskCache(tmp_path)
    cache._path(KEY).mkdir(parents=True)
    assert cache.get(KEY) is None  # what Python itself opens once is open from here on
    free = _lowest_free_descriptor()
    assert cache.get(KEY) is None and _lowest_free_descriptor() == free


def _lowest_free_descriptor() -> int:
    found = os.dup(2)
    os.close(found)
    return found


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    cache = DiskCache(blocked)
    assert not cache.put(KEY, b"x") and cache.get(KEY) is None


def test_the_folder_is_looked_at_by_how_much_is_written(monkeypatch, tmp_path):
    """Many small entries, as the simulator's code is, do not cost a look each few."""
    looks: list[DiskCache] = []
    monkeypatch.setattr(DiskCache, "prune", lambda self: looks.append(self))
    cache = DiskCache(tmp_path, limit=64_000)
    for number in range(400):
        cache.put(digest(number), bytes(10))
    assert 1 <= len(looks) <= 10, "400 times 10 bytes are a sixteenth of the limit: 4 looks of 64"
    looks.clear()
    cache.put(digest("large"), bytes(1000))
    assert looks == [cache]


def test_the_size_bound_drops_the_longest_unused(tmp_path):
    cache = DiskCache(tmp_path, limit=3500)
    keys = [digest(i) for i in range(5)]
    for age, key in enumerate(keys):
        cache.put(key, b"x" * 1000)
        os.utime(cache._path(key), (1_000_000 + age, 1_000_000 + age))
    assert cache.prune() <= 3500
    assert [cache.get(key) is not None for key in keys] == [False, False, True, True, True]


def test_a_key_tells_types_and_order_apart():
    keys = {digest(1), digest(True), digest(1.0), digest("1"), digest("a", "b"), digest("ab"), digest("b", "a"), digest(("a", "b"))}
    assert len(keys) == 8


def test_processes_that_write_and_read_at_once_see_whole_entries_only(tmp_path):
    program = textwrap.dedent("""
        import sys
        from pathlib import Path
        from tilefw.runtime.compilation.cache import DiskCache, digest
        cache, me = DiskCache(Path(sys.argv[1])), sys.argv[2]
        keys = [digest(i) for i in range(4)]
        seen = 0
        for turn in range(300):
            key = keys[turn % 4]
            cache.put(key, (me * 50_000 + key).encode())
            for k in keys:
                data = cache.get(k)
                if data is not None:
                    text = data.decode()
                    assert text in ("a" * 50_000 + k, "b" * 50_000 + k), text[:20]
                    seen += 1
        assert seen > 1000, seen
    """)
    children = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path), me], stderr=subprocess.PIPE) for me in "ab"]
    for child in children:
        _, errors = child.communicate(timeout=120)
        assert child.returncode == 0, errors.decode()
    assert not list(tmp_path.rglob(".draft-*"))
