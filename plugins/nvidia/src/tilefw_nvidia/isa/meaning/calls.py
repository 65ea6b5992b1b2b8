"""Calls of functions, made part of the caller: each call becomes the called function's statements, with names of their own.

    call.uni (r), f, (a);    becomes    the body of f, in which `f_param_0` is the caller's `a`, and `ret` goes behind it

The simulator so has one flat program per entry, and lanes that diverge inside a function reconverge as they do elsewhere.
Recursion has no such form and is refused, as are calls through an address. A call of the device runtime stops the launch
where it is executed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilefw.api.errors import CodeError
from tilefw_nvidia.isa.text.source import NAMES, NOT_SERVED, OPERANDS
from tilefw_nvidia.isa.text.syntax import (
    CallOperands,
    Location,
    Name,
    PtxFunction,
    PtxModule,
    PtxParameter,
    PtxScope,
    PtxVariable,
    Statement,
)

_MAX_STATEMENTS = 1 << 20
_END = "<end of the function>"  # no label that PTX text can spell
# Functions of the device runtime, which have no body, and why a launch stops where one is called ("CUDA C++ Programming Guide",
# "Assertion", "Formatted Output", "Dynamic Global Memory Allocation and Operations").
_RUNTIME = {
    "__assertfail": "an assertion failed",
    "vprintf": "vprintf is called, which is not served yet",
    "malloc": "malloc is called, which is not served yet",
    "free": "free is called, which is not served yet",
}


def inlined(module: PtxModule, function: PtxFunction) -> PtxFunction:
    """The function without calls; itself where it has none. Raises CodeError (TFW0712..TFW0714) at a call that cannot be made."""
    if not any(_called(statement) for statement in function.statements):
        return function
    return _Inliner(module).entry(function)


def _called(statement: Statement) -> CallOperands | None:
    first = statement.operands[0] if statement.operands else None
    return first if isinstance(first, CallOperands) else None


class _Inliner:
    """Copies statements into one list. Labels are indices into a list, so a body's labels are set when its length is known."""

    def __init__(self, module: PtxModule) -> None:
        self.module = module
        self.statements: list[Statement] = []
        self.variables: dict[str, PtxVariable] = {}
        self._copies = 0

    def entry(self, function: PtxFunction) -> PtxFunction:
        scope = self._body(function, {}, (function.name,), None)
        last = function.statements[-1]
        if _called(last):  # there is nothing to come back to: an entry ends where its text does
            self.statements.append(Statement("ret", (), None, last.start, last.end, scope, last.location))
        return replace(function, statements=self.statements, scope=scope, variables=list(self.variables.values()))

    def _body(
        self, function: PtxFunction, bound: Mapping[str, PtxVariable], path: tuple[str, ...], caller: Location | None
    ) -> PtxScope:
        """Append a copy of the body; gives its outermost scope. `bound`: the caller's variables by the names of parameters."""
        called = len(path) > 1
        copy = _InlinedBody(self, function, bound, caller if called else None)
        positions: list[int] = []
        for statement in function.statements:
            positions.append(len(self.statements))
            if (call := _called(statement)) is not None:
                self._call(statement, call, copy, path)
            elif called and statement.opcode.partition(".")[0] == "ret":
                self.statements.append(replace(copy.statement(statement), opcode="bra", operands=(Name(_END),)))
            else:
                self.statements.append(copy.statement(statement))
            if len(self.statements) > _MAX_STATEMENTS:
                message = f"with all calls inlined, {path[0]} has more than {_MAX_STATEMENTS} instructions"
                raise self._error(statement, message, NOT_SERVED)
        positions.append(len(self.statements))
        copy.set_labels(positions)
        return copy.outermost

    def _call(self, statement: Statement, call: CallOperands, copy: _InlinedBody, path: tuple[str, ...]) -> None:
        function = self.module.functions.get(call.function)
        if call.function in _RUNTIME and (function is None or not function.defined):
            self.statements.append(replace(copy.statement(statement), opcode="trap", operands=(), stops=_RUNTIME[call.function]))
            return
        callee = self._callee(statement, call, path)
        scope = copy.scope(statement.scope)
        bound = {
            **self._bound(statement, callee.results, call.results, scope, "result"),
            **self._bound(statement, callee.parameters, call.arguments, scope, "argument"),
        }
        location = copy.location(statement.location)
        around = PtxScope(scope)
        if statement.guard is not None:
            guard = replace(statement.guard, negated=not statement.guard.negated)
            skip = Statement("bra", (Name(_END),), guard, statement.start, statement.end, around, location)
            self.statements.append(skip)
        self._body(callee, bound, (*path, callee.name), location)
        around.labels[_END] = len(self.statements)

    def _callee(self, statement: Statement, call: CallOperands, path: tuple[str, ...]) -> PtxFunction:
        name = self.module.aliases.get(call.function, call.function)
        if call.indirect:
            raise self._error(statement, "a call through an address is not served yet", NOT_SERVED)
        callee = self.module.functions.get(name)
        if callee is None:
            raise self._error(statement, f"function {call.function} is not declared", NAMES)
        if not callee.defined:
            raise self._error(
                statement, f"{call.function} has no body in this module", NOT_SERVED,
                help="link the module with the one that has it",
            )
        if name in path:
            chain = " calls ".join([*path[path.index(name):], name])
            raise self._error(statement, f"recursion is not served: {chain}", NOT_SERVED)
        return callee

    def _bound(
        self, statement: Statement, formals: tuple[PtxParameter, ...], actuals: tuple[str, ...], scope: PtxScope, what: str
    ) -> dict[str, PtxVariable]:
        if len(formals) != len(actuals):
            raise self._error(statement, f"the function has {len(formals)} {what}s, the call gives {len(actuals)}", OPERANDS)
        return {formal.name: self._actual(statement, formal, name, scope) for formal, name in zip(formals, actuals, strict=True)}

    def _actual(self, statement: Statement, formal: PtxParameter, name: str, scope: PtxScope) -> PtxVariable:
        """The caller's `.param` variable, which the function reads and writes in place of its parameter."""
        variable = scope.variable(name)
        if variable is None or variable.space != "param":
            raise self._error(statement, f"{name} is not a .param variable of this function", NAMES)
        if variable.size != formal.size:
            raise self._error(statement, f"{name} has {variable.size} bytes, the parameter {formal.name} {formal.size}", OPERANDS)
        return variable

    def own_name(self, variable: PtxVariable, function: PtxFunction) -> PtxVariable:
        """The variable of one copy: shared and global variables are the function's, all others each copy's own."""
        if variable.space in ("shared", "global", "const"):
            own = replace(variable, name=f"{variable.name} of {function.name}") if function.called else variable
            return self.variables.setdefault(own.name, own)
        own = replace(variable, name=f"{variable.name} #{self._copies}")
        self._copies += 1
        self.variables[own.name] = own
        return own

    def _error(self, statement: Statement, message: str, code: str, help: str | None = None) -> CodeError:
        return self.module.source.refusal(message, statement.start, statement.end - 1, code=code, help=help)


