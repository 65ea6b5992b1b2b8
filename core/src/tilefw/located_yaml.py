"""YAML with a place for every value: plain mappings, sequences and scalars only, of bounded size and depth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

import yaml

from tilefw.api.errors import CodeError, Place

# libyaml where PyYAML was built with it: the same events, five times as fast.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Grammar:
    """What files of one kind are called in messages ("launch files"), their bounds, and the codes of two kinds of errors:
    `malformed` for what is not YAML, `refused` for YAML with tags, anchors, a key twice, or deeper than `depth` collections."""

    files: str
    malformed: str
    refused: str
    characters: int
    depth: int


class LocatedYaml:
    """The text of one file, its node graph, and errors at the lines of nodes."""

    def __init__(self, file: str, text: str, grammar: Grammar) -> None:
        self.file, self.lines, self.grammar = file, tuple(text.splitlines()), grammar
        self._text = text

    def root(self) -> yaml.Node:
        """The file's one value; raises CodeError for what the grammar does not allow."""
        grammar = self.grammar
        if len(self._text) > grammar.characters:
            raise CodeError(f"{self.file} has more than {grammar.characters} characters", code=grammar.malformed)
        try:
            self._check_events()
            node = yaml.compose(self._text, Loader=_LOADER)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = self._at(mark) if mark else None
            raise CodeError(f"not YAML: {error.problem or error.context}", code=grammar.malformed, place=place) from None
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            raise CodeError(f"{self.file} is not YAML: {error}", code=grammar.malformed) from None
        if node is None:
            raise CodeError(f"{self.file} is empty", code=grammar.refused)
        return node

    def _check_events(self) -> None:
        """Aliases let a small text mean an endless one, and the parser's time grows with the square of the depth."""
        depth = 0
        for event in yaml.parse(self._text, Loader=_LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > self.grammar.depth:
                self._refuse(event, f"nested deeper than {self.grammar.depth}")
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                self._refuse(event, f"anchors and aliases are not part of {self.grammar.files}")
            if getattr(event, "tag", None):
                self._refuse(event, f"the tag {event.tag} is not part of {self.grammar.files}")

    def items(self, node: yaml.MappingNode) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
        """The entries of a mapping: key, node of the key, value. Raises CodeError for a key that is not a word, or is there
        twice."""
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.fail(key, "a key is a plain word")
            if key.value in seen:
                self.fail(key, f"the key {key.value!r} is there twice")
            seen.add(key.value)
            yield key.value, key, value

    def fail(self, node: yaml.Node, message: str, code: str | None = None, help: str | None = None) -> NoReturn:
        """Raise CodeError at the node's place."""
        raise CodeError(message, code=code or self.grammar.refused, place=self._at(node.start_mark), help=help)

    def place(self, line: int, column: int) -> Place:
        """From line and column, which count from 1, to the end of the line."""
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return Place(self.file, line, column, max(column + 1, len(text.rstrip()) + 1), text)

    def _refuse(self, event: yaml.Event, message: str) -> NoReturn:
        raise CodeError(message, code=self.grammar.refused, place=self._at(event.start_mark))

    def _at(self, mark: yaml.Mark) -> Place:
        return self.place(mark.line + 1, mark.column + 1)
