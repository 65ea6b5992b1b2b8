"""The work of one program as parts: one op's work, loops of parts, and a whole program's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from xdsl.ir import Operation

# Machine instructions of a group of the table's rows, as it is usually expanded: special functions, and arithmetic of floats.
_FUNCTIONS: Mapping[str, tuple[int, int]] = {
    "float.div": (1, 6), "float.div_rn": (1, 8), "float.rem": (2, 10), "math.sqrt": (1, 1), "math.sqrt_rn": (1, 6),
    "math.rsqrt": (1, 0), "math.exp": (1, 2), "math.exp2": (1, 1), "math.log": (1, 2), "math.log2": (1, 1), "math.sin": (0, 25),
    "math.cos": (0, 25), "math.tanh": (2, 8), "math.erf": (1, 20), "math.pow": (2, 40), "math.log1p": (1, 15),
    "math.expm1": (1, 15),
}
ROW_WORK: Mapping[str, Mapping[str, float]] = {
    **{group: {"special": special, "float": float_} for group, (special, float_) in _FUNCTIONS.items()},
    **{f"cast.{kind}": {"conversion": 1} for kind in ("float", "s2f", "u2f", "f2s", "f2u")},
    "int.div": {"division": 1}, "int.rem": {"division": 1}, "int.mulhi": {"integer": 2}, "cast.bitcast": {},
}
"""By kind of instruction; a row of another group is one of the kind of its type."""


@dataclass(frozen=True, slots=True)
class ProgramPart:
    """One op's work. `elements` of its tile; `kinds`: instructions an element; `after`: the parts whose results it reads, by place
    in the region.

    An access moves `nbytes` in `chunks`, of which an earlier one of the region has brought those that are `met`, `run` neighbouring
    elements of `bits` each along dim `along` of `shape`, of argument `argument`; `start`: the byte where it begins, `advance`: from
    there to where it begins in the loop's next turn. What a store stores may have been loaded along another dim, `turned_from`. An
    atomic access has `alike` elements at an address, or addresses that nobody knows among `among`; `contended`: the part of the
    programs that want the same memory.

    `op`: a product, or that which a store's value comes from; `operands` of a product were loaded along a dim in runs of so many
    elements, or not at all. `axis` of what is combined, `values` tiles at once by a function of `steps` ops one after the other.
    `address`: it makes addresses or masks, for accesses of `run` neighbours."""

    what: str
    elements: int
    kinds: Mapping[str, float] = field(default_factory=dict)
    after: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    bits: int = 32
    run: int = 1
    along: int = 0
    nbytes: float = 0.0
    chunks: float = 0.0
    met: float = 0.0
    argument: int = -1
    axis: int = 0
    op: Operation | None = None
    address: bool = False
    start: int | None = None
    advance: int | None = None
    turned_from: int | None = None
    operands: tuple[tuple[int, int] | None, ...] = ()
    values: int = 1
    steps: int = 1
    alike: float = 1.0
    among: float = 0.0
    contended: float = 0.0

    @property
    def first_chunks(self) -> float:
        """Those that no earlier access of the region has brought."""
        return self.chunks - self.met


@dataclass(slots=True)
class WorkRegion:
    """Parts and loops in order, done `times`."""

    times: float
    items: list[ProgramPart | WorkRegion] = field(default_factory=list)

    @property
    def innermost(self) -> bool:
        return not any(isinstance(item, WorkRegion) for item in self.items)

    def parts(self) -> Iterable[ProgramPart]:
        return (item for item in self.items if isinstance(item, ProgramPart))


@dataclass(frozen=True, slots=True)
class ProgramWork:
    """The work of a program in the middle of the grid, `whole`; where programs differ by where they are, `others` from all over the
    grid besides. `programs` of the launch, `extents`: bytes of arrays by argument. `live`: bytes of tiles that live at once at
    most."""

    whole: WorkRegion
    programs: int
    extents: Mapping[int, int]
    live: int
    others: tuple[WorkRegion, ...] = ()
