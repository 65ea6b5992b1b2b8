"""Kernels of NVIDIA's cuTile Python as bytecode, where its package (`cuda-tile`) is installed: no card and no driver is needed."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilefw.runtime.arguments.arrays import array_argument

_ALIGNMENT = 16  # bytes, and elements of an extent: what cuTile looks for in the arguments of a launch
_NAMES = {
    "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64", "int1": "bool_", "fp8e4nv": "float8_e4m3fn",
    "fp8e5": "float8_e5m2",
}


@dataclass(frozen=True, slots=True)
class RuntimeNumber:
    """A parameter that is a number at run time, by its type in cuTile's words (`int32`, `float32`)."""

    type: str


@dataclass(frozen=True, slots=True)
class ArrayElements:
    """An array with elements that NumPy does not have, by their type in cuTile's words (`float8_e8m0fnu`), kept as bytes."""

    array: Any
    type: str


def bytecode_of(kernel: Any, arguments: Sequence[Any], version: str = "13.3", symbol: str | None = None) -> bytes:
    """The bytecode of a cuTile kernel for arguments like these: arrays, `RuntimeNumber`s, and constants as they are. cuTile makes a
    mangled name where `symbol` is None."""
    from cuda.tile import compilation  # type: ignore[import-not-found]

    constraints = [_constraint(argument) for argument in arguments]
    signature = compilation.KernelSignature(constraints, compilation.CallingConvention.cutile_python_v1(), symbol)
    file = io.BytesIO()
    # Before 13.3 hints are for an architecture that is named; the code of all is the same.
    compilation.export_kernel(
        kernel, [signature], file, output_format="tileir_bytecode", bytecode_version=version,
        gpu_code=None if version >= "13.3" else "sm_100",
    )
    return file.getvalue()


def _constraint(argument: Any) -> Any:
    import cuda.tile as ct  # type: ignore[import-not-found]
    from cuda.tile import compilation  # type: ignore[import-not-found]

    if isinstance(argument, RuntimeNumber):
        return compilation.ScalarConstraint(getattr(ct, argument.type))
    named = argument.type if isinstance(argument, ArrayElements) else None
    held = argument.array if isinstance(argument, ArrayElements) else argument
    if named is None and not isinstance(held, np.ndarray) and not hasattr(held, "untyped_storage"):
        return argument
    array = array_argument(held)
    size = array.dtype.storage_bits // 8
    strides = [stride // size for stride in array.strides]
    return compilation.ArrayConstraint(
        getattr(ct, named or _NAMES.get(array.dtype.name, array.dtype.name)), len(strides), index_dtype=ct.int32,
        stride_lower_bound_incl=0, alias_groups=(), may_alias_internally=False,
        stride_constant=[1 if stride == 1 else None for stride in strides],
        stride_divisible_by=[
            _ALIGNMENT // size if stride != 1 and stride * size % _ALIGNMENT == 0 else 1 for stride in strides
        ],
        shape_divisible_by=[_ALIGNMENT if extent % _ALIGNMENT == 0 else 1 for extent in array.shape],
        base_addr_divisible_by=_ALIGNMENT,
    )
