"""The arguments of a launch read in one pass, by a function that is made for the types of one call.

    def read(given):                                  # (array of NumPy, int, int for a constexpr)
        v0, v1, v2 = given
        e0, k0, j0 = t0[v0.dtype]
        p0 = addressof(from_buffer(v0))
        …
        return (j0, k1, v2), (HostArray(e0, p0, p0, …), v1), (p0,), (p0 + v0.nbytes,)

It gives None for what it is not made for; then `specialization.read` reads the arguments one by one, and says what is wrong.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from tilefw.api.dtypes import DType
from tilefw.language.dtypes import dtype
from tilefw.runtime.arguments import specialization
from tilefw.runtime.arguments.arrays import (
    ON_CARD,
    HostArray,
    conversion,
    is_torch_tensor,
    known_element,
    numpy_type,
    says_where,
    torch_element,
)
from tilefw.runtime.arguments.kernel_parameter import KernelParameter

Form = Literal["ready", "host", "card"]
"""What becomes of an array: a `HostArray`; the address of one in host memory that a kernel may write; the address of one on a card,
where all tensors are on one device."""


Read = tuple[
    tuple[Hashable, ...], tuple[Any, ...], tuple[int, ...], tuple[int, ...], Any, tuple[int, ...], tuple[int | None, ...]
]
"""What tells the launch's specialisation from others with these types, the run-time values, and where the storages of arrays begin
and end; in a card's memory also the device of the tensors, None where there are none, and of arrays that are no tensors the
addresses and the streams, None where one says none."""
Reading = Callable[[Sequence[Any]], Read | None]


class Readings:
    """The functions that one kernel has for the types of its calls, in each form."""

    def __init__(self, parameters: Sequence[KernelParameter], limit: int) -> None:
        self._parameters, self._limit = parameters, limit
        self._made: dict[tuple[Form, tuple[type, ...]], Reading | None] = {}

    def find(self, form: Form, types: tuple[type, ...]) -> Reading | None:
        """What reads a call with arguments of these types; None where there is no such function."""
        try:
            return self._made[form, types]
        except KeyError:
            if len(self._made) >= self._limit:
                self._made = {}
            return self._made.setdefault((form, types), reading(self._parameters, types, form))


def reading(parameters: Sequence[KernelParameter], types: Sequence[type], form: Form) -> Reading | None:
    """The function for arguments of these types; None where one of them is not read so."""
    text = _Text()
    for index, (parameter, kind) in enumerate(zip(parameters, types, strict=True)):
        write = _writer(parameter, kind, form)
        if write is None:
            return None
        write(text, index, parameter)
    return text.compiled(len(types))


class _Text:
    """The function as far as it is written; `names` are what its text refers to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.keys: list[str] = []
        self.values: list[str] = []
        self.starts: list[str] = []
        self.ends: list[str] = []
        self.names: dict[str, Any] = {
            "refusals": (AttributeError, BufferError, LookupError, RuntimeError, TypeError, ValueError),
            "addressof": ctypes.addressof, "from_buffer": ctypes.c_ubyte.from_buffer,
            "HostArray": HostArray,
        }
        self.device = "None"  # the variable with the device of the first tensor on a card
        self.described: list[int] = []  # the arguments that say where they are

    def compiled(self, count: int) -> Reading:
        given = "".join(f"v{index}, " for index in range(count))
        keys = self.keys if self.device == "None" else [*self.keys, self.device]
        parts = [_tuple(keys), *map(_tuple, (self.values, self.starts, self.ends)), self.device]
        parts += [_tuple([f"{letter}{index}" for index in self.described]) for letter in "pq"]
        lines = [
            *([f"{given} = given"] if given else []), *self.lines,
            f"return {', '.join(parts)}",
        ]
        body = "\n".join(f"  {line}" for line in lines)
        # What is refused here is told by those who read it one by one.
        exec(f"def read(given):\n try:\n{body}\n except refusals:\n  return None", self.names)
        return self.names["read"]


