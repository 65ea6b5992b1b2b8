"""Cases: what a case file says, with its lists multiplied into single runs of stable ids."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from tilefw.api.errors import CodeError, KernelError
from tilefw.kernels.index import KERNELS
from tilefw.kernels.spec import resolve
from tilefw_conformance.document import Document, check, parse

LEVELS = ("core", "extended", "stress", "preview")
STAGES = ("verify", "lower", "emit", "assemble", "simulate", "compare")


@dataclass(frozen=True, slots=True)
class Case:
    """One run: a kernel with all its parameters set. `id` is `group/case[/varying=value,…]` and never changes its meaning.

    The level is no part of the id, so that a case that moves from preview to core keeps its name and its history.
    """

    id: str
    level: str
    since: str
    kernel: str
    parameters: Mapping[str, Any]
    seed: int
    requires: frozenset[str]
    stop_after: str
    budget: int | None
    flags: tuple[str, ...]
    notes: Mapping[str, Mapping[str, str]]


def bundled() -> tuple[Case, ...]:
    """Every case that the suite ships, in the order of files and lines."""
    folder = files("tilefw_conformance") / "cases"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    return collect((f"tilefw_conformance/cases/{name}", (folder / name).read_text("utf-8")) for name in names)


def collect(texts: Iterable[tuple[str, str]]) -> tuple[Case, ...]:
    """The cases of (file name, text) pairs; raises CodeError with the line for a fault, and for an id that is there twice."""
    cases: dict[str, Case] = {}
    for file, text in texts:
        document = parse(text, file)
        check(document, schema())
        for index, case in _cases(document):
            if case.id in cases:
                raise CodeError(f"the id {case.id!r} is there twice", code="TFW0952", place=document.place(("cases", index, "id")))
            cases[case.id] = case
    return tuple(cases.values())


@cache
def schema() -> Mapping[str, Any]:
    return json.loads((files("tilefw_conformance") / "cases.schema.json").read_text("utf-8"))


def _cases(document: Document) -> Iterator[tuple[int, Case]]:
    data = document.data
    if data["kernel"] not in KERNELS:
        known = ", ".join(KERNELS)
        message = f"no library kernel is called {data['kernel']!r}"
        raise CodeError(message, code="TFW0952", place=document.place(("kernel",)), note=f"the library has {known}")
    for index, raw in enumerate(data["cases"]):
        for flag in raw["flags"]:
            if flag not in data["notes"]:
                place = document.place(("cases", index, "flags"))
                message = f"the flag {flag!r} has no note"
                raise CodeError(message, code="TFW0952", place=place, help="say under `notes` which bug it hunts")
        for case in _multiplied(document, index, raw):
            yield index, case


def _multiplied(document: Document, index: int, raw: Mapping[str, Any]) -> Iterator[Case]:
    """A case for each choice of one value from each list, and for each seed."""
    data = document.data
    params = {name: value if isinstance(value, list) else [value] for name, value in raw.get("params", {}).items()}
    varying = [name for name, values in params.items() if len(values) > 1]
    seeds = raw.get("seeds", [1])
    for choice in itertools.product(*params.values()):
        chosen = dict(zip(params, choice, strict=True))
        parameters = _resolved(document, index, data["kernel"], chosen)
        for seed in seeds:
            words = [f"{name}={_word(chosen[name])}" for name in varying] + ([f"seed={seed}"] if len(seeds) > 1 else [])
            yield Case(
                id="/".join([data["group"], raw["id"], *([",".join(words)] if words else [])]),
                level=raw["level"], since=raw.get("since", data["since"]), kernel=data["kernel"], parameters=parameters, seed=seed,
                requires=frozenset(raw.get("requires", ())), stop_after=_last_stage(document, index, raw),
                budget=raw.get("budget"), flags=tuple(raw["flags"]), notes=data["notes"],
            )


def _resolved(document: Document, index: int, kernel: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return resolve(KERNELS[kernel], chosen)
    except KernelError as error:
        name = next((n for n in chosen if repr(n) in error.message), None)
        path = ("cases", index, "params", *([name] if name else []))
        raise CodeError(error.message, code="TFW0952", place=document.place(path), note=error.note, help=error.help) from None


def _last_stage(document: Document, index: int, raw: Mapping[str, Any]) -> str:
    stages = raw.get("stages", list(STAGES))
    if tuple(stages) != STAGES[: len(stages)]:
        place = document.place(("cases", index, "stages"))
        raise CodeError(f"stages is a leading part of {', '.join(STAGES)}", code="TFW0952", place=place)
    return stages[-1]


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
