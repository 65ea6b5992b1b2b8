"""One token of each row of logits, at random: among the top_k largest, of which the likeliest that make up top_p of the mass.

Both bounds are found bit by bit in an integer that orders as logits do, by counts and by sums over the row: no sort, and what is
kept is exact. Of kept tokens the winner has the largest power / -log(u), the race of exponential clocks that Gumbel's trick is.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.kernels import inputs, operands
from tilefw.kernels.philox import rand4x
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def ordered(x):
    """fp32 numbers as unsigned integers that order as they do."""
    bits = x.to(tl.int32, bitcast=True)
    return (bits ^ ((bits >> 31) | -0x80000000)).to(tl.uint32, bitcast=True)


@tilefw.jit
def largest_bound(keys, amounts, least):
    """The largest bound so that the amounts of all keys from it on come to `least`, or 0."""
    bound = tl.full((), 0, tl.uint32)
    for step in range(32):
        higher = bound | (tl.full((), 0x80000000, tl.uint32) >> step)
        amount = tl.sum(tl.where(keys >= higher, amounts, 0), axis=0)
        bound = tl.where(amount >= least, higher, bound)
    return bound


@tilefw.jit
def sample_logits(
    logits_ptr, token_ptr, kept_ptr, vocabulary, temperature, top_k, top_p, seed, NUCLEUS: tl.constexpr, BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    token = tl.arange(0, BLOCK)
    inside = token < vocabulary
    logits = tl.load(logits_ptr + row.to(tl.int64) * vocabulary + token, mask=inside, other=-float("inf")).to(tl.float32)
    keys = ordered(logits)
    kept = inside & (keys >= largest_bound(keys, inside.to(tl.int32), top_k))
    powers = tl.where(kept, tl.exp((logits - tl.max(logits, axis=0)) / temperature), 0.0)
    if NUCLEUS:  # not for a top_p of 1, of which a sum in another order may fall short
        kept = kept & (keys >= largest_bound(keys, powers, top_p * tl.sum(powers, axis=0)))
    u = tl.rand(seed, row * vocabulary + token)
    clocks = tl.where(kept, powers / -tl.log(u), -1.0)
    tl.store(token_ptr + row, tl.argmax(clocks, axis=0))
    tl.store(kept_ptr + row, tl.sum(kept.to(tl.int32), axis=0))


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    rows, vocabulary = p["rows"], p["vocabulary"]
    arguments = {
        "logits_ptr": inputs.draw(rng, p["inputs"], (rows, vocabulary), p["dtype"]),
        "token_ptr": inputs.empty((rows,), "int32"), "kept_ptr": inputs.empty((rows,), "int32"), "vocabulary": vocabulary,
        "temperature": p["temperature"], "top_k": min(p["top_k"], vocabulary), "top_p": p["top_p"],
        "seed": int(rng.integers(2, 2**31)),
    }
    constexprs = {"NUCLEUS": p["top_p"] < 1, "BLOCK": tilefw.next_power_of_2(vocabulary)}
    return Launch(arguments, constexprs, (rows, 1, 1), ("token_ptr", "kept_ptr"), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    logits = operands.values(launch.buffer("logits_ptr")).astype(np.float64)
    seed, top_k = launch.arguments["seed"], launch.arguments["top_k"]
    assert isinstance(seed, int) and isinstance(top_k, int)
    kth = np.sort(logits, axis=1)[:, -top_k, None]
    shifted = (logits - logits.max(axis=1, keepdims=True)) / float(np.float32(p["temperature"]))
    powers = np.where(logits >= kth, np.exp(shifted), 0.0)
    kept = logits >= kth
    if p["top_p"] < 1:
        descending = -np.sort(-powers, axis=1)
        enough = np.cumsum(descending, axis=1) >= float(np.float32(p["top_p"])) * powers.sum(axis=1, keepdims=True)
        kept &= powers >= np.take_along_axis(descending, enough.argmax(axis=1)[:, None], axis=1)  # with the equals of the last
    u = rand4x(seed, np.arange(logits.size).reshape(logits.shape))[0]
    with np.errstate(divide="ignore"):
        clocks = np.where(kept, powers / -np.log(u), -1.0)
    return {"token_ptr": clocks.argmax(axis=1), "kept_ptr": kept.sum(axis=1)}


SPEC = KernelSpec("sample_logits", sample_logits, _prepare, _expected)
