"""StableHLO's element types by tilefw's names, and static shapes of MLIR's tensor types."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from tilefw.api.dtypes import dtype
from tilefw.api.errors import UnsupportedError
from tilefw.kernels.formats import array_dtype

ELEMENT_TYPES: Mapping[str, str] = {
    "f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64", "f8E4M3FN": "fp8e4nv", "f8E5M2": "fp8e5", "i1": "int1",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)}, **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}


def kind_of(type: Any) -> str:
    """The element type of a tensor type. Raises UnsupportedError TFW0992 for one that kernels do not know."""
    from jaxlib.mlir import ir

    if not isinstance(type, ir.RankedTensorType):
        raise UnsupportedError(f"a value of type {type}", code="TFW0992")
    word = str(type.element_type)
    if word not in ELEMENT_TYPES:
        raise UnsupportedError(
            f"elements of type {word}", code="TFW0992", note=f"types that are served: {', '.join(ELEMENT_TYPES)}"
        )
    return ELEMENT_TYPES[word]


def static_shape(type: Any) -> tuple[int, ...]:
    """The shape of a tensor type. Raises UnsupportedError TFW0992 where it is not static."""
    if not type.has_static_shape:
        raise UnsupportedError(f"a value of type {type}, whose shape is not static", code="TFW0992")
    return tuple(type.shape)


def is_float(kind: str) -> bool:
    """Whether elements are floats."""
    return dtype(kind).is_float


def is_unsigned(kind: str) -> bool:
    """Whether elements are integers without a sign, truth values included."""
    return not is_float(kind) and (not dtype(kind).is_signed or dtype(kind).bits == 1)


def stored_elements(attribute: Any, kind: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The elements of a constant in storage form."""
    wanted = array_dtype(kind)
    try:
        return np.array(attribute).reshape(shape).astype(wanted, copy=False)
    except (TypeError, ValueError, RuntimeError):  # jaxlib gives elements of bf16 and of 8 bits as text alone
        return _from_text(str(attribute), wanted, shape)


def _from_text(text: str, wanted: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The elements of `dense<[1.5, 0x7FC0]> : …` or, of many, `dense<"0xC03F…"> : …`, which has their bytes."""
    held = text[text.index("<") + 1 : text.rindex(">", 0, text.rindex(" : "))]
    if held.startswith('"'):
        return np.frombuffer(bytes.fromhex(held.strip('"')[2:]), wanted).reshape(shape)
    words = held.replace("[", " ").replace("]", " ").replace(",", " ").split()
    return np.broadcast_to(np.array([_number(one, wanted) for one in words], wanted), (prod(shape),)).reshape(shape)


def _number(word: str, wanted: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An element as MLIR writes it: a number, a truth value, or the bits of a float."""
    if word in ("true", "false"):
        return np.array(word == "true", wanted)
    if word.startswith("0x"):
        return np.array(int(word, 16), np.dtype(f"u{wanted.itemsize}")).view(wanted)
    return np.array(int(word) if wanted.kind in "iu" else float(word)).astype(wanted)
