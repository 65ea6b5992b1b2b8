"""What a library kernel is: its parameters, a launch made from them, and NumPy's own word on the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import numpy as np

from tilefw.api.errors import PluginError, UsageError
from tilefw.kernels.index import KERNELS, KernelInfo, ParameterInfo
from tilefw.runtime.names import suggest

Parameters = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Buffer:
    """A pointer argument: an array in its storage form and the element type that the kernel sees.

    `array` may be a view with any strides: the pointer is that of its element [0, …]. `dtype` is Triton's name; it says what
    `array.dtype` cannot (fp8e4b15 is stored as uint8).
    """

    array: np.ndarray
    dtype: str


@dataclass(frozen=True, slots=True)
class Launch:
    """One call of a kernel: its run-time arguments by name and in order, constexprs, grid, launch keywords.

    `outputs` names the buffers that the kernel writes, in the order in which they are compared.
    """

    arguments: Mapping[str, Buffer | int | float | None]
    constexprs: Mapping[str, Any]
    grid: tuple[int, int, int]
    outputs: tuple[str, ...]
    keywords: Mapping[str, Any] = field(default_factory=dict)

    def buffer(self, name: str) -> Buffer:
        """The argument of that name, which is a buffer; raises KeyError where there is no such argument."""
        buffer = self.arguments[name]
        assert isinstance(buffer, Buffer), f"argument {name!r} is not a buffer"
        return buffer


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """A library kernel.

    `prepare(parameters, rng)` makes a launch with fresh arrays. `expected(parameters, launch)` gives every output as float64,
    or as integers where the result is exact, from the launch's *inputs* by NumPy alone: no part of tilefw computes it, so a
    mistake of the front end or of the reference interpreter cannot hide. `requires(parameters)` names capabilities that the
    kernel needs beyond those which its own operations show. `own` describes a kernel that is not of the library: a plugin's or
    a pack's, called `PLUGIN:NAME` or `PACK:NAME`.
    """

    name: str
    kernel: Any
    prepare: Callable[[Parameters, np.random.Generator], Launch]
    expected: Callable[[Parameters, Launch], Mapping[str, np.ndarray]]
    requires: Callable[[Parameters], frozenset[str]] = lambda _: frozenset()
    own: KernelInfo | None = None

    @property
    def info(self) -> KernelInfo:
        """The kernel's `own` description where it has one, else its row in the library's table."""
        return KERNELS[self.name] if self.own is None else self.own

    def resolve(self, given: Parameters) -> dict[str, Any]:
        """The kernel's defaults overlaid with `given` (text from a command line is converted); raises UsageError."""
        return resolve(self.info, given)


def load(name: str) -> KernelSpec:
    """The library kernel called `name`, or a plugin's by `PLUGIN:NAME`; raises UsageError that names the nearest one."""
    if ":" in name:
        return _registered(name)
    return import_module(f"tilefw.kernels.{described(name).name}").SPEC


def _registered(name: str) -> KernelSpec:
    """The kernel `PLUGIN:NAME`.

    Raises UsageError for a name that no plugin has, PluginError TFW0959 where the plugin is not usable or what it names is no
    KernelSpec with an `info` of its own.
    """
    from tilefw.runtime.plugins.loader import registry  # which a kernel of the library does not need

    brought_by, _, short = name.partition(":")
    plugin = registry().plugin(brought_by)
    answers = plugin.manager.hook.tilefw_register_kernels() if "tilefw_register_kernels" in plugin.hooks else ()
    known = {key: location for answer in answers for key, location in dict(answer).items()}
    if short not in known:
        message = f"plugin '{brought_by}' brings no kernel called {short!r}"
        raise UsageError(message, code="TFW0940", help=suggest(short, known, what="its kernels"))
    module, _, attribute = str(known[short]).partition(":")
    try:
        spec = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise _unusable(name, f"{known[short]!r} cannot be had: {type(error).__name__}: {error}") from error
    if not isinstance(spec, KernelSpec) or spec.own is None:
        raise _unusable(name, f"{known[short]!r} is not a KernelSpec that has its own `KernelInfo`")
    if spec.name != name:
        raise _unusable(name, f"its KernelSpec is called {spec.name!r}")
    return spec


def _unusable(name: str, why: str) -> PluginError:
    return PluginError(f"kernel {name!r}: {why}", code="TFW0959")


def described(name: str) -> KernelInfo:
    """The table's row of the library kernel called `name`, without importing the kernel; raises UsageError as `load` does."""
    if name not in KERNELS:
        near = get_close_matches(name, KERNELS, 1)
        raise UsageError(
            f"no kernel is called {name!r}", code="TFW0940",
            note=f"the library has {', '.join(KERNELS)}", help=f"did you mean {near[0]!r}?" if near else "see `tilefw kernels`",
        )
    return KERNELS[name]


def resolve(info: KernelInfo, given: Parameters) -> dict[str, Any]:
    """`info`'s defaults overlaid with `given`; raises UsageError for an unknown name, a wrong type or a value off the list."""
    known = {p.name: p for p in info.parameters}
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, 1)
            raise UsageError(
                f"{info.name} has no parameter {name!r}", code="TFW0941",
                note=f"its parameters are {', '.join(known)}", help=f"did you mean {near[0]!r}?" if near else None,
            )
    return {name: _convert(info, p, given[name]) if name in given else p.default for name, p in known.items()}


def _convert(info: KernelInfo, parameter: ParameterInfo, value: Any) -> Any:
    """`value` in the type of the parameter's default, within its choices."""
    kind = type(parameter.default)
    converted = _from_text(value, kind) if isinstance(value, str) else value
    if kind is float and isinstance(converted, int) and not isinstance(converted, bool):
        converted = float(converted)
    if type(converted) is not kind:
        raise UsageError(
            f"{info.name}: parameter {parameter.name!r} takes {_KIND_WORDS[kind]}, not {value!r}", code="TFW0942",
            note=parameter.doc,
        )
    if parameter.choices and converted not in parameter.choices:
        near = _nearest(converted, parameter.choices)
        raise UsageError(
            f"{info.name}: parameter {parameter.name!r} cannot be {converted!r}", code="TFW0942",
            note=f"it is one of {', '.join(map(str, parameter.choices))}", help=None if near is None else f"did you mean {near!r}?",
        )
    if kind is int and converted < parameter.least:
        raise UsageError(
            f"{info.name}: parameter {parameter.name!r} is at least {parameter.least}, not {converted}", code="TFW0942",
        )
    return converted


_KIND_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def _nearest(value: Any, choices: Sequence[Any]) -> Any:
    """The choice that was most likely meant: of numbers the nearest, of words one that looks alike; None where none does."""
    if isinstance(value, int | float):
        return min(choices, key=lambda choice: abs(choice - value))
    return next(iter(get_close_matches(str(value), [str(c) for c in choices], 1)), None)


def _from_text(text: str, kind: type) -> Any:
    """`text` read as `kind`, or unchanged where it cannot be."""
    if kind is bool:
        return _BOOLEANS.get(text.lower(), text)
    if kind in (int, float):
        try:
            return int(text, 0) if kind is int else float(text)
        except ValueError:
            return text
    return text
