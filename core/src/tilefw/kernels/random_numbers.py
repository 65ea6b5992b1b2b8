"""Random numbers of each kind of the language: Philox on counters and a seed of 32 or 64 bits, and what is made of its bits."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import inputs
from tilefw.kernels.philox import philox, uniform
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def four(seed, offsets, KIND: tl.constexpr, ROUNDS: tl.constexpr):
    if KIND == "bits":
        result = tl.randint4x(seed, offsets, ROUNDS)
    elif KIND == "uniform":
        result = tl.rand4x(seed, offsets, ROUNDS)
    elif KIND == "normal":
        result = tl.randn4x(seed, offsets, ROUNDS)
    else:
        zero = offsets * 0
        result = tl.philox(seed, offsets, zero, zero, zero, ROUNDS)
    return result


@tilefw.jit
def random_numbers(first_ptr, seed_ptr, out_ptr, n, KIND: tl.constexpr, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b, c, d = four(tl.load(seed_ptr), tl.load(first_ptr) + places, KIND, ROUNDS)
    tl.store(out_ptr + places, a, mask=places < n)
    tl.store(out_ptr + n + places, b, mask=places < n)
    tl.store(out_ptr + 2 * n + places, c, mask=places < n)
    tl.store(out_ptr + 3 * n + places, d, mask=places < n)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    # Small numbers and the ends of the range, whose upper halves must not be lost.
    seed, first = (inputs.draw(rng, p["inputs"], (1,), p[name]) for name in ("seed", "offset"))
    result = {"bits": "uint32", "words": f"uint{_bits(p)}"}.get(p["kind"], "fp32")
    arguments = {"first_ptr": first, "seed_ptr": seed, "out_ptr": inputs.empty((4, p["n"]), result), "n": p["n"]}
    constexprs = {"KIND": p["kind"], "ROUNDS": p["rounds"], "BLOCK": p["block"]}
    grid = (max(1, ceil_div(p["n"], p["block"])), 1, 1)
    return Launch(arguments, constexprs, grid, ("out_ptr",), {"num_warps": p["num_warps"]})


def _bits(p: Parameters) -> int:
    return 64 if p["offset"].endswith("64") else 32


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    seed, first = (int(launch.buffer(name).array[0]) for name in ("seed_ptr", "first_ptr"))
    width = 2 ** _bits(p)
    offsets = np.array([(first + i) % width for i in range(p["n"])], object)
    # `randint4x` counts in words of 32 bits, whose second is the upper half of the sign-extended offset, if it has one.
    whole = p["kind"] == "words"
    bits = philox(seed, offsets, _bits(p) if whole else 32, p["rounds"], split=not whole)
    if p["kind"] in ("bits", "words"):
        return {"out_ptr": bits.astype(np.uint64)}
    numbers = uniform(bits)
    return {"out_ptr": numbers if p["kind"] == "uniform" else _normal(numbers)}


def _normal(uniform: np.ndarray) -> np.ndarray:
    """Pairs by Box and Muller."""
    radius = np.sqrt(-2 * np.log(np.maximum(uniform[::2], np.float32(1e-7))))
    angle = 2 * np.pi * uniform[1::2]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(uniform.shape)


SPEC = KernelSpec("random_numbers", random_numbers, _prepare, _expected)
