"""How a dot's tiles lie: the bits of every index, dealt out once, to an atom, to repeats in registers, to lanes and waves.

Bits are (dim, bit) pairs. Every operand takes those of the dims that it has, so that D, A and B agree by construction; a thread bit
of a dim that an operand lacks makes a copy of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property

from tilefw.api.dtypes import DTYPES
from tilefw.api.integers import log2
from tilefw.simt.description import LaneMachine, MatrixAtom
from tilefw.simt.layout import LinearLayout
from tilefw.simt.layout.atom_recipes import DotTypes, Recipe
from tilefw.simt.layout.shared_operand import SharedOperand

_BITS = {dtype.ir: dtype.storage_bits for dtype in DTYPES.values()}
_SCALES_IN_REGISTER = 4
_PAIRS = ("f4E2M1FN",)  # of which a byte holds two, neighbours along k
# Lane atoms take up to this many k a step, so that a row of A gives a wide read as a row of B does: 16 bytes of f32.
LANE_DEPTH = 4


class AtomChain(Enum):
    """How a dot stands to others: alone; its result becomes the A of another; or its A is the result of another."""

    NONE = auto()
    LEADS = auto()
    FOLLOWS = auto()


Bit = tuple[str, int]  # a dim of the dot (b, m, n or k) and a bit of its index


@dataclass(frozen=True)
class ScaleLayouts:
    """Where the scales of a dot lie, all k steps of them: [b,] m, k / group, and [b,] n, k / group. `repeats` has for each atom of
    the first step its scales; the highest register bits are the steps, as those of A and B are."""

    a: LinearLayout
    b: LinearLayout
    repeats: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class DotLayouts:
    """An atom and where everything lies.

    `d`, `a` and `b` are layouts of the whole tiles ([b,] m, n; [b,] m, k; [b,] k, n). The highest register bits of `a` and `b` are
    the k steps; `repeats` has for each atom of one step its first element in the step's A and B and in D; a lane
    atom takes one element of each.

    `shared` are A and B where a matrix unit reads them from shared memory; their layouts then have the first element of each atom.
    """

    types: DotTypes
    atom: MatrixAtom
    recipe: Recipe
    d: LinearLayout
    a: LinearLayout
    b: LinearLayout
    steps: int
    repeats: tuple[tuple[int, int, int], ...]
    scales: ScaleLayouts | None = None
    shared: tuple[SharedOperand | None, SharedOperand | None] = (None, None)

    @cached_property
    def a_step(self) -> LinearLayout:
        """The layout of A's elements of one k step."""
        return self._step(self.a)

    @cached_property
    def b_step(self) -> LinearLayout:
        """The layout of B's elements of one k step."""
        return self._step(self.b)

    def a_offset(self, step: int) -> int:
        """The flat index whose XOR takes the elements of `a_step` to those of a step."""
        return self.a.element(step * self.a_step.registers, 0)

    def b_offset(self, step: int) -> int:
        """The flat index whose XOR takes the elements of `b_step` to those of a step."""
        return self.b.element(step * self.b_step.registers, 0)

    def _step(self, whole: LinearLayout) -> LinearLayout:
        kept = len(whole.register) - log2(self.steps)
        return LinearLayout(whole.shape, whole.register[:kept], whole.lane, whole.wave)


class _Deal:
    """The bits of every dim, handed out lowest first."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self.left = {dim: list(range(log2(size))) for dim, size in sizes.items()}

    def take(self, dim: str, count: int) -> list[Bit]:
        """Up to `count` of the dim's bits that are left."""
        taken, self.left[dim] = self.left[dim][:count], self.left[dim][count:]
        return [(dim, bit) for bit in taken]

    def rest(self, dim: str) -> list[Bit]:
        """All that is left of a dim; nothing of one that there is not."""
        return self.take(dim, len(self.left[dim])) if dim in self.left else []


