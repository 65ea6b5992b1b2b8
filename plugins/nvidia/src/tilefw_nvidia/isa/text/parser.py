"""A whole PTX module from its text: header, module variables, entries, functions, names of files; debug sections are skipped."""

from __future__ import annotations

import re

from tilefw_nvidia.isa.text.body import BodyReader
from tilefw_nvidia.isa.text.cursor import Cursor
from tilefw_nvidia.isa.text.declarations import SPACES, read_parameters, read_variable
from tilefw_nvidia.isa.text.operands import OperandReader
from tilefw_nvidia.isa.text.source import NAMES, NOT_SERVED, PtxSource
from tilefw_nvidia.isa.text.syntax import PtxFunction, PtxModule, PtxScope, Space

# PTX ISA, "Release Notes": the versions that exist between 1.0 and 9.x; more than ours may come.
_VERSION = re.compile(r"\s*(\d{1,2})\.(\d)\b")
_SECTION_BODY = re.compile(r'\s*(?:[\w.$]+|"[^"]*")\s*\{([^{}]*)\}')
_STRING_BYTES = re.compile(r"([\w$]+):\s*((?:\.b8\s+[\d,\s]+)+)")
_LINKING = {".visible", ".extern", ".weak", ".common"}
_MAX_TEXT = 64 << 20
# Directives with their least and largest number of integers (PTX ISA, "Performance-Tuning Directives").
_ENTRY_DIRECTIVES = {
    ".maxntid": (1, 3),
    ".reqntid": (1, 3),
    ".minnctapersm": (1, 1),
    ".maxnctapersm": (1, 1),
    ".maxnreg": (1, 1),
    ".noreturn": (0, 0),
    ".reqnctapercluster": (1, 3),
    ".maxclusterrank": (1, 1),
    ".explicitcluster": (0, 0),
}


def parse(text: str, filename: str = "<ptx>") -> PtxModule:
    """The module in `text`. `filename` is only for messages. Raises CodeError (TFW071x) with line and column."""
    source = PtxSource(text, filename)
    if len(text) > _MAX_TEXT:
        raise source.refusal(f"the file has {len(text)} characters; at most {_MAX_TEXT} are read", 0)
    return _ModuleReader(PtxModule(source)).read()