def _tuple(parts: Sequence[str]) -> str:
    return f"({''.join(f'{part}, ' for part in parts)})"


_Writer = Callable[[_Text, int, KernelParameter], None]


def _writer(parameter: KernelParameter, kind: type, form: Form) -> _Writer | None:
    if parameter.is_constexpr:
        return _real_constant if kind is float else _constant if kind in specialization.CONSTANTS else None
    if kind in _SCALARS:
        return _SCALARS[kind]
    if kind is np.ndarray:
        return {"ready": _host_array, "host": _host_address}.get(form)
    if is_torch_tensor(kind):
        return {"ready": _tensor, "host": _tensor_address, "card": _tensor_on_card}[form]
    return _described if form == "card" and says_where(kind) else None


def _constant(text: _Text, index: int, parameter: KernelParameter) -> None:
    text.keys.append(f"v{index}")


def _real_constant(text: _Text, index: int, parameter: KernelParameter) -> None:
    text.keys.append(f"repr(v{index})")  # which tells -0.0 from 0.0


def _integer(text: _Text, index: int, parameter: KernelParameter) -> None:
    v = f"v{index}"
    text.names[f"w{index}"] = partial(specialization.integer_type, parameter)
    multiple = f"not {v} & {specialization.NO_MULTIPLE}"
    plain = f"('i32:16' if {multiple} else 'i32:1' if {v} == 1 else 'i32') if -0x80000000 <= {v} < 0x80000000 else w{index}({v})"
    text.keys.append(plain if parameter.plain else f"w{index}({v})")
    text.values.append(v)


def _real(text: _Text, index: int, parameter: KernelParameter) -> None:
    _typed(text, index, parameter.annotation or "fp32")


def _truth(text: _Text, index: int, parameter: KernelParameter) -> None:
    _typed(text, index, parameter.annotation or "i1")


def _typed(text: _Text, index: int, kind: str) -> None:
    text.keys.append(repr(kind))
    text.values.append(f"v{index}")


_SCALARS: dict[type, _Writer] = {
    int: _integer, float: _real, bool: _truth, type(None): _constant, str: _constant, dtype: _constant,
}


class _Kinds(dict[Any, tuple[DType, str, str]]):
    """The element type and the signature's types of arrays of one parameter, by what their library calls the type; raises KeyError
    for elements that kernels do not have."""

    def __init__(self, parameter: KernelParameter, element: Callable[[Any], DType | None]) -> None:
        super().__init__()
        self._parameter, self._element = parameter, element

    def __missing__(self, name: Any) -> tuple[DType, str, str]:
        element = self._element(name)
        if element is None:
            raise KeyError(name)
        found = self[name] = (element, *self._parameter.pointer(element.name))
        return found


def _array(text: _Text, index: int, parameter: KernelParameter, element: Callable[[Any], DType | None]) -> None:
    text.names[f"t{index}"] = _Kinds(parameter, element)
    text.names[f"c{index}"] = lambda array: conversion(type(array))(array, parameter.described)
    text.lines.append(f"e{index}, k{index}, j{index} = t{index}[v{index}.dtype]")


def _numpy(text: _Text, index: int, parameter: KernelParameter, whole: str, view: str, passed: str) -> None:
    """An array of NumPy that has memory of its own, or is a view: a buffer that ctypes takes is contiguous and may be written."""
    i = index
    _array(text, i, parameter, known_element)
    text.lines += [
        f"if v{i}.base is None:",
        f" s{i} = addressof(from_buffer(v{i})); z{i} = s{i} + v{i}.nbytes; {whole}",
        "else:",
        f" a{i} = c{i}(v{i}); s{i} = a{i}.start; z{i} = s{i} + a{i}.nbytes; {view}",
        f" if a{i}.offset & 15: j{i} = k{i}",
    ]
    text.keys.append(f"j{i}")
    _passed(text, i, passed)


