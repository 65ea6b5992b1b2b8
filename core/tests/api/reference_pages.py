"""The pages docs/api.md and docs/operations.md, made of the docstrings, fields and tables of the code.

`surface.py --write` writes both. A class shows what it adds to a base class that has an entry of its own; operations stand on their
page with operands, properties and members, once for each dialect, and every row of the elementwise table is a line there.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Literal, get_args, get_origin

import surface
from surface import Facts

API_HEAD = """# The interface for plugins, name by name

A plugin imports `tilefw.api` and the modules below it, and nothing else of tilefw. `core/tests/api/surface.py --write` makes this
page of the docstrings. `core/tests/api/test_surface.py` compares the page and the recorded surface (names, fields, signatures)
with the code, and fails when the surface changes while `TILEFW_API` stays. This is interface {api}. How to use it:
[Writing a backend](backend-authors-guide.md). Operations of tile IR and lane IR: [operations.md](operations.md).

An entry lists first the fields of a data class in the order of its constructor, then members. `(made)` is a default that is made
for each object. A class repeats nothing of a base class that has an entry here.
"""
OPERATIONS_HEAD = """# Operations of tile IR and lane IR

`core/tests/api/surface.py --write` makes this page of the operations' docstrings and of the elementwise table. Plugins import tile
operations from `tilefw.api.ir`. A lowering of its own gets tile IR after the default passes (`tilefw compile KERNEL --emit tile`
prints it); the SIMT kit lowers tile IR to lane IR (`--emit lane`), which a plugin sees in dumps alone.