class _InlinedBody:
    """One copy of a function's body: its scopes, with variables of their own, and its locations, with the call they came by."""

    def __init__(self, inliner: _Inliner, function: PtxFunction, bound: Mapping[str, PtxVariable], caller: Location | None) -> None:
        self.inliner = inliner
        self.function = function
        self.caller = caller
        self._scopes: dict[PtxScope, PtxScope] = {}
        self.outermost = self.scope(function.scope)
        self.outermost.variables.update(bound)

    def scope(self, scope: PtxScope) -> PtxScope:
        copied = self._scopes.get(scope)
        if copied is None:
            outer = None if scope.outer is None else self.scope(scope.outer)
            copied = self._scopes[scope] = PtxScope(outer)
            copied.registers, copied.counts, copied.tables = scope.registers, scope.counts, scope.tables
            copied.variables = {name: self.inliner.own_name(v, self.function) for name, v in scope.variables.items()}
        return copied

    def location(self, location: Location | None) -> Location | None:
        """The function's line as inlined at the call."""
        if location is None or self.caller is None:
            return location
        outer = self.caller if location.inlined_at is None else self.location(location.inlined_at)
        return replace(location, function=location.function or self.function.name, inlined_at=outer)

    def statement(self, statement: Statement) -> Statement:
        return replace(statement, scope=self.scope(statement.scope), location=self.location(statement.location))

    def set_labels(self, positions: list[int]) -> None:
        """Set every label; `positions[i]` is where the body's statement i now is, the last one where the body ends."""
        for scope, copied in self._scopes.items():
            copied.labels = {name: positions[index] for name, index in scope.labels.items()}
        self.outermost.labels[_END] = positions[-1]