def _passed(text: _Text, index: int, value: str) -> None:
    text.values.append(value)
    text.starts.append(f"s{index}")
    text.ends.append(f"z{index}")


def _host_array(text: _Text, index: int, parameter: KernelParameter) -> None:
    i = index
    _numpy(text, i, parameter, f"a{i} = HostArray(e{i}, s{i}, s{i}, z{i} - s{i}, False, (v{i}, v{i}))", "pass", f"a{i}")


def _host_address(text: _Text, index: int, parameter: KernelParameter) -> None:
    i = index
    _numpy(text, i, parameter, f"p{i} = s{i}", f"p{i} = a{i}.address\n   if a{i}.readonly: return None", f"p{i}")


def _torch(text: _Text, index: int, parameter: KernelParameter, elsewhere: str) -> None:
    """A tensor with plain memory of its own kind; `elsewhere` says of one that it is not where it is looked for."""
    i = index
    _array(text, i, parameter, torch_element)
    text.names["strided"] = sys.modules["torch"].strided
    text.lines += [
        f"if {elsewhere} or v{i}.layout is not strided or v{i}.is_neg(): return None",
        f"g{i} = v{i}.untyped_storage(); s{i} = g{i}.data_ptr(); z{i} = s{i} + g{i}.nbytes()",
    ]


def _tensor_in_host(text: _Text, index: int, parameter: KernelParameter) -> None:
    i = index
    _torch(text, i, parameter, f"not v{i}.is_cpu")
    text.lines += [
        f"p{i} = v{i}.storage_offset()",
        f"if p{i}:",
        f" p{i} *= e{i}.storage_bits >> 3",
        f" if p{i} & 15: j{i} = k{i}",
        f"p{i} += s{i}",
    ]
    text.keys.append(f"j{i}")


def _tensor(text: _Text, index: int, parameter: KernelParameter) -> None:
    i = index
    _tensor_in_host(text, i, parameter)
    _passed(text, i, f"HostArray(e{i}, p{i}, s{i}, z{i} - s{i}, False, (v{i}, g{i}))")


def _tensor_address(text: _Text, index: int, parameter: KernelParameter) -> None:
    _tensor_in_host(text, index, parameter)
    _passed(text, index, f"p{index}")


def _tensor_on_card(text: _Text, index: int, parameter: KernelParameter) -> None:
    i = index
    if text.device != "None":
        _torch(text, i, parameter, f"v{i}.device != {text.device}")
    else:
        text.device = "device"
        text.lines.append(f"device = v{i}.device")
        _torch(text, i, parameter, f"v{i}.is_cpu")
    text.lines.append(f"p{i} = v{i}.data_ptr()")
    text.keys.append(f"k{i} if p{i} & 15 else j{i}")
    _passed(text, i, f"p{i}")


def _described(text: _Text, index: int, parameter: KernelParameter) -> None:
    """An object that says where it is in a card's memory, of which it is one stretch."""
    i = index
    text.names[f"t{i}"] = _Kinds(parameter, lambda name: known_element(numpy_type(name)))
    text.names["prod"] = math.prod
    text.lines += [
        f"i{i} = v{i}.{ON_CARD}",
        f"if i{i}.get('strides') or i{i}.get('mask') is not None: return None",
        f"q{i} = i{i}.get('stream')",
        f"if q{i} == 1: q{i} = 0",  # the protocol's number of the default stream
        f"e{i}, k{i}, j{i} = t{i}[i{i}['typestr']]; p{i} = s{i} = i{i}['data'][0]",
        f"z{i} = p{i} + prod(i{i}['shape']) * (e{i}.storage_bits >> 3)",
    ]
    text.keys.append(f"k{i} if p{i} & 15 else j{i}")
    text.described.append(i)
    _passed(text, i, f"p{i}")
