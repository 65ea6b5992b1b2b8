"""Choices of `tilefw tune`, kept on disk between runs: which configuration a kernel takes on a target for a problem."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tilefw.api.dtypes import dtype
from tilefw.runtime import atomic_write, config

KEPT = "what `tilefw tune` has kept"


def problem_key(kernel: str, target: str, problem: Mapping[str, Any]) -> str:
    """A name for a kernel (its name or source), a target and what of the launch is not chosen."""
    told = json.dumps([kernel, target, sorted((name, str(value)) for name, value in problem.items())])
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def key_of_problem(kernel: Any, target: str, keys: Mapping[str, Any], dtypes: Sequence[str]) -> str:
    """The key of a jit function with those values of autotune's keys and element types of its arrays."""
    types = {f"type {number}": _type_name(name) for number, name in enumerate(dtypes)}
    return problem_key(jit_function(kernel).cache_key_source(), target, {**keys, **types})


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


def kept(key: str) -> dict[str, Any] | None:
    """The choice that was kept under a key, or None; a file that cannot be read counts as none."""
    path = _path(key)
    if path is None:
        return None
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found.get("choice") if isinstance(found, dict) else None


def keep(key: str, choice: Mapping[str, Any], told: Mapping[str, Any]) -> Path | None:
    """Keep a choice, with what people may want to know of it; gives where, or None where nothing can be kept."""
    path = _path(key)
    if path is None:
        return None
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write.write(path, json.dumps({"choice": dict(choice), **told}, indent=1) + "\n")
        return path
    return None


def search_record(key: str) -> Path | None:
    """Where a search writes down what it has timed, a line of JSON each."""
    path = _path(key)
    return None if path is None else path.with_suffix(".jsonl")


def _path(key: str) -> Path | None:
    folder = config.state_directory()
    return None if folder is None else folder / "tuned" / f"{key}.json"