*operands* counts the operands, `any` where it varies; *properties* are compile-time attributes. A `pure` operation has no effect
and may move, merge or disappear.
"""
_LIMIT = 600  # characters of a value that the page shows; longer ones are tables to be read in the code


def api_page() -> str:
    """docs/api.md."""
    from tilefw.api import TILEFW_API

    parts = [API_HEAD.format(api=".".join(map(str, TILEFW_API)))]
    for module, names in surface.surface().items():
        parts += _module(module, names)
    return "\n".join(parts)


def operations_page() -> str:
    """docs/operations.md."""
    from tilefw.simt.lane import Lane
    from tilefw.tile.dialect.base import TileOp
    from tilefw.tile.dialect.context import Tile
    from tilefw.tile.elementwise import ROWS

    parts = [OPERATIONS_HEAD]
    shared = [_member(TileOp, name, kind) for name, kind in surface.members_of(TileOp, TileOp.__mro__[1:]).items()]
    parts += ["## What every operation has\n", _text(TileOp), *shared, ""]
    for title, dialect in (("Tile IR", Tile), ("Lane IR", Lane)):
        parts.append(f"## {title}\n")
        structural = [op for op in dialect.operations if op.name.partition(".")[2] not in ROWS]
        parts += [_operation(op) for op in sorted(structural, key=lambda op: op.name)]
    parts += ["## Elementwise operations\n", (
        "One row gives `tile.NAME` and `lane.NAME`. `T` is the type of the operands; `to` is the result type of a cast. A type"
        " completes the capability: `math.exp` on `f32` needs `math.exp.fp32`.\n"
    ), "| row | operands | result | capability | meaning |", "|---|---|---|---|---|"]
    parts += [
        f"| `{row.name}` | {', '.join(row.operands)} | {row.result} | `{row.group}` | {_cell(row.doc)} |" for row in ROWS.values()
    ]
    return "\n".join([*parts, ""])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _module(module: str, names: Mapping[str, Facts]) -> Iterator[str]:
    yield f"## {module}\n\n{inspect.getdoc(import_module(module)) or ''}\n"
    foreign = [f"`{name}`" for name, facts in names.items() if facts["kind"] == "xdsl"]
    if foreign:
        yield "From xDSL, unchanged (core pins its version): " + ", ".join(foreign) + ".\n"
    operations = [f"`{name}`" for name in names if surface.is_operation(module, name)]
    if operations:
        yield "Operations, [on a page of their own](operations.md): " + ", ".join(operations) + ".\n"
    for name, facts in names.items():
        if facts["kind"] != "xdsl" and not surface.is_operation(module, name):
            yield _entry(module, name, facts)
    words = {name: found for name, facts in names.items() for name, found in _literals(module, name, facts).items()}
    shown = [f"- `{name}`: {', '.join(f'`{word!r}`' for word in words[name])}" for name in sorted(words.keys() - names.keys())]
    if shown:
        yield "\n".join(["Literal types in these signatures:\n", *shown, ""])


def _entry(module: str, name: str, facts: Facts) -> str:
    value = getattr(import_module(module), name)
    bases = f"({', '.join(facts['bases'])})" if facts.get("bases") else ""
    said = _text(value) if inspect.isclass(value) else _said(module, name)
    lines = [f"**{name}**{bases}{_shown(value, facts)}: {said}", ""]
    hidden: list[type] = []
    if inspect.isclass(value):
        hidden = [base for base in value.__mro__[1:] if base in _documented()]
        facts = {**facts, "members": surface.members_of(value, hidden)}
    inherited = {field for base in hidden for field in surface.fields_of(base)}
    fields = facts.get("fields", {}).items()
    lines += [f"- `{field}: {kind}`" for field, kind in fields if not field.startswith("_") and field not in inherited]
    lines += [_member(value, member, kind) for member, kind in facts.get("members", {}).items()]
    return "\n".join([*lines, ""] if len(lines) > 2 else lines)


def _shown(value: Any, facts: Facts) -> str:
    """A function's signature, a constant's value, what an alias stands for."""
    if facts["kind"] == "function":
        text = facts["signature"]
    elif facts["kind"] == "constant":
        text = f"= {facts['value']}"
    elif facts["kind"] == "value" and surface.is_alias(value):
        text = f"= {facts['is'].replace('typing.', '').replace('collections.abc.', '')}"
    else:
        return ""
    return f" `{text}`" if len(text) < _LIMIT else ""


def _text(value: Any) -> str:
    """The whole docstring of a class itself; "" for the one that a data class or named tuple is given by its maker."""
    text = inspect.cleandoc(value.__doc__ or "")
    return "" if text.startswith(f"{value.__name__}(") else text


def _said(module: str, name: str) -> str:
    value = getattr(import_module(module), name)
    whole = inspect.getdoc(value) if inspect.isfunction(value) or inspect.ismodule(value) else ""
    return whole or surface.documentation(module, name)


def _member(owner: Any, name: str, kind: str) -> str:
    """A line for a method, property, annotated attribute or function of a module, with all that is said of it."""
    kind = kind.removeprefix("abstract ")
    form = {"property": "", "(": kind}.get(kind if kind == "property" else kind[:1], f": {kind}")
    said = surface.member_documentation(owner, name) if form != f": {kind}" and name != "__init__" else ""
    body = said.replace("\n", "\n  ").replace("\n  \n", "\n\n")
    return f"- `{name}{form}`" + (f": {body}" if body else "")


@cache
def _documented() -> set[type]:
    """The classes that have an entry on the page."""
    found = (getattr(import_module(module), name) for module in surface.MODULES for name in surface.names_of(module))
    return {value for value in found if inspect.isclass(value)}


def _operation(op: type) -> str:
    facts: Any = op
    count = "any" if facts.operand_count is None else facts.operand_count
    properties = ", ".join(f"`{name}`" for name in sorted(facts.property_names)) or "none"
    pure = ", pure" if any(type(trait).__name__ == "Pure" for trait in facts.traits) else ""
    lines = [f"**`{facts.name}`** ({op.__name__}; operands: {count}; properties: {properties}{pure}): {_text(op)}", ""]
    base = next(b for b in op.__mro__ if b.__name__ == "TileOp")
    hidden = base.__mro__
    shown = {**({"__init__": surface.signature(op.__init__)} if "__init__" in vars(op) else {}), **surface.members_of(op, hidden)}
    lines += [_member(op, name, kind) for name, kind in shown.items() if name not in _PLUMBING]
    return "\n".join([*lines, ""] if len(lines) > 2 else lines)


_PLUMBING = frozenset({"parse", "print", "problem", "traits", "property_names", "operand_count", "name"})  # of every operation


def _literals(module: str, name: str, facts: Facts) -> dict[str, tuple[Any, ...]]:
    """The literal types in what an entry shows, by the names that they have where it is defined, with their words."""
    value = getattr(import_module(module), name)
    owners = [base for base in getattr(value, "__mro__", (value,)) if str(getattr(base, "__module__", "")).startswith("tilefw.")]
    text = " ".join([facts.get("signature", ""), *facts.get("fields", {}).values(), *facts.get("members", {}).values()])
    found: dict[str, tuple[Any, ...]] = {}
    for owner in owners:
        known = vars(import_module(owner.__module__))
        found |= {word: get_args(known[word]) for word in re.findall(r"\w+", text) if get_origin(known.get(word)) is Literal}
    return found
