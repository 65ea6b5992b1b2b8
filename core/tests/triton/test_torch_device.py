"""PyTorch on a host that stands for a GPU: autocast, the compiler."""

from __future__ import annotations

import importlib.util

import pytest

pytestmark = [
    pytest.mark.usefixtures("installed"),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="wants PyTorch"),
]


def test_products_are_of_half_precision_and_sums_of_single():
    import torch

    x = torch.ones(4, 4, device="cuda")
    with torch.autocast("cuda", dtype=torch.float16):
        product = x @ x
        assert torch.is_autocast_enabled("cuda") and product.dtype is torch.float16
        assert product.sum().dtype is product.exp().dtype is torch.nn.functional.softmax(product, -1).dtype is torch.float32
        with torch.autocast(device_type="cuda", enabled=False):
            assert (x @ x).dtype is torch.float32
        assert torch.nn.functional.linear(x, x).dtype is torch.float16
    assert (x @ x).dtype is torch.float32 and product.sum().dtype is torch.float16


def test_custom_functions_are_given_what_they_ask_for():
    import torch

    class Doubled(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
        def forward(ctx, x):
            assert not torch.is_autocast_enabled("cuda")
            return (x @ x) * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx, grad):
            return grad @ grad

    half = torch.ones(2, 2, device="cuda", dtype=torch.float16, requires_grad=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        made = Doubled.apply(half)
    made.sum().backward()
    assert made.dtype is torch.float32 and half.grad.dtype is torch.float16


def test_the_compiler_leaves_functions_as_they_are():
    import torch

    def squares(x):
        return torch.func.grad_and_value(lambda y: (y * y).sum())(x)

    compiled = torch.compile(fullgraph=True, mode="reduce-overhead")(squares)
    assert compiled is squares
    assert [found.tolist() for found in compiled(torch.ones(2, device="cuda"))] == [[2, 2], 2]
