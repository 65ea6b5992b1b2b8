"""A block that is packed at once is the one that is put together argument by argument, and is refused in the same words."""

from __future__ import annotations

import math
import random

from tilefw.api import Argument, BufferView, DeviceAddress, Entry, LaunchError, Parameter, Scalar
from tilefw.argument_block import BlockLayout, argument_block

SIZES = {
    "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint8": 1, "uint32": 4, "uint64": 8, "fp32": 4, "fp64": 8, "fp16": 2, "int1": 1,
}
FLOATS = (0.0, -0.0, 1.5, 1e300, math.inf, -math.inf, math.nan, -1e-320, 1e-46, 16777217.0, 3)
INTEGERS = (0, 1, -1, 127, 128, 255, 2**31, 2**32 - 1, 2**63, 2**64 - 1, -(2**63), -5)


def drawn(choice: random.Random) -> tuple[Entry, list[Argument]]:
    """An entry and arguments for it, some of which do not fit."""
    parameters, args, end = list[Parameter](), list[Argument](), 0
    for index in range(choice.randint(0, 6)):
        name = choice.choice(["pointer", *SIZES])
        size = SIZES.get(name, 8)
        offset = -(-end // size) * size + choice.choice((0, 0, 8))
        end = offset + size
        kind = "pointer" if name == "pointer" else "scalar"
        parameters.append(Parameter(f"p{index}", kind, "fp32" if kind == "pointer" else name, offset, size, size))
        if kind == "pointer":
            address = DeviceAddress(choice.getrandbits(64))
            args.append(choice.choice((address, address, address, BufferView(3, 4), Scalar(3, "int64"))))
        else:
            values, other = (FLOATS, "fp32") if name.startswith("fp") else (INTEGERS, "int32")
            args.append(Scalar(choice.choice(values), choice.choice((name, name, name, other))))
    return Entry("k", tuple(parameters), (1, 1, 1)), args


def said(make: object) -> bytes | str:
    try:
        return make()  # type: ignore[operator]
    except LaunchError as error:
        return str(error)


def test_both_ways_give_one_block() -> None:
    choice = random.Random(1)
    whole = 0
    for _ in range(2000):
        entry, args = drawn(choice)
        slow = said(lambda: argument_block("k", entry.parameters, args, lambda view: 4096 + view.offset, 64, "toy"))  # noqa: B023
        quick = said(lambda: BlockLayout(entry, 64).pack(args, lambda view: 4096 + view.offset, 64, "toy"))  # noqa: B023
        assert quick == slow, (entry, args)
        whole += isinstance(slow, bytes)
    assert 500 < whole < 1900


def test_an_address_of_32_bits_is_no_float_of_its_element_type() -> None:
    entry = Entry("k", (Parameter("x", "pointer", "fp32", 0, 4, 4),), (1, 1, 1))
    layout, address = BlockLayout(entry, 32), 0x12345678
    packed = address.to_bytes(4, "little")
    assert layout.pack([DeviceAddress(address)], lambda view: view.offset, 32, "toy") == packed
    assert layout.pack_plain([address], 32, "toy") == packed
