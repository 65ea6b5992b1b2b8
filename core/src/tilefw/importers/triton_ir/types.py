"""Types of Triton IR, as texts, to types of the language: `tensor<64x!tt.ptr<f16>>`, `!tt.tensordesc<64x32xf16>`, `i32`."""

from __future__ import annotations

import re
from functools import cache

import tilefw.language as tl
from tilefw.api.dtypes import DTYPES
from tilefw.api.errors import UnsupportedError
from tilefw.frontend.values import tile_type

CODE = "TFW0406"
# Integers have no sign in Triton IR; values are signed here, and operations say where bits are meant unsigned.
_SCALARS = {d.ir: tl.dtype(d.name) for d in DTYPES.values() if d.kind != "uint" or d.bits == 1}
_TENSOR = re.compile(r"tensor<((?:\d+x)+)(.*)>", re.DOTALL)
_POINTER = re.compile(r"!tt\.ptr<(.*?)(?:, *(\d+))?>", re.DOTALL)
_DESCRIPTOR = re.compile(r"(?:!tt\.tensordesc)?<(?:tensor<)?((?:\d+x)+)([^,>]*)(?:,.*?)?>?>", re.DOTALL)
_GLOBAL = (None, "1")  # address spaces


@cache
def type_of(text: str) -> tl.dtype:
    """A scalar or a tile. Raises UnsupportedError (TFW0406) for any other type."""
    if text in _SCALARS:
        return _SCALARS[text]
    if (tensor := _TENSOR.fullmatch(text)) is not None:
        if "#" in tensor[2]:
            raise UnsupportedError(
                f"the type {text} has a layout", CODE, note="layouts come later in Triton's compiler (TTGIR)",
                help="take the text of the stage `ttir`: `kernel.asm['ttir']`",
            )
        return tile_type(type_of(tensor[2]), tuple(int(extent) for extent in tensor[1][:-1].split("x")))
    if (pointer := _POINTER.fullmatch(text)) is not None and pointer[2] in _GLOBAL:
        return tl.pointer_type(type_of(pointer[1]))
    raise UnsupportedError(f"the type {text} of Triton IR is not imported", CODE)


def is_descriptor(text: str) -> bool:
    """Whether the type is a tensor descriptor's."""
    return text.startswith("!tt.tensordesc")


def block_of(text: str) -> tuple[tl.dtype, tuple[int, ...]]:
    """The elements and the block of a descriptor's type. Raises UnsupportedError (TFW0406) for what is none."""
    found = _DESCRIPTOR.fullmatch(text)
    if found is None:
        raise UnsupportedError(f"the type {text} of a tensor descriptor is not imported", CODE)
    return type_of(found[2]), tuple(int(extent) for extent in found[1][:-1].split("x"))
