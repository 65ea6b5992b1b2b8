"""What an access to global memory costs in a layout, and which layout it likes best: the coalesced one.

A wave's access goes to memory as sectors of 32 bytes, the least that a cache of a chip with lanes moves; where one moves more, the
order of layouts by their sectors is the same. How many a wave touches is the rank of the lane bits' bases
once the bits within a sector are left out. What stores write at least is the chip's (`store_bytes`), as a share of a sector.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation, SSAValue

from tilefw.api.errors import UnsupportedError
from tilefw.api.integers import log2
from tilefw.simt.description import ChipDescription, LaneMachine
from tilefw.simt.facts import LaneFacts
from tilefw.simt.lane.atomics import FLOATS_THAT_PAIR
from tilefw.simt.layout import LinearLayout, blocked, f2
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.atomic_ops import ATOMIC_OPS, AtomicOp, AtomicRmwOp
from tilefw.tile.dialect.block_ops import BlockAccess
from tilefw.tile.dialect.copy_ops import CopyBlockOp, CopyOp
from tilefw.tile.dialect.multicast_op import MulticastOp
from tilefw.tile.text.source_location import place_of

SECTOR_BYTES = 32
_WORD_BYTES = 4
_ISSUE = 2  # slots of an access besides its sectors: address and issue

PointerOp = ops.LoadOp | ops.StoreOp | CopyOp | AtomicOp
AccessOp = ops.LoadOp | ops.StoreOp | CopyOp | AtomicOp | BlockAccess
ACCESSES = (ops.LoadOp, ops.StoreOp, CopyOp, *ATOMIC_OPS, ops.MulticastOp, ops.LoadBlockOp, ops.StoreBlockOp, CopyBlockOp)


class Accesses:
    """The accesses of one function, judged by its facts."""

    def __init__(self, machine: LaneMachine, facts: LaneFacts) -> None:
        self.machine = machine
        self.facts = facts
        self._coalesced: dict[Operation, LinearLayout] = {}
        self._widths: dict[tuple[Operation, int, int | None], int] = {}
        self._limited: dict[Operation, int | None] = {}
        self._beyond: dict[tuple[Operation, int], int] = {}

    def coalesced(self, op: AccessOp) -> LinearLayout:
        """The layout that the access alone would choose."""
        if op not in self._coalesced:
            order, width = self.preference(op)
            shape = types.shape_of(accessed_type(op))
            check_shape(shape, op)
            self._coalesced[op] = self.blocked(shape, order, width)
        return self._coalesced[op]

    def pieces(self, op: AccessOp) -> LinearLayout:
        """The same with accesses as wide as can be, though not every wave may have one."""
        order, width = self.preference(op)
        shape = types.shape_of(accessed_type(op))
        check_shape(shape, op)
        return blocked(shape, order, width, self.machine.lanes, self.machine.waves)

    def better(self, op: AccessOp, encoding: LinearLayout) -> LinearLayout:
        """The encoding of the accessed value, unless the coalesced layout makes the access cheaper."""
        own = self.coalesced(op)
        return own if own != encoding and self.cost(op, own) < self.cost(op, encoding) else encoding

    def blocked(self, shape: tuple[int, ...], order: Sequence[int], width: int) -> LinearLayout:
        """`width` elements a lane, but no more than give every thread some."""
        size = 1 << sum(log2(s) for s in shape)
        most = max(1, size // self.machine.threads)
        return blocked(shape, order, min(width, most), self.machine.lanes, self.machine.waves)

    def preference(self, op: AccessOp) -> tuple[tuple[int, ...], int]:
        """The dims from the fastest in memory on, and how many elements one access can take."""
        shape = types.shape_of(accessed_type(op))
        default = tuple(reversed(range(len(shape))))
        if not isinstance(op, BlockAccess):
            if not shape:
                return default, 1
            width, fastest = max((self.width(op, d), d) for d in default)
            return (fastest, *(d for d in default if d != fastest)), width
        fast = [d for d in default if self.facts.constant(op.strides[d]) == 1 and shape[d] > 1]
        if not fast:
            return default, 1
        return (fast[0], *(d for d in default if d != fast[0])), self.width(op, fast[0], self.limited(op))

    def width(self, op: AccessOp, dim: int, limited: int | None = None) -> int:
        """How many elements along `dim` one aligned access can take, masked alike but for the bound of a dim that is `limited`."""
        found = self._widths.get((op, dim, limited))
        if found is None:
            found = self._widths[op, dim, limited] = self._width(op, dim, limited)
        return found

    def _width(self, op: AccessOp, dim: int, limited: int | None) -> int:
        chip = self.machine.chip
        if isinstance(op, BlockAccess):
            return _block_width(op, dim, self.facts, chip, dim == limited)
        if isinstance(op, AtomicOp):
            return _atomic_width(op, dim, self.facts)
        return self.facts.width(op, dim, chip.access_bytes, chip.alignment)

    def limited(self, op: AccessOp) -> int | None:
        """The dim of a block whose bound the chip's accesses check for each element, however many they take; None for none."""
        if op not in self._limited:
            self._limited[op] = self._limited_dim(op)
        return self._limited[op]

    def _limited_dim(self, op: AccessOp) -> int | None:
        chip = self.machine.chip
        if not (chip.bounded and chip.bound_bytes) or not isinstance(op, ops.LoadBlockOp | ops.StoreBlockOp):
            return None
        whole = types.dtype_of(op.block_type).storage_bits // 8 % chip.bound_bytes == 0
        return covering(op, self.facts) if whole else None

    def best_width(self, op: AccessOp, layout: LinearLayout, limited: int | None = None) -> int:
        """How many registers in a row one access takes in a layout."""
        best = 1
        for d in range(len(layout.shape)):
            run = layout_run(layout, d)
            if run > best and (not isinstance(op, BlockAccess) or self.facts.constant(op.strides[d]) == 1):
                best = max(best, min(run, self.width(op, d, limited)))
        return best

    def needs(self, op: AccessOp, layout: LinearLayout) -> list[tuple[SSAValue, LinearLayout]]:
        """The tiles that an access in `layout` needs, each with its layout: addresses and mask at each access's first element. What
        chooses between the loaded and another value is the mask of each."""
        firsts = layout
        if not isinstance(op, BlockAccess):
            firsts = first_elements(layout, self.access_width(op, layout))
        once = (op.pointer, op.offsets, op.mask) if not isinstance(op, BlockAccess) else ()
        tiles = [v for v in op.operands if types.is_tile(v.type)]
        chosen: list[tuple[SSAValue, LinearLayout]] = []
        if isinstance(op, MulticastOp) and op.mask is not None and types.is_tile(op.mask.type) and firsts != layout:
            chosen = [(op.mask, layout)]
        return [*((v, firsts if any(v is o for o in once) else layout) for v in tiles), *chosen]

    def access_width(self, op: AccessOp, layout: LinearLayout, limited: int | None = None) -> int:
        """How many elements one access takes, of a block whose accesses check the bound of dim `limited` by themselves. Raises
        UnsupportedError (TFW0618) for a copy that the chip has none for."""
        width = self.best_width(op, layout, limited)
        return width if not isinstance(op, CopyOp | CopyBlockOp) else self._copy_width(op, width)

    def _copy_width(self, op: CopyOp | CopyBlockOp, width: int) -> int:
        chip = self.machine.chip
        size = types.dtype_of(accessed_type(op)).storage_bits // 8
        while width * size not in chip.copy_bytes:
            if width == 1:
                sizes = ", ".join(map(str, chip.copy_bytes)) or "none"
                raise UnsupportedError(
                    f"no asynchronous copy of {chip.name} is as narrow as this access allows (bytes at once: {sizes})",
                    code="TFW0618", place=place_of(op),
                )
            width //= 2
        return width

    def cost(self, op: AccessOp, layout: LinearLayout) -> float:
        """Issue slots and sectors of all a thread's accesses in a layout."""
        width = self.best_width(op, layout, self.limited(op))
        sector = SECTOR_BYTES if not isinstance(op, ops.StoreOp | ops.StoreBlockOp) else self.machine.chip.store_bytes
        beyond = self._beyond_sector(op, sector)
        bases = [b & beyond for b in (*layout.register[: log2(width)], *layout.lane)]
        return layout.registers // width * (_ISSUE + (1 << f2.rank(bases)) * sector / SECTOR_BYTES)

    def bytes(self, type: Attribute) -> int:
        """The size of a tile."""
        size = types.dtype_of(type).storage_bits // 8
        for s in types.shape_of(type):
            size *= s
        return size

    def _beyond_sector(self, op: AccessOp, sector: int) -> int:
        """The bits of the flat index that lead to another sector."""
        if (op, sector) in self._beyond:
            return self._beyond[op, sector]
        mask, at = 0, 0
        shape = types.shape_of(accessed_type(op))
        size = types.dtype_of(accessed_type(op)).storage_bits // 8
        for d in reversed(range(len(shape))):
            for bit in range(log2(shape[d])):
                distance = self._distance(op, d, bit)
                if distance is None or distance * size >= sector:
                    mask |= 1 << (at + bit)
            at += log2(shape[d])
        self._beyond[op, sector] = mask
        return mask

    def _distance(self, op: AccessOp, dim: int, bit: int) -> int | None:
        """How far, in elements, a bit of a dim's index moves; None for unknown, which is far."""
        if isinstance(op, BlockAccess):
            stride = self.facts.constant(op.strides[dim])
            return None if stride is None else abs(stride) << bit
        contiguity, constancy = self.facts.runs(op, dim)
        if 1 << bit < constancy:
            return 0
        return 1 << bit if 1 << bit < contiguity else None


