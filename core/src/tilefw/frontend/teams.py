"""Teams: some ranks of a node, by a first one, a stride and a size, or listed; members have numbers from 0 in that order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend.arithmetic import BINARY, add, compare, stretched, subtract
from tilefw.frontend.builder import Builder
from tilefw.frontend.casts import cast, to_value
from tilefw.frontend.values import CompositeValue, RuntimeValue, describe, named
from tilefw.tile.dialect.constant_op import ConstantOp

CODE = "TFW0878"
NOBODY = -1  # what is no member's number, or no rank


@dataclass(frozen=True, slots=True, eq=False)
class TeamValue(CompositeValue):
    """Values are int32. Of a team that is `listed`, `ranks` are all its members', else the first one and the stride between two."""

    ranks: tuple[RuntimeValue, ...]
    size: RuntimeValue
    listed: bool

    @property
    def parts(self) -> tuple[Any, ...]:
        return self.ranks, self.size

    @property
    def kind(self) -> object:
        return self.listed, len(self.ranks)

    def with_parts(self, parts: tuple[Any, ...]) -> TeamValue:
        ranks, size = parts
        return TeamValue(ranks, size, self.listed)

    def attributes(self) -> Mapping[str, Any]:
        return {"size": self.size}

    def __str__(self) -> str:
        return f"team of {len(self.ranks)} listed ranks" if self.listed else "team of strided ranks"

    def member(self, b: Builder, number: RuntimeValue) -> RuntimeValue:
        """The rank of a member, whose number is known to be one, or of each of a tile of them."""
        if not self.listed:
            first, stride = self.ranks
            return add(b, first, BINARY["*"](b, number, stride))
        first, *others = (stretched(b, rank, number.shape) for rank in self.ranks)
        for index, rank in enumerate(others, 1):
            first = b.row("select", compare(b, "==", number, index), rank, first)
        return first

    def world_rank(self, b: Builder, number: RuntimeValue) -> RuntimeValue:
        """The rank of a member, NOBODY for a number that no member has."""
        inside = BINARY["&"](b, compare(b, ">=", number, 0), compare(b, "<", number, self.size))
        return b.row("select", inside, self.member(b, number), b.constant(NOBODY, tl.int32))

    def number(self, b: Builder, rank: RuntimeValue) -> RuntimeValue:
        """The number of the member that a rank is, NOBODY where it is none."""
        nobody = b.constant(NOBODY, tl.int32)
        if self.listed:
            found = nobody
            for index, member in enumerate(self.ranks):
                found = b.row("select", compare(b, "==", rank, member), b.constant(index, tl.int32), found)
            return found
        # The quotient is rounded somehow where the rank is none: then the member of that number is another rank.
        first, stride = self.ranks
        quotient = BINARY["//"](b, subtract(b, rank, first), stride)
        same = compare(b, "==", self.member(b, quotient), rank)
        inside = BINARY["&"](b, compare(b, ">=", quotient, 0), compare(b, "<", quotient, self.size))
        return b.row("select", BINARY["&"](b, same, inside), quotient, nobody)


def strided(b: Builder, first: Any, stride: Any, size: Any) -> TeamValue:
    """Raises CompileError (TFW0878) for constants that make no team."""
    if isinstance(size, int) and size < 1:
        raise CompileError(f"a team has one rank or more, not {size}", CODE)
    if isinstance(stride, int) and stride == 0:
        raise CompileError("a team's ranks differ: its stride is not 0", CODE)
    if isinstance(first, int) and first < 0:
        raise CompileError(f"a team's first rank is {first}, and ranks count from 0", CODE)
    if isinstance(first, int) and isinstance(stride, int) and isinstance(size, int) and first + (size - 1) * stride < 0:
        raise CompileError(f"a team's last rank is {first + (size - 1) * stride}, and ranks count from 0", CODE)
    return TeamValue((_integer(b, first), _integer(b, stride)), _integer(b, size), listed=False)


def listed(b: Builder, ranks: Any) -> TeamValue:
    """Raises CompileError (TFW0878) for what is no tuple of different ranks."""
    if not isinstance(ranks, tuple) or not ranks:
        raise CompileError(f"a team is of a tuple of ranks, not of {describe(ranks)}", CODE, help="write tld.team_of((0, 2, 3))")
    known = [rank for rank in ranks if isinstance(rank, int)]
    twice = [rank for rank in known if known.count(rank) > 1]
    if twice:
        raise CompileError(f"rank {twice[0]} is in the team twice", CODE)
    if any(rank < 0 for rank in known):
        raise CompileError(f"rank {min(known)} is none: they count from 0", CODE)
    return TeamValue(tuple(_integer(b, rank) for rank in ranks), b.constant(len(ranks), tl.int32), listed=True)


def within(b: Builder, parent: TeamValue, part: TeamValue) -> TeamValue:
    """The team whose members' numbers in `parent` are the ranks of `part`, which is strided."""
    first, stride = part.ranks
    if parent.listed:
        raise CompileError(
            "a part of a team of listed ranks is listed too", CODE, help="write tld.team_of with the ranks of the part",
        )
    _check_within(b, parent, part)
    return TeamValue((parent.member(b, first), BINARY["*"](b, stride, parent.ranks[1])), part.size, listed=False)


def _check_within(b: Builder, parent: TeamValue, part: TeamValue) -> None:
    """Raises CompileError (TFW0878) where a part has a member that its team is known not to have; a debug build finds others."""
    size, (first, stride, count) = _known(parent.size), map(_known, (*part.ranks, part.size))
    if size is not None and first is not None:
        ends = [first] if stride is None or count is None else [first, first + (count - 1) * stride]
        if outside := [number for number in ends if not 0 <= number < size]:
            raise CompileError(f"a part of a team has member {outside[0]} of it, and the team has {size}, from 0", CODE)
    if b.debug:
        last = part.member(b, subtract(b, part.size, 1))
        wrong = [compare(b, ">=", cast(b, end, tl.uint32), cast(b, parent.size, tl.uint32)) for end in (part.ranks[0], last)]
        b.trap_where(BINARY["|"](b, *wrong), "a part of a team has members that the team has not")


def _known(value: RuntimeValue) -> int | None:
    """The number that a value is where the kernel's text says it."""
    owner = value.ssa.owner
    return int(owner.value) if isinstance(owner, ConstantOp) else None


def checked_team(value: Any) -> TeamValue:
    """A team. Raises CompileError (TFW0878) for anything else."""
    if not isinstance(value, TeamValue):
        raise CompileError(f"a team is what tld.team or tld.team_of makes, not {describe(value)}", CODE)
    return value


def _integer(b: Builder, given: Any) -> RuntimeValue:
    value = to_value(b, given)
    if value.shape or not value.dtype.is_int():
        raise CompileError(f"a team is made of integers, not of {named(given)}", CODE)
    return cast(b, value, tl.int32)
