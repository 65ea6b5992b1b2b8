"""The attention that PyTorch calls on the host, and its gradient, as products and exponentials, of which kernels are made.

PyTorch's operator keeps each row's logarithm of the sum of exponentials, from which the gradient has the probabilities again.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def _scores(query: Tensor, key: Tensor, is_causal: bool, mask: Tensor | None, scale: float) -> Tensor:
    scores = torch.matmul(query, key.transpose(-2, -1)).float() * scale
    if is_causal:
        rows, columns = scores.shape[-2:]
        place = torch.arange(rows, device=scores.device)[:, None], torch.arange(columns, device=scores.device)[None, :]
        scores = torch.where(place[0] >= place[1], scores, -math.inf)
    if mask is not None:
        scores = torch.where(mask, scores, -math.inf) if mask.dtype == torch.bool else scores + mask
    return scores


def _scale(query: Tensor, scale: float | None) -> float:
    return 1 / math.sqrt(query.shape[-1]) if scale is None else scale


def attention(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float = 0.0, is_causal: bool = False, *, attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> Any:
    """aten._scaled_dot_product_flash_attention_for_cpu; PyTorch calls it where nothing is dropped."""
    scores = _scores(query, key, is_causal, attn_mask, _scale(query, scale))
    greatest = scores.amax(-1, keepdim=True)
    # A row without any score has no probabilities either, as in PyTorch.
    held = torch.where(greatest == -math.inf, 0.0, greatest)
    exponentials = torch.exp(scores - held)
    total = exponentials.sum(-1, keepdim=True)
    weights = exponentials / torch.where(total == 0, 1.0, total)
    return torch.matmul(weights.to(value.dtype), value), (held + torch.log(total)).squeeze(-1)


def attention_backward(
    gradient: Tensor, query: Tensor, key: Tensor, value: Tensor, result: Tensor, logarithms: Tensor, dropout_p: float,
    is_causal: bool, *, attn_mask: Tensor | None = None, scale: float | None = None,
) -> Any:
    """aten._scaled_dot_product_flash_attention_for_cpu_backward."""
    factor = _scale(query, scale)
    scores = _scores(query, key, is_causal, attn_mask, factor)
    weights = torch.where(scores == -math.inf, 0.0, torch.exp(scores - logarithms.unsqueeze(-1)))
    of_weights = torch.matmul(gradient, value.transpose(-2, -1)).float()
    row = (gradient * result).float().sum(-1, keepdim=True)
    of_scores = (weights * (of_weights - row) * factor).to(query.dtype)
    of_value = torch.matmul(weights.to(value.dtype).transpose(-2, -1), gradient)
    return torch.matmul(of_scores, key), torch.matmul(of_scores.transpose(-2, -1), query), of_value


DECOMPOSITIONS = {
    aten._scaled_dot_product_flash_attention_for_cpu.default: attention,
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default: attention_backward,
}
