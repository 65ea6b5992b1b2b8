"""A kernel's parameters, bound: run-time ones by their types, the others by their values, tuples item by item.

An item of a tuple has a dotted name of its own, `pair.0` or `pair.0.1`; for a tuple with named fields `pair.*` holds the names
of the fields, and the items are `pair.left` and `pair.right`. Of a tensor descriptor that the host made `x.*` is the word
"tensor_descriptor", and the items are the fields of `DescriptorParameter`. `tilefw.runtime.jit.specialize` writes such names.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from itertools import accumulate, count, takewhile
from typing import Any, NamedTuple

from tilefw.api.errors import CompileError
from tilefw.frontend.scope import meaning
from tilefw.frontend.specialize import Specialization, parse
from tilefw.frontend.values import leaves
from tilefw.language.constants import constexpr


class DescriptorParameter(NamedTuple):
    """The pieces of a tensor descriptor that is an argument."""

    base: Any
    shape: Any
    strides: Any
    block_shape: Any
    padding: Any
    round_f32_to_tf32: Any


def bound_parameters(
    kernel: Any, signature: Mapping[str, str], constexprs: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What every parameter is made of, and the pieces.

    The first dict maps each parameter to a name, or to a (named) tuple of names; the second maps each of these names, in order,
    to a Specialization when it stands for a run-time value, else to the value. Raises CompileError TFW0119 or TFW0120.
    """
    names = {prefix for name in (*signature, *constexprs) for prefix in accumulate(name.split("."), "{}.{}".format)}
    structures: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for name, parameter in kernel.signature.parameters.items():
        structures[name] = structure = _structure(name, names, constexprs)
        if name not in names:
            if parameter.default is parameter.empty:
                raise _missing(kernel, name)
            structures[name], values[name] = name, meaning(constexpr(parameter.default))
            continue
        for item in leaves(structure):
            if item not in signature and item not in constexprs:  # `pair.1` is there, and `pair.0` is not
                raise _missing(kernel, item)
            values[item] = _value(item, signature, constexprs)
    for name in (*signature, *constexprs):
        if name not in values and not name.endswith(".*"):
            known = f"its parameters are {', '.join(kernel.signature.parameters)}"
            raise CompileError(f"kernel `{kernel.__name__}` has no parameter `{name}`", "TFW0119", note=known)
    return structures, values


def _structure(name: str, names: set[str], constexprs: Mapping[str, Any]) -> Any:
    """The name itself when a value is bound to it, else the tuple of what is bound under it."""
    fields = constexprs.get(f"{name}.*")
    if fields == "tensor_descriptor":
        return DescriptorParameter(*(_structure(f"{name}.{field}", names, constexprs) for field in DescriptorParameter._fields))
    if fields is not None:
        items = [_structure(f"{name}.{field}", names, constexprs) for field in fields]
        return namedtuple("arguments", fields)(*items)
    if f"{name}.0" not in names:
        return name
    indices = takewhile(lambda index: f"{name}.{index}" in names, count())
    return tuple(_structure(f"{name}.{index}", names, constexprs) for index in indices)


def _value(name: str, signature: Mapping[str, str], constexprs: Mapping[str, Any]) -> Any:
    if name in constexprs:
        return meaning(constexpr(constexprs[name]))  # a plain function is one that Python runs, as one in a global constexpr
    fact = parse(signature[name], name)
    return fact if fact.constant is None else fact.constant


def _missing(kernel: Any, name: str) -> CompileError:
    return CompileError(
        f"parameter `{name}` of kernel `{kernel.__name__}` has neither a type in the signature nor a constexpr value",
        "TFW0119",
        note="every parameter without a default needs one",
    )


def is_runtime(value: object) -> bool:
    """Whether a piece of a parameter is passed when the kernel runs."""
    return isinstance(value, Specialization)
