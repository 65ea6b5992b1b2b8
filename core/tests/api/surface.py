"""The surface of `tilefw.api` and its facades, name by name: as data to be recorded, and as the page docs/api.md.

    python core/tests/api/surface.py --write      after the version in tilefw/api/version.py was raised
    python core/tests/api/surface.py --write --unreleased      while nobody has the version that stands there
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
RECORD = Path(__file__).with_name("surface.json")
PAGE = ROOT / "docs" / "api.md"
_FACADES = ("hooks", "ir", "simt", "expand", "machine", "sim", "kernels")
MODULES = ("tilefw.api", *(f"tilefw.api.{facade}" for facade in _FACADES))
_HEAD = """# The interface for plugins, name by name

A plugin imports `tilefw.api` and the modules below it, and nothing else of tilefw. This page is made of their docstrings by
`core/tests/api/surface.py`; `core/tests/api/test_surface.py` compares it and the recorded surface (names, fields, signatures) with
the code, and fails when the surface changes while `TILEFW_API` stays. This is interface {api}. How it is used:
[Writing a backend](backend-authors-guide.md).
"""

Facts = dict[str, Any]


def surface() -> dict[str, dict[str, Facts]]:
    """Module -> public name -> facts: `kind`, and what of it plugins depend on."""
    return {module: {name: facts_of(module, name) for name in names_of(module)} for module in MODULES}


def names_of(module: str) -> list[str]:
    """The public names of a facade; of the hooks, those that are specified."""
    loaded = import_module(module)
    if module == "tilefw.api.hooks":
        return sorted(name for name in vars(loaded) if name.startswith("tilefw_"))
    return sorted(loaded.__all__)


def facts_of(module: str, name: str) -> Facts:
    value = getattr(import_module(module), name)
    origin = getattr(value, "__module__", None)
    foreign = isinstance(origin, str) and origin.partition(".")[0] == "xdsl"
    if foreign and (inspect.isclass(value) or inspect.isfunction(value)):
        return {"kind": "xdsl", "is": f"{origin}.{value.__qualname__}"}
    if inspect.isclass(value):
        return _class(value)
    if inspect.isfunction(value):
        return {"kind": "function", "signature": _signature(value)}
    if inspect.ismodule(value):
        return {"kind": "module", "is": value.__name__}
    if isinstance(value, int | str | float | tuple | frozenset):
        return {"kind": "constant", "value": repr(sorted(value) if isinstance(value, frozenset) else value)}
    return {"kind": "value", "is": type(value).__name__ if not _is_alias(value) else _plain(str(value))}


def _is_alias(value: Any) -> bool:
    return type(value).__module__ in ("typing", "types", "collections.abc")


def _class(cls: type) -> Facts:
    facts: Facts = {"kind": "class", "bases": [base.__name__ for base in cls.__bases__ if base is not object]}
    if dataclasses.is_dataclass(cls):
        facts["fields"] = {field.name: _field(field) for field in dataclasses.fields(cls)}
    members = {name: text for base in reversed(_own(cls)) for name, text in _members(base, facts.get("fields", {}))}
    return {**facts, "members": dict(sorted(members.items()))}


def _own(cls: type) -> list[type]:
    """The class and those of ours that it inherits from."""
    return [base for base in cls.__mro__ if base.__module__.partition(".")[0] == "tilefw"]


def _field(field: dataclasses.Field[Any]) -> str:
    default = "" if field.default is dataclasses.MISSING else f" = {_value(field.default)}"
    made = "" if field.default_factory is dataclasses.MISSING else " = (made)"
    return f"{_plain(str(field.type))}{default}{made}"


def _members(cls: type, fields: Facts) -> Iterator[tuple[str, str]]:
    """Public methods, properties and annotated attributes that a class itself has; the constructor of one without fields."""
    for name, value in vars(cls).items():
        if name in fields or (name.startswith("_") and not (name == "__init__" and not dataclasses.is_dataclass(cls))):
            continue
        raw = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if inspect.isfunction(raw):
            abstract = "abstract " if getattr(raw, "__isabstractmethod__", False) else ""
            yield name, abstract + _signature(raw)
        elif isinstance(value, property) or type(value).__name__ == "cached_property":
            yield name, "property"
    for name, annotation in inspect.get_annotations(cls).items():
        if not name.startswith("_") and name not in fields:
            yield name, _plain(str(annotation))


def _signature(function: Any) -> str:
    signature = inspect.signature(function)
    parts, keyword_only = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            parts.append("*")
        keyword_only |= parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        annotation = "" if parameter.annotation is parameter.empty else f": {_plain(str(parameter.annotation))}"
        default = "" if parameter.default is parameter.empty else f" = {_value(parameter.default)}"
        parts.append(f"{stars}{parameter.name}{annotation}{default}")
    returned = signature.return_annotation
    return f"({', '.join(parts)})" + ("" if returned is signature.empty else f" -> {_plain(str(returned))}")


def _value(value: Any) -> str:
    """A default as text that is the same in every process: sets in order, objects by their type."""
    if isinstance(value, frozenset):
        return f"frozenset({sorted(value)})"
    return repr(value) if isinstance(value, int | str | float | tuple | bool | None.__class__) else f"<{type(value).__name__}>"


def _plain(annotation: str) -> str:
    return annotation.replace("'", "").removeprefix("<class ").removesuffix(">") if "<class" in annotation else annotation


def documentation(module: str, name: str) -> str:
    """The first paragraph of a name's docstring, or of the string or comment that stands at its assignment; "" for none."""
    value = getattr(import_module(module), name)
    if inspect.isclass(value) or inspect.isfunction(value) or inspect.ismodule(value):
        text = inspect.getdoc(value) or ""
        made = dataclasses.is_dataclass(value) and text.startswith(f"{name}(")  # by the decorator, where nobody wrote one
        return "" if made else " ".join(text.partition("\n\n")[0].split())
    return _assigned().get(name, "")


