"""Facts about the arrays of a launch that a target may want to know beyond their types: whether they overlap, and their size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import sub
from typing import Any

from tilefw.api.target import UNDER_2_GIB, TargetInfo
from tilefw.runtime.arguments.arrays import HostArray, array_argument, disjoint, is_array
from tilefw.runtime.arguments.device_arrays import DeviceArray
from tilefw.runtime.arguments.rank_context import on_a_node

_DISJOINT, _SMALL = frozenset({"disjoint"}), frozenset({"under_2_gib"})
_CHECKS = frozenset({"checks"})
_FACTS = _DISJOINT | _SMALL
_NONE = frozenset[str]()


def facts_of(info: TargetInfo, values: Mapping[str, Any]) -> frozenset[str]:
    """The facts about arguments that the target wants and that hold here, beyond those in the signature."""
    if not info.wants & _FACTS:
        return _NONE
    return facts_that_hold(info, [array_argument(value) for value in values.values() if is_array(value)])


def facts_of_checks(info: TargetInfo, checks: frozenset[str]) -> frozenset[str]:
    """What the target wants to know of the checks that its device makes in a launch: whether there are any."""
    return info.wants & _CHECKS if checks else frozenset()


def facts_that_hold(info: TargetInfo, arrays: Sequence[HostArray | DeviceArray]) -> frozenset[str]:
    """`facts_of` for arrays that are ready."""
    if not info.wants & _FACTS:
        return _NONE
    return facts_of_storages(info, [array.start for array in arrays], [array.start + array.nbytes for array in arrays])


def facts_of_storages(info: TargetInfo, starts: Sequence[int], ends: Sequence[int]) -> frozenset[str]:
    """`facts_of` for arrays with storages that begin and end there. On a node a pointer to an array may be moved to that of a peer,
    which is as far away as the heaps are: what small buffers say of distances does not hold."""
    wanted = info.wants & _FACTS
    if wanted >= _SMALL and on_a_node():
        wanted -= _SMALL
    if wanted >= _DISJOINT and not disjoint(starts, ends):
        wanted -= _DISJOINT
    if wanted >= _SMALL and max(map(sub, ends, starts), default=0) > UNDER_2_GIB:
        wanted -= _SMALL
    return wanted