class _ModuleReader:
    def __init__(self, module: PtxModule) -> None:
        self.module = module
        self.cursor = Cursor(module.source)
        self.operands = OperandReader()

    def read(self) -> PtxModule:
        cursor, module = self.cursor, self.module
        self._header()
        while not cursor.at_end:
            word = cursor.word("a directive")
            linking: set[str] = set()
            while word in _LINKING:
                linking.add(word)
                word = cursor.word("a declaration")
            self._declaration(word, linking)
        return module

    def _header(self) -> None:
        """`.version`, `.target` and `.address_size`, in this order (PTX ISA, "PTX Module Directives")."""
        cursor, module = self.cursor, self.module
        cursor.expect(".version")
        match = _VERSION.match(cursor.code, cursor.position)
        if match is None:
            cursor.any("a version")
            cursor.fail("a version is two numbers, as in 7.0")
        module.version = int(match[1]), int(match[2])
        cursor.position = match.end()
        cursor.expect(".target")
        module.target = cursor.name("a target")
        if not re.fullmatch(r"sm_\d{2,3}[af]?", module.target):
            cursor.fail(f"{module.target!r} is not a target", help="write sm_ and a number; a letter may follow it")
        while cursor.accept(","):
            option = cursor.name("a target option")
            if option not in ("debug", "texmode_independent", "texmode_unified", "map_f64_to_f32"):
                cursor.fail(f"{option!r} is not a target option")
        if cursor.accept(".address_size"):
            module.address_size = cursor.integer("an address size")
            if module.address_size != 64:
                cursor.fail("only .address_size 64 is served", code=NOT_SERVED)

    def _declaration(self, word: str, linking: set[str]) -> None:
        cursor = self.cursor
        if word == ".entry":
            self._entry()
        elif word in SPACES:
            self._variables(SPACES[word], ".extern" in linking)
        elif word == ".file":
            self._file()
        elif word == ".section":
            self._section()
        elif word == ".func":
            self._function()
        elif word == ".alias":
            self._alias()
        elif word == ".pragma":
            cursor.string("a pragma")
            cursor.expect(";")
        elif word in (".version", ".target", ".address_size"):
            cursor.fail(f"{word} occurs once, at the top of the module")
        else:
            cursor.fail(f"{word!r} is not a directive of a module")

    def _variables(self, space: Space, extern: bool) -> None:
        for variable in read_variable(self.cursor, space, extern):
            known = self.module.variables.get(variable.name)
            if known is not None and not (known.extern or extern):
                raise self.module.source.refusal(f"{variable.name} is declared twice", variable.start, code=NAMES)
            self.module.variables[variable.name] = variable

    def _entry(self) -> None:
        cursor, module = self.cursor, self.module
        name = cursor.name("the entry's name")
        start = cursor.start
        if name in module.entries:
            cursor.fail(f"entry {name} is defined twice", code=NAMES)
        parameters = read_parameters(cursor)
        function = PtxFunction(name, parameters, self._directives(), [], PtxScope(), start)
        if cursor.accept(";"):
            return
        cursor.expect("{")
        BodyReader(module, cursor, self.operands).read(function)
        module.entries[name] = function

    def _function(self) -> None:
        """`.func (result) name (parameters) { … }`, or a `;` in place of the body where it is only declared."""
        cursor, module = self.cursor, self.module
        results = read_parameters(cursor) if cursor.peek() == "(" else ()
        name = cursor.name("the function's name")
        start, known = cursor.start, module.functions.get(name)
        function = PtxFunction(
            name, read_parameters(cursor), self._directives(), [], PtxScope(), start, results=results, called=True
        )
        if cursor.accept(";"):
            function.defined = False
            module.functions.setdefault(name, function)
            return
        if known is not None and known.defined:
            raise module.source.refusal(f"function {name} is defined twice", start, code=NAMES)
        cursor.expect("{")
        BodyReader(module, cursor, self.operands).read(function)
        module.functions[name] = function

    def _alias(self) -> None:
        """`.alias name, function;` (PTX ISA, ".alias")."""
        alias = self.cursor.name("an alias")
        self.cursor.expect(",")
        self.module.aliases[alias] = self.cursor.name("a function")
        self.cursor.expect(";")

    def _directives(self) -> dict[str, tuple[int, ...]]:
        directives: dict[str, tuple[int, ...]] = {}
        while self.cursor.peek().startswith("."):
            word = self.cursor.word("a directive")
            if word == ".pragma":
                self.cursor.string("a pragma")
                self.cursor.expect(";")
                continue
            if word not in _ENTRY_DIRECTIVES:
                self.cursor.fail(f"{word!r} is not a directive of a function")
            least, most = _ENTRY_DIRECTIVES[word]
            values = [self.cursor.integer("a number", 1)] if least else []
            while len(values) < most and self.cursor.accept(","):
                values.append(self.cursor.integer("a number", 1))
            directives[word[1:]] = tuple(values)
        return directives

    def _file(self) -> None:
        number = self.cursor.integer("a file number")
        self.module.files[number] = self.cursor.string("a file name")
        for what in ("a time stamp", "a file size"):
            if self.cursor.accept(","):
                self.cursor.integer(what, 0, 2**64)

    def _section(self) -> None:
        """Debug sections hold DWARF bytes (PTX ISA, "Debugging Directives"); only the strings are of use: functions' names."""
        cursor = self.cursor
        match = _SECTION_BODY.match(cursor.code, cursor.position)
        if match is None:
            cursor.fail("a .section is a name and a block in braces")
        cursor.position = match.end()
        for entry in _STRING_BYTES.finditer(match[1]):
            values = [int(b) & 0xFF for b in re.findall(r"\d+", entry[2].replace(".b8", " "))]
            self.module.strings[entry[1]] = bytes(values).split(b"\0")[0].decode(errors="replace")
