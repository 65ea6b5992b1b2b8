"""A captured graph on the host: nothing of it happens before it is played, and then with what its tensors hold."""

from __future__ import annotations

import importlib.util

import pytest

import tilefw
import tilefw.language as tl

pytestmark = [
    pytest.mark.usefixtures("installed"),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="wants PyTorch"),
]


@tilefw.jit
def accumulated(x_ptr, sum_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(sum_ptr + offsets, tl.load(sum_ptr + offsets) + tl.load(x_ptr + offsets))


def test_launches_and_operations_are_carried_out_when_a_graph_is_played():
    import torch

    x, total = torch.ones(8, device="cuda"), torch.zeros(8, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with tilefw.target("reference"):
        with torch.cuda.graph(graph):
            assert torch.cuda.is_current_stream_capturing()
            doubled = x * 2
            accumulated[(1,)](doubled, total, BLOCK=8)
            total.add_(x)
            last = total.view(2, 4)[1].sum()
        assert not torch.cuda.is_current_stream_capturing()
        assert total.tolist() == [0] * 8
        graph.replay()
        assert total.tolist() == [3] * 8 and last.item() == 12
        x.fill_(10)
        graph.replay()
    assert total.tolist() == [33] * 8 and doubled.tolist() == [20] * 8 and last.item() == 132


def test_a_grid_is_that_of_the_capture():
    import torch

    total = torch.zeros(8, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with tilefw.target("reference"), torch.cuda.graph(graph):
        for programs in (1, 0):
            accumulated[lambda _: (programs,)](torch.ones(8, device="cuda"), total, BLOCK=8)  # noqa: B023  (the loop's last: 0)
    with tilefw.target("reference"):
        graph.replay()
    assert total.tolist() == [1] * 8


def test_statistics_that_an_operation_writes_beside_its_results_wait_for_the_graph():
    import torch

    x, graph = torch.randn(8, 4, device="cuda"), torch.cuda.CUDAGraph()
    norm, twin = torch.nn.BatchNorm1d(4).cuda(), torch.nn.BatchNorm1d(4)
    mean, variance = torch.zeros(4, device="cuda"), torch.ones(4, device="cuda")
    with torch.cuda.graph(graph):
        made = norm(x)
        own, *_ = torch.ops.aten._native_batch_norm_legit(x, None, None, mean, variance, True, 0.1, 1e-5)
    assert not norm.running_mean.any() and not mean.any() and norm.num_batches_tracked == 0
    x.normal_(5)
    graph.replay()
    expected = twin(x)
    assert torch.equal(made, expected) and torch.equal(own, expected.detach())
    assert torch.equal(norm.running_mean, twin.running_mean) and torch.equal(mean, twin.running_mean)


def test_an_optimiser_steps_when_its_graph_is_played():
    import torch

    one, other = (torch.nn.Parameter(torch.ones(4, device="cuda")) for _ in range(2))
    one.grad, other.grad = torch.ones(4, device="cuda"), torch.ones(4, device="cuda")
    played, plain = (torch.optim.Adam([weights], lr=0.5, capturable=True) for weights in (one, other))
    for optimiser in (played, plain, plain):
        optimiser.step()
    before, graph = one.tolist(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        played.step()
    assert one.tolist() == before
    graph.replay()
    assert torch.equal(one, other)


def test_what_a_gpu_cannot_capture_is_refused():
    import torch

    x = torch.tensor([1.0, 0, 3], device="cuda")
    for asked in (lambda: x[x > 0], x.nonzero, lambda: torch.masked_select(x, x > 0), lambda: torch.equal(x, x)):
        with pytest.raises(RuntimeError, match="not permitted"), torch.cuda.graph(torch.cuda.CUDAGraph()):
            asked()
    picked, graph = torch.tensor([2, 0], device="cuda"), torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="nothing was captured"):
        graph.replay()
    with torch.cuda.graph(graph):
        y = x[picked]
        y.unsqueeze_(0)
    x.mul_(2)
    graph.replay()
    assert y.tolist() == [[6, 2]]


def test_a_capture_ends_with_its_block_and_asks_for_no_numbers():
    import torch

    x, graph = torch.ones(8, device="cuda"), torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="not permitted when stream is capturing"), torch.cuda.graph(graph):
        x[0].item()
    with torch.cuda.graph(graph), pytest.raises(RuntimeError, match="another cannot be begun"):
        torch.cuda.CUDAGraph().capture_begin()
    assert x[0].item() == 1 and torch.cuda.graph_pool_handle() == graph.pool()


def test_a_module_made_a_graph_has_its_gradients():
    import torch

    layer = torch.nn.Linear(4, 4).cuda()
    played = torch.cuda.make_graphed_callables(layer, (torch.randn(2, 4, device="cuda", requires_grad=True),))
    x = torch.randn(2, 4, device="cuda", requires_grad=True)
    made = played(x)
    made.sum().backward()
    assert torch.allclose(made, torch.nn.functional.linear(x, layer.weight, layer.bias))
    assert torch.allclose(x.grad, layer.weight.sum(0).expand(2, 4))
