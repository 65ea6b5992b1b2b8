"""One view of every access to memory: a block, a tile of offsets from a base, or a tile of pointers, with what masks it."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from tilefw.passes.pointer_origins import arguments_of
from tilefw.tile import types
from tilefw.tile.dialect.block_ops import BlockAccess, LoadBlockOp
from tilefw.tile.dialect.constant_op import ConstantOp
from tilefw.tile.dialect.memory_ops import LoadOp, PointerAccess


@dataclass(frozen=True, slots=True)
class AccessDim:
    """One dim of a block: it begins at `offset`, neighbours are `stride` elements apart; of elements at or above `bound` nothing is
    accessed, nor of those below 0 where `lower`."""

    offset: SSAValue
    stride: SSAValue
    bound: SSAValue | None
    lower: bool

    @property
    def unit(self) -> bool:
        """Whether neighbours are sure to be next to one another."""
        owner = self.stride.owner
        return isinstance(owner, ConstantOp) and owner.value == 1


@dataclass(frozen=True, slots=True)
class TileAccess:
    """What an op accesses: elements from `base` on, a scalar pointer, at `dims` of a block or at `offsets` in elements, each where
    `mask` is true; or at the addresses of a tile of pointers (`base`, without offsets). `other` is what a load leaves elsewhere.
    """

    base: SSAValue
    shape: tuple[int, ...]
    element: str
    dims: tuple[AccessDim, ...] | None
    offsets: SSAValue | None
    mask: SSAValue | None
    other: SSAValue | None
    volatile: bool

    @property
    def roots(self) -> frozenset[SSAValue] | None:
        """The kernel's arguments that the base may come from: its alias class. None where it may come from elsewhere."""
        found = arguments_of(self.base)
        return None if found is None else frozenset(found)

    @property
    def bounded(self) -> bool:
        """Whether some elements may not be accessed."""
        return self.mask is not None or any(d.bound is not None for d in self.dims or ())


def access_of(op: BlockAccess | PointerAccess) -> TileAccess:
    """The view of a load, a store or an atomic."""
    if isinstance(op, BlockAccess):
        checks = zip(op.offsets, op.strides, op.shape, op.checks, strict=True)
        dims = tuple(AccessDim(offset, stride, bound, check == "both") for offset, stride, bound, check in checks)
        other = op.other if isinstance(op, LoadBlockOp) else None
        return TileAccess(op.base, op.block, element_name(op.block_type), dims, None, None, other, op.volatile)
    other = op.other if isinstance(op, LoadOp) else None
    shape = types.shape_of(op.value_type)
    volatile = getattr(op, "volatile", False)  # an atomic has no such word
    return TileAccess(op.pointer, shape, element_name(op.value_type), None, op.offsets, op.mask, other, volatile)


def element_name(type_: object) -> str:
    """How rows spell the elements of a type; a pointer is its address, an i64."""
    return "i64" if types.is_pointer(type_) else types.dtype_of(type_).ir  # type: ignore[arg-type]
