"""In what the launches of ranks differ that wait for each other: kernels, grids, and scalars by the names of their parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilefw.api.device import Scalar
from tilefw.distributed.rank_launch import RankLaunch


def differences(launches: Sequence[RankLaunch], ranks: int) -> Iterator[str]:
    """One line for each thing in which the ranks' launches, the first with the first, are not alike. Nothing is said where ranks
    make several kernels at once on purpose, or where more than two have all different values, as those of their own numbers."""
    by_rank: dict[int, list[RankLaunch]] = {}
    for one in launches:
        by_rank.setdefault(one.rank, []).append(one)
    absent = [rank for rank in range(ranks) if rank not in by_rank]
    if absent:
        yield f"no launch was made on {_ranks(absent)}"
    counts = {rank: str(len(of_rank)) for rank, of_rank in by_rank.items()}
    if len(set(counts.values())) > 1:
        yield f"the ranks make unequally many launches: {_by_value(counts)}"
        return
    for together in zip(*by_rank.values(), strict=True):
        yield from _of_one_each(together)


def _of_one_each(launches: Sequence[RankLaunch]) -> Iterator[str]:
    """The launches are one of each rank."""
    kernels = {one.rank: one.made.name for one in launches}
    if len(set(kernels.values())) > 1:
        yield f"the ranks launch different kernels: {_by_value(kernels)}"
        return
    grids = {one.rank: str(one.made.grid) for one in launches}
    if len(set(grids.values())) > 1:
        yield f"the grids of {launches[0].made.name} differ: {_by_value(grids)}"
    scalars = [_scalars(one) for one in launches]
    for name in scalars[0]:
        values = {one.rank: mine.get(name, "") for one, mine in zip(launches, scalars, strict=True)}
        if 1 < len(set(values.values())) < max(3, len(launches)):
            yield f"`{name}` of {launches[0].made.name} differs: {_by_value(values)}"


def _scalars(one: RankLaunch) -> dict[str, str]:
    parameters = zip(one.made.entry.parameters, one.made.args, strict=True)
    return {parameter.name: str(value.value) for parameter, value in parameters if isinstance(value, Scalar)}


def _by_value(values: dict[int, str]) -> str:
    """Each value, and on which ranks it is."""
    of: dict[str, list[int]] = {}
    for rank, value in values.items():
        of.setdefault(value, []).append(rank)
    return ", ".join(f"{value} on {_ranks(ranks)}" for value, ranks in of.items())


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"
