"""Choices of `tilefw tune`, kept on disk between runs: which configuration a kernel takes on a target for a problem."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tilefw.api.dtypes import dtype
from tilefw.runtime import atomic_write, config

_FOLDER = "tuned"
KEPT = "what `tilefw tune` has kept"


def problem_key(kernel: str, target: str, problem: Mapping[str, Any]) -> str:
    """A name for a kernel (by its source), a target and its compiler, and what of the launch is not chosen: another compiler may
    make code of it that is fastest with another configuration, and other figures of the chip another choice."""
    from tilefw.runtime.compilation.artifact_cache import tools_of
    from tilefw.runtime.compilation.fingerprint import fingerprint
    from tilefw.runtime.plugins.loader import find_target

    found = find_target(target)
    return _digest(kernel, target, problem, fingerprint(found.plugin), tools_of(found, True))


def _digest(*parts: Any) -> str:
    told = [sorted((name, str(value)) for name, value in part.items()) if isinstance(part, Mapping) else part for part in parts]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:32]


def key_of_problem(kernel: Any, target: str, keys: Mapping[str, Any], dtypes: Mapping[str, str]) -> str:
    """The key of a jit function with those values of autotune's keys and element types of its arrays, by their names."""
    types = {f"type of {name}": _type_name(kind) for name, kind in dtypes.items()}
    return problem_key(source_of(kernel), target, {**keys, **types})


def source_of(kernel: Any) -> str:
    """A digest of a kernel's text and of all it reads, wherever it stands."""
    from tilefw.frontend.cachekey import text_key

    return text_key(jit_function(kernel))


def jit_function(kernel: Any) -> Any:
    """The jit function within autotune's and heuristics' wrappings."""
    while not hasattr(kernel, "cache_key_source") and hasattr(kernel, "fn"):
        kernel = kernel.fn
    return kernel


def _type_name(name: str) -> str:
    """One name for an element type, whoever spells it; a type that only others know keeps theirs."""
    try:
        return dtype(name).name
    except KeyError:
        return name


def any_kept() -> bool:
    """Whether anything was ever kept: a key is not worth asking for else."""
    folder = config.state_directory()
    return folder is not None and (folder / _FOLDER).is_dir()


def kept(key: str) -> dict[str, Any] | None:
    """The choice that was kept under a key, as `plain` tells it, or None; a file that cannot be read counts as none."""
    path = _path(key)
    if path is None:
        return None
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    choice = found.get("choice") if isinstance(found, dict) else None
    return choice if isinstance(choice, dict) else None


def plain(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as JSON has it: a value that JSON does not know, such as an element type, by its text."""
    return json.loads(json.dumps(dict(configuration), default=str))


def keep(key: str, choice: Mapping[str, Any], told: Mapping[str, Any]) -> Path | None:
    """Keep a choice, with what people may want to know of it; gives where, or None where nothing can be kept."""
    path = _path(key)
    if path is None:
        return None
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write.write(path, json.dumps({"choice": plain(choice), **told}, indent=1) + "\n")
        return path
    return None


def search_record(key: str, stated: Mapping[str, Any]) -> Path | None:
    """Where a search for a choice writes down what it has timed, a line of JSON each; `stated` is all that was said of the search:
    times of another one are not its own."""
    path = _path(_digest(key, stated))
    return None if path is None else path.with_suffix(".jsonl")


def _path(key: str) -> Path | None:
    folder = config.state_directory()
    return None if folder is None else folder / _FOLDER / f"{key}.json"