def accessed_value(op: Operation) -> SSAValue | None:
    """The tile that an access loads or stores in registers, or else the one that says where: None for a block copy."""
    if isinstance(op, ops.StoreOp | ops.StoreBlockOp):
        return op.value
    if isinstance(op, CopyBlockOp):
        return None
    if isinstance(op, CopyOp):
        return op.pointer if op.offsets is None else op.offsets
    return op.results[0]


def accessed_type(op: AccessOp) -> Attribute:
    """The type of all accessed elements together."""
    return op.block_type if isinstance(op, BlockAccess) else op.value_type


def first_elements(layout: LinearLayout, width: int) -> LinearLayout:
    """Every `width`-th register: where the accesses of a layout begin. It does not cover the tile."""
    return LinearLayout(layout.shape, layout.register[log2(width) :], layout.lane, layout.wave)


def layout_run(layout: LinearLayout, dim: int) -> int:
    """How many of a lane's registers in a row hold consecutive elements along `dim`, from a multiple of their number on."""
    stride = 1
    for size in layout.shape[dim + 1 :]:
        stride *= size
    run = 0
    while run < len(layout.register) and layout.register[run] == stride << run and 1 << run < layout.shape[dim]:
        run += 1
    others = 0
    for basis in (*layout.register[run:], *layout.thread):
        others |= basis
    while run and others & (((1 << run) - 1) * stride):
        run -= 1
        others |= layout.register[run]
    return 1 << run


