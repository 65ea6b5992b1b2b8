"""YAML as plain data with the line of every value, and the part of JSON Schema that our case files use, with those lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import yaml

from tilefw.api.errors import CodeError, Place
from tilefw.located_yaml import Grammar, LocatedYaml

GRAMMAR = Grammar("case files", malformed="TFW0950", refused="TFW0950", characters=1 << 20, depth=32)

Path = tuple[str | int, ...]
Fault = tuple[Path, str, str | None]


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML file: its data (mappings, lists, strings, numbers, booleans, None) and the line and column of each value."""

    source: LocatedYaml
    data: Any
    marks: Mapping[Path, tuple[int, int]]

    def place(self, path: Path) -> Place:
        """The place of the value at `path`, or of its nearest parent."""
        while path not in self.marks:
            path = path[:-1]
        return self.source.place(*self.marks[path])


def parse(text: str, file: str) -> Document:
    """`text` as a document; raises CodeError TFW0950 where it is not YAML, or holds tags, anchors or a key twice."""
    source = LocatedYaml(file, text, GRAMMAR)
    marks: dict[Path, tuple[int, int]] = {}
    return Document(source, _ValueBuilder(source, marks).value(source.root(), ()), marks)


class _ValueBuilder:
    def __init__(self, source: LocatedYaml, marks: dict[Path, tuple[int, int]]) -> None:
        self.source, self.marks = source, marks
        self.scalars = yaml.SafeLoader("")

    def value(self, node: yaml.Node, path: Path) -> Any:
        self.marks[path] = (node.start_mark.line + 1, node.start_mark.column + 1)
        if isinstance(node, yaml.MappingNode):
            return {key: self.value(item, (*path, key)) for key, _, item in self.source.items(node)}
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, i)) for i, item in enumerate(node.value)]
        try:
            plain = self.scalars.construct_object(node)
        except (yaml.YAMLError, ValueError):
            plain = None
        if node.value and not isinstance(plain, str | int | float | bool):
            self.source.fail(node, f"{node.value!r} is not a string, number or boolean ({node.tag})")
        return plain


_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,),
    "null": (type(None),),
}
# The keywords of JSON Schema 2020-12 that `check` serves; a schema that uses another one is refused by the tests.
KEYWORDS = frozenset({
    "$schema", "$id", "$defs", "$ref", "title", "description", "type", "properties", "required", "additionalProperties",
    "propertyNames", "items", "minItems", "enum", "pattern", "minimum", "minProperties", "anyOf", "uniqueItems",
})


def check(document: Document, schema: Mapping[str, Any]) -> None:
    """Raises CodeError TFW0951 at the first value that the JSON Schema does not allow."""
    for path, message, help in faults(document.data, schema):
        raise CodeError(message, code="TFW0951", place=document.place(path), help=help)


def faults(value: Any, schema: Mapping[str, Any]) -> Iterator[Fault]:
    """Where `value` does not follow the JSON Schema: the path to each fault, what is wrong, and what might be meant."""
    return _faults(value, schema, schema, ())


def _faults(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], path: Path) -> Iterator[Fault]:
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    name = _shown(path)
    if "anyOf" in schema:
        if all(any(True for _ in _faults(value, choice, root, path)) for choice in schema["anyOf"]):
            yield path, f"{name} is {' or '.join(c.get('title', c.get('type', '?')) for c in schema['anyOf'])}, not {value!r}", None
        return
    if "type" in schema and not _is(value, schema["type"]):
        yield path, f"{name} is a {schema['type']}, not {value!r}", schema.get("description")
        return
    if "enum" in schema and value not in schema["enum"]:
        near = get_close_matches(str(value), map(str, schema["enum"]), 1)
        known = ", ".join(map(str, schema["enum"]))
        yield path, f"{name} cannot be {value!r}; it is one of {known}", f"did you mean {near[0]!r}?" if near else None
    if "pattern" in schema and not re.fullmatch(schema["pattern"], str(value)):
        yield path, f"{name} {value!r} does not match {schema['pattern']}", schema.get("description")
    if "minimum" in schema and value < schema["minimum"]:
        yield path, f"{name} is at least {schema['minimum']}, not {value}", None
    if isinstance(value, dict):
        yield from _object_faults(value, schema, root, path)
    elif isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield path, f"{name} is empty", None
        if schema.get("uniqueItems") and len({repr(v) for v in value}) < len(value):
            yield path, f"{name} names something twice", None
        for index, item in enumerate(value):
            yield from _faults(item, schema.get("items", {}), root, (*path, index))


def _object_faults(value: dict[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], path: Path) -> Iterator[Fault]:
    properties = schema.get("properties", {})
    for key in schema.get("required", ()):
        if key not in value:
            yield path, f"{_shown(path)} needs {key!r}", properties.get(key, {}).get("description")
    if len(value) < schema.get("minProperties", 0):
        yield path, f"{_shown(path)} is empty", None
    other = schema.get("additionalProperties", True)
    for key, item in value.items():
        here = (*path, key)
        if "propertyNames" in schema and not re.fullmatch(schema["propertyNames"]["pattern"], key):
            yield here, f"the key {key!r} does not match {schema['propertyNames']['pattern']}", None
        if key in properties:
            yield from _faults(item, properties[key], root, here)
        elif other is False:
            near = get_close_matches(key, properties, 1)
            help = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(properties)}"
            yield here, f"{_shown(path)} has no field {key!r}", help
        elif isinstance(other, dict):
            yield from _faults(item, other, root, here)


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _shown(path: Path) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.lstrip(".") or "the document"
