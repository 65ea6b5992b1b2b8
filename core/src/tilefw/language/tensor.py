"""`tl.tensor`: what kernel authors may do with a tile, a scalar or a pointer of the running program.

The operators follow Triton: integers promote as in C by width and signedness, a Python number takes the tile's type when
its kind (bool < int < float) is not above it, `/` on integers gives float32, `//` and `%` truncate towards zero, `>>` is
arithmetic on signed and logical on unsigned integers, comparisons give int1, and shapes broadcast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilefw.language.dtypes import dtype


class tensor:  # noqa: N801  (Triton's spelling)
    """A value of the running program: `dtype` is the type of an element, `shape` a tuple of ints (empty for a scalar),
    `type` the whole type, `numel` the number of elements. Made by the language's functions only.
    """

    __slots__ = ()

    dtype: dtype
    type: dtype
    shape: tuple[int, ...]
    numel: int
    T: tensor

    def __add__(self, other: Any) -> tensor: ...
    def __radd__(self, other: Any) -> tensor: ...
    def __sub__(self, other: Any) -> tensor: ...
    def __rsub__(self, other: Any) -> tensor: ...
    def __mul__(self, other: Any) -> tensor: ...
    def __rmul__(self, other: Any) -> tensor: ...
    def __truediv__(self, other: Any) -> tensor: ...
    def __rtruediv__(self, other: Any) -> tensor: ...
    def __floordiv__(self, other: Any) -> tensor: ...
    def __rfloordiv__(self, other: Any) -> tensor: ...
    def __mod__(self, other: Any) -> tensor: ...
    def __rmod__(self, other: Any) -> tensor: ...
    def __and__(self, other: Any) -> tensor: ...
    def __rand__(self, other: Any) -> tensor: ...
    def __or__(self, other: Any) -> tensor: ...
    def __ror__(self, other: Any) -> tensor: ...
    def __xor__(self, other: Any) -> tensor: ...
    def __rxor__(self, other: Any) -> tensor: ...
    def __lshift__(self, other: Any) -> tensor: ...
    def __rlshift__(self, other: Any) -> tensor: ...
    def __rshift__(self, other: Any) -> tensor: ...
    def __rrshift__(self, other: Any) -> tensor: ...
    def __lt__(self, other: Any) -> tensor: ...
    def __le__(self, other: Any) -> tensor: ...
    def __gt__(self, other: Any) -> tensor: ...
    def __ge__(self, other: Any) -> tensor: ...
    if TYPE_CHECKING:  # in a kernel `==` gives a tensor and `range` takes scalars; outside, values are told apart by identity
        def __eq__(self, other: object) -> Any: ...
        def __ne__(self, other: object) -> Any: ...
        def __index__(self) -> int: ...

    def __neg__(self) -> tensor: ...
    def __invert__(self) -> tensor: ...

    def __getitem__(self, index: Any) -> tensor:
        """`x[:, None]` inserts an axis of extent 1; a `:` keeps one. Elements cannot be picked."""
        ...

    def to(self, dtype: dtype, fp_downcast_rounding: str | None = None, bitcast: bool = False) -> tensor:
        """The same as `tl.cast(self, …)`."""
        ...

    def cast(self, dtype: dtype, fp_downcast_rounding: str | None = None, bitcast: bool = False) -> tensor:
        """See `tl.cast`."""
        ...

    def logical_and(self, other: Any) -> tensor:
        """`self and other` on int1."""
        ...

    def logical_or(self, other: Any) -> tensor:
        """`self or other` on int1."""
        ...

    def store(self, value: Any, mask: Any = None, *, cache_modifier: str = "", eviction_policy: str = "") -> None:
        """See `tl.store`; `self` holds the pointers."""
        ...

    def advance(self, offsets: Any) -> Any:
        """See `tl.advance`; `self` is a block pointer."""
        ...

    def atomic_add(self, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
        """See `tl.atomic_add`; `self` holds the pointers."""
        ...

    def atomic_max(self, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
        """See `tl.atomic_max`; `self` holds the pointers."""
        ...

    def atomic_min(self, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
        """See `tl.atomic_min`; `self` holds the pointers."""
        ...

    def atomic_and(self, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
        """See `tl.atomic_and`; `self` holds the pointers."""
        ...

    def atomic_or(self, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
        """See `tl.atomic_or`; `self` holds the pointers."""
        ...

    def atomic_xor(self, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
        """See `tl.atomic_xor`; `self` holds the pointers."""
        ...

    def atomic_xchg(self, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
        """See `tl.atomic_xchg`; `self` holds the pointers."""
        ...

    def atomic_cas(self, cmp: Any, val: Any, sem: str | None = None, scope: str | None = None) -> tensor:
        """See `tl.atomic_cas`; `self` holds the pointers."""
        ...

    def atomic_load(self, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
        """See `tl.atomic_load`; `self` holds the pointers."""
        ...

    def atomic_store(self, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> None:
        """See `tl.atomic_store`; `self` holds the pointers."""
        ...

    def atomic_poll(
        self, expected_value: Any, sem: str | None = None, scope: str | None = None, timeout_ns: int | None = None
    ) -> tensor:
        """See `tl.atomic_poll`; `self` holds the pointers."""
        ...

    def broadcast_to(self, *shape: Any) -> tensor:
        """See `tl.broadcast_to`."""
        ...

    def expand_dims(self, axis: Any) -> tensor:
        """See `tl.expand_dims`."""
        ...

    def reshape(self, *shape: Any, can_reorder: bool = False) -> tensor:
        """See `tl.reshape`."""
        ...

    def item(self) -> tensor:
        """The element of a one-element tile, as a scalar."""
        ...

    def view(self, *shape: Any) -> tensor:
        """See `tl.view`."""
        ...

    def ravel(self, can_reorder: bool = False) -> tensor:
        """See `tl.ravel`."""
        ...

    def trans(self, *dims: Any) -> tensor:
        """See `tl.trans`."""
        ...

    def permute(self, *dims: Any) -> tensor:
        """See `tl.permute`."""
        ...

    def abs(self) -> tensor:
        """See `tl.abs`."""
        ...

    def ceil(self) -> tensor:
        """See `tl.ceil`."""
        ...

    def floor(self) -> tensor:
        """See `tl.floor`."""
        ...

    def cos(self) -> tensor:
        """See `tl.cos`."""
        ...

    def sin(self) -> tensor:
        """See `tl.sin`."""
        ...

    def exp(self) -> tensor:
        """See `tl.exp`."""
        ...

    def exp2(self) -> tensor:
        """See `tl.exp2`."""
        ...

    def log(self) -> tensor:
        """See `tl.log`."""
        ...

    def log2(self) -> tensor:
        """See `tl.log2`."""
        ...

    def sqrt(self) -> tensor:
        """See `tl.sqrt`."""
        ...

    def sqrt_rn(self) -> tensor:
        """See `tl.sqrt_rn`."""
        ...

    def rsqrt(self) -> tensor:
        """See `tl.rsqrt`."""
        ...

    def erf(self) -> tensor:
        """See `tl.erf`."""
        ...

    def cdiv(self, div: Any) -> tensor:
        """See `tl.cdiv`."""
        ...

    def sigmoid(self) -> tensor:
        """See `tl.sigmoid`."""
        ...

    def sum(self, axis: int | None = None, keep_dims: bool = False, dtype: dtype | None = None) -> tensor:
        """See `tl.sum`."""
        ...

    def max(
        self, axis: int | None = None, return_indices: bool = False, return_indices_tie_break_left: bool = True,
        keep_dims: bool = False,
    ) -> Any:
        """See `tl.max`."""
        ...

    def min(
        self, axis: int | None = None, return_indices: bool = False, return_indices_tie_break_left: bool = True,
        keep_dims: bool = False,
    ) -> Any:
        """See `tl.min`."""
        ...

    def argmax(self, axis: int, tie_break_left: bool = True, keep_dims: bool = False) -> tensor:
        """See `tl.argmax`."""
        ...

    def argmin(self, axis: int, tie_break_left: bool = True, keep_dims: bool = False) -> tensor:
        """See `tl.argmin`."""
        ...

    def xor_sum(self, axis: int | None = None, keep_dims: bool = False) -> tensor:
        """See `tl.xor_sum`."""
        ...

    def reduce_or(self, axis: int | None, keep_dims: bool = False) -> tensor:
        """See `tl.reduce_or`."""
        ...

    def reduce(self, axis: int | None, combine_fn: Any, keep_dims: bool = False) -> tensor:
        """See `tl.reduce`."""
        ...

    def cumsum(self, axis: int = 0, reverse: bool = False, dtype: dtype | None = None) -> tensor:
        """See `tl.cumsum`."""
        ...

    def cumprod(self, axis: int = 0, reverse: bool = False, dtype: dtype | None = None) -> tensor:
        """See `tl.cumprod`."""
        ...

    def associative_scan(self, axis: int, combine_fn: Any, reverse: bool = False) -> tensor:
        """See `tl.associative_scan`."""
        ...

    def softmax(self, dim: int | None = None, *, keep_dims: bool | None = None, ieee_rounding: bool = False) -> tensor:
        """See `tl.softmax`."""
        ...

    def split(self) -> tuple[tensor, tensor]:
        """See `tl.split`."""
        ...

    def flip(self, dim: int | None = None) -> tensor:
        """See `tl.flip`."""
        ...

    def sort(self, dim: int | None = None, descending: bool = False) -> tensor:
        """See `tl.sort`."""
        ...

    def gather(self, index: Any, axis: int) -> tensor:
        """See `tl.gather`; `self` is the source."""
        ...

    def histogram(self, num_bins: int, mask: Any = None) -> tensor:
        """See `tl.histogram`."""
        ...