def covering(op: BlockAccess, facts: LaneFacts) -> int | None:
    """The dim of a block that can have a limit: all that stands before its bound, and nothing else, is in bounds there."""
    return next((d for d, bound in enumerate(op.shape) if bound is not None and _covers(op, d, facts)), None)


def _covers(op: BlockAccess, dim: int, facts: LaneFacts) -> bool:
    least = facts.bounds(op.offsets[dim])[0]
    if op.block[dim] == 1 or (op.checks[dim] == "both" and (least is None or least < 0)):
        return False
    strides = [0 if extent == 1 else facts.constant(s) for extent, s in zip(op.block, op.strides, strict=True)]
    if any(s is None or s < 0 for s in strides):
        return False
    others = sum((extent - 1) * s for d, (extent, s) in enumerate(zip(op.block, strides, strict=True)) if s and d != dim)
    return others + 1 <= strides[dim]  # type: ignore[operator]


def _block_width(op: BlockAccess, dim: int, facts: LaneFacts, chip: ChipDescription, limited: bool) -> int:
    """How many elements along `dim` (stride 1) one aligned access can take, surely in or surely out of bounds, where that is not
    `limited`."""
    size = types.dtype_of(op.block_type).storage_bits // 8
    align = facts.divisor(op.base)
    for d, (offset, stride) in enumerate(zip(op.offsets, op.strides, strict=True)):
        unit = facts.divisor(stride) * size
        align = min(align, facts.divisor(offset) * unit)
        if d != dim and op.block[d] > 1:
            align = min(align, unit)
    enough = max(align, size) >= (chip.alignment or chip.access_bytes)
    width = (chip.access_bytes if enough else align) // size
    bound = op.shape[dim]
    if bound is not None and not limited:
        width = min(width, facts.divisor(bound), facts.divisor(op.offsets[dim]))
    return max(1, min(width, op.block[dim]))


def _atomic_width(op: AtomicOp, dim: int, facts: LaneFacts) -> int:
    """Each element is an access of its own but for sums of 16-bit floats, of which chips add the two of an aligned word at once."""
    element = types.element_of(op.value.type)
    if not isinstance(op, AtomicRmwOp | MulticastOp) or op.kind != "add" or element not in FLOATS_THAT_PAIR:
        return 1
    if isinstance(op, MulticastOp) and op.action == "store":
        return 1
    return min(2, facts.width(op, dim, _WORD_BYTES, _WORD_BYTES))


def check_shape(shape: tuple[int, ...], op: object) -> None:
    """Raises UnsupportedError (TFW0611) for a tile that lanes cannot share evenly."""
    if any(s & (s - 1) for s in shape):
        raise UnsupportedError(
            f"a tile of shape {'x'.join(map(str, shape))} cannot be spread over lanes", code="TFW0611",
            place=place_of(op) if isinstance(op, Operation) else None, help="use powers of two for every dim",
        )
