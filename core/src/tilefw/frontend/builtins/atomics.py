"""atomic_add and the other read-modify-writes, atomic_cas: types, order and scope in Triton's words, shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend.builder import Builder, element_of
from tilefw.frontend.builtins.memory import checked_pointer, fitted, fitted_mask, read_only, shape_of_access
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.values import RuntimeValue, describe, lowered
from tilefw.tile import types
from tilefw.tile.dialect.atomic_ops import CAS_ELEMENTS, KINDS, ORDERS

meaning = Meanings()

_DEFAULT_ORDER = "acq_rel"
_ORDERS = {word: word for word in ORDERS}
_SCOPES = {"cta": "workgroup", "gpu": "device", "sys": "system"}
_DEFAULT_SCOPE = "gpu"

# Function: its kinds for signed integers, unsigned integers, floats; None where Triton has none.
_BY_TYPE: dict[str, tuple[str, str, str | None]] = {
    "atomic_add": ("add", "add", "add"),
    "atomic_max": ("maxs", "maxu", "maxf"),
    "atomic_min": ("mins", "minu", "minf"),
    "atomic_and": ("and", "and", None),
    "atomic_or": ("or", "or", None),
    "atomic_xor": ("xor", "xor", None),
    "atomic_xchg": ("xchg", "xchg", "xchg"),
}


def _rmw(function: str) -> Callable[..., RuntimeValue]:
    def build(b: Builder, pointer: Any, val: Any, mask: Any, sem: Any, scope: Any) -> RuntimeValue:
        pointer = _writable(pointer, function)
        kind = kind_of(function, element_of(pointer))
        order, reach = _word("sem", sem, _ORDERS, _DEFAULT_ORDER), _word("scope", scope, _SCOPES, _DEFAULT_SCOPE)
        shape = shape_of_access(pointer, (("val", val), ("mask", mask)))
        value = fitted(b, val, element_of(pointer), shape)
        return b.atomic_rmw(kind, pointer, value, None if mask is None else fitted_mask(b, mask, shape), order, reach)

    return build


for _name in _BY_TYPE:
    meaning(_name)(_rmw(_name))


@meaning("atomic_cas")
def atomic_cas(b: Builder, pointer: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> RuntimeValue:
    pointer = _writable(pointer, "atomic_cas")
    element = element_of(pointer)
    if not _serves(CAS_ELEMENTS, element):
        raise _no_such_type("atomic_cas", element, "elements of 16, 32 and 64 bits")
    order, reach = _word("sem", sem, _ORDERS, _DEFAULT_ORDER), _word("scope", scope, _SCOPES, _DEFAULT_SCOPE)
    shape = shape_of_access(pointer, (("cmp", cmp), ("val", val)))
    return b.atomic_cas(pointer, fitted(b, cmp, element, shape), fitted(b, val, element, shape), order, reach)


def _writable(pointer: Any, function: str) -> RuntimeValue:
    pointer = checked_pointer(pointer, function)
    if pointer.dtype.is_const():
        raise read_only(pointer)
    return pointer


def kind_of(function: str, element: tl.dtype) -> str:
    """The kind of tile IR that a function is for an element type. Raises CompileError (TFW0220) where there is none."""
    signed, unsigned, floating = _BY_TYPE[function]
    kind = floating if element.is_floating() else signed if element.is_int_signed() else unsigned
    if kind is None or not _serves(KINDS[kind].elements, element):
        served = [*KINDS[signed].elements, *(KINDS[floating].elements if floating else ())]
        raise _no_such_type(function, element, ", ".join(_names(served)))
    return kind


def _serves(elements: tuple[Any, ...], element: tl.dtype) -> bool:
    return (element.is_int() or element.is_floating()) and lowered(element) in elements


def _names(elements: list[Any]) -> list[str]:
    """The names of element types, integers with their unsigned namesakes, in the order given and each once."""
    names: dict[str, None] = {}
    for element in elements:
        name = types.dtype_of(element).name
        names.update({name: None} | ({f"u{name}": None} if types.is_int(element) else {}))
    return list(names)


def _no_such_type(function: str, element: tl.dtype, served: str) -> CompileError:
    return CompileError(
        f"tl.{function} is not there for {element}", "TFW0220", note=f"it is there for {served}",
        help="point to another type: an array of int32 or float32 has every atomic" if element.primitive_bitwidth < 32 else None,
    )


def _word(name: str, given: Any, words: Mapping[str, str], default: str) -> str:
    given = given or default if not isinstance(given, RuntimeValue) else given
    if not isinstance(given, str) or given not in words:
        raise CompileError(
            f"{name} is one of {', '.join(map(repr, words))}, not {describe(given)}", "TFW0221",
            help=f"leave `{name}` out for {default!r}",
        )
    return words[given]
