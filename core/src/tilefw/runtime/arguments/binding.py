"""Arguments of a launch against the parameters of an entry: count, kind, range; grids; what the runtime passes by itself."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from operator import itemgetter
from typing import Any

from tilefw import node_context
from tilefw.api.artifact import Entry, Parameter
from tilefw.api.device import ArrayDescriptor, Scalar, Struct
from tilefw.api.dtypes import DType, dtype
from tilefw.api.errors import LaunchError
from tilefw.copy_descriptors import CopyDescriptor
from tilefw.print_records import HIDDEN
from tilefw.runtime.arguments.array_measures import is_measure, measure
from tilefw.runtime.arguments.arrays import ARRAYS, HostArray, array_argument, is_array
from tilefw.runtime.arguments.device_arrays import DeviceArray
from tilefw.runtime.arguments.rank_context import rank_context
from tilefw.runtime.arguments.struct_argument import is_struct, struct

Bound = HostArray | DeviceArray | Scalar | Struct | ArrayDescriptor | None  # ready for a launch; None is the null pointer
GRID_LIMIT = 2**31 - 1  # programs along one axis, as a 32-bit program id counts them


def bind(entry: Entry, args: Sequence[Any]) -> list[Bound]:
    """Arguments in the order of the entry's parameters; raises LaunchError TFW0322…0326.

    `args` either names every parameter, hidden ones too, or only the user's own; then hidden pointers are null, and extents and
    strides are those of the arrays before them.
    """
    visible = [p for p in entry.parameters if p.hidden is None]
    if len(args) == len(entry.parameters):
        return [_bind_one(entry, p, a) for p, a in zip(entry.parameters, args, strict=True)]
    if len(args) != len(visible):
        taken = sum(not is_measure(p) for p in entry.parameters)
        raise LaunchError(
            f"kernel {entry.name} takes {_count(taken, 'argument')}, not {len(args)}",
            code="TFW0322", note="its parameters are:\n" + describe(entry),
        )
    given, bound = iter(args), list[Bound]()
    for p in entry.parameters:
        bound.append(_bind_one(entry, p, next(given)) if p.hidden is None else _hidden(entry, p, bound))
    return bound


class EntryArguments:
    """`bind` for one entry, launch after launch: `passed` are the places of the entry's own arguments among a launch's values."""

    __slots__ = ("_passed", "_pick", "_plain", "_steps", "entry")

    def __init__(self, entry: Entry, passed: Sequence[int]) -> None:
        self.entry, self._passed = entry, passed
        visible = iter(passed)
        fits = len(passed) == sum(p.hidden is None for p in entry.parameters)
        # The place of each argument, None for a hidden one, and what makes it of a value that is no array.
        self._steps: list[tuple[int | None, Callable[[Any], Bound]]] | None = None if not fits else [
            (next(visible), _converter(entry, p)) if p.hidden is None else (None, partial(_hidden, entry, p))
            for p in entry.parameters
        ]
        # Where none is hidden and there are two or more: what makes each, and what picks its value.
        plain = fits and len(passed) == len(entry.parameters) > 1
        self._plain = [convert for _, convert in self._steps] if plain and self._steps else None
        self._pick = itemgetter(*passed) if plain else None

    def bind(self, values: Sequence[Any]) -> list[Bound]:
        """The arguments of a launch. Raises as `bind`."""
        if self._steps is None:
            return bind(self.entry, [values[index] for index in self._passed])
        if self._plain is not None and self._pick is not None:
            given = self._pick(values)
            return [value if type(value) in ARRAYS else convert(value) for value, convert in zip(given, self._plain, strict=True)]
        bound: list[Bound] = []
        for index, convert in self._steps:
            value = None if index is None else values[index]
            bound.append(value if type(value) in ARRAYS else convert(value))
        return bound


def _converter(entry: Entry, parameter: Parameter) -> Callable[[Any], Bound]:
    """`_bind_one` for one parameter; a number of Python's that needs no change is quick."""
    convert = partial(_bind_one, entry, parameter)
    if parameter.kind != "scalar":
        return convert
    name, kind = parameter.dtype, dtype(parameter.dtype)
    if kind.is_float:
        return lambda value: Scalar(value, name) if type(value) is float else convert(value)
    # Most numbers come again: finding one that was made is quicker than making it.
    low, high = (-(1 << kind.bits - 1), (1 << kind.bits - 1) - 1) if kind.is_signed else (0, (1 << kind.bits) - 1)
    return lambda value: _integer(value, name) if type(value) is int and low <= value <= high else convert(value)


_integer = lru_cache(maxsize=1024)(Scalar)


def describe(entry: Entry) -> str:
    """The entry's parameters, one a line."""
    lines = []
    for index, p in enumerate(entry.parameters):
        kinds = {"pointer": f"pointer to {p.dtype}", "scalar": p.dtype, "struct": f"struct of {p.size} bytes"}
        lines.append(f"{index}: {p.name}: {kinds[p.kind]}" + (f" (hidden: {p.hidden})" if p.hidden else ""))
    return "\n".join(lines)


def grid_of(value: Any) -> tuple[int, int, int]:
    """One to three extents as three; raises LaunchError TFW0323. An extent of 0 launches nothing."""
    if type(value) is tuple and 1 <= len(value) <= 3:
        x, y, z = (*value, 1, 1)[:3]
        plain = type(x) is int and type(y) is int and type(z) is int
        if plain and 0 <= x <= GRID_LIMIT and 0 <= y <= GRID_LIMIT and 0 <= z <= GRID_LIMIT:
            return x, y, z
    extents = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    if not 1 <= len(extents) <= 3:
        raise LaunchError(f"a grid has one to three extents, not {len(extents)}", code="TFW0323")
    return _three(extents, "a grid's extents", "TFW0323", 0)


