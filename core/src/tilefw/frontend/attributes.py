"""`x.name` inside a kernel: facts and methods of tensors, of element types, of modules and of compile-time values."""

from __future__ import annotations

import difflib
import inspect
import types
from dataclasses import dataclass
from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins.shape import permute
from tilefw.frontend.scope import is_builtin, is_jit_function, meaning
from tilefw.frontend.values import CompositeValue, RuntimeValue, describe, is_number, named
from tilefw.language.aggregates import Aggregate, AggregateType, opened
from tilefw.language.constants import unwrap
from tilefw.language.shape import item

_FACTS = ("dtype", "shape", "type", "numel")
# Methods of a tensor that are functions of the language, called with the tensor first; `to` is `cast`.
_METHODS = {
    name: getattr(tl, name)
    for name in (
        "abs", "advance", "argmax", "argmin", "associative_scan", "atomic_add", "atomic_and", "atomic_cas", "atomic_load",
        "atomic_max", "atomic_min", "atomic_or", "atomic_poll", "atomic_store", "atomic_xchg", "atomic_xor", "broadcast_to",
        "cast", "cdiv", "ceil", "cos", "cumprod", "cumsum", "erf", "exp", "exp2", "expand_dims", "flip", "floor", "gather",
        "histogram", "log", "log2", "max", "min", "permute", "ravel", "reduce", "reduce_or", "reshape", "rsqrt", "sigmoid",
        "sin", "softmax", "sort", "split", "sqrt", "sqrt_rn", "store", "sum", "trans", "view", "xor_sum",
    )
} | {"to": tl.cast, "item": item}


@dataclass(frozen=True, slots=True)
class BoundMethod:
    """A function of the language with its first argument: `x.to`, `x.exp`."""

    function: Any
    value: RuntimeValue | CompositeValue


@dataclass(frozen=True, slots=True)
class HostFunction:
    """A Python function of an aggregate class, bound to its value if it is a method; it runs while the kernel is compiled."""

    function: Any


@dataclass(frozen=True, slots=True)
class LogicalMethod:
    """`x.logical_and` and `x.logical_or`."""

    word: str
    value: RuntimeValue


def attribute(b: Builder, value: Any, name: str) -> Any:
    """The value of `value.name`; raises CompileError for what is not there, with the nearest name."""
    if isinstance(value, RuntimeValue):
        return _of_tensor(b, value, name)
    if isinstance(value, Aggregate | AggregateType):
        return _of_aggregate(value, name)
    if isinstance(value, CompositeValue):
        return _of_composite(value, name)
    if name == "value" and not hasattr(value, "value"):
        # A constexpr is its value here; code written for Triton may still say `.value`.
        return value
    if name == "type" and _is_constant(value) and not hasattr(value, "type"):  # a named tuple may have such a field
        return tl.constexpr_type(value)
    try:
        return meaning(getattr(value, name))
    except AttributeError:
        raise _missing(value, name) from None


def _is_constant(value: Any) -> bool:
    """A number, or a tuple of nothing else."""
    value = unwrap(value)
    return all(map(_is_constant, value)) if isinstance(value, tuple) else is_number(value)


def _of_tensor(b: Builder, value: RuntimeValue, name: str) -> Any:
    if name in _FACTS:
        return getattr(value, name)
    if name == "T":
        return permute(b, value, ((1, 0),))
    if name in _METHODS:
        return BoundMethod(_METHODS[name], value)
    if name in ("logical_and", "logical_or"):
        return LogicalMethod(name.removeprefix("logical_"), value)
    raise _missing(value, name)


def _of_composite(value: CompositeValue, name: str) -> Any:
    known = value.attributes()
    if name not in known:
        raise _missing(value, name)
    return BoundMethod(known[name], value) if is_builtin(known[name]) else known[name]


def _of_aggregate(value: Aggregate | AggregateType, name: str) -> Any:
    """A field, or a function of the class. Those that run on the device take the value they are read from as first argument."""
    try:
        found = opened(getattr(value, name))
    except AttributeError:
        raise _missing(value, name) from None
    if isinstance(found, types.FunctionType | types.MethodType):
        return HostFunction(found)
    if not isinstance(value, Aggregate) or name in type(value).__aggregate_fields__ or not is_jit_function(found):
        return found
    return found if isinstance(inspect.getattr_static(type(value), name), staticmethod) else BoundMethod(found, value)


def _missing(value: Any, name: str) -> CompileError:
    if isinstance(value, RuntimeValue):
        known, words = [*_FACTS, "T", *_METHODS], f"{named(value)}"
    elif isinstance(value, CompositeValue):
        known, words = list(value.attributes()), named(value)
    elif isinstance(value, types.ModuleType):
        known, words = [n for n in dir(value) if not n.startswith("_")], f"module `{value.__name__}`"
    else:
        known, words = [n for n in dir(value) if not n.startswith("_")], describe(value)
    near = difflib.get_close_matches(name, known, 1)
    return CompileError(f"{words} has no attribute `{name}`", "TFW0117", help=f"did you mean `{near[0]}`?" if near else None)
