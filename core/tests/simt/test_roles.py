"""A loop that its author wants divided, on a chip by description alone: what it hands over, who does what, and the check."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from made_up import FOURS, STORING
from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp, IfOp
from xdsl.ir import Operation

from tilefw.api.errors import InternalError
from tilefw.kernels.instance import instance
from tilefw.kernels.reference import Reference
from tilefw.kernels.spec import load
from tilefw.passes.manager import PassManager
from tilefw.passes.pipeline import default_passes
from tilefw.simt import lane
from tilefw.simt.description import ChipDescription, LaneMachine, lane_machine
from tilefw.simt.passes import lane_passes
from tilefw.simt.roles.check_roles import check_roles
from tilefw.simt.roles.divide import DivideRoles
from tilefw.testing.lane_interpreter import run
from tilefw.tile.dialect.base import string_attr
from tilefw.tile.nested_ops import nested_ops

PARAMETERS = {"m": 32, "n": 64, "k": 128, "block_m": 32, "block_n": 32, "block_k": 32}
COUNTING = replace(FOURS, barrier_bytes=8)
LANES = replace(COUNTING, atoms=(), shared_views=False)  # nothing but lanes that multiply


def _machine(chip: ChipDescription) -> LaneMachine:
    return LaneMachine(chip, 4, disjoint=True)


def _lowered(machine: LaneMachine, divided: bool) -> tuple[FuncOp, Any, Any]:
    """The matmul kernel whose loop is marked, lowered; the launch, and the kernel's instance."""
    spec = load("matmul")
    launch = spec.prepare(spec.resolve(PARAMETERS), np.random.default_rng(0))
    made = instance(spec, launch)
    module = made.source.build()
    for loop in nested_ops(module):
        if isinstance(loop, ForOp):
            loop.attributes["tile.warp_specialize"] = UnitAttr()
    passes = lane_passes(machine, 3, verify=divided)
    passes = passes if divided else tuple(each for each in passes if not isinstance(each, DivideRoles))
    PassManager([*default_passes(), *passes], machine.chip.name).run(module)
    (function,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    return function, launch, made


def _branch(function: FuncOp) -> IfOp:
    return next(op for op in nested_ops(function) if isinstance(op, IfOp) and lane.ROLES in op.attributes)


def test_what_an_iteration_hands_over_is_what_it_reads():
    machine = _machine(LANES)
    function, launch, made = _lowered(machine, divided=False)
    assert any(isinstance(op, lane.HandOverOp) for op in nested_ops(function))
    reference = Reference(made.source.build(), launch.grid, made.passed, fusion=False, budget=10**9)
    arguments = [getattr(launch.arguments[name], "array", value) for name, value in made.passed.items()]
    run(function, arguments, launch.grid, machine)
    assert all(reference.compare(name).ok for name in launch.outputs)


@pytest.mark.parametrize("chip", [COUNTING, LANES], ids=["unit", "lanes"])
def test_the_producer_copies_and_the_consumers_do_the_rest(chip: ChipDescription):
    function, *_ = _lowered(_machine(chip), divided=True)
    branch = _branch(function)
    roles = [{type(op) for op in region.walk()} for region in branch.regions]
    assert lane.CopyAsyncOp in roles[0] and lane.CopyAsyncOp not in roles[1]
    assert lane.StoreOp in roles[1] and not {lane.StoreOp, lane.AsyncAtomOp, lane.LoadOp, lane.BarrierOp} & roles[0]
    assert function.attributes["lane.waves"].value.data == 8  # type: ignore[attr-defined]
    loops = [op for op in branch.regions[0].walk() if isinstance(op, ForOp)]
    assert not any("f32" in str(value.type) for loop in loops for value in loop.iter_args)  # no sums


@pytest.mark.parametrize(
    ("role", "removed"),
    [(0, lane.WaitPhaseOp), (0, lane.ArriveOp), (1, lane.WaitPhaseOp), (1, lane.ArriveOp), (1, lane.AtomWaitOp)],
    ids=["wait for empty", "arrival behind copies", "wait for full", "arrival for empty", "wait for products"],
)
def test_the_check_misses_whatever_is_missing(role: int, removed: type[Operation]):
    function, *_ = _lowered(_machine(COUNTING), divided=True)
    check_roles(function)
    site = next(op for op in _branch(function).regions[role].walk() if isinstance(op, removed))
    site.detach()
    site.erase()
    with pytest.raises(InternalError):
        check_roles(function)


@pytest.mark.parametrize(("chip", "by_waves"), [(COUNTING, True), (LANES, False)], ids=["products", "lanes"])
def test_one_lane_of_a_wave_frees_what_its_products_alone_have_read(chip: ChipDescription, by_waves: bool):
    function, *_ = _lowered(_machine(chip), divided=True)
    (arrival,) = (op for op in _branch(function).regions[1].walk() if isinstance(op, lane.ArriveOp))
    (count,) = (op.count for op in nested_ops(function) if isinstance(op, lane.BeginBarriersOp) and op.buffer == arrival.buffer)
    assert (arrival.part("when") is not None) == by_waves and count == (4 if by_waves else 4 * chip.lanes)
    if by_waves:  # all lanes arrive
        arrival.properties["parts"] = string_attr("address")
        arrival.operands = arrival.operands[:1]
        with pytest.raises(InternalError):
            check_roles(function)


def test_a_copy_of_the_consumers_and_a_store_of_the_producer_are_found():
    stores = (lane.FragmentStoreOp, lane.BulkStoreOp, lane.BulkStoreWaitOp)
    cases = ((COUNTING, 0, lane.CopyAsyncOp), (COUNTING, 1, lane.StoreOp), *((STORING, 1, kind) for kind in stores))
    for chip, role, kind in cases:
        function, *_ = _lowered(_machine(chip), divided=True)
        branch = _branch(function)
        site = next(op for op in branch.regions[role].walk() if isinstance(op, kind))
        site.detach()
        target = branch.regions[1 - role].block.first_op
        assert target is not None and target.parent is not None
        target.parent.insert_op_before(site, target)
        with pytest.raises(InternalError):
            check_roles(function)


def test_a_chip_without_barriers_that_count_is_not_asked_for_roles():
    function, *_ = _lowered(_machine(FOURS), divided=True)
    assert not any(isinstance(op, IfOp) and lane.ROLES in op.attributes for op in nested_ops(function))
    assert "TFW0627" in str(function.attributes["lane.remarks"])


def test_in_a_cluster_every_workgroup_has_a_producer_and_who_multiplies_meets_nobody_in_the_loop():
    assert STORING.copy_engine is not None
    chip = replace(STORING, copy_engine=replace(STORING.copy_engine, clusters=True), clusters=2)
    function, *_ = _lowered(lane_machine(chip, 4, 2, disjoint=True), divided=True)
    assert any(isinstance(op, lane.BulkCopyOp) for op in nested_ops(function))
    assert not any(isinstance(op, lane.CopyAsyncOp | lane.BulkStoreOp) for op in nested_ops(function))
    waves = function.attributes["lane.waves"].value.data  # type: ignore[attr-defined]
    assert waves == 2 * (4 + chip.role_waves) and _branch(function).attributes[lane.ROLES].value.data == 2 * 4 * chip.lanes  # type: ignore[attr-defined]
    (loop,) = (op for op in _branch(function).regions[1].walk() if isinstance(op, ForOp))
    assert not any(isinstance(op, lane.BarrierOp) for op in loop.walk())


def test_an_engine_that_reaches_one_workgroup_alone_copies_nothing_in_a_cluster():
    function, *_ = _lowered(lane_machine(replace(STORING, clusters=2), 4, 2, disjoint=True), divided=True)
    assert not any(isinstance(op, lane.BulkCopyOp | lane.CopyAsyncOp) for op in nested_ops(function))
