"""What names mean inside a kernel: its locals, then closure and module globals under Triton's rule, then Python's builtins.

A global may be read only if it cannot change the kernel behind the compiler's back: a `tl.constexpr`, a jit function, a
module, an element type, a function of the language, None.
"""

from __future__ import annotations

import builtins
import difflib
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.language.aggregates import AggregateType
from tilefw.language.constants import unwrap

# The builtins of Python that fold at compile time. `min` and `max` also work on run-time values, `print` prints on devices.
PYTHON_BUILTINS: dict[str, Any] = {
    name: getattr(builtins, name)
    for name in (
        "bool", "float", "getattr", "hasattr", "int", "isinstance", "len", "list", "max", "min", "print", "range", "str", "tuple",
    )
}

_MISSING = object()
Names = tuple[dict[str, Any], dict[str, int], dict[str, str]]


@dataclass(frozen=True, slots=True)
class WrappedFunction:
    """A plain Python function that the program put into a constexpr, `F = tl.constexpr(function)`: it runs while the kernel is
    compiled."""

    function: Any

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Another such function was given this one."""
        return self.function(*args, **keywords)


def is_constexpr_function(value: object) -> bool:
    return getattr(value, "__tilefw_constexpr_function__", False)


def is_jit_function(value: object) -> bool:
    return getattr(value, "__tilefw_jit__", False)


def is_builtin(value: object) -> bool:
    """A function of the language."""
    return hasattr(value, "__tilefw_builtin__")


def runs_on_host(value: object) -> bool:
    """A function of the language that runs while the kernel is compiled."""
    return getattr(value, "__tilefw_on_host__", False)


def readable(value: object) -> bool:
    """Whether a kernel may read a global of this value."""
    return (
        value is None
        or isinstance(value, types.ModuleType | tl.constexpr | tl.dtype)
        or is_jit_function(value)
        or is_constexpr_function(value)
        or is_builtin(value)
        or isinstance(value, AggregateType)
        or str(getattr(value, "__module__", "")).startswith("tilefw.language")
        or (isinstance(value, tuple) and hasattr(value, "_fields"))
        or (isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"))
        or any(value is function for function in PYTHON_BUILTINS.values())
    )


def captured(function: types.FunctionType) -> dict[str, Any]:
    """The closure variables of a function that are bound by now."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    found: dict[str, Any] = {}
    for name, cell in cells:
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found


class Scope:
    """The names of one function while it is compiled.

    `lines` says where each local was assigned last, `gone` why a name that was assigned cannot be read here.
    """

    __slots__ = ("_closure", "_globals", "gone", "lines", "locals")

    def __init__(self, function: types.FunctionType) -> None:
        self.locals: dict[str, Any] = {}
        self.lines: dict[str, int] = {}
        self.gone: dict[str, str] = {}
        self._closure: Mapping[str, Any] = captured(function)
        self._globals: Mapping[str, Any] = function.__globals__

    def snapshot(self) -> Names:
        """The names as they are now, to be restored for another branch."""
        return dict(self.locals), dict(self.lines), dict(self.gone)

    def restore(self, names: Names) -> None:
        local, lines, gone = names
        self.locals, self.lines, self.gone = dict(local), dict(lines), dict(gone)

    def read(self, name: str) -> Any:
        """The value of a name; raises CompileError for one that is unknown, out of reach, or a global that may change."""
        value = self.locals.get(name, _MISSING)
        if value is not _MISSING:
            return value
        if name in self.gone:
            raise CompileError(
                f"`{name}` has no value here", "TFW0104", note=self.gone[name], help="give it a value before, of the same type"
            )
        for names in (self._closure, self._globals):
            value = names.get(name, _MISSING)
            if value is not _MISSING:
                return self._allowed(name, value)
        if name in PYTHON_BUILTINS:
            return PYTHON_BUILTINS[name]
        raise self._unknown(name)

    def _allowed(self, name: str, value: Any) -> Any:
        if not readable(value):
            raise CompileError(
                f"a kernel cannot read the global `{name}`, a plain {type(value).__name__}",
                "TFW0105",
                note="its value could change after the kernel was compiled",
                help=_global_help(name, value),
            )
        return meaning(value)

    def _unknown(self, name: str) -> CompileError:
        known = {*self.locals, *PYTHON_BUILTINS, *(n for n in (*self._closure, *self._globals) if not n.startswith("__"))}
        near = difflib.get_close_matches(name, known, 1)
        note = f"`{name}` is a builtin of Python that kernels do not have" if hasattr(builtins, name) else None
        help = f"did you mean `{near[0]}`?" if near else None
        return CompileError(f"name `{name}` is not defined", "TFW0104", note=note, help=help)


def meaning(value: Any) -> Any:
    """What a value of the program's is in a kernel: what a constexpr holds, anything else as it is."""
    plain = unwrap(value)
    return WrappedFunction(plain) if isinstance(value, tl.constexpr) and _only_python(plain) else plain


def _only_python(value: object) -> bool:
    """Whether a function means nothing to the compiler but what Python makes of it."""
    return isinstance(value, types.FunctionType) and not (is_builtin(value) or runs_on_host(value))


def _global_help(name: str, value: object) -> str:
    if isinstance(value, types.FunctionType):
        return f"decorate `{name}` with @tilefw.jit (to run on the device) or @tilefw.constexpr_function (to run while compiling)"
    return f"wrap it: `{name} = tl.constexpr(…)`, or pass it as a `tl.constexpr` parameter"