@cache
def _assigned() -> dict[str, str]:
    """Constants and aliases of the rooms that facades show -> what stands at their assignment."""
    found: dict[str, str] = {}
    source = ROOT / "core" / "src" / "tilefw"
    for file in sorted(path for room in ("api", "machine", "sim", "simt", "tile") for path in (source / room).rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        lines, body = text.splitlines(), ast.parse(text).body
        for node, after in zip(body, [*body[1:], None], strict=True):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
            for target in targets:
                if isinstance(target, ast.Name) and (said := _said(node, after, lines)):
                    found.setdefault(target.id, said)
    return found


def _said(node: ast.stmt, after: ast.stmt | None, lines: list[str]) -> str:
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
        return " ".join(after.value.value.split())
    behind = lines[(node.end_lineno or node.lineno) - 1][node.end_col_offset or 0 :].strip()
    if behind.startswith("#"):
        return behind[1:].strip()
    above: list[str] = []
    for line in reversed(lines[: node.lineno - 1]):
        if not line.startswith("#"):
            break
        above.insert(0, line[1:].strip())
    return " ".join(above)


def page() -> str:
    """docs/api.md."""
    from tilefw.api import TILEFW_API

    parts = [_HEAD.format(api=".".join(map(str, TILEFW_API)))]
    for module, names in surface().items():
        said = (inspect.getdoc(import_module(module)) or "").partition("\n\n")[0]
        parts.append(f"## {module}\n\n{' '.join(said.split())}\n")
        foreign = [f"`{name}`" for name, facts in names.items() if facts["kind"] == "xdsl"]
        if foreign:
            parts.append("From xDSL, as they are there (core pins its version): " + ", ".join(foreign) + ".\n")
        parts += [_entry(module, name, facts) for name, facts in names.items() if facts["kind"] != "xdsl"]
    return "\n".join(parts)


def _entry(module: str, name: str, facts: Facts) -> str:
    shown = {"function": facts.get("signature", ""), "constant": f" = {facts.get('value')}"}.get(facts["kind"], "")
    bases = f"({', '.join(facts['bases'])})" if facts.get("bases") else ""
    lines = [f"**{name}**{bases}{f' `{shown.strip()}`' if 0 < len(shown) < 400 else ''}: {documentation(module, name)}", ""]
    lines += [f"- `{field}: {kind}`" for field, kind in facts.get("fields", {}).items()]
    value = getattr(import_module(module), name)
    lines += [_member(value, member, kind.removeprefix("abstract ")) for member, kind in facts.get("members", {}).items()]
    return "\n".join([*lines, ""] if len(lines) > 2 else lines)


def _member(cls: type, name: str, kind: str) -> str:
    """A line for a method, property or annotated attribute, with the first sentence that is said of it."""
    form = {"property": "", "(": kind}.get(kind if kind == "property" else kind[:1], f": {kind}")
    said = inspect.getdoc(inspect.getattr_static(cls, name, None)) if form != f": {kind}" and name != "__init__" else ""
    first = " ".join((said or "").partition("\n\n")[0].split())
    return f"- `{name}{form}`" + (f": {first}" if first else "")


def record() -> Facts:
    """What is recorded: the interface's version, and the surface."""
    from tilefw.api import TILEFW_API

    return {"api": list(TILEFW_API), "surface": surface()}


def differences(old: dict[str, dict[str, Facts]], new: dict[str, dict[str, Facts]]) -> list[str]:
    """One line for each name that came, went or changed."""
    found = []
    for module in sorted(old.keys() | new.keys()):
        before, after = old.get(module, {}), new.get(module, {})
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                word = "added" if name not in before else "removed" if name not in after else "changed"
                found.append(f"{word}: {module}.{name}")
    return found


def main(argv: list[str]) -> int:
    made = record()
    old = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {"api": None, "surface": {}}
    changed = differences(old["surface"], made["surface"])
    print("\n".join(changed) or "the surface is as recorded")
    if changed and made["api"] == old["api"] and "--unreleased" not in argv:
        print(f"the interface is still {made['api']}: raise TILEFW_API in tilefw/api/version.py first", file=sys.stderr)
        return 1
    if "--write" in argv:
        RECORD.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
