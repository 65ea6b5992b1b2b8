"""atomic_add and the other read-modify-writes, atomic_cas, atomic_load, atomic_store, atomic_poll.

Types, order and scope are in Triton's words. A load is a read-modify-write that changes nothing, a store an exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend.arithmetic import BINARY, COMPARISONS, compare, invert, subtract
from tilefw.frontend.builder import Builder, element_of
from tilefw.frontend.builtins.memory import checked_pointer, fitted, fitted_mask, read_only, shape_of_access
from tilefw.frontend.builtins.reduction import any_of
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import bitcast, cast, to_value
from tilefw.frontend.values import RuntimeValue, describe, lowered, named
from tilefw.tile import types
from tilefw.tile.dialect.atomic_ops import CAS_ELEMENTS, KINDS, ORDERS

meaning = Meanings()

_DEFAULT_ORDER = "acq_rel"
_ORDERS = {word: word for word in ORDERS}
# Triton's words, and those of tile IR; the devices of a node are all that a kernel's system has, so that "node" is another word.
SCOPES = {
    "cta": "workgroup", "gpu": "device", "sys": "system", "workgroup": "workgroup", "device": "device", "node": "system",
    "system": "system",
}
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
        order, reach = _word("sem", sem, _ORDERS, _DEFAULT_ORDER), _word("scope", scope, SCOPES, _DEFAULT_SCOPE)
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
    order, reach = _word("sem", sem, _ORDERS, _DEFAULT_ORDER), _word("scope", scope, SCOPES, _DEFAULT_SCOPE)
    shape = shape_of_access(pointer, (("cmp", cmp), ("val", val)))
    return b.atomic_cas(pointer, fitted(b, cmp, element, shape), fitted(b, val, element, shape), order, reach)


_LOADS = {word: word for word in ("acquire", "relaxed")}
_STORES = {word: word for word in ("release", "relaxed")}


@meaning("atomic_load")
def atomic_load(b: Builder, pointer: Any, mask: Any, sem: Any, scope: Any) -> RuntimeValue:
    return _loaded(b, "atomic_load", pointer, mask, _word("sem", sem, _LOADS, "acquire"), scope)


def _loaded(b: Builder, function: str, pointer: Any, mask: Any, order: str, scope: Any) -> RuntimeValue:
    """What memory holds: a read-modify-write that changes nothing, of integers as wide as the elements."""
    pointer = _writable(pointer, function)
    element, reach = element_of(pointer), _word("scope", scope, SCOPES, _DEFAULT_SCOPE)
    if not _serves(CAS_ELEMENTS, element):
        raise _no_such_type(function, element, "elements of 16, 32 and 64 bits")
    wide = tl.int64 if element.primitive_bitwidth == 64 else tl.int32
    if element.primitive_bitwidth == 16:
        if mask is not None:
            raise CompileError(
                f"tl.{function} of {element} takes no mask", "TFW0220", note="masks are there for elements of 32 and 64 bits"
            )
        zero = fitted(b, 0, element, pointer.shape)
        return b.atomic_cas(pointer, zero, zero, order, reach)
    shape = shape_of_access(pointer, (("mask", mask),))
    narrowed = None if mask is None else fitted_mask(b, mask, shape)
    assert isinstance(pointer.dtype, tl.pointer_type)
    bits = cast(b, pointer, tl.pointer_type(wide, pointer.dtype.address_space))
    return bitcast(b, b.atomic_rmw("or", bits, b.constant(0, wide, shape), narrowed, order, reach), element)


@meaning("atomic_store")
def atomic_store(b: Builder, pointer: Any, val: Any, mask: Any, sem: Any, scope: Any) -> None:
    pointer = _writable(pointer, "atomic_store")
    if not _serves(KINDS["xchg"].elements, element_of(pointer)):
        raise _no_such_type("atomic_store", element_of(pointer), ", ".join(_names([*KINDS["xchg"].elements])))
    meaning.of["atomic_xchg"](b, pointer, val, mask, _word("sem", sem, _STORES, "release"), scope)


@meaning("atomic_poll")
def atomic_poll(b: Builder, pointer: Any, expected_value: Any, sem: Any, scope: Any, timeout_ns: Any) -> RuntimeValue:
    pointer = _writable(pointer, "atomic_poll")
    element, order = element_of(pointer), _word("sem", sem, _LOADS, "acquire")
    if not element.is_int() or element.primitive_bitwidth < 16:
        raise _no_such_type("atomic_poll", element, "integers of 16, 32 and 64 bits")
    if isinstance(timeout_ns, int) and timeout_ns < 0:
        raise CompileError("timeout_ns of tl.atomic_poll is not negative", "TFW0221")
    expected = fitted(b, expected_value, element, shape_of_access(pointer, (("expected_value", expected_value),)))

    def seen(comparison: str = "==") -> RuntimeValue:
        return b.compare(COMPARISONS[comparison](element), _loaded(b, "atomic_poll", pointer, None, order, scope), expected)

    if isinstance(timeout_ns, int) and timeout_ns == 0:
        return seen()
    if timeout_ns is None and not pointer.shape:
        # Nothing is carried through the loop, so that one thread waits and has nothing to tell the others.
        b.until([], lambda: (seen("!="), []))
        return b.constant(1, tl.int1)
    limit = None if timeout_ns is None else _nanoseconds(b, timeout_ns)
    began = None if limit is None else b.observe("nanoseconds")

    def step(found: RuntimeValue) -> tuple[RuntimeValue, list[RuntimeValue]]:
        found = BINARY["|"](b, found, seen())
        goes_on = any_of(b, "atomic_poll", invert(b, found))
        if limit is not None:
            waited = subtract(b, b.observe("nanoseconds"), began)
            goes_on = BINARY["&"](b, goes_on, compare(b, "<", cast(b, waited, tl.uint64), limit))
        return goes_on, [found]

    return b.until([b.constant(0, tl.int1, pointer.shape)], step)[0]


def _nanoseconds(b: Builder, timeout: Any) -> RuntimeValue:
    value = to_value(b, timeout)
    if value.shape or not value.dtype.is_int():
        raise CompileError(f"timeout_ns of tl.atomic_poll is one integer, not {named(timeout)}", "TFW0221")
    return cast(b, value, tl.uint64)


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