def block_of(value: Any) -> tuple[int, int, int] | None:
    """A workgroup's extents as three, or None; raises LaunchError TFW0323."""
    if value is None:
        return None
    extents = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    if not 1 <= len(extents) <= 3:
        raise LaunchError(f"a block has one to three extents, not {len(extents)}", code="TFW0323")
    return _three(extents, "a block's extents", "TFW0323", 1)


def _three(extents: tuple[Any, ...], what: str, code: str, least: int) -> tuple[int, int, int]:
    whole = []
    for extent in extents:
        try:
            number = operator.index(extent)
        except TypeError:
            raise LaunchError(f"{what} are whole numbers, not {extent!r}", code=code) from None
        if not least <= number <= GRID_LIMIT:
            raise LaunchError(f"{what} are from {least} to {GRID_LIMIT}, not {number}", code=code)
        whole.append(number)
    x, y, z = (*whole, 1, 1)[:3]
    return x, y, z


def _hidden(entry: Entry, parameter: Parameter, before: Sequence[Bound] | None) -> Bound:
    """What the runtime passes; `before` are the arguments before it, where there are such."""
    if is_measure(parameter):
        return measure(entry.name, parameter, {p.name: value for p, value in zip(entry.parameters, before or (), strict=False)})
    if parameter.hidden == "null_pointer":
        return None
    if CopyDescriptor.of(parameter.hidden) is not None:
        return ArrayDescriptor(parameter.hidden or "")
    if parameter.hidden == HIDDEN:
        from tilefw.runtime.prints import print_buffer

        return print_buffer()
    if parameter.hidden == node_context.HIDDEN:
        return rank_context(entry.name)
    raise LaunchError(
        f"kernel {entry.name} has a hidden parameter {parameter.name} ({parameter.hidden}) that this runtime cannot fill",
        code="TFW0326", help="name every parameter, hidden ones too",
    )


def _bind_one(entry: Entry, parameter: Parameter, value: Any) -> Bound:
    if isinstance(value, (HostArray, DeviceArray)):
        return value
    what = f"argument '{parameter.name}' of {entry.name}"
    if parameter.kind == "scalar" and type(value) in (int, float):
        return Scalar(scalar(what, value, dtype(parameter.dtype)), parameter.dtype)
    if parameter.kind == "struct" or (is_struct(value) and parameter.kind != "pointer"):
        return struct(what, parameter, value)
    if parameter.kind == "pointer":
        return _pointer(what, value)
    if isinstance(value, Scalar):
        return _typed(what, parameter, value)
    if isinstance(value, bytes) and len(value) == parameter.size:
        return _small_struct(what, parameter, value)
    if is_array(value) or value is None:
        # Machine code tells pointers from integers only by use: an 8-byte integer may be either.
        if dtype(parameter.dtype).is_int and parameter.size == 8:
            return _pointer(what, value)
        raise LaunchError(f"{what} is a {parameter.dtype}, not {'a null pointer' if value is None else 'an array'}", code="TFW0324")
    return Scalar(scalar(what, value, dtype(parameter.dtype)), parameter.dtype)


def _small_struct(what: str, parameter: Parameter, value: bytes) -> Struct:
    """As many bytes as a number has: a small struct by value. Eight could be memory to point to as well, so they are refused."""
    if dtype(parameter.dtype).is_int and parameter.size == 8:
        raise LaunchError(
            f"{what} is a {parameter.dtype}: eight bytes may be its value or the memory that it points to", code="TFW0328",
            help="for a value pass a number, a NumPy structured scalar or a ctypes.Structure; for memory a NumPy array",
        )
    return struct(what, parameter, value)


def _pointer(what: str, value: Any) -> Bound:
    if value is None:
        return None
    if isinstance(value, Scalar) or not is_array(value):
        message = f"{what} is a pointer, and takes an array, not {value!r}"
        raise LaunchError(message, code="TFW0324", help="None is the null pointer")
    return array_argument(value, what)


def _typed(what: str, parameter: Parameter, value: Scalar) -> Scalar:
    kind = dtype(value.dtype)
    if kind.storage_bits != parameter.size * 8:
        raise LaunchError(f"{what} has {parameter.size} bytes, not the {kind.storage_bits // 8} of {kind}", code="TFW0324")
    return Scalar(scalar(what, value.value, kind), value.dtype)


def scalar(what: str, value: Any, kind: DType) -> int | float:
    """A Python number that fits `kind`; raises LaunchError TFW0324 for another type, TFW0325 out of range.

    Integers may be given in the signed or the unsigned range of their width: machine code tells them apart only by use.
    """
    if kind.is_float:
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            raise LaunchError(f"{what} is a {kind}, not {value!r}", code="TFW0324") from None
    try:
        number = operator.index(value)
    except TypeError:
        raise LaunchError(f"{what} is a {kind}, not {value!r}", code="TFW0324") from None
    if not -(1 << kind.bits - 1) <= number < 1 << kind.bits:
        raise LaunchError(f"{what}: {number} does not fit {kind}", code="TFW0325")
    number &= (1 << kind.bits) - 1
    return number - (1 << kind.bits) if kind.is_signed and number >> (kind.bits - 1) else number


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
