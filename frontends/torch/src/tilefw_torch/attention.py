"""The attention that PyTorch calls on the host, and its gradient, as products and exponentials, of which kernels are made.

PyTorch's operator keeps each row's logarithm of the sum of exponentials, from which the gradient has the probabilities again. Heads
of the keys may be fewer than those of the queries: each then serves as many neighbouring ones.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def _wide(x: Tensor) -> Tensor:
    """In the precision of scores, which is float32 at least."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _scores(query: Tensor, key: Tensor, is_causal: bool, mask: Tensor | None, scale: float) -> Tensor:
    scores = torch.matmul(_wide(query), _wide(key).transpose(-2, -1)) * scale
    if is_causal:
        rows, columns = scores.shape[-2:]
        place = torch.arange(rows, device=scores.device)[:, None], torch.arange(columns, device=scores.device)[None, :]
        scores = torch.where(place[0] >= place[1], scores, -math.inf)
    if mask is not None:
        scores = torch.where(mask, scores, -math.inf) if mask.dtype == torch.bool else scores + mask
    return scores


def _scale(query: Tensor, scale: float | None) -> float:
    return 1 / math.sqrt(query.shape[-1]) if scale is None else scale


def _for_each_head(x: Tensor, heads: int) -> Tensor:
    """Keys or values for each head of the queries."""
    own = x.shape[1]
    if own == heads:
        return x
    batch, _, rows, width = x.shape
    return x.unsqueeze(2).expand(batch, own, heads // own, rows, width).reshape(batch, heads, rows, width)


def _of_own_heads(x: Tensor, heads: int) -> Tensor:
    """The gradient of what `_for_each_head` was given."""
    batch, own, rows, width = x.shape
    return x if own == heads else x.reshape(batch, heads, own // heads, rows, width).sum(2)


def _laid_out_as(query: Tensor, x: Tensor) -> Tensor:
    """A result with its dims in memory in the order of the query's, as that of PyTorch's operator: who reads it may view it so."""
    order = sorted(range(query.dim()), key=query.stride, reverse=True)
    return x.permute(*order).contiguous().permute(*map(order.index, range(len(order))))


def attention(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float = 0.0, is_causal: bool = False, *, attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> Any:
    """aten._scaled_dot_product_flash_attention_for_cpu; PyTorch calls it where nothing is dropped."""
    if dropout_p:
        return NotImplemented
    heads = query.shape[1]
    scores = _scores(query, _for_each_head(key, heads), is_causal, attn_mask, _scale(query, scale))
    greatest = scores.amax(-1, keepdim=True)
    # A row without any score has no probabilities either, as in PyTorch.
    held = torch.where(greatest == -math.inf, 0.0, greatest)
    exponentials = torch.exp(scores - held)
    total = exponentials.sum(-1, keepdim=True)
    weights = exponentials / torch.where(total == 0, 1.0, total)
    result = torch.matmul(weights.to(value.dtype), _for_each_head(value, heads))
    return _laid_out_as(query, result), (held + torch.log(total)).squeeze(-1)


def attention_backward(
    gradient: Tensor, query: Tensor, key: Tensor, value: Tensor, result: Tensor, logarithms: Tensor, dropout_p: float,
    is_causal: bool, *, attn_mask: Tensor | None = None, scale: float | None = None,
) -> Any:
    """aten._scaled_dot_product_flash_attention_for_cpu_backward."""
    if dropout_p:
        return NotImplemented
    factor, heads, own = _scale(query, scale), query.shape[1], key.shape[1]
    keys, values = _for_each_head(key, heads), _for_each_head(value, heads)
    scores = _scores(query, keys, is_causal, attn_mask, factor)
    weights = torch.where(scores == -math.inf, 0.0, torch.exp(scores - logarithms.unsqueeze(-1)))
    of_weights = torch.matmul(_wide(gradient), _wide(values).transpose(-2, -1))
    row = (_wide(gradient) * _wide(result)).sum(-1, keepdim=True)
    of_scores = (weights * (of_weights - row) * factor).to(query.dtype)
    of_values = torch.matmul(weights.to(value.dtype).transpose(-2, -1), gradient)
    of_keys = torch.matmul(of_scores.transpose(-2, -1), query)
    return torch.matmul(of_scores, keys), _of_own_heads(of_keys, own), _of_own_heads(of_values, own)


DECOMPOSITIONS = {
    aten._scaled_dot_product_flash_attention_for_cpu.default: attention,
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default: attention_backward,
}
