"""The functions of PyTorch that bench/inductor.py compiles: pointwise, reductions, scans, moves, losses, random numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  (as PyTorch's users write it)

torch.manual_seed(0)
X, Y = torch.rand(6, 77) * 2 - 1, torch.rand(6, 77) + 0.5
I, J = torch.randint(-50, 50, (6, 77)), torch.randint(1, 9, (6, 77))
LONG, WIDE, TALL, IMAGE = torch.rand(2, 5000), torch.rand(300, 70), torch.rand(300, 7), torch.rand(2, 3, 8, 8)

ANYWHERE = (
    "abs asinh atan ceil cos cosh deg2rad erf erfc exp exp2 expm1 floor frac isfinite isinf isnan neg rad2deg relu round sigmoid "
    "sign signbit sin sinc sinh square tan tanh trunc"
)
POSITIVE = "digamma lgamma log log10 log1p log2 reciprocal rsqrt sqrt"
BELOW_ONE = "acos asin atanh erfinv logit"
OF_TWO = (
    "add atan2 copysign div eq floor_divide fmax fmin fmod ge gt hypot le logaddexp lt maximum minimum mul ne nextafter pow "
    "remainder sub xlogy"
)
OF_INTEGERS = "bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor floor_divide fmod remainder"
ROWS = (
    "all amax amin any argmax argmin count_nonzero cummax cumprod cumsum log_softmax logcumsumexp logsumexp max mean median min "
    "prod softmax std sum var"
)
EVERYWHERE = "amax any argmax max mean prod sum var"
ACTIVATIONS = "elu gelu hardswish leaky_relu mish silu softplus"
TYPES = "bfloat16 bool float16 float64 int16 int32 int64 int8"
RANDOM = frozenset({
    "alpha_dropout", "bernoulli", "dropout", "dropout of float16", "exponential_", "gradient of dropout", "rand", "randint",
    "randn",
})

Case = tuple[str, Callable[..., Any], tuple[Any, ...]]


def functions() -> Iterator[Case]:
    """A name, the function, its arguments."""
    for names, args in ((ANYWHERE, (X,)), (POSITIVE, (Y,)), (BELOW_ONE, (Y * 0.4,)), ("acosh", (Y + 1,)), (OF_TWO, (Y, X))):
        yield from ((name, getattr(torch, name), args) for name in names.split())
    yield from ((f"{name} of integers", getattr(torch, name), (I, J)) for name in OF_INTEGERS.split())
    yield from ((name, getattr(F, name), (X,)) for name in ACTIVATIONS.split())
    yield from ((f"{name} of rows", _along(name, -1), (X,)) for name in ROWS.split())
    for name in EVERYWHERE.split():
        yield f"{name} of all", getattr(torch, name), (WIDE,)
        yield f"{name} of columns", _along(name, 0), (TALL,)
        yield f"{name} of long rows", _along(name, 1), (LONG,)
    for name in TYPES.split():
        kind = getattr(torch, name)
        yield f"to {name}", partial(_twice, kind), (X * 20,)
        yield f"sum of {name}", lambda t: (t.to(torch.float32) * 2).sum(-1), ((Y * 20).to(kind),)
    for kind in (torch.float8_e4m3fn, torch.float8_e5m2):
        yield f"to {str(kind).partition('.')[2]}", lambda t, kind=kind: t.to(kind).to(torch.float32), (X * 20,)
    yield from _norms_and_losses()
    yield from _moves()
    yield from _random()


def _along(name: str, axis: int) -> Callable[..., Any]:
    return lambda t: getattr(torch, name)(t, axis)


def _twice(kind: Any, t: Any) -> Any:
    return t.to(kind) + t.to(kind)


def _norms_and_losses() -> Iterator[Case]:
    label = torch.randint(0, 77, (6,))
    yield "layer_norm", lambda t, w: F.layer_norm(t, (77,), w), (X, torch.rand(77))
    yield "layer_norm of long rows", lambda t, w: F.layer_norm(t, (5000,), w), (LONG, torch.rand(5000))
    yield "rms_norm", lambda t, w: F.rms_norm(t, (77,), w), (X, torch.rand(77))
    yield "batch_norm", lambda t: F.batch_norm(t, None, None, training=True), (torch.rand(8, 5, 9),)
    yield "group_norm", lambda t: F.group_norm(t, 2), (torch.rand(3, 4, 9),)
    yield "vector_norm", lambda t: torch.linalg.vector_norm(t, dim=1), (X,)
    yield "var_mean", lambda t: torch.var_mean(t, (0, 1)), (WIDE,)
    yield "cross_entropy", F.cross_entropy, (X, label)
    yield "mse_loss", F.mse_loss, (X, Y)
    yield "binary_cross_entropy", F.binary_cross_entropy_with_logits, (X, Y)
    yield "huber_loss", F.huber_loss, (X, Y)


def _moves() -> Iterator[Case]:
    yield "where", torch.where, (X > 0, X, Y)
    yield "clamp", lambda t: t.clamp(-0.3, 0.4), (X,)
    yield "lerp", torch.lerp, (X, Y, Y)
    yield "addcdiv", torch.addcdiv, (X, X, Y)
    yield "nan_to_num", torch.nan_to_num, (X / 0,)
    yield "cat", lambda a, c: torch.cat([a, c * 2], 1), (X, Y)
    yield "pad", lambda a: F.pad(a, (2, 3)) + 1, (X,)
    yield "flip", lambda a: a.flip(1) * 2, (X,)
    yield "transpose", lambda a: (a.t() * 2).contiguous(), (X,)
    yield "tril", torch.tril, (X,)
    yield "gather", lambda a, k: a.gather(1, k % 77), (X, J)
    yield "index_select", lambda a, k: a[:, k], (X, torch.randint(0, 77, (9,)))
    yield "embedding", lambda w, k: F.embedding(k, w), (X, torch.randint(0, 6, (9,)))
    yield "scatter_add", lambda a, k, s: a.scatter_add(1, k, s), (X, J, Y)
    index, values = torch.randint(0, 9, (40,)), torch.rand(40)
    yield "index_put", lambda a, k, v: a.index_put((k,), v, accumulate=True), (torch.zeros(9), index, values)
    yield "max_pool2d", lambda t: F.max_pool2d(t, 2), (IMAGE,)
    yield "avg_pool2d", lambda t: F.avg_pool2d(t, 3, 1, 1), (IMAGE,)
    yield "interpolate", lambda t: F.interpolate(t, scale_factor=2, mode="bilinear"), (IMAGE,)
    yield "bucketize", torch.bucketize, (X, torch.linspace(-1, 1, 9))
    yield "sort", lambda t: torch.sort(t, dim=-1, stable=True)[0] * 2, (torch.rand(4, 64),)


def _random() -> Iterator[Case]:
    yield "dropout", lambda t: F.dropout(t, 0.3), (X,)
    yield "dropout of float16", lambda t: F.dropout(t, 0.5), (X.half(),)
    yield "gradient of dropout", lambda t: torch.autograd.grad(F.dropout(t.requires_grad_(), 0.3).sum(), t)[0], (X,)
    yield "alpha_dropout", lambda t: F.alpha_dropout(t, 0.3), (X,)
    yield "bernoulli", torch.bernoulli, (Y * 0.5,)
    yield "rand", lambda t: t + torch.rand_like(t), (X,)
    yield "randn", lambda t: t + torch.randn_like(t), (X,)
    yield "randint", lambda t: t + torch.randint(0, 9, t.shape), (X,)
    yield "exponential_", lambda t: torch.empty_like(t).exponential_(), (X,)
