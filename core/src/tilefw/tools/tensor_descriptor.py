"""Tensor descriptors that the host makes: arguments of a launch whose blocks kernels access, as of `tl.make_tensor_descriptor`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilefw.api.dtypes import DType
from tilefw.api.errors import LaunchError
from tilefw.runtime.arguments.arrays import array_argument

_MOST_AXES = 5
_ALIGNMENT = 16
_MOST_ELEMENTS = 1 << 20
_CODE = "TFW0223"


@dataclass
class TensorDescriptor:
    """An array, its shape and strides in elements, and the extents of the blocks that kernels access. Raises LaunchError TFW0223.

    `padding` is what loads find out of bounds: "zero", or "nan" of floats. With `round_f32_to_tf32` what they load of float32 is
    rounded to 10 bits of mantissa.
    """

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    def __post_init__(self) -> None:
        rank = len(self.shape)
        if not 1 <= rank <= _MOST_AXES:
            raise _mistake(f"a TensorDescriptor has 1 to {_MOST_AXES} axes, not {rank}")
        for name, items in (("strides", self.strides), ("block_shape", self.block_shape)):
            if len(items) != rank:
                raise _mistake(f"a TensorDescriptor got a shape of {rank} axes and {name} of {len(items)}")
        array = array_argument(self.base, "the base of a TensorDescriptor")
        if array.offset % _ALIGNMENT:
            raise _mistake(f"the base of a TensorDescriptor is not aligned to {_ALIGNMENT} bytes")
        self._check_block()
        self._check_extents(array.dtype)
        self._check_choices(array.dtype)

    @staticmethod
    def from_tensor(
        tensor: Any, block_shape: Sequence[int], padding: str = "zero", round_f32_to_tf32: bool = False
    ) -> TensorDescriptor:
        """The descriptor of a whole array: PyTorch's, NumPy's, or any other that tells its strides."""
        if callable(getattr(tensor, "stride", None)):
            strides = [int(step) for step in tensor.stride()]
        else:
            strides = [step // tensor.itemsize for step in tensor.strides]
        return TensorDescriptor(tensor, list(tensor.shape), strides, block_shape, padding, round_f32_to_tf32)

    def _check_block(self) -> None:
        count = 1
        for axis, extent in enumerate(self.block_shape):
            if not isinstance(extent, int) or extent <= 0 or extent & (extent - 1):
                raise _mistake(f"block_shape[{axis}] of a TensorDescriptor is a power of two, not {extent!r}")
            count *= extent
        if count > _MOST_ELEMENTS:
            raise _mistake(f"the block of a TensorDescriptor has {count} elements; at most {_MOST_ELEMENTS} are allowed")

    def _check_extents(self, element: DType) -> None:
        for axis, extent in enumerate(self.shape):
            if not 0 < extent < 2**31:
                raise _mistake(f"shape[{axis}] of a TensorDescriptor is {extent}: it is 1 or more, and has 32 bits")
        if self.strides[-1] != 1:
            raise _mistake(f"the last stride of a TensorDescriptor is 1, not {self.strides[-1]}")
        for axis, stride in enumerate(self.strides[:-1]):
            size = stride * element.storage_bits // 8
            if size % _ALIGNMENT:
                raise _mistake(f"strides[{axis}] of a TensorDescriptor is {size} bytes, not a multiple of {_ALIGNMENT}")

    def _check_choices(self, element: DType) -> None:
        if self.padding not in ("zero", "nan"):
            raise _mistake(f"the padding of a TensorDescriptor is 'zero' or 'nan', not {self.padding!r}")
        if self.padding == "nan" and element.is_int:
            raise _mistake(f"padding='nan' is for floats: {element.name} has no NaN")
        if self.round_f32_to_tf32 and element.name != "fp32":
            raise _mistake(f"round_f32_to_tf32 is for float32, not {element.name}")


def _mistake(message: str) -> LaunchError:
    return LaunchError(message, _CODE, help="`tl.make_block_ptr` takes any strides and alignment" if "bytes" in message else None)
