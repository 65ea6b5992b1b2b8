"""What stands within `loc(…)`: aliases, files with line and column, names, call sites."""

from __future__ import annotations

import re
from collections.abc import Mapping

from xdsl.dialects.builtin import UNKNOWN_LOC, CallSiteLoc, FileLineColLoc, IntAttr, LocationAttr, StringAttr

from tilefw.importers.triton_ir.scanner import STRING, Scanner, unescaped

_ALIAS = re.compile(r"#\w+")
_LINE = re.compile(r":(\d+):(\d+)(?:\s+to\s+(?:\d*:)?\d*:\d+)?")
_DEPTH = 200  # aliases within aliases


class Locations:
    """The locations of one text, each made once. What is malformed, or goes in circles, is unknown."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self._aliases = aliases
        self._known: dict[str, LocationAttr] = {}

    def __call__(self, text: str, depth: int = 0) -> LocationAttr:
        """The location that a text names; names of values are left out."""
        if text not in self._known:
            self._known[text] = UNKNOWN_LOC if depth > _DEPTH else _LocationReader(text, self, depth).read()
        return self._known[text]

    def alias(self, name: str, depth: int) -> LocationAttr:
        return self(self._aliases.get(name, ""), depth)


class _LocationReader(Scanner):
    """Reads one location."""

    def __init__(self, text: str, locations: Locations, depth: int) -> None:
        super().__init__(text, "")
        self._locations, self._depth = locations, depth

    def read(self) -> LocationAttr:
        if (alias := self.match(_ALIAS)) is not None:
            return self._locations.alias(alias[0], self._depth + 1)
        if (quoted := self.match(STRING)) is not None:
            return self._behind_name(unescaped(quoted[1]))
        if self.optional("callsite("):
            callee = self.read()
            caller = self.read() if self.optional("at") else UNKNOWN_LOC
            self.optional(")")
            return callee if caller == UNKNOWN_LOC else CallSiteLoc(callee, caller)
        if self.optional("fused"):
            if self.sees("<"):
                self.bracketed()
            return self.read() if self.optional("[") else UNKNOWN_LOC
        return UNKNOWN_LOC

    def _behind_name(self, name: str) -> LocationAttr:
        """`"file":line:column`, or a value's name with its location in parentheses."""
        if (line := self.match(_LINE)) is not None:
            return FileLineColLoc(StringAttr(name), IntAttr(int(line[1])), IntAttr(int(line[2])))
        if not self.optional("("):
            return UNKNOWN_LOC
        found = self.read()
        self.optional(")")
        return found
