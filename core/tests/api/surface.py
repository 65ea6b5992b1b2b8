"""The surface of `tilefw.api` and its facades, name by name, as data to be recorded; `reference_pages.py` makes pages of it.

    python core/tests/api/surface.py --write      after the version in tilefw/api/version.py was raised
    python core/tests/api/surface.py --write --unreleased      while that version is not released yet
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
RECORD = Path(__file__).with_name("surface.json")
PAGE = ROOT / "docs" / "api.md"
LANGUAGE = "tilefw.language"  # Triton's names, documented by the kernel author's guide
OPERATIONS_PAGE = ROOT / "docs" / "operations.md"
_FACADES = ("hooks", "ir", "simt", "tile", "expand", "machine", "sim", "hardware", "kernels", "source_text", "integers", "floats")
MODULES = ("tilefw.api", *(f"tilefw.api.{facade}" for facade in _FACADES))
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
        return {"kind": "function", "signature": signature(value)}
    if inspect.ismodule(value):
        members = {} if value.__name__ == LANGUAGE else {"members": _module_members(value)}
        return {"kind": "module", "is": value.__name__, **members}
    if isinstance(value, int | str | float | tuple | frozenset):
        return {"kind": "constant", "value": repr(sorted(value) if isinstance(value, frozenset) else value)}
    return {"kind": "value", "is": type(value).__name__ if not is_alias(value) else _plain(str(value))}


def _module_members(module: Any) -> dict[str, str]:
    """The public functions, classes and constants that a module itself defines or lists in `__all__`."""
    listed = getattr(module, "__all__", None)
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    found = {}
    for name in sorted(listed or (name for name in own if not name.startswith("_"))):
        value = getattr(module, name)
        found[name] = signature(value) if inspect.isfunction(value) else "class" if inspect.isclass(value) else type(value).__name__
    return found


def is_operation(module: str, name: str) -> bool:
    """Whether a name is an operation of tile IR, which has its entry on the page of operations."""
    value = getattr(import_module(module), name)
    return inspect.isclass(value) and any(base.__name__ == "TileOp" for base in value.__mro__)


def is_alias(value: Any) -> bool:
    """Whether a value is a type alias."""
    return type(value).__module__ in ("typing", "types", "collections.abc")


def _class(cls: type) -> Facts:
    facts: Facts = {"kind": "class", "bases": [base.__name__ for base in cls.__bases__ if base is not object]}
    if fields := fields_of(cls):
        facts["fields"] = fields
    return {**facts, "members": members_of(cls)}


def fields_of(cls: type) -> dict[str, str]:
    """The fields of a data class or a named tuple, in the order of its constructor: type and default of each."""
    if dataclasses.is_dataclass(cls):
        return {field.name: _field(field) for field in dataclasses.fields(cls)}
    if not issubclass(cls, tuple) or not hasattr(cls, "_fields"):
        return {}
    named: Any = cls
    defaults = {name: f" = {_value(value)}" for name, value in named._field_defaults.items()}
    return {name: _plain(str(inspect.get_annotations(cls)[name])) + defaults.get(name, "") for name in named._fields}


def members_of(cls: type, without: Sequence[type] = ()) -> dict[str, str]:
    """Public members of a class and of the bases of ours, but for those `without`, by name."""
    fields = fields_of(cls)
    bases = [base for base in _own(cls) if base not in without]
    return dict(sorted(dict(item for base in reversed(bases) for item in _members(base, fields)).items()))


def _own(cls: type) -> list[type]:
    """The class and those of ours that it inherits from."""
    return [base for base in cls.__mro__ if base.__module__.partition(".")[0] == "tilefw"]


def _field(field: dataclasses.Field[Any]) -> str:
    default = "" if field.default is dataclasses.MISSING else f" = {_value(field.default)}"
    made = "" if field.default_factory is dataclasses.MISSING else " = (made)"
    return f"{_plain(str(field.type))}{default}{made}"


def member_documentation(owner: Any, name: str) -> str:
    """The docstring of a class's or module's member; of one without the one that it overrides has; "" for none."""
    listed = owner.__mro__ if inspect.isclass(owner) else (owner,)
    said = (inspect.getdoc(vars(each)[name]) for each in listed if name in vars(each))
    return next(filter(None, said), "")


def is_callable_or_property(kind: str) -> bool:
    """Whether a member, as `members_of` tells it, is a method or a property, and no annotated attribute."""
    return kind == "property" or kind.removeprefix("abstract ").startswith("(")


def _members(cls: type, fields: Facts) -> Iterator[tuple[str, str]]:
    """Public methods, properties and annotated attributes that a class itself has; the constructor of one without fields."""
    for name, value in vars(cls).items():
        constructor = name == "__init__" and not dataclasses.is_dataclass(cls)
        raw = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        made = str(getattr(raw, "__module__", "")).partition(".")[0] == "xdsl"  # put into the class by its decorator
        if made or name in fields or (name.startswith("_") and not constructor):
            continue
        if inspect.isfunction(raw):
            abstract = "abstract " if getattr(raw, "__isabstractmethod__", False) else ""
            yield name, abstract + signature(raw)
        elif isinstance(value, property) or type(value).__name__ == "cached_property":
            yield name, "property"
    for name, annotation in inspect.get_annotations(cls).items():
        if not name.startswith("_") and name not in fields:
            yield name, _plain(str(annotation))


def signature(function: Any) -> str:
    """A function's signature as one line, the same in every process."""
    found = inspect.signature(function)
    parts, keyword_only = [], False
    for parameter in found.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            parts.append("*")
        keyword_only |= parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        annotation = "" if parameter.annotation is parameter.empty else f": {_plain(str(parameter.annotation))}"
        default = "" if parameter.default is parameter.empty else f" = {_value(parameter.default)}"
        parts.append(f"{stars}{parameter.name}{annotation}{default}")
    returned = found.return_annotation
    return f"({', '.join(parts)})" + ("" if returned is found.empty else f" -> {_plain(str(returned))}")


def _value(value: Any) -> str:
    """A default as text that is the same in every process: sets in order, objects by their type."""
    if isinstance(value, frozenset):
        return f"frozenset({sorted(value)})"
    return repr(value) if isinstance(value, int | str | float | tuple | bool | None.__class__) else f"<{type(value).__name__}>"


def _plain(annotation: str) -> str:
    annotation = re.sub(r"ForwardRef\('([^']*)'\)", r"\1", annotation)
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
    rooms = ("api", "hardware", "loops", "machine", "passes", "sim", "simt", "tile")
    for file in sorted(path for room in rooms for path in (source / room).rglob("*.py")):
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
    import reference_pages

    made = record()
    old = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {"api": None, "surface": {}}
    changed = differences(old["surface"], made["surface"])
    print("\n".join(changed) or "the surface is as recorded")
    if changed and made["api"] == old["api"] and "--unreleased" not in argv:
        print(f"the interface is still {made['api']}: raise TILEFW_API in tilefw/api/version.py first", file=sys.stderr)
        return 1
    if "--write" in argv:
        RECORD.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        PAGE.write_text(reference_pages.api_page(), encoding="utf-8")
        OPERATIONS_PAGE.write_text(reference_pages.operations_page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
