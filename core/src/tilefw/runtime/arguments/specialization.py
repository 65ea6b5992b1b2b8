"""What code is compiled for of each argument: its type, facts about its value, or the value itself.

A reader for each Python type tells it; a launch finds them by the types of its arguments, and nothing is asked twice. NumPy comes
only with the user's arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tilefw.api.errors import LaunchError
from tilefw.language.constants import constexpr, unwrap
from tilefw.language.dtypes import dtype, pointer_type
from tilefw.runtime.arguments.kernel_parameter import KernelParameter, signature_name, signature_type
from tilefw.runtime.python_number import IntegerTooLargeError, python_number, python_value

# The signature's entry for an argument, None for a value that is compiled in; and the argument, an array ready for a launch.
Reader = Callable[[KernelParameter, Any], tuple[str | None, Any]]

_DESCRIPTOR = "TensorDescriptor"  # of any library: Triton's own serves as well
NO_MULTIPLE = ~0x7FFFFFF0  # the bits of an i32 that is no multiple of 16 from 0 on: a copy engine takes no negative strides
CONSTANTS = frozenset((bool, int, str, bytes, type(None), dtype))
_ITEMS = CONSTANTS | {float, tuple}
# Functions of the language, which are compiled in (jit.py).
_FUNCTIONS = ("__tilefw_jit__", "__tilefw_constexpr_function__")


class SpecializedKernel(Protocol):
    """What is asked of a kernel."""

    params: list[KernelParameter]


@dataclass(frozen=True, slots=True)
class ArrayType:
    """An array that is only its element type, for `warmup`; `dtype` is written as in signatures."""

    dtype: str


def without_memory(value: Any) -> Any:
    """An argument of `warmup`: an ArrayType for what stands for an array; anything else as it is."""
    kind = type(value)
    if isinstance(value, dtype) and not isinstance(value, pointer_type):
        return ArrayType(signature_name(value.name))
    if kind.__module__ == "torch" and kind.__qualname__ == "dtype":
        return ArrayType(signature_type(str(value).removeprefix("torch.")))
    described = getattr(value, "dtype", None)
    if described is not None and hasattr(value, "wrap_dtype"):
        return without_memory(described)
    return value


def specialize(
    kernel: SpecializedKernel, bound: Mapping[str, Any], *, ready: bool = False
) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
    """A launch's signature, its compile-time values, and its run-time values; raises LaunchError TFW0302 or TFW0303.

    None, element types, functions, strings and what is wrapped in `tl.constexpr` are compile-time values wherever they stand,
    as are constexpr parameters. The items of a tuple are told one by one, as `pair.0` and `pair.1`; those of a named one by its
    fields, which `pair.*` lists. With `ready`, arrays among the values are what `array_argument` makes of them.
    """
    signature: dict[str, str] = {}
    constexprs: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for parameter in kernel.params:
        given = bound[parameter.name]
        if parameter.is_constexpr:
            constexprs[parameter.name] = given if type(given) is int else _constant(parameter, given)
            continue
        for item, value in _items(parameter, given):
            kind, passed = (_reader(type(value)) or _compiled_in)(item, value)
            if kind is None:
                constexprs[item.name] = python_value(unwrap(value))
            else:
                signature[item.name] = kind
                values[item.name] = passed if ready else value
    return signature, constexprs, values


def _constant(parameter: KernelParameter, given: Any) -> Any:
    """What is compiled in for a constexpr; of `*args` each item is an argument of its own."""
    return tuple(python_value(unwrap(item)) for item in given) if parameter.is_variadic else python_value(unwrap(given))


def read(parameters: Sequence[KernelParameter], given: Sequence[Any]) -> tuple[list[Hashable] | None, list[Any]]:
    """What tells the specialisation of a launch from every other one of its kernel, and the run-time values, as `specialize` has
    them in order, ready. No key where a compile-time value is an object that may change. Raises as `specialize`."""
    key: list[Hashable] = []
    passed: list[Any] = []
    steady = True
    for parameter, value in zip(parameters, given, strict=True):
        if not parameter.is_constexpr:
            reader = _reader(type(value))
            if reader is None:
                steady &= _read_items(parameter, value, key, passed)
                continue
            kind, argument = reader(parameter, value)
            if kind is not None:
                key.append(kind)
                passed.append(argument)
                continue
        if type(value) in CONSTANTS:
            key += (type(value), value)
        else:
            steady &= _append_constant(key, value)
    return (key if steady else None), passed


def _read_items(parameter: KernelParameter, given: Any, key: list[Hashable], passed: list[Any]) -> bool:
    """`read` for an argument that has items. Whether all of it can be in a key."""
    steady = True
    for item, value in _items(parameter, given):
        kind, argument = (_reader(type(value)) or _compiled_in)(item, value)
        key.append(item.name)
        if kind is None:
            steady &= _append_constant(key, value)
        else:
            key.append(kind)
            passed.append(argument)
    return steady


def _append_constant(key: list[Hashable], value: Any) -> bool:
    """Add a compile-time value to a key, so that equal ones of two types differ. Whether it is one that cannot change."""
    plain = python_value(unwrap(value))
    kind = type(plain)
    if kind is tuple:
        key += (kind, len(plain))
        # Items are compiled in as they are given: a NumPy number computes otherwise than Python's.
        return all([type(item) in _ITEMS and _append_constant(key, item) for item in plain])
    key += (kind, plain if kind in CONSTANTS else repr(plain) if kind is float else None)
    return kind in CONSTANTS or kind is float


def _items(parameter: KernelParameter, given: Any) -> Iterator[tuple[KernelParameter, Any]]:
    for name, value in items_of(parameter.name, given):
        yield parameter.item(name), value


def items_of(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """An argument under its parameter's name; a tuple item by item, each under a dotted name of its own, and so a descriptor."""
    if type(value).__name__ == _DESCRIPTOR:
        yield f"{name}.*", constexpr("tensor_descriptor")
        for field, item in _fields_of_descriptor(value):
            yield from items_of(f"{name}.{field}", item)
        return
    if not isinstance(value, tuple) or not value:
        yield name, value
        return
    fields = getattr(value, "_fields", None)
    if fields is not None:
        yield f"{name}.*", tuple(fields)
    for field, item in zip(fields or range(len(value)), value, strict=True):
        yield from items_of(f"{name}.{field}", item)


