"""The gradient of `cross_entropy` by logits, from its log-sum-exp: dloss · (softmax - target); rows of ignored labels are zero."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import inputs, operands
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def cross_entropy_backward(
    logits_ptr, labels_ptr, lse_ptr, dloss_ptr, dlogits_ptr, classes, ignore_index, smoothing, BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    label = tl.load(labels_ptr + row)
    places = row.to(tl.int64) * classes + column
    x = tl.load(logits_ptr + places, mask=column < classes, other=-float("inf")).to(tl.float32)
    softmax = tl.exp(x - tl.load(lse_ptr + row))
    target = tl.where(column == label, 1 - smoothing, 0.0) + smoothing / classes  # every class has its part of the smoothing
    dlogits = tl.where(label == ignore_index, 0.0, tl.load(dloss_ptr + row) * (softmax - target))
    tl.store(dlogits_ptr + places, dlogits.to(dlogits_ptr.dtype.element_ty), mask=column < classes)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    shape, name = (p["rows"], p["classes"]), p["dtype"]
    labels = rng.integers(0, p["classes"], p["rows"])
    labels[1::4] = p["ignore_index"]
    logits = inputs.draw(rng, p["inputs"], shape, name)
    x = operands.values(logits).astype(np.float64)
    peak = x.max(axis=1)
    arguments = {
        "logits_ptr": logits, "labels_ptr": Buffer(labels, "int64"),
        "lse_ptr": Buffer((peak + np.log(np.exp(x - peak[:, None]).sum(axis=1))).astype(np.float32), "fp32"),
        "dloss_ptr": inputs.draw(rng, "uniform", shape[:1], "fp32"), "dlogits_ptr": inputs.empty(shape, name),
        "classes": p["classes"], "ignore_index": p["ignore_index"], "smoothing": p["smoothing"],
    }
    grid = (p["rows"], ceil_div(p["classes"], p["block"]), 1)
    return Launch(arguments, {"BLOCK": p["block"]}, grid, ("dlogits_ptr",), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    """Each step rounded to fp32: where the softmax is lost beside the target, nothing of the result is open."""
    x = operands.values(launch.buffer("logits_ptr"))
    labels, lse, dloss = (launch.buffer(name).array for name in ("labels_ptr", "lse_ptr", "dloss_ptr"))
    smoothing = np.float32(p["smoothing"])
    own = np.arange(p["classes"]) == labels[:, None]
    target = np.where(own, 1 - smoothing, np.float32(0)) + smoothing / np.float32(p["classes"])
    softmax = np.exp((x - lse[:, None]).astype(np.float64)).astype(np.float32)
    gradient = (dloss[:, None] * (softmax - target)).astype(np.float64)
    return {"dlogits_ptr": np.where((labels == p["ignore_index"])[:, None], 0.0, gradient)}


SPEC = KernelSpec("cross_entropy_backward", cross_entropy_backward, _prepare, _expected)
