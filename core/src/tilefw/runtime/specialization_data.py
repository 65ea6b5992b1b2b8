"""A specialisation of a kernel as text, from which another process compiles it again: `kernel.preload(text)`.

A program that sets `triton.knobs.runtime.jit_cache_hook` hears of each one when it is new, as from Triton, with this text.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tilefw.api.errors import LaunchError
from tilefw.api.target import BOUND_FACTS, TargetInfo
from tilefw.language.constants import constexpr
from tilefw.language.dtypes import dtype, pointer_type

Hook = Callable[..., Any]
_PLAIN = (bool, int, float, str, type(None))


class JitFunctionInfo(NamedTuple):
    """The kernel that a hook hears of."""

    module: str
    name: str
    jit_function: Any


@dataclass(frozen=True, slots=True)
class SpecializationData:
    """What a kernel is compiled for, where: `options` are launch keywords that shape code, `facts` what holds of the arrays."""

    kernel: str
    target: str
    signature: Mapping[str, str]
    constexprs: Mapping[str, Any]
    options: Mapping[str, Any]
    facts: frozenset[str]

    def text(self) -> str | None:
        """All of it as JSON; None where a compile-time value is no number, string, type or tuple of these."""
        try:
            constexprs, options = ({k: _written(v) for k, v in part.items()} for part in (self.constexprs, self.options))
        except TypeError:
            return None
        return json.dumps({
            "name": self.kernel, "target": self.target, "signature": dict(self.signature), "constexprs": constexprs,
            "options": options, "facts": sorted(self.facts),
        })


def read(text: str, kernel: str, target: TargetInfo) -> SpecializationData:
    """What `SpecializationData.text` wrote of this kernel for this target. Raises LaunchError TFW0353 for anything else,
    TFW0642 for a target that compiles for one launch, of which the text says nothing."""
    try:
        found = json.loads(text)
        data = SpecializationData(
            found["name"], found["target"], found["signature"], {k: _value(v) for k, v in found["constexprs"].items()},
            {k: _value(v) for k, v in found["options"].items()}, frozenset(found["facts"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        raise _refused("this is no text of a specialisation") from None
    if data.kernel != kernel:
        raise _refused(f"the text is of kernel `{data.kernel}`, not of `{kernel}`")
    if data.target != target.name:
        raise _refused(f"the text is for target '{data.target}', and launches run on '{target.name}'")
    if target.wants & BOUND_FACTS:
        raise LaunchError(
            f"{target.name} compiles for one launch, and the text of a specialisation says of none", "TFW0642",
            help="launch the kernel, or compile it ahead of time with `tilefw.compile(…, grid=…, scalars=…, extents=…)`",
        )
    return data


def full_name(kernel: Any) -> str:
    """The kernel by its module and its name there."""
    return f"{kernel.__module__}.{kernel.__qualname__}"


def hook() -> Hook | None:
    """The hook of a program that has Triton's knobs, unless it took the setting away; nobody else can have set one."""
    knobs = sys.modules.get("tilefw.triton.knobs")
    return None if knobs is None else getattr(knobs.runtime, "jit_cache_hook", None)


def tell(kernel: Any, data: SpecializationData, key: str | None, *, warm: bool) -> bool:
    """Call the hook, if there is one, with Triton's keywords as far as they have a meaning here, before the code is made. Whether
    it has taken that over: then nothing is compiled or run. `key` is the artifact's, None where it has none."""
    heard = hook()
    if heard is None:
        return False
    compiled = {
        "key": key, "signature": data.signature, "device": 0, "constants": data.constexprs, **data.options,
        "specialization_data": data.text(), "is_warmup": warm,
    }
    return bool(heard(
        key=key, repr=f"{kernel.__qualname__}({', '.join(f'{name}: {kind}' for name, kind in data.signature.items())})",
        fn=JitFunctionInfo(kernel.__module__, kernel.__qualname__, kernel), compile=compiled, is_manual_warmup=warm,
        already_compiled=False,
    ))


def _refused(message: str) -> LaunchError:
    return LaunchError(
        message, "TFW0353", help="pass `compile['specialization_data']`, as the hook got it of the same kernel on the same target"
    )


def _written(value: Any) -> Any:
    """A value as JSON; raises TypeError for what has no such text."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, tuple | list):
        return {type(value).__name__ if type(value) in (tuple, list) else _no_text(value): [_written(item) for item in value]}
    if isinstance(value, constexpr):
        return {"constexpr": _written(value.value)}
    if isinstance(value, dtype) and not isinstance(value, pointer_type):
        return {"dtype": value.name}
    return _no_text(value)


def _no_text(value: Any) -> Any:
    raise TypeError(f"a {type(value).__name__} has no text")


def _value(written: Any) -> Any:
    if not isinstance(written, dict):
        return written
    ((kind, held),) = written.items()
    if kind in ("tuple", "list"):
        items = [_value(item) for item in held]
        return tuple(items) if kind == "tuple" else items
    return {"constexpr": lambda: constexpr(_value(held)), "dtype": lambda: dtype(held)}[kind]()
