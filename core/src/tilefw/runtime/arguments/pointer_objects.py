"""Objects of programs that say where they are (`data_ptr()`) and what their elements are (`dtype`), and nothing else.

Triton takes such objects for pointers, and libraries wrap tensors in them: views with strides that PyTorch does not have, for
instance. A device needs to know how far their memory goes. That is the memory of the array among the object's attributes in which
the address lies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from tilefw.api.dtypes import DType
from tilefw.api.errors import LaunchError

POINTER = "data_ptr"


def placed_in(value: Any, element: DType, parts: Sequence[Any], what: str) -> Any:
    """The part (a HostArray or a DeviceArray) in whose memory `value` lies, as an array of `element` that begins there. Raises
    LaunchError TFW0330 where the address lies in none."""
    address = value.data_ptr()
    held = [part for part in parts if part.start <= address <= part.start + part.nbytes]
    if held:  # an address where one ends may be where the next begins
        return replace(max(held, key=lambda part: part.start + part.nbytes), dtype=element, address=address)
    raise LaunchError(
        f"{what} is a {type(value).__name__} at {address:#x}, and no array of its own has memory there", code="TFW0330",
        note="what has `data_ptr()` and `dtype` alone is a pointer into an array among its attributes",
        help="keep the array in an attribute",
    )


def attributes(value: Any) -> Iterator[Any]:
    """What the object holds."""
    yield from getattr(value, "__dict__", {}).values()
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name):
                yield getattr(value, name)
