"""Is what a plugin says of its targets well-formed? A mistake there is the plugin's, named field by field."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tilefw.api import capabilities
from tilefw.api.target import FACTS, PROVIDES, TargetInfo, TritonNames

NAME = re.compile(r"[a-z0-9][a-z0-9_.+-]*", re.ASCII)
BACKEND = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)


class BadTarget(Exception):
    """What is wrong with a target, as a sentence."""


def check_targets(plugin: str, targets: Any) -> tuple[TargetInfo, ...]:
    """The targets of one plugin, checked; raises BadTarget for the first fault."""
    if not isinstance(targets, Sequence) or isinstance(targets, str):
        raise BadTarget(f"tilefw_targets returned {type(targets).__name__}, not a sequence of TargetInfo")
    seen: set[str] = set()
    for info in targets:
        if not isinstance(info, TargetInfo):
            raise BadTarget(f"tilefw_targets returned a {type(info).__name__} among its TargetInfo")
        _check_one(plugin, info)
        for name in (info.name, *info.aliases):
            if name in seen:
                raise BadTarget(f"two of its targets are called '{name}'")
            seen.add(name)
    return tuple(targets)


def _check_one(plugin: str, info: TargetInfo) -> None:
    named = isinstance(info.name, str) and NAME.fullmatch(info.name)
    _want(named, f"{info.name!r} is not a target name (small letters, digits, . _ + -)")
    _want(info.name.startswith(plugin + "-"), f"the name of target '{info.name}' does not start with '{plugin}-'")
    who = f"target '{info.name}'"
    for field in ("vendor", "chip", "summary"):
        _want(isinstance(getattr(info, field), str), f"{who}: {field} is not a string")
    located = isinstance(info.backend, str) and BACKEND.fullmatch(info.backend)
    _want(located, f"{who}: backend {info.backend!r} is not 'module:Class'")
    _check_words(who, "provides", info.provides, PROVIDES)
    _check_words(who, "wants", info.wants, FACTS)
    _want(isinstance(info.aliases, tuple), f"{who}: aliases is not a tuple")
    for alias in info.aliases:
        _want(isinstance(alias, str) and NAME.fullmatch(alias), f"{who}: {alias!r} is not an alias")
    _want(isinstance(info.capabilities, frozenset), f"{who}: capabilities is not a frozenset")
    for capability in info.capabilities:
        _want(isinstance(capability, str), f"{who}: {capability!r} is not a capability")
        if not capabilities.known(capability):  # to look for what was meant takes longer than all else here
            raise BadTarget(f"{who}: {capability!r} is not a capability{_meant(capability)}")
    _want(info.triton is None or isinstance(info.triton, TritonNames), f"{who}: triton is not a TritonNames")
    for field, kind in (("options", str), ("limits", int), ("default_options", object)):
        mapping = getattr(info, field)
        _want(isinstance(mapping, Mapping), f"{who}: {field} is not a mapping")
        for key, value in mapping.items():
            _want(isinstance(key, str) and isinstance(value, kind), f"{who}: {field}[{key!r}] is not a {kind.__name__}")


def _check_words(who: str, field: str, words: Any, known: tuple[str, ...]) -> None:
    _want(isinstance(words, frozenset), f"{who}: {field} is not a frozenset")
    for word in words:
        _want(word in known, f"{who}: {field} has {word!r}; known are {', '.join(known)}")


def _meant(capability: str) -> str:
    near = capabilities.suggest(capability)
    return f"; did you mean {near!r}?" if near else ""


def _want(condition: object, otherwise: str) -> None:
    if not condition:
        raise BadTarget(otherwise)
