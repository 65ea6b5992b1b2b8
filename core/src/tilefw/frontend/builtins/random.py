"""philox, randint, rand, randn and their kin: integer arithmetic on counters, in Triton's order, so that every bit agrees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend.arithmetic import BINARY, add, compare, invert
from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins import math
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import bitcast, cast, constant, to_value
from tilefw.frontend.semantics import not_constexpr
from tilefw.frontend.values import RuntimeValue, describe

meaning = Meanings()

Four = tuple[RuntimeValue, RuntimeValue, RuntimeValue, RuntimeValue]


@dataclass(frozen=True, slots=True)
class _Generator:
    """The constants of one Philox: what the key grows by each round, and the multipliers of a round, for both of its halves."""

    key: tuple[int, int]
    round: tuple[int, int]


# Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11, section 3.3 and its Random123 library.
_GENERATORS: dict[tl.dtype, _Generator] = {
    tl.uint32: _Generator((0x9E3779B9, 0xBB67AE85), (0xD2511F53, 0xCD9E8D57)),
    tl.uint64: _Generator((0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B), (0xD2E7470EE14C6C93, 0xCA5A826395121157)),
}
# The largest float32 with which 2**31 - 1 (2**63 - 1), rounded to float32, gives less than 1: how Triton keeps 1 out.
_SCALES = {32: 4.6566127342e-10, 64: 1.0842020432385337e-19}
_LEAST_UNIFORM = 1.0e-7
_TURN = 6.283185307179586


@meaning("philox_impl")
def philox_impl(b: Builder, c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any, n_rounds: Any) -> Four:
    c0, c1, c2, c3, k0, k1 = (to_value(b, operand) for operand in (c0, c1, c2, c3, k0, k1))
    generator, rounds = _GENERATORS.get(c0.dtype), _rounds(n_rounds)
    if generator is None:
        raise CompileError(f"tl.philox_impl counts in uint32 or uint64, not {c0.dtype}", "TFW0209", help=_CAST_COUNTER)
    xor, multiply, (first, second) = BINARY["^"], BINARY["*"], generator.round
    for index in range(rounds):
        if index:
            k0, k1 = add(b, k0, generator.key[0]), add(b, k1, generator.key[1])
        low, high = c0, c2
        c0 = xor(b, xor(b, math.umulhi(b, second, high), c1), k0)
        c2 = xor(b, xor(b, math.umulhi(b, first, low), c3), k1)
        c1, c3 = multiply(b, second, high), multiply(b, first, low)
    return c0, c1, c2, c3


_CAST_COUNTER = "cast the counters first: `c0.to(tl.uint32)`"


def _rounds(n_rounds: Any) -> int:
    if isinstance(n_rounds, RuntimeValue):
        raise not_constexpr("n_rounds")
    if not isinstance(n_rounds, int):
        raise CompileError(f"n_rounds is a number of rounds, not {describe(n_rounds)}", "TFW0212")
    return n_rounds


@meaning("philox")
def philox(b: Builder, seed: Any, c0: Any, c1: Any, c2: Any, c3: Any, n_rounds: Any) -> Four:
    key, counters = _key(b, seed), [to_value(b, counter) for counter in (c0, c1, c2, c3)]
    bits = counters[0].dtype.primitive_bitwidth
    if bits == 32:
        element, key_high, key = tl.uint32, cast(b, BINARY[">>"](b, key, 32), tl.uint32), cast(b, key, tl.uint32)
    elif bits == 64:
        # One element and not a scalar: Triton's results have its shape where all counters are scalars.
        element, key_high = tl.uint64, constant(b, 0, tl.uint64, (1,))
    else:
        raise CompileError(
            f"tl.philox counts in 32 or 64 bits, but {counters[0].dtype} has {bits}", "TFW0209", help=_CAST_COUNTER
        )
    return philox_impl(b, *(bitcast(b, counter, element) for counter in counters), key, key_high, n_rounds)


def _key(b: Builder, seed: Any) -> RuntimeValue:
    value = to_value(b, seed)
    if not value.dtype.is_int():
        raise CompileError(f"a seed is an integer, not {value.dtype}", "TFW0209")
    return cast(b, value, tl.uint64)


@meaning("randint4x")
def randint4x(b: Builder, seed: Any, offset: Any, n_rounds: Any) -> Four:
    value = to_value(b, offset)
    low = cast(b, value, tl.uint32)
    zero = constant(b, 0, tl.uint32, value.shape)
    high = cast(b, BINARY[">>"](b, value, 32), tl.uint32) if value.dtype.primitive_bitwidth > 32 else zero
    return philox(b, seed, low, high, zero, zero, n_rounds)


@meaning("randint")
def randint(b: Builder, seed: Any, offset: Any, n_rounds: Any) -> RuntimeValue:
    return randint4x(b, seed, offset, n_rounds)[0]


@meaning("uint_to_uniform_float")
def uint_to_uniform_float(b: Builder, x: Any) -> RuntimeValue:
    value = to_value(b, x)
    math.require("uint_to_uniform_float", ("int32", "uint32", "int64", "uint64"), value)
    bits = value.dtype.primitive_bitwidth
    signed = cast(b, value, tl.int32 if bits == 32 else tl.int64)
    positive = math.where(b, compare(b, "<", signed, 0), invert(b, signed), signed)
    return BINARY["*"](b, positive, _SCALES[bits])


@meaning("rand")
def rand(b: Builder, seed: Any, offset: Any, n_rounds: Any) -> RuntimeValue:
    return uint_to_uniform_float(b, randint(b, seed, offset, n_rounds))


@meaning("rand4x")
def rand4x(b: Builder, seed: Any, offsets: Any, n_rounds: Any) -> Four:
    first, second, third, fourth = (uint_to_uniform_float(b, bits) for bits in randint4x(b, seed, offsets, n_rounds))
    return first, second, third, fourth


@meaning("pair_uniform_to_normal")
def pair_uniform_to_normal(b: Builder, u1: Any, u2: Any) -> tuple[RuntimeValue, RuntimeValue]:
    function, multiply = math.meaning.of, BINARY["*"]
    least = function["maximum"](b, _LEAST_UNIFORM, u1, tl.PropagateNan.NONE)
    angle = multiply(b, _TURN, to_value(b, u2))
    radius = function["sqrt"](b, multiply(b, -2.0, function["log"](b, least)))
    return multiply(b, radius, function["cos"](b, angle)), multiply(b, radius, function["sin"](b, angle))


@meaning("randn")
def randn(b: Builder, seed: Any, offset: Any, n_rounds: Any) -> RuntimeValue:
    first, second, _, _ = randint4x(b, seed, offset, n_rounds)
    return pair_uniform_to_normal(b, uint_to_uniform_float(b, first), uint_to_uniform_float(b, second))[0]


@meaning("randn4x")
def randn4x(b: Builder, seed: Any, offset: Any, n_rounds: Any) -> Four:
    first, second, third, fourth = rand4x(b, seed, offset, n_rounds)
    return (*pair_uniform_to_normal(b, first, second), *pair_uniform_to_normal(b, third, fourth))
