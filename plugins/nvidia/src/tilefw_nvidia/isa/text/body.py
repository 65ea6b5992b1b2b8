"""The body of a function: one regular expression per statement, so that a thousand lines take milliseconds.

Scopes `{ }` nest; `.loc` sets the place of the instructions behind it; debug directives say nothing about meaning.
"""

from __future__ import annotations

import re
from typing import NoReturn

from tilefw_nvidia.isa.text.cursor import Cursor
from tilefw_nvidia.isa.text.declarations import SPACES, read_registers, read_variable
from tilefw_nvidia.isa.text.operands import OperandError, OperandReader
from tilefw_nvidia.isa.text.source import NAMES, PtxSource
from tilefw_nvidia.isa.text.syntax import CallOperands, Location, Name, PtxFunction, PtxModule, PtxScope, Space, Statement

_STATEMENT = re.compile(
    r"""\s*(?:
      (?P<label>[A-Za-z_$%][\w$]*)\s*:(?!:)
    | (?:@\s*(?P<no>!?)\s*(?P<guard>[A-Za-z_$%][\w$]*)\s*)?
      (?P<opcode>[A-Za-z_]\w*(?:(?:\.|::)\w+)*)\s*
      (?P<operands>[^;{}"]*(?:\{[^;{}"]*\}[^;{}"]*)*);
    | (?P<open>\{) | (?P<close>\}) | (?P<directive>\.[A-Za-z_]\w*) | (?P<empty>;)
    )""",
    re.VERBOSE,
)
_LOC = re.compile(
    r"\s*(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})"
    r"(?:\s*,\s*function_name\s+([\w$]+)(?:\s*\+\s*\d+)?\s*,\s*inlined_at\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9}))?[^\S\n]*;?"
)
_PAST_LINE = re.compile(r"[^\n]*")
_MAX_DEPTH = 200
_NAMES = r"\(\s*((?:[\w$%]+\s*(?:,\s*[\w$%]+\s*)*)?)\)"
_CALL = re.compile(
    rf"(?:{_NAMES.replace('((', '(?P<results>(', 1)}\s*,\s*)?(?P<function>[\w$%]+)"
    rf"(?:\s*,\s*{_NAMES.replace('((', '(?P<arguments>(', 1)})?(?:\s*,\s*(?P<prototype>[\w$%]+))?$"
)
_BODY_SPACES: dict[str, Space] = {**SPACES, ".param": "param"}


