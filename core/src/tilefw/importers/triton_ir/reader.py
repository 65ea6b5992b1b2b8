"""The text of Triton IR to functions, blocks and statements: the shapes of statements, whatever the operations are."""

from __future__ import annotations

import re
from collections.abc import Callable

from tilefw.importers.triton_ir.scanner import STRING, Scanner, unescaped
from tilefw.importers.triton_ir.tree import Argument, TextBlock, TextFunction, TextModule, TextOperation

_VALUE = re.compile(r"%[\w.$-]+(?:#\d+)?")
_RESULT = re.compile(r"(%[\w.$-]+)(?::(\d+))?")
_SYMBOL = re.compile(r'@(?:"((?:[^"\\\n]|\\.)*)"|([\w.$-]+))')
_LABEL = re.compile(r"\^[\w.$-]+")
_WORD = re.compile(r"[A-Za-z_][\w.$]*")
_NUMBER = re.compile(r"-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)")
_TYPE = re.compile(r"![A-Za-z_][\w.$]*|[A-Za-z_]\w*|(?=<)")
_ALIAS = re.compile(r"^(#\w+) = loc(\(.*\))[ ]*$", re.MULTILINE)
_OTHER_ALIAS = re.compile(r"^[#!]\w+ = .*$", re.MULTILINE)
_VISIBILITY = re.compile(r"(public|private|nested)\b")
_MARK = re.compile(r"[,()\[\]=*]")
_ENDS_ITEMS = ("loc(", "{", "->", ":", "}")


