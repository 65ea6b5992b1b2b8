"""The arguments of a call by parameter: Python itself binds them, by a function with the kernel's parameters that is made once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Protocol

from tilefw.api.errors import LaunchError, UnsupportedError
from tilefw.runtime.arguments.kernel_parameter import KernelParameter

Binder = Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]


class CalledKernel(Protocol):
    """What is asked of a kernel: its parameters, and the one that takes any keyword (`**keywords`) as it is written."""

    __name__: str
    params: list[KernelParameter]
    nameless: str | None


def binder(parameters: Sequence[inspect.Parameter]) -> Binder:
    """A function that takes what a kernel with these parameters takes, and more by name: the arguments in order, and the others.

        lambda x_ptr, n, BLOCK=…, **others: ((x_ptr, n, BLOCK), others)

    What `*args` takes is a tuple.
    """
    names = [parameter.name for parameter in parameters]
    others = "others"
    while others in names:
        others += "_"
    taken, defaults = list[str](), dict[str, Any]()
    for index, parameter in enumerate(parameters):
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not any(name.startswith("*") for name in taken):
            taken.append("*")
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            taken.append(f"*{parameter.name}")
        elif parameter.default is inspect.Parameter.empty:
            taken.append(parameter.name)
        else:
            defaults[f"default_{index}"] = parameter.default
            taken.append(f"{parameter.name}=default_{index}")
    result = "".join(f"{name}, " for name in names)
    return eval(f"lambda {', '.join([*taken, f'**{others}'])}: (({result}), {others})", defaults)


def require_named(kernel: CalledKernel) -> None:
    """Raise UnsupportedError TFW0102 for a kernel with `**keywords`."""
    if kernel.nameless is not None:
        message = f"kernel `{kernel.__name__}` cannot have the parameter `{kernel.nameless}`"
        raise UnsupportedError(message, "TFW0102", help="name each parameter")


def bind(kernel: CalledKernel, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments by parameter, in order, and the keywords that are none of the kernel's; raises LaunchError TFW0301."""
    require_named(kernel)
    bound: dict[str, Any] = {}
    others = dict(keywords)
    count = len(args)
    by_place = sum(not parameter.is_keyword_only for parameter in kernel.params)
    if count > by_place and not any(parameter.is_variadic for parameter in kernel.params):
        named = " by position" if by_place < len(kernel.params) else ""
        raise _mistake(kernel, f"takes {by_place} arguments{named}, not {count}")
    for index, parameter in enumerate(kernel.params):
        name = parameter.name
        if parameter.is_variadic:
            bound[name], count = args[index:], 0
        elif index < count:
            if name in keywords:
                raise _mistake(kernel, f"got the argument `{name}` twice")
            bound[name] = args[index]
        elif name in keywords:
            bound[name] = others.pop(name)
        elif parameter.has_default:
            bound[name] = parameter.default
        else:
            raise _missing(kernel, name, others)
    return bound, others


def place_of_variadic(function: Any) -> int | None:
    """Where `*args` stands among the parameters of what `function` decorates, None where it has none."""
    while hasattr(function, "fn"):
        function = function.fn
    code = getattr(function, "__code__", None)
    return None if code is None or not code.co_flags & inspect.CO_VARARGS else code.co_argcount


def by_position(names: Sequence[str], place: int | None, args: tuple[Any, ...]) -> dict[str, Any]:
    """The arguments by position under the names of the parameters; those of `*args`, which stands at `place`, are a tuple."""
    if place is None:
        return dict(zip(names, args, strict=False))
    named: dict[str, Any] = dict(zip(names[:place], args, strict=False))
    named[names[place]] = args[place:]
    return named


def _mistake(kernel: CalledKernel, message: str, help: str | None = None) -> LaunchError:
    names = [_shown(parameter) for parameter in kernel.params]
    place = next((parameter.num for parameter in kernel.params if parameter.is_keyword_only), None)
    if place is not None and not any(parameter.is_variadic for parameter in kernel.params):
        names.insert(place, "*")
    shown = ", ".join(names)
    return LaunchError(f"kernel `{kernel.__name__}` {message}", "TFW0301", note=f"its parameters are ({shown})", help=help)


def _shown(parameter: KernelParameter) -> str:
    name = f"*{parameter.name}" if parameter.is_variadic else parameter.name
    return f"{name}: constexpr" if parameter.is_constexpr else name


def _missing(kernel: CalledKernel, name: str, keywords: Mapping[str, Any]) -> LaunchError:
    near = get_close_matches(name, list(keywords), 1, 0.75)
    help = f"did you mean `{name}` instead of `{near[0]}`?" if near else None
    return _mistake(kernel, f"needs the argument `{name}`", help)