def _fields_of_descriptor(value: Any) -> Iterator[tuple[str, Any]]:
    """What the parts of a host's tensor descriptor are: run-time values, and compile-time values wrapped as such."""
    yield "base", value.base
    yield "shape", tuple(map(int, value.shape))
    yield "strides", (*map(int, value.strides[:-1]), constexpr(1))
    yield "block_shape", constexpr(tuple(map(int, value.block_shape)))
    yield "padding", constexpr(value.padding)
    yield "round_f32_to_tf32", constexpr(bool(value.round_f32_to_tf32))


@functools.lru_cache(maxsize=256)
def _reader(kind: type) -> Reader | None:
    """How arguments of a type are read; None for those that have items."""
    found = next((reader for classes, reader in _READERS if issubclass(kind, classes)), None)
    if kind.__name__ == _DESCRIPTOR or (found is None and issubclass(kind, tuple)):
        return None
    if found is not None:
        return found
    if any(hasattr(kind, mark) for mark in _FUNCTIONS):
        return _compiled_in
    return _reader_of_arrays(kind) or _other


def _reader_of_arrays(kind: type) -> Reader | None:
    if kind.__name__ not in ("ndarray", "Tensor", "TypedArray") and not hasattr(kind, "__cuda_array_interface__"):
        return None
    from tilefw.runtime.arguments.arrays import conversion, is_array_type

    if not is_array_type(kind):
        return None
    convert = conversion(kind)

    def read_array(parameter: KernelParameter, value: Any) -> tuple[str, Any]:
        array = convert(value, parameter.described)
        element = array.dtype.name
        return (parameter.pointers.get(element) or parameter.pointer(element))[not array.offset & 15], array

    return read_array


def _compiled_in(parameter: KernelParameter, value: Any) -> tuple[None, Any]:
    return None, value


def _refused(parameter: KernelParameter, value: Any) -> tuple[str, Any]:
    raise _unfit(parameter, f"a {type(value).__name__}", "pass a tuple, or make it a tl.constexpr parameter")


def _truth(parameter: KernelParameter, value: bool) -> tuple[str, bool]:
    return parameter.annotation or "i1", value


def _float(parameter: KernelParameter, value: float) -> tuple[str, float]:
    return parameter.annotation or "fp32", value


def _array_type(parameter: KernelParameter, value: ArrayType) -> tuple[str, ArrayType]:
    return f"*{'k' if parameter.is_const else ''}{value.dtype}{':16' if parameter.align else ''}", value


def _integer(parameter: KernelParameter, value: int) -> tuple[str, int]:
    if parameter.plain and -(2**31) <= value < 2**31:
        return "i32:16" if not value & NO_MULTIPLE else "i32:1" if value == 1 else "i32", value
    return integer_type(parameter, value), value


def _other(parameter: KernelParameter, value: Any) -> tuple[str | None, Any]:
    """A scalar of another library, or an array of one that only the value itself tells."""
    number = python_number(value)  # NumPy's scalars also say that they are arrays, and so do its classes
    if number is not None:
        reader = _reader(type(number))
        assert reader is not None
        return reader(parameter, number)[0], value
    from tilefw.runtime.arguments.arrays import array_argument, is_array

    if type(value) in (object, complex) or isinstance(value, type) or not is_array(value):
        what = f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
        raise _unfit(parameter, what, "arguments are arrays, numbers, None and tl.constexpr values")
    array = array_argument(value, parameter.described)
    return parameter.pointer(array.dtype.name)[array.offset % 16 == 0], array


_READERS: tuple[tuple[Any, Reader], ...] = (
    (type(None) | constexpr, _compiled_in), (bool, _truth), (ArrayType, _array_type), (int, _integer), (float, _float),
    (str | dtype, _compiled_in), (list | dict | set, _refused),
)


def integer_type(parameter: KernelParameter, value: int) -> str:
    kind = parameter.annotation
    if not kind:
        if not -(2**63) <= value < 2**64:
            raise IntegerTooLargeError(f"{parameter.described}: {_shown(value)} does not fit 64 bits", "TFW0303")
        kind = "i32" if -(2**31) <= value < 2**31 else "i64" if value < 2**63 else "u64"
    if kind.startswith(("fp", "bf", "*")) or kind == "i1" or not parameter.specialize:
        return kind
    # A constant 1 is a Python number in the kernel, and would lose the type that an annotation gives it.
    if value == 1 and not parameter.annotation:
        return f"{kind}:1"
    return f"{kind}:16" if parameter.align and value >= 0 and value % 16 == 0 else kind


def _shown(value: int) -> str:
    # Python writes no integers of more than some thousand digits.
    return str(value) if value.bit_length() <= 128 else f"an integer of {value.bit_length()} bits"


def _unfit(parameter: KernelParameter, what: str, help: str) -> LaunchError:
    message = f"kernel `{parameter.kernel}` cannot take {what} as `{parameter.name}`"
    return LaunchError(message, "TFW0302", help=help)
