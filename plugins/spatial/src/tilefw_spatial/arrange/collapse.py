"""Nested loops of a sweep as fewer, longer ones, wherever all walks go on from the one into the next."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tilefw_spatial.sweep import VectorSweep, Walk


def collapsed(sweep: VectorSweep) -> VectorSweep:
    """The same sweep over as few loops as its walks allow. The innermost loop stays by itself where a step reduces it."""
    reduces = any(sweep.steps[write.step].every > 1 for write in sweep.writes)
    outer = len(sweep.domain) - 1 if reduces else len(sweep.domain)
    walks = [read.walk for read in sweep.reads] + [write.walk for write in sweep.writes]
    groups = _groups(sweep.domain[:outer], [walk for walk in walks if walk.table is None])
    sweep.domain = tuple(prod(sweep.domain[n] for n in group) for group in groups) + sweep.domain[outer:]
    sweep.reads = [replace(read, walk=_walk(read.walk, groups, outer)) for read in sweep.reads]
    sweep.writes = [replace(write, walk=_walk(write.walk, groups, outer)) for write in sweep.writes]
    return sweep


def _groups(extents: tuple[int, ...], walks: list[Walk]) -> list[list[int]]:
    """Numbers of loops that can be one, outermost first; loops of one point vanish, but for one where there is no other."""
    groups: list[list[int]] = []
    for number, extent in enumerate(extents):
        if extent == 1:
            continue
        if groups and all(walk.strides[groups[-1][-1]] == walk.strides[number] * extent for walk in walks):
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups or [[0]] if extents else []


def _walk(walk: Walk, groups: list[list[int]], outer: int) -> Walk:
    if walk.table is not None:
        return walk
    return replace(walk, strides=tuple(walk.strides[group[-1]] for group in groups) + walk.strides[outer:])
