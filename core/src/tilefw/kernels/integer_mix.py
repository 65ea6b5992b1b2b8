"""Integer arithmetic of every width and sign: division, remainder, high products, shifts, and a hash with run-time loops."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.dtypes import dtype
from tilefw.api.integers import ceil_div
from tilefw.kernels import inputs
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters
from tilefw.language.extra import libdevice


@tilefw.jit(do_not_specialize=["divisor", "rounds"])
def integer_mix(
    x_ptr, y_ptr, quotient_ptr, remainder_ptr, shifted_ptr, hash_ptr, n, divisor, rounds,
    BITS: tl.constexpr, BLOCK: tl.constexpr,
):
    program = tl.program_id(0)
    offsets = program * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=1)
    y = tl.load(y_ptr + offsets, mask=inside, other=1)

    by_scalar = divisor.to(x.dtype)
    tl.store(quotient_ptr + offsets, x // y + x // by_scalar, mask=inside)
    tl.store(remainder_ptr + offsets, (x % y) ^ (x % by_scalar), mask=inside)
    amount = y & (BITS - 1)
    tl.store(shifted_ptr + offsets, ((x << amount) | (y >> amount)) - ~x, mask=inside)

    # An xorshift-multiply hash in 32 unsigned bits, with as many rounds as the launch says …
    h = x.to(tl.uint32) ^ y.to(tl.uint32)
    for step in range(rounds):
        h = (h ^ (h >> 15)) * 0x2C1B3C6D + step.to(tl.uint32)  # pyright: ignore[reportAttributeAccessIssue]
        h = tl.umulhi(h, 0x9E3779B1) ^ h
    # … and a `while` whose trips depend on the program: the Collatz sequence of its number.
    trips = 0
    walk = program + 1
    while walk > 1:
        walk = tl.where(walk % 2 == 0, walk // 2, 3 * walk + 1)
        trips += 1
    signed = h.to(tl.int32)
    ends = (libdevice.popc(signed) << 6) ^ libdevice.clz(signed)
    tl.store(hash_ptr + offsets, (h ^ ends.to(tl.uint32)) + trips.to(tl.uint32), mask=inside)  # pyright: ignore[reportAttributeAccessIssue]


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    name, shape = p["dtype"], (p["n"],)
    x = inputs.draw(rng, p["inputs"], shape, name)
    y = inputs.nonzero(inputs.draw(rng, p["inputs"], shape, name))
    arguments = {
        "x_ptr": Buffer(_without_overflow(x.array, y.array), name),
        "y_ptr": y,
        "quotient_ptr": inputs.empty(shape, name),
        "remainder_ptr": inputs.empty(shape, name),
        "shifted_ptr": inputs.empty(shape, name),
        "hash_ptr": inputs.empty(shape, "uint32"),
        "n": p["n"],
        "divisor": p["divisor"],
        "rounds": p["rounds"],
    }
    grid = (max(1, ceil_div(p["n"], p["block"])), 1, 1)
    constexprs = {"BITS": dtype(name).bits, "BLOCK": p["block"]}
    outputs = ("quotient_ptr", "remainder_ptr", "shifted_ptr", "hash_ptr")
    return Launch(arguments, constexprs, grid, outputs, {"num_warps": p["num_warps"]})


def _without_overflow(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`x` with least / -1, the one quotient that no machine and no language agrees on, replaced by one."""
    if x.dtype.kind == "u":
        return x
    return np.where((x == np.iinfo(x.dtype).min) & (y == -1), x.dtype.type(1), x)


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    name = p["dtype"]
    bits = dtype(name).bits
    # Python's whole numbers: no width of NumPy's own takes part.
    x = launch.buffer("x_ptr").array.astype(object)
    y = launch.buffer("y_ptr").array.astype(object)
    divisor = _as_type(p["divisor"], name)
    amount = y & (bits - 1)
    results = {
        "quotient_ptr": _truncated(x, y) + _truncated(x, divisor),
        "remainder_ptr": (x - y * _truncated(x, y)) ^ (x - divisor * _truncated(x, divisor)),
        "shifted_ptr": ((x << amount) | (y >> amount)) - ~x,
        "hash_ptr": _hash(p, x, y),
    }
    return {key: _wrapped(value, "uint32" if key == "hash_ptr" else name) for key, value in results.items()}


def _truncated(x: np.ndarray, y: np.ndarray | int) -> np.ndarray:
    """C's division."""
    quotient = abs(x) // abs(y)
    return np.where((x < 0) != (y < 0), -quotient, quotient)


def _hash(p: Parameters, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    mask = 0xFFFFFFFF
    h = (x & mask) ^ (y & mask)
    for step in range(p["rounds"]):
        h = ((h ^ (h >> 15)) * 0x2C1B3C6D + step) & mask
        h = ((h * 0x9E3779B1) >> 32) ^ h
    ends = np.array([(value.bit_count() << 6) ^ (32 - value.bit_length()) for value in h], dtype=object)
    return (h ^ ends) + np.array([_collatz(i // p["block"] + 1) for i in range(p["n"])], dtype=object)


def _collatz(number: int) -> int:
    trips = 0
    while number > 1:
        number = number // 2 if number % 2 == 0 else 3 * number + 1
        trips += 1
    return trips


def _as_type(value: int, name: str) -> int:
    return int(_wrapped(np.array([value], dtype=object), name)[0])


def _wrapped(values: np.ndarray, name: str) -> np.ndarray:
    """Python integers modulo 2^bits, in the range of the type."""
    kind = dtype(name)
    low = values & ((1 << kind.bits) - 1)
    if kind.is_signed:
        low = np.where(low >= 1 << (kind.bits - 1), low - (1 << kind.bits), low)
    return low.astype(np.int64 if kind.is_signed else np.uint64)


SPEC = KernelSpec("integer_mix", integer_mix, _prepare, _expected)
