"""Micro steps: what one ALU does for each vector of a region, before it has a number and a time."""

from __future__ import annotations

from dataclasses import dataclass

from tilefw_spatial import isa
from tilefw_spatial.chain.node import Input, Literal


@dataclass(frozen=True, slots=True)
class MicroOperand:
    """What a micro step reads; |x| is taken first, then -x. The step's own element type says how the bits are read."""

    source: Source
    negate: bool = False
    absolute: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Micro:
    """One step, by identity. `op` is an op of the instruction table on elements of `dtype`; `reduced` runs once for each point of
    the domain without its innermost loop; `every` > 0 is a TRED's. `contractible`: of the user's own sums and products, which may
    become one step that rounds once."""

    op: str
    dtype: str
    operands: tuple[MicroOperand, ...]
    reduced: bool = False
    every: int = 0
    contractible: bool = False

    @property
    def result(self) -> str:
        """The element type of what it makes."""
        return isa.result_type(self.op, self.dtype)

    @property
    def makes_reduced(self) -> bool:
        """Whether its result has one vector for each point of the domain without its innermost loop."""
        return self.reduced or self.every > 0


Source = Micro | Input | Literal


@dataclass(frozen=True, slots=True)
class RegionResult:
    """A result of the region: all the caller's keys for it, what makes it, and the element type that it is stored as."""

    keys: tuple[object, ...]
    micro: Micro
    dtype: str


def producers(micro: Micro) -> list[Micro | Input]:
    """What a micro step reads that is no constant."""
    return [o.source for o in micro.operands if not isinstance(o.source, Literal)]


def is_reduced(source: Source) -> bool:
    """Whether a source is constant along the innermost loop; constants are along every loop."""
    return source.makes_reduced if isinstance(source, Micro) else isinstance(source, Literal) or source.reduced


def element_type(source: Source) -> str:
    """The element type as which a source was made."""
    return source.result if isinstance(source, Micro) else source.dtype
