"""A chip with a matrix unit that runs by itself, by description alone: dots go to it, waits and fences stand where they have to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from library_on_chips import CASES, SMALL, check, lowered
from made_up import FOURS

from tilefw.api.errors import InternalError
from tilefw.simt import lane
from tilefw.simt.asynchronous.check_products import check_products
from tilefw.simt.description import LaneMachine, SharedForm
from tilefw.simt.layout.asynchronous import FactorSource, asynchronous_layouts
from tilefw.simt.layout.atom_layouts import AtomChain
from tilefw.simt.layout.atom_recipes import DotTypes
from tilefw.simt.layout.shared_operand import SharedOperand
from tilefw.testing.lane_interpreter import LaneFault, run
from tilefw.tile.nested_ops import nested_ops

MATMUL = ("matmul", {"m": 32, "n": 64, "k": 128, **SMALL})
SERVED = [
    MATMUL,
    ("matmul", {"m": 64, "n": 64, "k": 64, **SMALL, "block_n": 64}),
    ("attention", {"queries": 40, "keys": 70, "head_size": 32, "block_m": 32, "block_n": 32, "heads": 1}),
]


@pytest.mark.parametrize(("name", "parameters"), [case for case in CASES if case[0] == "attention" or "m" in case[1]], ids=str)
def test_a_library_kernel_is_right(name, parameters):
    check(name, parameters, FOURS)


@pytest.mark.parametrize(("name", "parameters"), SERVED, ids=["narrow", "wide", "chain"])
def test_dots_go_to_the_unit_that_runs_by_itself(name, parameters):
    function, *_ = lowered(name, parameters, FOURS)
    found = [op for op in nested_ops(function) if isinstance(op, lane.AtomOp | lane.AsyncAtomOp)]
    assert found
    assert all(isinstance(op, lane.AsyncAtomOp) for op in found)


def test_the_second_dot_of_a_chain_takes_its_factor_from_registers():
    name, parameters = SERVED[2]
    function, *_ = lowered(name, parameters, FOURS)
    atoms = [op for op in nested_ops(function) if isinstance(op, lane.AsyncAtomOp)]
    assert {op.part("a") is not None for op in atoms} == {False, True}
    assert all(op.part("b_address") is not None for op in atoms)


@pytest.mark.parametrize("removed", [lane.AtomWaitOp, lane.FenceViewOp, lane.BarrierOp], ids=["wait", "fence", "barrier"])
@pytest.mark.parametrize(("name", "parameters"), [MATMUL, SERVED[2]], ids=["matmul", "attention"])
def test_every_wait_fence_and_barrier_of_a_loop_is_needed(name, parameters, removed):
    function, launch, passed, (_, machine) = lowered(name, parameters, FOURS)
    sites = [op for op in nested_ops(function) if isinstance(op, removed) and op.parent is not function.body.block]
    assert sites
    for site in sites:
        block, following = site.parent, site.next_op
        assert block is not None
        assert following is not None
        site.detach()
        if removed is not lane.BarrierOp:
            with pytest.raises(InternalError):
                check_products(function, True)
        with pytest.raises(LaneFault):
            run(function, [getattr(value, "array", value) for value in passed.values()], launch.grid, machine)
        block.insert_op_before(site, following)


def test_a_loop_has_one_product_under_way_while_it_copies_and_its_sums_stay_where_they_are():
    name, parameters = MATMUL
    function, *_ = lowered(name, parameters, FOURS)
    atom = next(op for op in nested_ops(function) if isinstance(op, lane.AsyncAtomOp))
    assert atom.parent is not None
    kinds = (lane.AsyncAtomOp, lane.WaitOp, lane.AtomWaitOp, lane.BarrierOp, lane.CopyAsyncOp)
    order = [type(op) for op in atom.parent.ops if isinstance(op, kinds)]
    assert order == [lane.AsyncAtomOp, lane.WaitOp, lane.AtomWaitOp, lane.BarrierOp, lane.CopyAsyncOp, lane.CopyAsyncOp]
    assert [op.pending for op in atom.parent.ops if isinstance(op, lane.AtomWaitOp)] == [1]
    assert not atom.acc.has_more_than_one_use()
    assert not atom.result.has_more_than_one_use()


@pytest.mark.parametrize("row_bytes", [128, 64, 32, 16])
@pytest.mark.parametrize("fast", [0, 1])
def test_a_form_places_elements_as_its_description_says(row_bytes, fast):
    operand = SharedOperand(SharedForm(row_bytes, along_k=True), (64, 64), 16, fast)
    for along in range(64):
        for across in range(64):
            row, column = divmod(along * 2, row_bytes)
            place = row * operand.row_stride + across * row_bytes + column
            place ^= (place >> 3) & (row_bytes - 16)
            element = across * 64 + along if fast == 1 else along * 64 + across
            assert operand.offset(element) == place


@pytest.mark.parametrize("allowed", [False, True])
def test_sums_that_a_unit_keeps_short_are_for_dots_that_allow_them(allowed: bool) -> None:
    chip = replace(FOURS, atoms=tuple(replace(atom, imprecise=atom.asynchronous) for atom in FOURS.atoms))
    source = FactorSource(True, (1, 0))
    types = DotTypes("f16", "f16", "f32", imprecise=allowed)
    found = asynchronous_layouts((32, 32, 32), types, LaneMachine(chip, 4), AtomChain.NONE, (source, source))
    assert (found is not None) is allowed
