"""Attention with scores that a function of the model changes (`flex_attention`), written out: products, the function, a softmax.

PyTorch's compiler has a template in C++ for it on the host, which no device of ours runs.
"""

from __future__ import annotations

import torch
from torch._higher_order_ops.flex_attention import flex_attention, math_attention


def write_out(model: torch.fx.GraphModule) -> None:
    """Compute it by its definition, in place; what PyTorch differentiates is that."""
    found = [node for node in model.graph.nodes if node.target is flex_attention]
    for node in found:
        node.target = math_attention
    if found:
        model.recompile()
