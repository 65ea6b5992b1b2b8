"""Cross entropy of logits by label: log-sum-exp minus the label's logit, with label smoothing; ignored labels give 0."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.kernels import formats, inputs, operands
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def cross_entropy(
    logits_ptr, labels_ptr, loss_ptr, lse_ptr, stride, classes, ignore_index, smoothing,
    COMPUTE: tl.constexpr, SMOOTHED: tl.constexpr, BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    label = tl.load(labels_ptr + row)
    logits_row = logits_ptr + row.to(tl.int64) * stride
    peak = tl.full((), -float("inf"), COMPUTE)
    total = tl.full((), 0.0, COMPUTE)
    level = tl.full((), 0.0, COMPUTE)  # the sum of all logits
    for start in range(0, classes, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(logits_row + column, mask=column < classes, other=-float("inf")).to(COMPUTE)
        higher = tl.maximum(peak, tl.max(x, axis=0))
        total = total * tl.exp(peak - higher) + tl.sum(tl.exp(x - higher), axis=0)
        peak = higher
        if SMOOTHED:
            level += tl.sum(tl.where(column < classes, x, 0.0), axis=0)
    lse = peak + tl.log(total)
    ignored = label == ignore_index
    loss = lse - tl.load(logits_row + label, mask=label != ignore_index, other=0.0).to(COMPUTE)
    if SMOOTHED:
        loss = (1 - smoothing) * loss + smoothing * (lse - level / classes)
    tl.store(loss_ptr + row, tl.where(ignored, 0.0, loss))
    tl.store(lse_ptr + row, lse)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    shape, name = (p["rows"], p["classes"]), p["dtype"]
    computed = "fp64" if name == "fp64" else "fp32"
    labels = rng.integers(0, p["classes"], p["rows"])
    labels[1::4] = p["ignore_index"]
    arguments = {
        "logits_ptr": inputs.draw(rng, p["inputs"], shape, name),
        "labels_ptr": Buffer(labels.astype(formats.array_dtype(p["label_dtype"])), p["label_dtype"]),
        "loss_ptr": inputs.empty(shape[:1], computed),
        "lse_ptr": inputs.empty(shape[:1], computed),
        "stride": p["classes"],
        "classes": p["classes"],
        "ignore_index": p["ignore_index"],
        "smoothing": p["smoothing"],
    }
    constexprs = {
        "COMPUTE": tl.float64 if name == "fp64" else tl.float32,
        "SMOOTHED": p["smoothing"] > 0,
        "BLOCK": min(p["block"], tilefw.next_power_of_2(p["classes"])),
    }
    return Launch(arguments, constexprs, (p["rows"], 1, 1), ("loss_ptr", "lse_ptr"), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    x = operands.values(launch.buffer("logits_ptr"))
    labels = launch.buffer("labels_ptr").array.astype(np.int64)
    counted = labels != p["ignore_index"]
    peak = x.max(axis=1).astype(np.float64)
    lse = peak + np.log(np.exp(x - peak[:, None]).sum(axis=1))
    loss = lse - x[np.arange(p["rows"]), np.where(counted, labels, 0)]
    smoothing = np.float32(p["smoothing"])  # a float argument is passed as fp32, and 1 - smoothing is computed in it
    if smoothing > 0:
        loss = float(np.float32(1) - smoothing) * loss + float(smoothing) * (lse - x.mean(axis=1, dtype=np.float64))
    return {"loss_ptr": np.where(counted, loss, 0.0), "lse_ptr": lse}


SPEC = KernelSpec("cross_entropy", cross_entropy, _prepare, _expected)
