"""`triton.runtime.cache`: files that programs keep under a key, one folder for each. Compiled kernels are in tilefw's own cache."""

from __future__ import annotations

import base64
import importlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path

from tilefw.runtime.atomic_write import write
from tilefw.runtime.config import state_directory
from tilefw.triton import knobs


class CacheManager(ABC):
    """What `triton.knobs.cache.manager_class` may be a subclass of."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        self.key = key

    @abstractmethod
    def get_file(self, filename: str) -> str | None: ...

    @abstractmethod
    def put(self, data: str | bytes, filename: str, binary: bool = True) -> str: ...

    @abstractmethod
    def get_group(self, filename: str) -> dict[str, str] | None: ...

    @abstractmethod
    def put_group(self, filename: str, group: Mapping[str, str]) -> str | None: ...


class FileCacheManager(CacheManager):
    """Files in `<knobs.cache.dir, TRITON_CACHE_DIR or tilefw's own>/<key>`, each replaced whole; a group is several of them
    under one name."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        """Raises OSError where the folder cannot be made."""
        super().__init__(key, override, dump)
        self.cache_dir = str(_folder("override_dir" if override else "dump_dir" if dump else "dir") / key)
        self.lock_path = None if override else os.path.join(self.cache_dir, "lock")
        if not override:
            os.makedirs(self.cache_dir, exist_ok=True)

    def has_file(self, filename: str) -> bool:
        return os.path.exists(os.path.join(self.cache_dir, filename))

    def get_file(self, filename: str) -> str | None:
        return os.path.join(self.cache_dir, filename) if self.has_file(filename) else None

    def put(self, data: str | bytes, filename: str, binary: bool = True) -> str:
        path = os.path.join(self.cache_dir, filename)
        write(path, data if isinstance(data, bytes) else str(data))
        return path

    def get_group(self, filename: str) -> dict[str, str] | None:
        """The paths of a group's files by name; None where one of them is not there."""
        kept = self.get_file(f"__grp__{filename}")
        if kept is None:
            return None
        try:
            paths = json.loads(Path(kept).read_text("utf-8"))["child_paths"]
        except (ValueError, KeyError, TypeError, OSError):
            return None
        return paths if all(map(os.path.exists, paths.values())) else None

    def put_group(self, filename: str, group: Mapping[str, str]) -> str:
        return self.put(json.dumps({"child_paths": dict(group)}), f"__grp__{filename}")


def _folder(setting: str) -> Path:
    """Where the knob says, else where tilefw keeps its own files."""
    named = getattr(knobs.cache, setting, None) or (os.environ.get("TRITON_CACHE_DIR") if setting == "dir" else None)
    if named:
        return Path(named)
    home = state_directory()
    if home is None:
        raise FileNotFoundError("there is no folder for files that a program keeps: name one by TRITON_CACHE_DIR")
    return home / f"triton-{setting.removesuffix('_dir')}"


def get_cache_manager(key: str) -> CacheManager:
    """The files kept under a key, which is a hexadecimal number."""
    return _manager()(_base32(key))


def get_override_manager(key: str) -> CacheManager:
    return _manager()(_base32(key), override=True)


def get_dump_manager(key: str) -> CacheManager:
    return _manager()(_base32(key), dump=True)


def _manager() -> Callable[..., CacheManager]:
    """The class of the knob, or the one that TRITON_CACHE_MANAGER names as `module:class`."""
    module, _, name = os.environ.get("TRITON_CACHE_MANAGER", "").partition(":")
    return knobs.cache.manager_class or (getattr(importlib.import_module(module), name) if name else FileCacheManager)


def _base32(key: str) -> str:
    return base64.b32encode(bytes.fromhex(key)).decode("ascii").rstrip("=")
