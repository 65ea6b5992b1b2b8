"""The block of bytes in which an entry finds its arguments: each at its offset, as the machine code reads it.

Simulators and devices make it in the same way; what an address is, each of them knows for itself.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tilefw.api.artifact import Entry, Parameter
from tilefw.api.device import Argument, ArrayDescriptor, BufferView, DescribedArray, DeviceAddress, Scalar, Struct
from tilefw.api.dtypes import DType, dtype
from tilefw.api.errors import LaunchError
from tilefw.copy_descriptors import CopyDescriptor

Describe = Callable[[DescribedArray], bytes]


class Slot(Protocol):
    """Where a parameter stands: bytes [offset, offset + size)."""

    @property
    def name(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def size(self) -> int: ...


def argument_block(
    entry: str, slots: Sequence[Slot], args: Sequence[Argument], address: Callable[[BufferView], int], address_bits: int,
    device: str, describe: Describe | None = None,
) -> bytes:
    """The block for `args`, one for each of the `slots`; `address` gives that of a buffer which is not null.

    `describe` gives the bytes of a descriptor for the copy engine, where the device has one.

    Raises LaunchError TFW0347 for a wrong count, or for an argument that its slot cannot hold."""
    if len(args) != len(slots):
        raise LaunchError(
            f"{entry} takes {len(slots)} arguments, {len(args)} given", code="TFW0347",
            note="parameters: " + ", ".join(slot.name for slot in slots),
        )
    block = bytearray(max((slot.offset + slot.size for slot in slots), default=0))
    for slot, argument in zip(slots, args, strict=True):
        if isinstance(argument, Scalar):
            data = _scalar_bytes(slot, argument)
        elif isinstance(argument, Struct):
            data = _struct_bytes(slot, argument)
        elif isinstance(argument, ArrayDescriptor):
            data = _descriptor_bytes(entry, argument, args, address, device, describe)
        else:
            data = _address_bytes(slot, argument, address, address_bits, device)
        block[slot.offset : slot.offset + slot.size] = data
    return bytes(block)


class BlockLayout:
    """`argument_block` for one entry, launch after launch: numbers and addresses that fit their parameters go in all at once."""

    __slots__ = ("_describe", "_dtypes", "_entry", "_kinds", "_numbers", "_parameters", "_struct")

    def __init__(self, entry: Entry, address_bits: int, describe: Describe | None = None) -> None:
        self._describe = describe
        self._entry, self._parameters = entry.name, entry.parameters
        # The class of each argument, and the element type of each that is a number.
        addresses = [p.kind == "pointer" and 8 * p.size == address_bits for p in entry.parameters]
        self._kinds: list[type] = [int if address else Scalar for address in addresses]
        self._numbers = [index for index, address in enumerate(addresses) if not address]
        self._dtypes = [entry.parameters[index].dtype for index in self._numbers]
        self._struct = _struct_of(entry.parameters)

    @property
    def of_numbers(self) -> Callable[..., bytes] | None:
        """What packs plain numbers, one for each parameter; it raises `struct.error` or OverflowError where one does not fit. None
        where a parameter is no plain number."""
        return None if self._struct is None else self._struct.pack

    def pack(self, args: Sequence[Argument], address: Callable[[BufferView], int], address_bits: int, device: str) -> bytes:
        """The block for `args`. Raises as `argument_block`."""
        return self.pack_plain([_plain(argument, address) for argument in args], address_bits, device)

    def pack_plain(self, args: Sequence[int | Scalar | Struct | ArrayDescriptor], address_bits: int, device: str) -> bytes:
        """The block for `args`, in which addresses are numbers. Raises as `argument_block`."""
        if self._struct is not None and list(map(type, args)) == self._kinds:
            given: Sequence[Any] = args
            if [given[index].dtype for index in self._numbers] == self._dtypes:
                with contextlib.suppress(struct.error, OverflowError):  # told by what follows
                    return self._struct.pack(*[argument if type(argument) is int else argument.value for argument in given])
        wrapped = [DeviceAddress(argument) if isinstance(argument, int) else argument for argument in args]
        return argument_block(self._entry, self._parameters, wrapped, _no_allocation, address_bits, device, self._describe)


def _plain(argument: Argument, address: Callable[[BufferView], int]) -> int | Scalar | Struct | ArrayDescriptor:
    if isinstance(argument, BufferView):
        return address(argument) if argument.handle else argument.offset
    return argument.value if isinstance(argument, DeviceAddress) else argument


def _no_allocation(view: BufferView) -> int:
    raise AssertionError(f"{view} is an allocation")


def _struct_of(parameters: Sequence[Parameter]) -> struct.Struct | None:
    """The block as Python's `struct` packs it; None where a parameter has no letter there."""
    words, end = "<", 0
    for parameter in parameters:
        # The element type of a pointer says nothing of the address.
        letter = ("Q" if parameter.size == 8 else "I") if parameter.kind == "pointer" else _LETTERS.get(parameter.dtype)
        if letter is None or struct.calcsize(f"<{letter}") != parameter.size or parameter.offset < end:
            return None
        words += f"{parameter.offset - end}x{letter}"
        end = parameter.offset + parameter.size
    return struct.Struct(words)


