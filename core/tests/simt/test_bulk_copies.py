"""A chip with a copy engine, by description alone: blocks of arrays come by it, and their barriers' phases are right."""

from __future__ import annotations

import pytest
from library_on_chips import SMALL, check, lowered
from made_up import ENGINE

from tilefw.api.errors import InternalError
from tilefw.copy_descriptors import CopyDescriptor
from tilefw.simt import lane
from tilefw.simt.asynchronous.check_phases import check_phases
from tilefw.testing.lane_interpreter import LaneFault, run
from tilefw.tile.dialect.kernel_info import argument_attributes, hidden_of
from tilefw.tile.nested_ops import nested_ops

MATMUL = ("descriptor_matmul", {"m": 64, "n": 64, "k": 160, **SMALL})


@pytest.mark.parametrize(
    "more", [{}, {"m": 40, "n": 56, "k": 72}, {"k": 32}, {"block_n": 64}, {"dtype": "bf16"}, {"num_stages": 4}], ids=str
)
def test_a_product_of_described_arrays_is_right(more: dict[str, object]) -> None:
    """Also where blocks reach beyond the arrays, and where there are fewer iterations than stages."""
    check(MATMUL[0], {**MATMUL[1], **more}, ENGINE)


def test_blocks_that_dots_read_come_by_the_engine_alone() -> None:
    function, *_ = lowered(*MATMUL, ENGINE)
    ops = nested_ops(function)
    assert not [op for op in ops if isinstance(op, lane.CopyAsyncOp | lane.CommitOp | lane.WaitOp)]
    loop = next(op.parent for op in ops if isinstance(op, lane.AsyncAtomOp))
    assert loop is not None
    order = [type(op) for op in loop.ops if isinstance(op, lane.WaitPhaseOp | lane.BarrierOp | lane.ArriveOp | lane.BulkCopyOp)]
    assert order == [lane.WaitPhaseOp, lane.BarrierOp, lane.ArriveOp, lane.BulkCopyOp, lane.BulkCopyOp]


def test_the_launch_is_told_of_arrays_by_their_arguments() -> None:
    function, *_ = lowered(*MATMUL, ENGINE)
    names = [str(argument_attributes(function, i)["tile.name"].data) for i in range(len(function.body.block.args))]
    recipes = [CopyDescriptor.of(hidden_of(argument_attributes(function, i))) for i in range(len(names))]
    a, b = (recipe for recipe in recipes if recipe is not None)
    assert (names[a.base], [names[int(size)] for size in a.sizes]) == ("a_ptr", ["K", "M"])
    assert (names[b.base], [names[int(size)] for size in b.sizes]) == ("b_ptr", ["N", "K"])
    assert (a.extents, a.row_bytes) == ((32, 32), 64)


def test_a_wait_for_another_parity_or_barrier_is_found() -> None:
    function, *_ = lowered(*MATMUL, ENGINE)
    waits = [op for op in nested_ops(function) if isinstance(op, lane.WaitPhaseOp)]
    for wait in waits:
        kept = list(wait.operands)
        for changed in ([kept[0], waits[0].address], [other := next(w.address for w in waits if w is not wait), kept[1]]):
            wait.operands = changed
            with pytest.raises(InternalError):
                check_phases(function)
        wait.operands = kept
        assert other is not kept[0]
    check_phases(function)


def test_a_copy_that_is_made_where_its_bytes_are_not_announced_is_found() -> None:
    """And the other way round: copies of the last iterations, which are there only for some depths."""
    function, *_ = lowered(*MATMUL, ENGINE)
    copies = [op for op in nested_ops(function) if isinstance(op, lane.BulkCopyOp)]
    conditions = {copy.needed("when") for copy in copies}
    assert len(conditions) > 1
    for copy in copies:
        kept = list(copy.operands)
        for other in conditions - {copy.needed("when")}:
            copy.operands = [other if operand is copy.needed("when") else operand for operand in kept]
            with pytest.raises(InternalError, match="another condition"):
                check_phases(function)
            copy.operands = kept
    check_phases(function)


@pytest.mark.parametrize("removed", [lane.WaitPhaseOp, lane.ArriveOp, lane.BulkCopyOp, lane.BarrierOp, lane.AtomWaitOp])
def test_every_part_of_the_handing_over_is_needed(removed: type) -> None:
    function, launch, passed, (_, machine) = lowered(*MATMUL, ENGINE)
    sites = [op for op in nested_ops(function) if isinstance(op, removed) and op.parent is not function.body.block]
    assert sites
    for site in sites:
        block, following = site.parent, site.next_op
        assert block is not None
        assert following is not None
        site.detach()
        if removed not in (lane.BarrierOp, lane.AtomWaitOp):
            with pytest.raises(InternalError):
                check_phases(function)
        with pytest.raises(LaneFault):
            run(function, [getattr(value, "array", value) for value in passed.values()], launch.grid, machine)
        block.insert_op_before(site, following)