@dataclass(frozen=True)
class _Depth:
    """The k of one step: which bits of k the atom's are, lowest first, and those `further` ones that one wide read brings."""

    atom: tuple[Bit, ...]
    further: tuple[Bit, ...] = ()


def _layout(
    dims: str, sizes: dict[str, int], atom: LinearLayout, depth: Sequence[Bit], registers: Sequence[Bit],
    lanes: Sequence[Bit | None], waves: Sequence[Bit | None], run: int = 0,
) -> LinearLayout:
    """The layout of an operand with `dims`, slowest first: the atom's bits, those of its k at `depth`, and of the others those of
    its dims. One element stands for 2^`run` neighbours along k."""
    stride: dict[str, int] = {}
    total = 1
    sizes = {dim: size >> run if dim == "k" else size for dim, size in sizes.items()}
    for dim in reversed(dims):
        stride[dim] = total
        total *= sizes[dim]

    def basis(bit: Bit | None) -> int:
        return 0 if not bit or bit[0] not in dims else stride[bit[0]] << bit[1] >> (run if bit[0] == "k" else 0)

    def place(dim: str, index: int) -> int:
        if dim != "k":
            return index * stride[dim]
        return sum(basis(bit) for i, bit in enumerate(depth[run:]) if index >> i & 1)

    def inside(flat: int) -> int:
        row, column = atom.coordinates(flat)
        return place(dims[-2], row) + place(dims[-1], column)

    return LinearLayout(
        tuple(sizes[dim] for dim in dims),
        (*map(inside, atom.register), *(basis(bit) for bit in registers if bit[0] in dims)),
        (*map(inside, atom.lane), *map(basis, lanes)),
        (*map(inside, atom.wave), *map(basis, waves)),
    )


def _finish(
    atom: MatrixAtom, recipe: Recipe, sizes: dict[str, int], types: DotTypes, depth: _Depth, repeats: Sequence[Bit],
    steps: Sequence[Bit], lanes: Sequence[Bit | None], waves: Sequence[Bit | None],
) -> DotLayouts:
    """The layouts for a complete deal of bits; `repeats` in the order in which atoms run, fastest first, and then the step's
    further k, which come first in the registers."""
    batch = "b" if "b" in sizes else ""
    held, run = (*depth.further, *repeats), (*repeats, *depth.further)

    def whole(dims: str, layout: LinearLayout, run: int = 0) -> LinearLayout:
        return _layout(batch + dims, sizes, layout, depth.atom, (*held, *steps), lanes, waves, run)

    d = whole("mn", atom.d_layout)
    a, b = (
        whole(dims, layout, int(element in _PAIRS))
        for dims, layout, element in (("mk", atom.a_layout, atom.a), ("kn", atom.b_layout, atom.b))
    )
    order = [run.index(bit) for bit in held]

    def first(repeat: int, dims: str, size: int) -> int:
        at = 0
        for (dim, _), i in zip(held, order, strict=True):
            if dim in dims:
                at += size * (repeat >> i & 1)
                size *= 2
        return at

    operands = (("bmk", atom.a_layout), ("bkn", atom.b_layout), ("bmn", atom.d_layout))
    columns = ([first(r, dims, layout.registers) for r in range(1 << len(run))] for dims, layout in operands)
    firsts = tuple(zip(*columns, strict=True))
    scales = None
    if atom.scales is not None:
        group = log2(atom.scales.group)
        along = [[first(r, dims, 1) for r in range(1 << len(run))] for dims in ("bmk", "bkn")]
        lie = whole("mk", atom.scales.a_layout, group), whole("nk", atom.scales.b_layout, group)
        scales = ScaleLayouts(*lie, tuple(zip(*along, strict=True)))
    return DotLayouts(types, atom, recipe, d, a, b, 1 << len(steps), firsts, scales)