_LETTERS = {
    "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q",
    "fp32": "f", "fp64": "d",
}


def _address_bytes(
    slot: Slot, argument: BufferView | DeviceAddress, address: Callable[[BufferView], int], address_bits: int, device: str
) -> bytes:
    if 8 * slot.size != address_bits:
        raise LaunchError(
            f"{slot.name} has {slot.size} bytes and takes no pointer", code="TFW0347",
            note=f"an address of {device} has {address_bits // 8} bytes",
        )
    if isinstance(argument, DeviceAddress):
        value = argument.value
    else:
        value = address(argument) if argument.handle else argument.offset
    return (value % 2**address_bits).to_bytes(address_bits // 8, "little")


def _descriptor_bytes(
    entry: str, argument: ArrayDescriptor, args: Sequence[Argument], address: Callable[[BufferView], int], device: str,
    describe: Describe | None,
) -> bytes:
    recipe = CopyDescriptor.of(argument.words)
    if recipe is None or describe is None:
        raise LaunchError(f"{entry} wants a descriptor for a copy engine, which {device} does not make", code="TFW0347")
    base = args[recipe.base]
    begin = base.value if isinstance(base, DeviceAddress) else address(base) if isinstance(base, BufferView) and base.handle else 0
    return describe(recipe.described(int(begin), args, entry))


def _struct_bytes(slot: Slot, argument: Struct) -> bytes:
    if len(argument.data) != slot.size:
        raise LaunchError(f"{slot.name} has {slot.size} bytes, not {len(argument.data)}", code="TFW0347")
    return argument.data


def _scalar_bytes(slot: Slot, argument: Scalar) -> bytes:
    try:
        kind = dtype(argument.dtype)
    except KeyError:
        raise LaunchError(f"{slot.name}: no element type is called {argument.dtype!r}", code="TFW0347") from None
    if kind.is_float:
        return _float_bytes(slot, argument, kind)
    if slot.size > 8:
        raise LaunchError(f"{slot.name} is a struct of {slot.size} bytes and takes no number", code="TFW0347")
    value = int(argument.value)
    if not -(1 << (8 * slot.size - 1)) <= value < 1 << (8 * slot.size):
        raise LaunchError(f"{slot.name}: {value} does not fit {8 * slot.size} bits", code="TFW0347")
    return (value % (1 << (8 * slot.size))).to_bytes(slot.size, "little")


def _float_bytes(slot: Slot, argument: Scalar, kind: DType) -> bytes:
    if kind.storage_bits != 8 * slot.size or kind.numpy is None:
        raise LaunchError(f"{slot.name} has {8 * slot.size} bits and takes no {kind.name}", code="TFW0347")
    import ml_dtypes
    import numpy as np

    scalar = getattr(np, kind.numpy, None) or getattr(ml_dtypes, kind.numpy)
    with np.errstate(over="ignore"):
        return np.array(argument.value, dtype=np.float64).astype(scalar).tobytes()
