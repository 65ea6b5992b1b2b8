"""The name of a kernel's entry in machine code: its function's, or what `jit(repr=…)` makes of the specialisation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tilefw.api.errors import CompileError
from tilefw.language.constants import unwrap

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class SpecializationProxy(NamedTuple):
    """What `jit(repr=…)` is told of a specialisation, under Triton's names: compile-time values by parameter; the types of all
    parameters, `constexpr` for such a value."""

    constants: Mapping[str, Any]
    signature: Mapping[str, str]


Naming = Callable[[SpecializationProxy], str]


def specialization(parameters: Sequence[str], signature: Mapping[str, str], constexprs: Mapping[str, Any]) -> SpecializationProxy:
    """What there is to tell of a launch's signature and compile-time values; items of tuples are left out."""
    ones = {name: 1 for name, kind in signature.items() if kind.endswith(":1") and not kind.startswith("*")}
    constants = {name: unwrap(value) for name, value in (ones | dict(constexprs)).items() if "." not in name}
    types = {name: "constexpr" if name in constants else signature.get(name, "").partition(":")[0] for name in parameters}
    return SpecializationProxy(constants, types)


def checked_name(kernel: str, name: object) -> str:
    """What a kernel's `repr` gave; raises CompileError TFW0121 where it cannot name machine code."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    raise CompileError(
        f"the repr of kernel `{kernel}` gave {name!r}, which cannot name machine code", "TFW0121",
        help="a name has letters, digits and underscores, and begins with no digit",
    )
