"""Nested loops of a stream operation as fewer, longer ones, wherever all access patterns continue from the one into the next."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tilefw_spatial.stream_program import AccessPattern, VectorStreamOp


def collapsed(stream_op: VectorStreamOp) -> VectorStreamOp:
    """The same stream operation over as few loops as its access patterns allow. The innermost loop stays by itself where a step
    reduces it."""
    reduces = any(stream_op.steps[write.step].every > 1 for write in stream_op.writes)
    outer = len(stream_op.domain) - 1 if reduces else len(stream_op.domain)
    patterns = [read.pattern for read in stream_op.reads] + [write.pattern for write in stream_op.writes]
    groups = _groups(stream_op.domain[:outer], [pattern for pattern in patterns if pattern.table is None])
    stream_op.domain = tuple(prod(stream_op.domain[n] for n in group) for group in groups) + stream_op.domain[outer:]
    stream_op.reads = [replace(read, pattern=_pattern(read.pattern, groups, outer)) for read in stream_op.reads]
    stream_op.writes = [replace(write, pattern=_pattern(write.pattern, groups, outer)) for write in stream_op.writes]
    return stream_op


def _groups(extents: tuple[int, ...], patterns: list[AccessPattern]) -> list[list[int]]:
    """Numbers of loops that can be one, outermost first; loops of one point vanish, but for one where there is no other."""
    groups: list[list[int]] = []
    for number, extent in enumerate(extents):
        if extent == 1:
            continue
        if groups and all(pattern.strides[groups[-1][-1]] == pattern.strides[number] * extent for pattern in patterns):
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups or [[0]] if extents else []


def _pattern(pattern: AccessPattern, groups: list[list[int]], outer: int) -> AccessPattern:
    if pattern.table is not None:
        return pattern
    return replace(pattern, strides=tuple(pattern.strides[group[-1]] for group in groups) + pattern.strides[outer:])
