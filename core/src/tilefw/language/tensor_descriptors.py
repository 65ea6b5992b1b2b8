"""Tensor descriptors: an array with its shape, strides and a block's extents as one value; blocks are read and written at offsets.

    desc = tl.make_tensor_descriptor(x_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
    x = desc.load([row, column])

What lies out of bounds is never accessed: loads find the padding there, stores and atomics do nothing. A launch may also pass a
descriptor that the host made (`tilefw.tools.tensor_descriptor`). Names and refusals are those of Triton 3.9.
"""

from __future__ import annotations

from typing import Any

from tilefw.language.dtypes import block_type, dtype
from tilefw.language.markers import builtin, method
from tilefw.language.tensor import tensor


@builtin
def make_tensor_descriptor(base: Any, shape: Any, strides: Any, block_shape: Any, padding_option: str = "zero") -> Any:
    """A descriptor of the array whose element 0 is at `base`, of one to five axes.

    `shape` and `strides` are in elements, 32-bit and 64-bit integers; the last stride is the compile-time number 1, the others are
    multiples of 16 bytes, as is the address in `base`. `block_shape` holds compile-time powers of two, of at least 16 bytes along
    the last axis. What loads find out of bounds is 0, or NaN with `padding_option="nan"`, which integers have not.
    """
    ...


@builtin
def load_tensor_descriptor(desc: Any, offsets: Any) -> tensor:
    """The same as `desc.load(offsets)`."""
    ...


@builtin
def store_tensor_descriptor(desc: Any, offsets: Any, value: Any) -> None:
    """The same as `desc.store(offsets, value)`."""
    ...


class tensor_descriptor:  # noqa: N801  (Triton's spelling)
    """An array's descriptor: `shape`, `strides` and `block_shape` have one entry an axis, `dtype` is an element's type.

    Made by `make_tensor_descriptor` or by the host. `offsets` of its methods are 32-bit integers, one an axis.
    """

    __slots__ = ()

    dtype: dtype
    shape: tuple[Any, ...]
    strides: tuple[Any, ...]
    block_shape: tuple[int, ...]
    block_type: block_type
    type: Any

    @method("tensor_descriptor")
    def load(self, offsets: Any) -> tensor:
        """The block at `offsets`; elements out of bounds are the padding."""
        ...

    @method("tensor_descriptor")
    def store(self, offsets: Any, value: Any) -> None:
        """Write `value`, a tile of the block's shape that is cast to the element type, where it is in bounds."""
        ...

    @method("tensor_descriptor")
    def atomic_add(self, offsets: Any, value: Any) -> None:
        """Add `value` to memory, element by element, relaxed: uint32, int32, uint64, float32, float16, bfloat16."""
        ...

    @method("tensor_descriptor")
    def atomic_min(self, offsets: Any, value: Any) -> None:
        """Keep the smaller: uint32, int32, uint64, int64."""
        ...

    @method("tensor_descriptor")
    def atomic_max(self, offsets: Any, value: Any) -> None:
        """Keep the larger: uint32, int32, uint64, int64."""
        ...

    @method("tensor_descriptor")
    def atomic_and(self, offsets: Any, value: Any) -> None:
        """Keep the bits set in both: uint32, int32, uint64, int64."""
        ...

    @method("tensor_descriptor")
    def atomic_or(self, offsets: Any, value: Any) -> None:
        """Keep the bits set in either: uint32, int32, uint64, int64."""
        ...

    @method("tensor_descriptor")
    def atomic_xor(self, offsets: Any, value: Any) -> None:
        """Keep the bits set in one of the two: uint32, int32, uint64, int64."""
        ...

    @method("tensor_descriptor")
    def gather(self, x_offsets: Any, y_offset: Any) -> tensor:
        """The rows `x_offsets` (int16 or int32, 8 or more) from column `y_offset` on; the block has one row of 32 bytes or more."""
        ...

    @method("tensor_descriptor")
    def scatter(self, value: Any, x_offsets: Any, y_offset: Any) -> None:
        """Write the rows of `value` to the rows `x_offsets`, from column `y_offset` on; see `gather`."""
        ...


class tensor_descriptor_type:  # noqa: N801  (Triton's spelling)
    """The type of a descriptor: that of its block, with the types of shape and strides."""

    __slots__ = ("block_type", "shape_type", "strides_type")

    def __init__(self, block_type: block_type, shape_type: tuple[Any, ...], strides_type: tuple[Any, ...]) -> None:
        self.block_type = block_type
        self.shape_type = shape_type
        self.strides_type = strides_type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tensor_descriptor_type) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return f"tensor_descriptor<{self.block_type.element_ty}{list(self.block_type.shape)}>"

    __repr__ = __str__
