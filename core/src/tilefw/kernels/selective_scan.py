"""The selective scan of a state space model: h = exp(dt·a)·h + dt·b·x along time, y = Σ c·h + d·x, in chunks with a carried state.

Gu and Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", 2023, section 3.2. One program has one channel and
all of its states; the recurrence within a chunk is a scan of pairs (decay, drive).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.kernels import formats, inputs, operands
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def advance(decay_a, drive_a, decay_b, drive_b):
    """One step of the recurrence after another."""
    return decay_a * decay_b, drive_a * decay_b + drive_b


@tilefw.jit
def selective_scan(
    x_ptr, dt_ptr, a_ptr, b_ptr, c_ptr, d_ptr, y_ptr, state_ptr, channels, length,
    COMPUTE: tl.constexpr, STATES: tl.constexpr, BLOCK: tl.constexpr,
):
    channel, batch = tl.program_id(0), tl.program_id(1)
    lane = batch * channels + channel
    state = tl.arange(0, STATES)
    a = tl.load(a_ptr + channel * STATES + state).to(COMPUTE)
    d = tl.load(d_ptr + channel).to(COMPUTE)
    carried = tl.zeros([STATES], dtype=COMPUTE)
    for start in range(0, length, BLOCK):
        time = start + tl.arange(0, BLOCK)
        inside = time < length
        x = tl.load(x_ptr + lane * length + time, mask=inside, other=0.0).to(COMPUTE)
        dt = tl.load(dt_ptr + lane * length + time, mask=inside, other=0.0).to(COMPUTE)  # beyond the end the state stays
        places = (batch * STATES + state)[:, None] * length + time[None, :]
        b = tl.load(b_ptr + places, mask=inside[None, :], other=0.0).to(COMPUTE)
        c = tl.load(c_ptr + places, mask=inside[None, :], other=0.0).to(COMPUTE)
        decay = tl.exp(dt[None, :] * a[:, None])
        drive = b * (dt * x)[None, :]
        decays, drives = tl.associative_scan((decay, drive), 1, advance)
        h = decays * carried[:, None] + drives
        y = tl.sum(c * h, axis=0) + d * x
        tl.store(y_ptr + lane * length + time, y.to(y_ptr.dtype.element_ty), mask=inside)
        carried = tl.sum(tl.where((tl.arange(0, BLOCK) == BLOCK - 1)[None, :], h, 0.0), axis=1)
    tl.store(state_ptr + lane * STATES + state, carried)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    name, compute = p["dtype"], "fp64" if p["dtype"] == "fp64" else "fp32"
    rows, sides = (p["batch"], p["channels"], p["length"]), (p["batch"], p["states"], p["length"])

    def between(low: float, high: float, shape: tuple[int, ...], kind: str) -> Buffer:
        return Buffer(formats.store(rng.uniform(low, high, shape), kind), kind)

    arguments = {
        "x_ptr": inputs.draw(rng, p["inputs"], rows, name),
        "dt_ptr": between(0.001, 0.1, rows, name),  # the range of the paper's initial steps, section 3.6
        "a_ptr": between(-float(p["states"]), -0.5, (p["channels"], p["states"]), compute),
        "b_ptr": inputs.draw(rng, p["inputs"], sides, name),
        "c_ptr": inputs.draw(rng, p["inputs"], sides, name),
        "d_ptr": inputs.draw(rng, p["inputs"], (p["channels"],), compute),
        "y_ptr": inputs.empty(rows, name),
        "state_ptr": inputs.empty((*rows[:2], p["states"]), compute),
        "channels": p["channels"], "length": p["length"],
    }
    constexprs = {"COMPUTE": tl.float64 if name == "fp64" else tl.float32, "STATES": p["states"], "BLOCK": p["block"]}
    return Launch(arguments, constexprs, (p["channels"], p["batch"], 1), ("y_ptr", "state_ptr"), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    """Each step rounded in the type that the kernel computes in, chunk by chunk as there: of the first steps little is open."""
    x, dt, a, b, c, d = (operands.values(launch.buffer(f"{name}_ptr")) for name in ("x", "dt", "a", "b", "c", "d"))
    decay = np.exp(dt[:, :, None, :] * a[:, :, None])
    drive = b[:, None] * (dt * x)[:, :, None, :]
    decays, drives = np.ones_like(decay[..., 0]), np.zeros_like(drive[..., 0])
    carried = h = np.zeros_like(drives)
    y = np.empty_like(x)
    for t in range(p["length"]):
        first = t % p["block"] == 0
        carried = h if first else carried
        drives = drive[..., t] if first else drives * decay[..., t] + drive[..., t]
        decays = decay[..., t] if first else decays * decay[..., t]
        h = decays * carried + drives
        total = (c[:, None, :, t] * h).astype(np.float64).sum(axis=-1).astype(x.dtype)
        y[:, :, t] = total + d * x[:, :, t]
    return {"y_ptr": y.astype(np.float64), "state_ptr": h.astype(np.float64)}


SPEC = KernelSpec("selective_scan", selective_scan, _prepare, _expected)
