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