def with_waves(
    atom: MatrixAtom, recipe: Recipe, sizes: dict[str, int], types: DotTypes, machine: LaneMachine, chain: AtomChain
) -> DotLayouts:
    """A matrix atom: waves over the batch, then in blocks over m and n; repeats along n run fastest, so that A is read once."""
    deal = _Deal(sizes)
    for dim, size in (("m", atom.m), ("n", atom.n)):
        deal.take(dim, log2(size))
    depth = _depth(deal, atom, machine, chain)
    total = log2(machine.waves // atom.waves)
    over_batch = deal.take("b", total) if "b" in sizes else []
    transposed = any(load.cell_bits == _BITS[atom.b] for load in machine.chip.transposed_loads)
    left = {dim: len(deal.left[dim]) for dim in "mn"}
    m, n = _grid(left, sizes, total - len(over_batch), chain is not AtomChain.NONE, transposed)
    repeats = [*deal.take("n", len(deal.left["n"]) - n), *deal.take("m", len(deal.left["m"]) - m)]
    waves: list[Bit | None] = [*deal.rest("m"), *deal.rest("n"), *over_batch]
    waves += [None] * (total - len(waves))
    repeats += deal.rest("b")
    return _finish(atom, recipe, sizes, types, depth, repeats, deal.rest("k"), (), waves)


def _depth(deal: _Deal, atom: MatrixAtom, machine: LaneMachine, chain: AtomChain) -> _Depth:
    """Which k a lane has in one step: so many in a row that it reads them at once, and more than an atom takes where they fit.

    A sum may take its products in any order that A and B share. So the k of further atoms stand between those of a lane's
    registers and those that other lanes have, but where A is the sums of another dot, which lie as they do.
    """
    if atom.scales is not None:
        return _scaled_depth(deal, atom, log2(atom.scales.group))
    if atom.asynchronous:
        return _Depth(tuple(deal.take("k", log2(atom.k))))
    own, chip = log2(atom.k), machine.chip
    held = len(atom.a_layout.register)
    rows = tuple(1 << i for i in range(held))
    together = atom.a_layout.register == rows and atom.b_layout.register == tuple(atom.n * bit for bit in rows)
    if chip.fragment_loads or not together:  # a fragment load reads whole atoms at once
        return _Depth(tuple(deal.take("k", own)))
    size = _BITS[atom.a] // 8
    further = min(log2(max(1, chip.shared_access_bytes // (size << held))), len(deal.left["k"]) - own)
    if chain is AtomChain.FOLLOWS:
        depth = deal.take("k", own)
        if chip.transposed_loads:
            depth = _as_sums_lie(depth, held, atom)
        return _Depth(tuple(depth), tuple(deal.take("k", further)))
    low, between = deal.take("k", held), deal.take("k", further)
    return _Depth((*low, *deal.take("k", own - held)), tuple(between))


def _scaled_depth(deal: _Deal, atom: MatrixAtom, group: int) -> _Depth:
    """Which k an atom with scales takes in one step: whole groups, each of neighbours.

    The groups of the next steps stand between an atom's own, so that a lane's scales for four steps are neighbours too: it reads
    them at once, into one register.
    """
    own = log2(atom.k)
    low = deal.take("k", group)
    further = min(log2(_SCALES_IN_REGISTER), len(deal.left["k"]) - (own - group))
    between = deal.take("k", further)
    taken = deal.take("k", own - group)
    deal.left["k"] = [*(bit for _, bit in between), *deal.left["k"]]
    return _Depth((*low, *taken))


def _as_sums_lie(depth: list[Bit], held: int, atom: MatrixAtom) -> list[Bit]:
    """The k of an atom whose A is the sums of another: its lanes have the k that lanes have of sums, where these are as many. Reads
    that transpose give B any k in a lane's registers at the same price."""
    columns = [log2(column) for _, column in map(atom.d_layout.coordinates, atom.d_layout.lane) if column]
    if len(columns) != len(depth) - held or max(columns, default=0) >= len(depth):
        return depth
    return [*(bit for i, bit in enumerate(depth) if i not in columns), *(depth[i] for i in columns)]


def idle(atom: MatrixAtom, sizes: dict[str, int], machine: LaneMachine, chain: AtomChain) -> int:
    """How many waves do the work of one, as there are too few atoms for all; in a chain, too few along m."""
    along = {"m": log2(sizes["m"] // atom.m), "n": 0 if chain is not AtomChain.NONE else log2(sizes["n"] // atom.n)}
    return 1 << max(0, log2(machine.waves // atom.waves) - log2(sizes.get("b", 1)) - sum(along.values()))


def _grid(left: dict[str, int], sizes: dict[str, int], waves: int, chained: bool, transposed: bool) -> tuple[int, int]:
    """How many wave bits go along m and along n: all to m when chained, else so that a wave reads least of A and B. Of equal ones
    more along m, but more along n where loads that transpose bring B, which are narrower than those of a row of A."""
    splits = [(m, n) for m in range(left["m"] + 1) for n in range(left["n"] + 1) if m + n <= waves]
    most = max(m + n for m, n in splits)

    def read(split: tuple[int, int]) -> int:
        return (sizes["m"] >> split[0]) + (sizes["n"] >> split[1])

    full = [split for split in splits if sum(split) == most]
    return max(full) if chained else min(full, key=lambda split: (read(split), -split[transposed]))


def with_lanes(atom: MatrixAtom, sizes: dict[str, int], types: DotTypes, machine: LaneMachine) -> DotLayouts:
    """The lane atom: a block of registers r x r in runs of 16 bytes, lanes between the runs, so that reads are wide and without
    bank conflicts; waves in blocks on top."""
    deal = _Deal(sizes)
    lanes, waves = log2(machine.lanes), log2(machine.waves)
    over_batch = deal.take("b", waves) if "b" in sizes else []
    waves -= len(over_batch)
    m_split, n_split = _lane_blocks(sizes, lanes, waves)
    (m_run, m_lanes, m_rest), (n_run, n_lanes, n_rest) = (
        [deal.take(dim, count) for count in (min(register, log2(LANE_DEPTH)), across, max(0, register - log2(LANE_DEPTH)))]
        for dim, (register, across, _) in (("m", m_split), ("n", n_split))
    )
    over_lanes: list[Bit | None] = [*n_lanes, *m_lanes]
    if "b" in sizes:
        over_lanes += deal.take("b", lanes - len(over_lanes))
    over_lanes += [None] * (lanes - len(over_lanes))
    over_waves: list[Bit | None] = [*deal.rest("m"), *deal.rest("n")]
    over_waves += [*[None] * (waves - len(over_waves)), *over_batch]
    depth = deal.take("k", log2(LANE_DEPTH))
    repeats = [*n_run, *n_rest, *depth, *m_run, *m_rest, *deal.rest("b")]
    return _finish(atom, Recipe(atom.a, atom.b), sizes, types, _Depth(()), repeats, deal.rest("k"), over_lanes, over_waves)


_Split = tuple[int, int, int]  # the bits of a dim that registers, lanes and waves have


def _lane_blocks(sizes: dict[str, int], lanes: int, waves: int) -> tuple[_Split, _Split]:
    """How m and n are split: most threads busy, then the fewest elements of A and B read by a lane, by a wave, by the waves."""

    def splits(bits: int) -> list[_Split]:
        return [(bits - l - w, l, w) for l in range(min(bits, lanes) + 1) for w in range(min(bits - l, waves) + 1)]

    def price(pair: tuple[_Split, _Split]) -> tuple[int, ...]:
        (mr, ml, mw), (nr, nl, nw) = pair
        idle_lanes, idle_waves = lanes - ml - nl, waves - mw - nw
        wave = (1 << mr + ml) + (1 << nr + nl)
        return idle_lanes + idle_waves, idle_lanes, (1 << mr) + (1 << nr), wave, (1 << mw) + (1 << nw), mr

    pairs = [
        (m, n) for m in splits(log2(sizes["m"])) for n in splits(log2(sizes["n"])) if m[1] + n[1] <= lanes and m[2] + n[2] <= waves
    ]
    return min(pairs, key=price)
