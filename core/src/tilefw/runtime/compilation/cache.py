"""The disk cache of artifacts: found by key, checked on the way in, written atomically, bounded in size, shared by processes.

A damaged, unknown or half-written entry is a miss, never an error; nothing in an entry is unpickled. Code of the host that is
kept here (of its own target, and of the simulator's compiled form) is executed: the folder is the user's own. A folder that cannot
be written makes every compile a miss, which `tilefw doctor` says.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tilefw.runtime import atomic_write, config

MAGIC = b"tilefw-cache/1"
ENTRY_LIMIT = 256 << 20  # bytes of one entry
SIZE_LIMIT = 1 << 30  # bytes of all entries; the longest unused go first
LOOKS = 64  # so often is the whole folder looked at while the limit is written once: 0.1 s for 8,000 entries, most of them small
TOUCH_SECONDS = 3600  # how stale an entry's time of use may be


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a pipe in an entry's place would hold us for ever."""
    return os.open(path, flags | os.O_NONBLOCK)


@dataclass(frozen=True, slots=True)
class DiskCache:
    """Entries below one folder; `limit` bounds their bytes."""

    folder: Path
    limit: int = SIZE_LIMIT

    def get(self, key: str) -> bytes | None:
        """What was put under `key`, or None."""
        path = self._path(key)
        try:
            with open(path, "rb", opener=_without_waiting) as file:
                facts = os.fstat(file.fileno())
                if not stat.S_ISREG(facts.st_mode) or facts.st_size > ENTRY_LIMIT:
                    return None
                data = file.read(ENTRY_LIMIT)
        except OSError:
            return None
        payload = _payload(key, data)
        if payload is not None and time.time() - facts.st_mtime > TOUCH_SECONDS:
            with contextlib.suppress(OSError):
                os.utime(path)
        return payload

    def put(self, key: str, payload: bytes) -> bool:
        """Keep `payload` under `key`; False where the folder cannot be written or the entry is too large."""
        if len(payload) > ENTRY_LIMIT - 4096:
            return False
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic_write.write(path, _header(key, payload) + payload)
        except OSError:
            return False
        if int(key[:12], 16) % max(1, self.limit // LOOKS) < len(payload):  # by chance, without a count that processes share
            self.prune()
        return True

    def prune(self) -> int:
        """Remove the longest unused entries until the limit holds; returns how many bytes are left."""
        entries = sorted(self._entries(), key=lambda e: -e[0])
        kept = 0
        for _, size, path in entries:
            if kept + size <= self.limit:
                kept += size
                continue
            with contextlib.suppress(OSError):  # another process was faster
                path.unlink()
        return kept

    def _entries(self) -> Iterator[tuple[float, int, Path]]:
        for path in (self.folder / "artifacts").glob("*/*"):
            with contextlib.suppress(OSError):
                facts = path.lstat()
                if stat.S_ISREG(facts.st_mode):
                    yield facts.st_mtime, facts.st_size, path

    def _path(self, key: str) -> Path:
        return self.folder / "artifacts" / key[:2] / key


def disk_cache() -> DiskCache | None:
    """The cache that the environment names at this moment, or None when it is off."""
    folder = config.cache_directory()
    return None if folder is None else DiskCache(folder)


def digest(*facts: object) -> str:
    """A key from facts whose `repr` says all there is of them."""
    hashed = hashlib.sha256()
    for fact in facts:
        text = repr(fact).encode("utf-8", "surrogatepass")
        hashed.update(b"%d:" % len(text))
        hashed.update(text)
    return hashed.hexdigest()


def _header(key: str, payload: bytes) -> bytes:
    return b"%b %b %b %d\n" % (MAGIC, key.encode(), hashlib.sha256(payload).hexdigest().encode(), len(payload))


def _payload(key: str, data: bytes) -> bytes | None:
    line, newline, payload = data.partition(b"\n")
    return payload if newline and line + newline == _header(key, payload) else None
