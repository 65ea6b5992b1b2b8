"""LinearLayout: which element of a tile stands in which register of which lane of which warp, as a linear map over bits.

Each input bit (of `register`, `lane`, `warp`) has a basis vector: the tile element that it adds, as the bits of the
row-major flat index; an element's index is the XOR of the bases of the set bits. Public source: "Linear Layouts:
Robust Code Generation of Efficient Tensor Computation Using F2", 2025 (arXiv 2505.23819).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilefw.simt import f2


def log2(size: int) -> int:
    """The logarithm of a power of two."""
    return size.bit_length() - 1


@dataclass(frozen=True)
class LinearLayout:
    """A map from (register, lane, warp) bits to elements of a tile of `shape` (powers of two).

    A zero basis marks a copy: both values of that bit hold the same elements.
    """

    shape: tuple[int, ...]
    register: tuple[int, ...]
    lane: tuple[int, ...]
    warp: tuple[int, ...]

    @cached_property
    def registers(self) -> int:
        """How many elements each lane holds."""
        return 1 << len(self.register)

    @property
    def thread(self) -> tuple[int, ...]:
        """The bases of the bits of the thread index within the workgroup: lane bits, then warp bits."""
        return self.lane + self.warp

    def element(self, register: int, thread: int) -> int:
        """The flat index of the element in a register of a thread."""
        return f2.apply(self.register, register) ^ f2.apply(self.thread, thread)

    def coordinates(self, flat: int) -> tuple[int, ...]:
        """A flat index as one index a dim; linear, so it also splits a basis vector."""
        result: list[int] = []
        for size in reversed(self.shape):
            result.append(flat & (size - 1))
            flat >>= log2(size)
        return tuple(reversed(result))

    @cached_property
    def covers(self) -> bool:
        """Whether every element is held by somebody."""
        return f2.rank(self.register + self.thread) == sum(log2(s) for s in self.shape)

    @cached_property
    def copies(self) -> int:
        """The thread bits that must be 0 in the one copy that may store, as a mask.

        A thread bit makes a copy when its basis lies in the span of the register bases and the bits before it.
        """
        mask, seen = 0, list(self.register)
        for i, basis in enumerate(self.thread):
            if f2.solve(seen, basis) is not None:
                mask |= 1 << i
            seen.append(basis)
        return mask

    @cached_property
    def disjoint(self) -> bool:
        """Whether no two bases share a bit, so that XOR is addition and an index splits into thread part + constant."""
        bases = self.register + self.thread
        union = 0
        for basis in bases:
            union |= basis
        return sum(b.bit_count() for b in bases) == union.bit_count()

    def contiguous(self) -> int:
        """How many consecutive registers hold consecutive elements of the flat index."""
        n = 0
        while n < len(self.register) and self.register[n] == 1 << n:
            n += 1
        return 1 << n

    def _pull(
        self, shape: tuple[int, ...], move: Callable[[tuple[int, ...]], Sequence[int]]
    ) -> tuple[LinearLayout, tuple[int, ...]]:
        """The layout of an operand whose coordinates `move` gives from the result's; register copies are dropped.

        The second part is, for each register of the result, the register of the operand that holds its element.
        """

        def basis(b: int) -> int:
            flat = 0
            for size, c in zip(shape, move(self.coordinates(b)), strict=True):
                flat = flat << log2(size) | c
            return flat

        registers = tuple(basis(b) for b in self.register)
        kept = [i for i, b in enumerate(registers) if b]
        source = tuple(sum((r >> i & 1) << k for k, i in enumerate(kept)) for r in range(self.registers))
        layout = LinearLayout(
            shape, tuple(registers[i] for i in kept), tuple(map(basis, self.lane)), tuple(map(basis, self.warp))
        )
        return layout, source

    def before_expand_dims(self, axis: int) -> tuple[LinearLayout, tuple[int, ...]]:
        """The slice: what the operand of `expand_dims(axis)` has when its result has this layout."""
        return self._pull(self.shape[:axis] + self.shape[axis + 1 :], lambda c: c[:axis] + c[axis + 1 :])

    def before_broadcast(self, shape: tuple[int, ...]) -> tuple[LinearLayout, tuple[int, ...]]:
        """What the operand of `shape`, with dims of size 1, has when the broadcast result has this layout."""
        return self._pull(shape, lambda c: [0 if size == 1 else x for size, x in zip(shape, c, strict=True)])

    def before_trans(self, order: Sequence[int]) -> tuple[LinearLayout, tuple[int, ...]]:
        """What the operand of `trans(order)` has; result dim i is operand dim order[i]."""
        shape = [0] * len(order)
        for i, d in enumerate(order):
            shape[d] = self.shape[i]

        def move(c: tuple[int, ...]) -> list[int]:
            source = [0] * len(order)
            for i, d in enumerate(order):
                source[d] = c[i]
            return source

        return self._pull(tuple(shape), move)

    def before_reshape(self, shape: tuple[int, ...]) -> tuple[LinearLayout, tuple[int, ...]]:
        """What the operand of a reshape has: the same flat indices."""
        return LinearLayout(shape, self.register, self.lane, self.warp), tuple(range(self.registers))


def blocked(shape: tuple[int, ...], order: Sequence[int], width: int, lanes: int, warps: int) -> LinearLayout:
    """The coalesced layout: along `order` (fastest dim first), `width` elements a lane, then lanes, warps, registers.

    Threads that are left over hold copies.
    """
    strides = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        strides[d] = strides[d + 1] * shape[d + 1]
    bits = [strides[d] << k for d in order for k in range(log2(shape[d]))]
    take = iter(bits)
    inner = [next(take) for _ in range(min(log2(width), len(bits)))]
    lane = tuple(next(take, 0) for _ in range(log2(lanes)))
    warp = tuple(next(take, 0) for _ in range(log2(warps)))
    return LinearLayout(shape, (*inner, *take), lane, warp)
