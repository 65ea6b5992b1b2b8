"""Programs of torch.export with functional collectives, one for each rank of a process group, on a node of simulated devices."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
tilefw_torch = pytest.importorskip("tilefw_torch")

from tilefw.api.errors import UnsupportedError, UsageError  # noqa: E402
from tilefw.graph.node_certificate import certified_on_node  # noqa: E402
from tilefw.graph.node_session import NodeSession  # noqa: E402

RANKS, ROWS, WIDTH, HIDDEN = 2, 4, 8, 12
numbers = np.random.default_rng(0)
UP, DOWN = (numbers.integers(-3, 4, shape).astype(np.float32) for shape in ((HIDDEN, WIDTH), (WIDTH, HIDDEN)))
X = numbers.integers(-3, 4, (ROWS, WIDTH)).astype(np.float32)


class Share(torch.nn.Module):
    """A rank's share of a feed-forward layer, then what else ranks can do with the sum."""

    def __init__(self, rank):
        super().__init__()
        own = slice(rank * HIDDEN // RANKS, (rank + 1) * HIDDEN // RANKS)
        self.up, self.down = (torch.nn.Parameter(torch.tensor(part.copy())) for part in (UP[own], DOWN[:, own]))
        self.register_buffer("number", torch.tensor(float(rank)))

    def forward(self, x):
        import torch.distributed._functional_collectives as functional

        world = torch.distributed.group.WORLD
        term = torch.nn.functional.linear(torch.relu(torch.nn.functional.linear(x, self.up)), self.down)
        whole = functional.all_reduce(term, "sum", world)
        gathered = functional.all_gather_tensor(term, 0, world)
        scattered = functional.reduce_scatter_tensor(term, "sum", 1, world)
        largest, sent = functional.all_reduce(self.number, "max", world), functional.broadcast(term, 1, world)
        return whole + x, gathered, scattered, largest, sent


class Weighted(torch.nn.Module):
    """What a function makes of an input and a weight."""

    def __init__(self, function, weight):
        super().__init__()
        self.function = function
        self.register_buffer("weight", weight)

    def forward(self, x):
        return self.function(x, self.weight, torch.distributed.group.WORLD)


def exported(module_of, input_of=lambda rank: torch.tensor(X)):
    """Each rank's program, exported in one process: nothing communicates."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    found = []
    for rank in range(RANKS):
        torch.distributed.init_process_group("fake", rank=rank, world_size=RANKS, store=FakeStore())
        try:
            found.append(torch.export.export(module_of(rank).eval(), (input_of(rank),)))
        finally:
            torch.distributed.destroy_process_group()
    return found


@pytest.fixture(scope="module")
def programs():
    return exported(Share)


def test_shares_of_a_layer_are_the_whole_layer(programs):
    plan = tilefw_torch.export(programs, "reference")
    assert plan.ranks == RANKS
    with NodeSession(plan) as session:
        found = certified_on_node(session, {"x": X})
    assert found.ok
    parts = [slice(rank * HIDDEN // RANKS, (rank + 1) * HIDDEN // RANKS) for rank in range(RANKS)]
    terms = [np.maximum(X @ UP[own].T, 0) @ DOWN[:, own].T for own in parts]
    for rank, one in enumerate(found.ranks):
        whole, gathered, scattered, largest, sent = one.outputs.values()
        np.testing.assert_array_equal(whole, sum(terms) + X)
        np.testing.assert_array_equal(gathered, np.concatenate(terms))
        np.testing.assert_array_equal(scattered, np.split(sum(terms), RANKS, 1)[rank])
        np.testing.assert_array_equal(largest, RANKS - 1)
        np.testing.assert_array_equal(sent, terms[1])


def test_programs_that_are_not_of_the_ranks_are_refused(programs):
    with pytest.raises(UnsupportedError, match="wants a list of programs, one for each rank"):
        tilefw_torch.export(programs[0], "reference")
    other = torch.export.export(torch.nn.Linear(WIDTH, WIDTH), (torch.tensor(X),))
    with pytest.raises(UsageError, match="rank 1 does not do what that of rank 0 does"):
        tilefw_torch.export([programs[0], other], "reference")


def test_truth_values_that_are_reduced_are_any_and_all_of_them():
    import torch.distributed._functional_collectives as functional

    def function(x, bound, world):
        return tuple(functional.all_reduce(x > bound, op, world) for op in ("sum", "max", "min"))

    plan = tilefw_torch.export(exported(lambda rank: Weighted(function, torch.tensor(float(rank)))), "reference")
    with NodeSession(plan) as session:
        for outputs in session.run({"x": X}):
            for found, bound in zip(outputs.values(), (0, 0, 1), strict=True):
                np.testing.assert_array_equal(found, bound < X)


def test_inputs_and_weights_that_differ_in_shape_are_refused():
    import torch.distributed._functional_collectives as functional

    def total(x, weight, world):
        return functional.all_reduce((x * weight.sum(0).sum()).sum(), "sum", world)

    ones = exported(lambda rank: Weighted(total, torch.ones(2, 3)), lambda rank: torch.ones(4 + rank))
    with pytest.raises(UsageError, match="rank 1 does not do what that of rank 0 does") as caught:
        tilefw_torch.export(ones, "reference")
    assert "torch.float32 [5]" in str(caught.value)
    turned = exported(lambda rank: Weighted(total, torch.ones((2, 3) if rank else (3, 2))))  # the same bytes
    with pytest.raises(UsageError, match="'weight' has other shapes or types on other ranks"):
        tilefw_torch.export(turned, "reference")


def test_parts_that_differ_in_size_and_ranks_without_a_program_are_refused():
    import torch.distributed._functional_collectives as functional

    odd = exported(
        lambda rank: Weighted(lambda x, _, world: functional.all_to_all_single(x, None, None, world), torch.ones(1)),
        lambda rank: torch.ones(5),
    )
    with pytest.raises(UnsupportedError, match="parts that differ in size"):
        tilefw_torch.export(odd, "reference")
    far = exported(lambda rank: Weighted(lambda x, _, world: functional.broadcast(x, RANKS, world), torch.ones(1)))
    with pytest.raises(UnsupportedError, match=f"a collective of {RANKS + 1} ranks"):
        tilefw_torch.export(far, "reference")