class BodyReader:
    """Reads one function's body from just after its `{`."""

    def __init__(self, module: PtxModule, cursor: Cursor, operands: OperandReader) -> None:
        self.module = module
        self.source: PtxSource = module.source
        self.cursor = cursor
        self.operands = operands
        self.location: Location | None = None
        # `.loc … inlined_at F L C` names a place of an earlier `.loc`, which may itself be inlined.
        self.locations: dict[tuple[int, int, int], Location] = {}

    def read(self, function: PtxFunction) -> None:
        cursor, code, statements = self.cursor, self.source.code, function.statements
        scope, depth, position = function.scope, 1, self.cursor.position
        while depth:
            match = _STATEMENT.match(code, position)
            if match is None:
                self._unreadable(position)
            position = match.end()
            if match["opcode"]:
                statements.append(self._instruction(match, scope))
            elif match["directive"]:
                cursor.position = position
                cursor.start, cursor.end = match.span("directive")
                self._directive(match["directive"], function, scope)
                position = cursor.position
            elif match["label"]:
                if match["label"] in scope.labels:
                    raise self.source.refusal(f"label {match['label']} is set twice", *match.span("label"), code=NAMES)
                scope.labels[match["label"]] = len(statements)
            elif match["open"]:
                scope, depth = PtxScope(scope), depth + 1
                if depth > _MAX_DEPTH:
                    raise self.source.refusal(f"more than {_MAX_DEPTH} nested scopes", *match.span("open"))
            elif match["close"]:
                scope, depth = scope.outer or scope, depth - 1
        cursor.position = position

    def _instruction(self, match: re.Match[str], scope: PtxScope) -> Statement:
        if match["opcode"] in ("call", "call.uni"):
            return self._call(match, scope)
        guard = Name(match["guard"], negated=bool(match["no"])) if match["guard"] else None
        start = match.start("guard") - 1 - len(match["no"]) if guard else match.start("opcode")
        try:
            operands = self.operands.read(match["operands"].rstrip())
        except OperandError as error:
            self._bad_operands(match, error)
        return Statement(match["opcode"], operands, guard, start, match.end(), scope, self.location)

    def _call(self, match: re.Match[str], scope: PtxScope) -> Statement:
        parts = _CALL.match(match["operands"].strip())
        if parts is None:
            message = "a call is `call (result), function, (argument, …);`, with a prototype last where the function is a register"
            raise self.source.refusal(message, *match.span("opcode"))
        results, arguments = (tuple((parts[group] or "").replace(",", " ").split()) for group in ("results", "arguments"))
        function = parts["function"]
        indirect = function.startswith("%") or parts["prototype"] is not None
        guard = Name(match["guard"], negated=bool(match["no"])) if match["guard"] else None
        start = match.start("guard") - 1 - len(match["no"]) if guard else match.start("opcode")
        call = CallOperands(function, results, arguments, indirect)
        return Statement(match["opcode"], (call,), guard, start, match.end(), scope, self.location)

    def _bad_operands(self, match: re.Match[str], error: OperandError) -> NoReturn:
        begin = match.start("operands")
        text = match["operands"]
        if "\n" in text.strip():
            line_end = self.source.code.find("\n", begin)
            end = len(self.source.code[:line_end].rstrip())
            raise self.source.refusal("expected ';' after this instruction", max(end - 1, begin - 1), end) from None
        at = text.find(error.text) if error.text else -1
        at = begin + at if at >= 0 else match.end("operands") - 1
        raise self.source.refusal(str(error), at, at + max(1, len(error.text.rstrip()))) from None

    def _unreadable(self, position: int) -> NoReturn:
        cursor = Cursor(self.source, position)
        position = cursor.skip_space()
        if cursor.at_end:
            raise self.source.refusal("the file ends inside a function: a '}' is missing", max(0, len(self.source.code) - 1))
        line = _PAST_LINE.match(self.source.code, position)
        help = "a statement is `opcode operands;`, a label or a directive"
        raise self.source.refusal("this statement cannot be read", position, line and line.end(), help=help)

    def _directive(self, word: str, function: PtxFunction, scope: PtxScope) -> None:
        cursor = self.cursor
        if word == ".loc":
            self._loc()
        elif word == ".reg":
            read_registers(cursor, scope)
        elif word in _BODY_SPACES:
            for variable in read_variable(cursor, _BODY_SPACES[word]):
                if variable.name in scope.variables:
                    raise self.source.refusal(f"{variable.name} is declared twice", variable.start, code=NAMES)
                scope.variables[variable.name] = variable
                function.variables.append(variable)
        elif word in (".pragma", ".callprototype", ".calltargets"):  # prototypes serve calls through addresses alone
            self._skip_to_semicolon()
        elif word == ".branchtargets":
            self._branch_targets(function, scope)
        else:
            cursor.fail(f"{word!r} is not a directive of a function's body")

    def _branch_targets(self, function: PtxFunction, scope: PtxScope) -> None:
        """`table: .branchtargets a, b, c;`: the label before it names the list."""
        names = [label for label, index in scope.labels.items() if index == len(function.statements)]
        targets = [self.cursor.name("a label")]
        while self.cursor.accept(","):
            targets.append(self.cursor.name("a label"))
        self.cursor.expect(";")
        if not names:
            self.cursor.fail(".branchtargets needs a label before it")
        del scope.labels[names[-1]]
        scope.tables[names[-1]] = tuple(targets)

    def _skip_to_semicolon(self) -> None:
        while not self.cursor.accept(";"):
            self.cursor.any("';'")

    def _loc(self) -> None:
        match = _LOC.match(self.source.code, self.cursor.position)
        if match is None:
            self.cursor.fail(
                "a .loc is `.loc file line column`, with `, function_name label, inlined_at file line column` where inlined"
            )
        self.cursor.position = match.end()
        file, line, column = int(match[1]), int(match[2]), int(match[3])
        outer = None
        if match[4]:
            place = (int(match[5]), int(match[6]), int(match[7]))
            outer = self.locations.get(place) or Location(*place)
        self.location = Location(file, line, column, match[4] or "", outer)
        self.locations[file, line, column] = self.location