class Reader(Scanner):
    """Reads a module."""

    def module(self) -> TextModule:
        """The whole text. Raises IRError (TFW0401) for what is no module of Triton's."""
        locations = {found[1]: found[2][1:-1] for found in _ALIAS.finditer(self.text)}
        functions: dict[str, TextFunction] = {}
        inside = False
        while self.skip() < len(self.text):
            if self.match(_OTHER_ALIAS) is not None:
                continue
            if not inside and self.optional("module"):
                self._module_head()
                inside = True
            elif inside and self.optional("}"):
                self.location()
                inside = False
            else:
                function = self.function()
                functions[function.name] = function
        if inside:
            raise self.malformed("the module is not closed")
        return TextModule(functions, locations)

    def _module_head(self) -> None:
        self.match(_SYMBOL)
        if self.optional("attributes"):
            self.attributes()
        self.expect("{")

    def function(self) -> TextFunction:
        """`tt.func public @name(…) -> … attributes {…} {…}`."""
        start = self.skip()
        if not self.optional("tt.func"):
            raise self.malformed("expected a function (`tt.func`)")
        visibility = self.match(_VISIBILITY)
        name = self._symbol()
        self.expect("(")
        arguments = self.arguments(")")
        if self.optional("->"):
            self.types()
        if self.optional("attributes"):
            self.attributes()
        blocks = self._headed(arguments)
        public = visibility is not None and visibility[1] == "public"
        return TextFunction(name, public, blocks, self.location(), start)

    def _symbol(self) -> str:
        found = self.need(_SYMBOL, "a name such as `@kernel`")
        return found[2] if found[1] is None else unescaped(found[1])

    def arguments(self, end: str) -> tuple[Argument, ...]:
        """`%x: f32 {…} loc(…), …` up to `end`."""
        found: list[Argument] = []
        while not self.optional(end):
            if found:
                self.expect(",")
            name = self.need(_VALUE, "a parameter such as `%x`")[0]
            self.expect(":")
            type = self.type()
            attributes = self.attributes() if self.sees("{") else {}
            self.location()
            found.append(Argument(name, type, attributes))
        return tuple(found)

    def region(self) -> tuple[TextBlock, ...]:
        """The blocks within braces."""
        self.expect("{")
        blocks: list[TextBlock] = []
        label, arguments, statements = "", (), list[TextOperation]()
        while not self.optional("}"):
            if self.sees("^"):
                if statements or label:
                    blocks.append(TextBlock(label, arguments, tuple(statements)))
                label = self.need(_LABEL, "a label")[0]
                arguments, statements = self.arguments(")") if self.optional("(") else (), []
                self.expect(":")
            elif self.skip() >= len(self.text):
                raise self.malformed("the region is not closed")
            else:
                statements.append(self.statement())
        blocks.append(TextBlock(label, arguments, tuple(statements)))
        return tuple(blocks)

    def statement(self) -> TextOperation:
        """One operation with its results, regions and location."""
        start = self.skip()
        results = self._results()
        if (quoted := self.match(STRING)) is not None:
            return self._generic(unescaped(quoted[1]), start, results)
        name = self.need(_WORD, "an operation")[0]
        form = _FORMS.get(name, Reader._plain)
        return form(self, name, start, results)

    def _results(self) -> tuple[str, ...]:
        if not self.sees("%"):
            return ()
        names: list[str] = []
        while True:
            found = self.need(_RESULT, "a result such as `%x`")
            names += [found[1]] if found[2] is None else [f"{found[1]}#{index}" for index in range(int(found[2]))]
            if not self.optional(","):
                break
        self.expect("=")
        return tuple(names)

    def _plain(self, name: str, start: int, results: tuple[str, ...]) -> TextOperation:
        """Operands and words, an attribute dictionary, types: all on one line but what a comma continues."""
        items, attributes = self._items(), dict[str, str]()
        if self.sees("{") and not self.new_line():
            attributes = self.attributes()
            items += self._items()
        types, into = self._types_behind_colon(items)
        return TextOperation(name, start, results, tuple(items), attributes, types, into, location=self.location())

    def _types_behind_colon(self, items: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """`: types -> types`; the operands of `tt.print` stand between two colons."""
        types: tuple[str, ...] = ()
        if self.optional(":"):
            if self.sees("%"):
                items += self._items()
                self.expect(":")
            types = self.types()
        into = self.types() if self.optional("->") or self.optional("to") else ()
        return types, into

    def _items(self) -> list[str]:
        """Everything up to a dictionary, a colon or an arrow, or to the end of the line where no comma continues it."""
        items: list[str] = []
        continues = False
        while True:
            before = self.at
            ends = self.new_line() and not continues
            if ends or any(self.sees(mark) for mark in _ENDS_ITEMS):
                self.at = before
                return items
            continues = self.sees(",")
            if (item := self._item()) is not None:
                items.append(item)

    def _item(self) -> str | None:
        """One operand, word, number or string; None for a punctuation mark."""
        if (found := self.match(STRING)) is not None:
            return found[0]
        if (found := self.match(_VALUE) or self.match(_LABEL) or self.match(_NUMBER)) is not None:
            return found[0]
        if self.sees("@"):
            return f"@{self._symbol()}"
        if (found := self.match(_WORD)) is not None:
            return found[0] + (self.bracketed() if self.text.startswith("<", self.at) else "")
        self.need(_MARK, "an operand")
        return None

    def _generic(self, name: str, start: int, results: tuple[str, ...]) -> TextOperation:
        """`"name"(operands) <{properties}> ({regions}) {attributes} : (types) -> types`."""
        self.expect("(")
        operands: list[str] = []
        while not self.optional(")"):
            operands.append(self.need(_VALUE, "an operand")[0])
            self.optional(",")
        attributes: dict[str, str] = {}
        if self.optional("<"):
            attributes |= self.attributes()
            self.expect(">")
        regions: list[tuple[TextBlock, ...]] = []
        if self.optional("("):
            while not self.optional(")"):
                regions.append(self.region())
                self.optional(",")
        if self.sees("{"):
            attributes |= self.attributes()
        self.expect(":")
        types = self.types()
        self.expect("->")
        into = self.types()
        return TextOperation(name, start, results, tuple(operands), attributes, types, into, tuple(regions), self.location())

    def _for(self, name: str, start: int, results: tuple[str, ...]) -> TextOperation:
        """`scf.for %i = %low to %high step %step iter_args(%x = %init) -> (types) : i32 {…}`.

        Its items are the bounds, the step and the initial values; the region's block has the variable and what is carried.
        """
        words = ("unsigned",) if self.optional("unsigned") else ()
        variable = self.need(_VALUE, "the loop's variable")[0]
        bounds: list[str] = []
        for mark in ("=", "to", "step"):
            self.expect(mark)
            bounds.append(self.need(_VALUE, "a bound")[0])
        inside, initial = self._carried() if self.optional("iter_args") else ([], [])
        into = self.types() if self.optional("->") else ()
        kind = self.type() if self.optional(":") else "index"
        types = (kind, *into)
        arguments = tuple(Argument(name, type, {}) for name, type in zip((variable, *inside), types, strict=False))
        body = self._headed(arguments)
        items = (*bounds, *initial, *words)
        return TextOperation(name, start, results, items, self._trailing(), types, into, (body,), self.location())

    def _while(self, name: str, start: int, results: tuple[str, ...]) -> TextOperation:
        """`scf.while (%x = %init) : (types) -> types {…} do {…}`; the first block has what is carried."""
        inside, initial = self._carried() if self.sees("(") else ([], [])
        self.expect(":")
        types = self.types()
        self.expect("->")
        into = self.types()
        before = self._headed(tuple(Argument(name, type, {}) for name, type in zip(inside, types, strict=False)))
        self.expect("do")
        after = self.region()
        return TextOperation(name, start, results, tuple(initial), self._trailing(), types, into, (before, after), self.location())

    def _if(self, name: str, start: int, results: tuple[str, ...]) -> TextOperation:
        """`scf.if %condition -> (types) {…} else {…}`."""
        condition = self.need(_VALUE, "a condition")[0]
        into = self.types() if self.optional("->") else ()
        regions = [self.region()]
        if self.optional("else"):
            regions.append(self.region())
        return TextOperation(name, start, results, (condition,), self._trailing(), (), into, tuple(regions), self.location())

    def _branch(self, name: str, start: int, results: tuple[str, ...]) -> TextOperation:
        """`cf.br ^to(%x : i32)`, `cf.cond_br %condition, ^then, ^else`: each target is followed by what its block gets."""
        items: list[str] = []
        while True:
            if self.sees("^"):
                items.append(self.need(_LABEL, "a label")[0])
                if self.optional("("):
                    items += self._items()
                    self.expect(":")
                    self.types()
                    self.expect(")")
            else:
                items.append(self.need(_VALUE, "a condition")[0])
            if not self.optional(","):
                break
        return TextOperation(name, start, results, tuple(items), self._trailing(), location=self.location())

    def _carried(self) -> tuple[list[str], list[str]]:
        """`(%x = %init, …)`: the names inside the loop and the values before it."""
        inside: list[str] = []
        initial: list[str] = []
        self.expect("(")
        while not self.optional(")"):
            if inside:
                self.expect(",")
            inside.append(self.need(_VALUE, "a carried value")[0])
            self.expect("=")
            initial.append(self.need(_VALUE, "an initial value")[0])
        return inside, initial

    def _headed(self, arguments: tuple[Argument, ...]) -> tuple[TextBlock, ...]:
        """A region whose first block has arguments that stand before its brace."""
        first, *others = self.region()
        return (TextBlock(first.label, arguments, first.statements), *others)

    def _trailing(self) -> dict[str, str]:
        """The dictionary behind a region."""
        return self.attributes() if self.optional("attributes") or self.sees("{") else {}

    def attributes(self) -> dict[str, str]:
        """`{name = value, name}`; the values as texts, empty for a name alone."""
        self.expect("{")
        found: dict[str, str] = {}
        while not self.optional("}"):
            if found:
                self.expect(",")
            quoted = self.match(STRING)
            name = unescaped(quoted[1]) if quoted is not None else self.need(_WORD, "an attribute")[0]
            found[name] = self._attribute() if self.optional("=") else ""
        return found

    def _attribute(self) -> str:
        """The text of one attribute: up to the comma or brace that ends it."""
        start = self.skip()
        while not (self.sees(",") or self.sees("}")):
            if self.at >= len(self.text):
                raise self.malformed("the attribute has no end", start)
            if self.match(STRING) is None:
                if self.text[self.at] in "<([{":
                    self.bracketed()
                else:
                    self.at += 1
        return self.text[start : self.at].strip()

    def types(self) -> tuple[str, ...]:
        """Types between commas or `*`, in parentheses or not."""
        if self.optional("("):
            found = () if self.sees(")") else self._list_of_types()
            self.expect(")")
            return found
        return self._list_of_types()

    def _list_of_types(self) -> tuple[str, ...]:
        found = [self.type()]
        while self.optional(",") or self.optional("*"):
            found.append(self.type())
        return tuple(found)

    def type(self) -> str:
        """The text of one type; `<f16>` where an operation leaves out what the type is called."""
        found = self.need(_TYPE, "a type")
        return found[0] + (self.bracketed() if self.text.startswith("<", self.at) else "")

    def location(self) -> str:
        """The text within `loc(…)`, empty where there is none."""
        if not self.sees("loc("):
            return ""
        self.at += len("loc")
        return self.bracketed()[1:-1]


_FORMS: dict[str, Callable[[Reader, str, int, tuple[str, ...]], TextOperation]] = {
    "scf.for": Reader._for, "scf.while": Reader._while, "scf.if": Reader._if, "cf.br": Reader._branch,
    "cf.cond_br": Reader._branch,
}
