"""Case files: what one says, with its lists multiplied into single cases of stable ids; a line for whatever is wrong in it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from tilefw.api import capabilities
from tilefw.api.errors import CodeError, KernelError
from tilefw.kernels.index import KernelInfo
from tilefw.kernels.spec import resolve
from tilefw.kernels.stages import STAGES
from tilefw_conformance.case import Case
from tilefw_conformance.document import Document, check, parse
from tilefw_conformance.subject import described


def bundled() -> tuple[Case, ...]:
    """Every case that the suite ships, in the order of files and lines."""
    return in_folder("tilefw_conformance", "cases")


def in_folder(package: str, name: str) -> tuple[Case, ...]:
    """The cases of every `.yaml` file in a folder of an installed package, in the order of names and lines."""
    folder = files(package) / name
    found = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    return collect((f"{package}/{name}/{file}", (folder / file).read_text("utf-8")) for file in found)


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
    info = _kernel(document)
    _refuse_unknown(document, ("requires",), data.get("requires", ()))
    for index, raw in enumerate(data["cases"]):
        _refuse_unknown(document, ("cases", index, "requires"), raw.get("requires", ()))
        for flag in raw["flags"]:
            if flag not in data["notes"]:
                place = document.place(("cases", index, "flags"))
                message = f"the flag {flag!r} has no note"
                raise CodeError(message, code="TFW0952", place=place, help="describe under `notes` the bug that it detects")
        for case in _multiplied(document, index, raw, info):
            yield index, case


def _kernel(document: Document) -> KernelInfo:
    try:
        return described(document.data["kernel"])
    except KernelError as error:
        place = document.place(("kernel",))
        raise CodeError(error.message, code="TFW0952", place=place, note=error.note, help=error.help) from None


def _refuse_unknown(document: Document, path: tuple[str | int, ...], said: Iterable[str]) -> None:
    """A mistyped capability would never be missing."""
    for index, name in enumerate(said):
        if not capabilities.known(name):
            near = capabilities.suggest(name)
            message = f"there is no capability {name!r}"
            place = document.place((*path, index))
            raise CodeError(message, code="TFW0952", place=place, help=f"did you mean {near!r}?" if near else None)


def _multiplied(document: Document, index: int, raw: Mapping[str, Any], info: KernelInfo) -> Iterator[Case]:
    """A case for each choice of one value from each list, and for each seed."""
    data = document.data
    params = {name: value if isinstance(value, list) else [value] for name, value in raw.get("params", {}).items()}
    varying = [name for name, values in params.items() if len(values) > 1]
    seeds = raw.get("seeds", [1])
    for choice in itertools.product(*params.values()):
        chosen = dict(zip(params, choice, strict=True))
        parameters = _resolved(document, index, info, chosen)
        for seed in seeds:
            words = [f"{name}={_word(chosen[name])}" for name in varying] + ([f"seed={seed}"] if len(seeds) > 1 else [])
            yield Case(
                id="/".join([data["group"], raw["id"], *([",".join(words)] if words else [])]),
                level=raw["level"], since=raw.get("since", data["since"]), kernel=data["kernel"], parameters=parameters, seed=seed,
                requires=frozenset((*data.get("requires", ()), *raw.get("requires", ()))),
                stop_after=_last_stage(document, index, raw), budget=raw.get("budget"), flags=tuple(raw["flags"]),
                notes=data["notes"], until=raw.get("until", data.get("until")),
            )


def _resolved(document: Document, index: int, info: KernelInfo, chosen: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return resolve(info, chosen)
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
