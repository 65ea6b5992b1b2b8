"""Special registers (PTX ISA, "Special Registers"): width and meaning of each on one chip."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilefw.api.sim import Special
from tilefw_nvidia.chips import Chip


def _constant(value: int, bits: int = 32) -> Callable[[Any], Any]:
    return lambda lanes: lanes.const(value, bits)


def _shifted(value: int) -> Callable[[Any], Any]:
    """`value` shifted left by the lane's number: the lane masks are made of it."""
    return lambda lanes: lanes.shl(lanes.const(value, 32), lanes.lane_id())


def _low(lanes: Any) -> Any:
    return lanes.split(lanes.clock(), 32)[0]


def _high(lanes: Any) -> Any:
    return lanes.split(lanes.clock(), 32)[1]


def _warps(lanes: Any) -> Any:
    """Warps of the workgroup: its threads, rounded up."""
    threads = lanes.mul(lanes.mul(lanes.workgroup_size(0), lanes.workgroup_size(1)), lanes.workgroup_size(2))
    return lanes.shr(lanes.add(threads, lanes.const(31, 32)), lanes.const(5, 32), False)


def _axes(name: str, primitive: str) -> dict[str, tuple[int, Callable[[Any], Any]]]:
    def at(axis: int) -> Callable[[Any], Any]:
        return lambda lanes: getattr(lanes, primitive)(axis)

    return {f"{name}.{letter}": (32, at(axis)) for axis, letter in enumerate("xyz")}


def _clusters(axis: int) -> Callable[[Any], Any]:
    return lambda lanes: lanes.div(lanes.grid_size(axis), lanes.cluster_size(axis), False)


def _cluster_workgroups(lanes: Any) -> Any:
    return lanes.mul(lanes.mul(lanes.cluster_size(0), lanes.cluster_size(1)), lanes.cluster_size(2))


def _in_cluster(lanes: Any) -> Any:
    return lanes.compare(_cluster_workgroups(lanes), lanes.const(1, 32), "ne", False)


_MEANINGS: dict[str, tuple[int, Callable[[Any], Any]]] = {
    **_axes("%tid", "thread_id"),
    **_axes("%ntid", "workgroup_size"),
    **_axes("%ctaid", "workgroup_id"),
    **_axes("%nctaid", "grid_size"),
    **_axes("%clusterid", "cluster_id"),
    **_axes("%cluster_nctaid", "cluster_size"),
    **_axes("%cluster_ctaid", "cluster_place"),
    "%laneid": (32, lambda lanes: lanes.lane_id()),
    "%warpid": (32, lambda lanes: lanes.wave_id()),
    "%nwarpid": (32, _warps),
    **{f"%nclusterid.{letter}": (32, _clusters(axis)) for axis, letter in enumerate("xyz")},
    "%cluster_ctarank": (32, lambda lanes: lanes.cluster_rank_of(lanes.const(0, 32))),
    "%cluster_nctarank": (32, _cluster_workgroups),
    "%is_explicit_cluster": (1, _in_cluster),
    "%smid": (32, _constant(0)),
    "%gridid": (64, _constant(0, 64)),
    "%lanemask_eq": (32, _shifted(1)),
    "%lanemask_lt": (32, lambda lanes: lanes.not_(_shifted(-1)(lanes))),
    "%lanemask_le": (32, lambda lanes: lanes.not_(_shifted(-2)(lanes))),
    "%lanemask_ge": (32, _shifted(-1)),
    "%lanemask_gt": (32, _shifted(-2)),
    "%clock": (32, _low),
    "%clock_hi": (32, _high),
    "%clock64": (64, lambda lanes: lanes.clock()),
    "%globaltimer": (64, lambda lanes: lanes.clock()),
    "%globaltimer_lo": (32, _low),
    "%globaltimer_hi": (32, _high),
    "%dynamic_smem_size": (32, lambda lanes: lanes.shared_size(True)),
    "%total_smem_size": (32, lambda lanes: lanes.shared_size(False)),
}


def specials(chip: Chip) -> Mapping[str, Special]:
    """The special registers of a chip by name."""
    of_chip = {"%nsmid": (32, _constant(chip.processors))}
    return {name: Special(name, bits, meaning) for name, (bits, meaning) in (_MEANINGS | of_chip).items()}
