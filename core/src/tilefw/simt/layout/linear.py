"""LinearLayout: which element of a tile stands in which register of which lane of which wave, as a linear map over bits.

Each input bit (of `register`, `lane`, `wave`) has a basis vector: the tile element that it adds, as the bits of the
row-major flat index; an element's index is the XOR of the bases of the set bits. Public source: "Linear Layouts:
Robust Code Generation of Efficient Tensor Computation Using F2", 2025 (arXiv 2505.23819).

`before_*` gives the layout of a shape op's operand from its result's, `after_*` the result's from the operand's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tilefw.api.integers import log2
from tilefw.simt.layout import f2
from tilefw.simt.layout.shape_maps import Shape, bit_starts, embedding, grouped, grown, permuted, shrunk, without

__all__ = ["LinearLayout", "blocked"]

Registers = tuple[int, ...]


@dataclass(frozen=True)
class LinearLayout:
    """A map from (register, lane, wave) bits to elements of a tile of `shape` (powers of two).

    A zero basis marks a copy: both values of that bit hold the same elements. Register bases are independent, so a lane holds
    an element once; lane and wave bases may be any, and an element may be in several threads.
    """

    shape: Shape
    register: tuple[int, ...]
    lane: tuple[int, ...]
    wave: tuple[int, ...]

    @staticmethod
    def of_matrix(rows: Sequence[str], columns: Sequence[str]) -> LinearLayout:
        """The layout of a matrix in one wave whose index bits are named: `rows[i]` is bit i of the row number, `columns` likewise.

        A name is a kind and a number: e (element within a register), r (register) or l (lane), as in a simulator's `Fragment`.
        Elements come before registers in the order of what a lane holds.
        """
        basis = {name: 1 << (i + len(columns)) for i, name in enumerate(rows)} | {name: 1 << i for i, name in enumerate(columns)}
        of = {kind: tuple(basis[name] for name in sorted((n for n in basis if n[0] == kind), key=_bit_number)) for kind in "erl"}
        return LinearLayout((1 << len(rows), 1 << len(columns)), of["e"] + of["r"], of["l"], ())

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.shape, self.register, self.lane, self.wave))

    @cached_property
    def registers(self) -> int:
        """How many elements each lane holds."""
        return 1 << len(self.register)

    @cached_property
    def thread(self) -> tuple[int, ...]:
        """The bases of the bits of the thread index within the workgroup: lane bits, then wave bits."""
        return self.lane + self.wave

    @cached_property
    def bases(self) -> tuple[int, ...]:
        """All bases, of register, lane and wave bits: the matrix of the map."""
        return self.register + self.thread

    @cached_property
    def elements(self) -> tuple[int, ...]:
        """The flat indices of thread 0's registers; another thread's are these XOR its own part."""
        return f2.table(self.register)

    @cached_property
    def bits(self) -> int:
        """The bits of a flat index."""
        return sum(log2(s) for s in self.shape)

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
        return f2.rank(self.bases) == self.bits

    @cached_property
    def copies(self) -> int:
        """The thread bits that must be 0 in the one copy that may store, as a mask.

        A thread bit makes a copy when its basis lies in the span of the register bases and the bits before it.
        """
        span = f2.Subspace(self.register)
        return sum(1 << i for i, basis in enumerate(self.thread) if not span.add(basis))

    @cached_property
    def free(self) -> int:
        """The thread bits that change nothing at all (their bases are zero), as a mask."""
        return sum(1 << i for i, basis in enumerate(self.thread) if not basis)

    @cached_property
    def disjoint(self) -> bool:
        """Whether no two bases share a bit, so that XOR is addition and an index splits into thread part + constant."""
        union = 0
        for basis in self.bases:
            union |= basis
        return sum(b.bit_count() for b in self.bases) == union.bit_count()

    @cached_property
    def canonical(self) -> LinearLayout:
        """The layout of the same elements in the same threads whose registers are in the one reduced order.

        Two layouts differ by an order of registers, alike in all threads, exactly when their canonical forms are equal.
        """
        registers = f2.echelon(self.register)
        return self if registers == self.register else LinearLayout(self.shape, registers, self.lane, self.wave)

    @cached_property
    def deal(self) -> tuple[Shape, f2.Columns, tuple[int, ...]]:
        """Which wave has which elements: the same of two layouts exactly if all waves hold the same in both."""
        wave = f2.Subspace(self.register + self.lane)
        return self.shape, f2.echelon(self.register + self.lane), tuple(wave.reduce(basis)[0] for basis in self.wave)

    @cached_property
    def inverse(self) -> tuple[int, ...]:
        """For each bit of the flat index the (register, lane, wave) bits that hold it; thread bits that copy stay 0.

        Raises ValueError when the layout does not cover the tile.
        """
        return f2.right_inverse(self.bases, self.bits)

    def split(self, place: int) -> tuple[int, int, int]:
        """An input vector, as `inverse` gives it, as (register, lane, wave)."""
        register, thread = place & (self.registers - 1), place >> len(self.register)
        return register, thread & ((1 << len(self.lane)) - 1), thread >> len(self.lane)

    def contiguous(self) -> int:
        """How many consecutive registers hold consecutive elements of the flat index."""
        n = 0
        while n < len(self.register) and self.register[n] == 1 << n:
            n += 1
        return 1 << n

    # Products and quotients.

    def times(self, rest: LinearLayout) -> LinearLayout:
        """This layout as the tile that `rest` repeats: its bits lowest, in every dim and in registers, lanes and waves."""
        shape = tuple(a * b for a, b in zip(self.shape, rest.shape, strict=True))
        inner, outer = embedding(self.shape, shape, self.shape)
        parts = ((getattr(self, p), getattr(rest, p)) for p in ("register", "lane", "wave"))
        return LinearLayout(shape, *(f2.compose(inner, a) + f2.compose(outer, b) for a, b in parts))

    def over(self, tile: LinearLayout) -> LinearLayout | None:
        """The quotient: the layout with `tile.times(quotient) == self`; None when `tile` is not what the low bits hold."""
        if len(tile.shape) != len(self.shape) or any(s % t for s, t in zip(self.shape, tile.shape, strict=True)):
            return None
        inner, outer = embedding(tile.shape, self.shape, tile.shape)
        inside = sum(inner)
        back = {basis: i for i, basis in enumerate(outer)}
        parts: list[tuple[int, ...]] = []
        for name in ("register", "lane", "wave"):
            mine, low = getattr(self, name), getattr(tile, name)
            high = mine[len(low) :]
            if mine[: len(low)] != f2.compose(inner, low) or any(b & inside for b in high):
                return None
            parts.append(tuple(sum(1 << back[1 << i] for i in range(b.bit_length()) if b >> i & 1) for b in high))
        return LinearLayout(tuple(s // t for s, t in zip(self.shape, tile.shape, strict=True)), *parts)

    # Shape ops: backward.

    def projected(self, shape: Shape, matrix: f2.Columns) -> tuple[LinearLayout, Registers]:
        """The layout of `matrix` · elements, without register bits that only copy.

        The second part is, for each register of this layout, the register of the projected one that holds its element.
        """
        return _projected(self, shape, tuple(matrix))

    def mapped(self, shape: Shape, matrix: f2.Columns) -> LinearLayout:
        """The layout of `matrix` · elements, register for register; the matrix is invertible."""
        return LinearLayout(shape, *(f2.compose(matrix, part) for part in (self.register, self.lane, self.wave)))

    def slice(self, axis: int) -> tuple[LinearLayout, Registers]:
        """What a reduction over `axis` leaves; and for each register of this layout the result's register it goes into.

        Threads that differ only along the axis hold copies.
        """
        return self.projected(self.shape[:axis] + self.shape[axis + 1 :], without(self.shape, axis))

    def coarser(self, axis: int, bits: int) -> tuple[LinearLayout, Registers]:
        """The layout of groups of 2^`bits` elements along `axis`; and for each register of this layout the one of its group."""
        shape = (*self.shape[:axis], self.shape[axis] >> bits, *self.shape[axis + 1 :])
        return self.projected(shape, grouped(self.shape, axis, bits))

    def before_expand_dims(self, axis: int) -> tuple[LinearLayout, Registers]:
        """What the operand of `expand_dims(axis)` has when its result has this layout; of each register the operand's."""
        return self.slice(axis)

    def before_broadcast(self, shape: Shape) -> tuple[LinearLayout, Registers]:
        """What the operand of `shape`, with dims of size 1, has when the broadcast result has this layout."""
        return self.projected(shape, shrunk(self.shape, shape))

    def before_trans(self, order: Sequence[int]) -> tuple[LinearLayout, Registers]:
        """What the operand of `trans(order)` has; result dim i is operand dim order[i]."""
        back = [0] * len(order)
        for i, d in enumerate(order):
            back[d] = i
        return self.after_trans(back), tuple(range(self.registers))

    def before_reshape(self, shape: Shape) -> tuple[LinearLayout, Registers]:
        """What the operand of a reshape has: the same flat indices."""
        return self.after_reshape(shape), tuple(range(self.registers))

    def before_join(self) -> tuple[LinearLayout, Registers] | None:
        """What both operands of a join have, and for each register the one of the first's registers, then the second's, that
        it holds. None when threads differ in the last dim, so that it depends on the thread which operand it is.
        """
        if any(b & 1 for b in self.thread):
            return None
        layout, source = self.projected(self.shape[:-1], without(self.shape, len(self.shape) - 1))
        return layout, tuple(s + (e & 1) * layout.registers for s, e in zip(source, self.elements, strict=True))

    def before_split(self) -> tuple[LinearLayout, tuple[Registers, Registers]]:
        """What the operand of a split has when both results have this layout; for each result its registers of the operand."""
        return self.after_join()[0], self._halves(self.registers)

    # Shape ops: forward.

    def after_expand_dims(self, axis: int) -> LinearLayout:
        """What `expand_dims(axis)` gives, register by register."""
        return self.after_reshape((*self.shape[:axis], 1, *self.shape[axis:]))

    def after_broadcast(self, shape: Shape) -> LinearLayout:
        """What a broadcast to `shape` may have: its new elements in thread bits that are free, lanes first, then in registers.

        Register r of the result holds the operand's register r modulo the operand's registers.
        """
        kept, new = grown(self.shape, shape)
        fresh = iter(new)
        lane = tuple(f2.apply(kept, b) if b else next(fresh, 0) for b in self.lane)
        wave = tuple(f2.apply(kept, b) if b else next(fresh, 0) for b in self.wave)
        return LinearLayout(shape, (*f2.compose(kept, self.register), *fresh), lane, wave)

    def after_trans(self, order: Sequence[int]) -> LinearLayout:
        """What `trans(order)` gives, register by register; result dim i is operand dim order[i]."""
        matrix = permuted(self.shape, tuple(order))
        shape = tuple(self.shape[d] for d in order)
        return LinearLayout(shape, *(f2.compose(matrix, part) for part in (self.register, self.lane, self.wave)))

    def after_reshape(self, shape: Shape) -> LinearLayout:
        """What a reshape gives, register by register: the same flat indices."""
        return LinearLayout(shape, self.register, self.lane, self.wave)

    def after_join(self) -> tuple[LinearLayout, Registers]:
        """What a join of two tiles of this layout gives: pairs side by side; for each register the first's, then second's."""
        moved = [tuple(b << 1 for b in part) for part in (self.register, self.lane, self.wave)]
        layout = LinearLayout((*self.shape, 2), (1, *moved[0]), moved[1], moved[2])
        return layout, tuple(r // 2 + r % 2 * self.registers for r in range(2 * self.registers))

    def after_split(self) -> tuple[LinearLayout, tuple[Registers, Registers]] | None:
        """What both results of a split have, and for each its registers of this layout.

        None when a thread does not hold both elements of its pairs in registers that are the same in all threads.
        """
        if any(b & 1 for b in self.thread) or f2.solve(self.register, 1) is None:
            return None
        layout, source = self.projected(self.shape[:-1], without(self.shape, len(self.shape) - 1))
        found: tuple[list[int], list[int]] = ([0] * layout.registers, [0] * layout.registers)
        for r, (s, e) in enumerate(zip(source, self.elements, strict=True)):
            found[e & 1][s] = r
        return layout, (tuple(found[0]), tuple(found[1]))

    def flipped(self, axis: int) -> int:
        """The constant c such that `flip(axis)` takes element e from element e XOR c."""
        stride = 1
        for size in self.shape[axis + 1 :]:
            stride *= size
        return (self.shape[axis] - 1) * stride

    @staticmethod
    def _halves(count: int) -> tuple[Registers, Registers]:
        return tuple(range(0, 2 * count, 2)), tuple(range(1, 2 * count, 2))


@lru_cache(maxsize=4096)
def _projected(layout: LinearLayout, shape: Shape, matrix: tuple[int, ...]) -> tuple[LinearLayout, Registers]:
    """`LinearLayout.projected`: assignment asks the same again each time that it tries another layout nearby."""
    span, kept, source = f2.Subspace(), [], []
    for basis in f2.compose(matrix, layout.register):
        used = span.solve(basis)
        if used is None:
            used = 1 << len(kept)
            kept.append(basis)
            span.add(basis)
        source.append(used)
    lane, wave = f2.compose(matrix, layout.lane), f2.compose(matrix, layout.wave)
    return LinearLayout(shape, tuple(kept), lane, wave), f2.table(source)


def blocked(shape: Shape, order: Sequence[int], width: int, lanes: int, waves: int) -> LinearLayout:
    """The coalesced layout: along `order` (fastest dim first), `width` elements a lane, then lanes, waves, registers.

    Threads that are left over hold copies.
    """
    starts = bit_starts(shape)
    bits = [1 << (starts[d] + k) for d in order for k in range(log2(shape[d]))]
    take = iter(bits)
    inner = [next(take) for _ in range(min(log2(width), len(bits)))]
    lane = tuple(next(take, 0) for _ in range(log2(lanes)))
    wave = tuple(next(take, 0) for _ in range(log2(waves)))
    return LinearLayout(shape, (*inner, *take), lane, wave)


def _bit_number(bit: str) -> int:
    """The 3 of "r3"."""
    return int(bit[1:])
