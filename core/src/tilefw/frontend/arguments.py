"""Arguments of a call inside a kernel, bound to the parameters of a builtin or a jit function, with errors in words."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from tilefw.api.errors import CompileError

_VARIADIC = inspect.Parameter.VAR_POSITIONAL
_KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
_EMPTY = inspect.Parameter.empty


@cache
def parameters_of(function: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    """The parameters of a function, kept."""
    return tuple(inspect.signature(function).parameters.values())


def bind(
    name: str, parameters: Sequence[inspect.Parameter], args: Sequence[Any], keywords: Mapping[str, Any]
) -> dict[str, Any]:
    """Every parameter's value, defaults filled in, in order of the parameters; raises CompileError TFW0107."""
    bound: dict[str, Any] = {}
    given = list(args)
    for parameter in parameters:
        if parameter.kind is _VARIADIC and parameter.name in keywords:
            raise _mistake(f"{name} has no parameter `{parameter.name}` that can be named", name, parameters)
        if parameter.kind is _VARIADIC:
            bound[parameter.name], given = tuple(given), []
        elif given and parameter.kind is not _KEYWORD_ONLY:
            bound[parameter.name] = given.pop(0)
            if parameter.name in keywords:
                raise _mistake(f"{name} got the argument `{parameter.name}` twice", name, parameters)
        elif parameter.name in keywords:
            bound[parameter.name] = keywords[parameter.name]
        elif parameter.default is not _EMPTY:
            bound[parameter.name] = parameter.default
        else:
            raise _mistake(f"{name} needs the argument `{parameter.name}`", name, parameters)
    if given:
        count = sum(1 for p in parameters if p.kind is not _KEYWORD_ONLY)
        raise _mistake(f"{name} takes {count} positional argument{'' if count == 1 else 's'}, not {len(args)}", name, parameters)
    for keyword in keywords:
        if keyword not in bound:
            near = difflib.get_close_matches(keyword, list(bound), 1)
            raise _mistake(f"{name} has no parameter `{keyword}`", name, parameters, near[0] if near else None)
    return bound


def _mistake(message: str, name: str, parameters: Sequence[inspect.Parameter], near: str | None = None) -> CompileError:
    shown = inspect.Signature([p.replace(annotation=_EMPTY) for p in parameters])
    help = f"did you mean `{near}`?" if near else None
    return CompileError(message, "TFW0107", note=f"its signature is `{name}{shown}`", help=help)
