"""Philox against the published answers and NumPy's own generator; what is made of its bits, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.errors import CompileError

# The file kat_vectors of Random123 1.14 (D. E. Shaw Research): rounds, bits of a word, counter and key, result.
PI = "243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0"
PI_64 = "243f6a8885a308d3 13198a2e03707344 a4093822299f31d0 082efa98ec4e6c89 452821e638d01377 be5466cf34e90c6c"
KNOWN = [
    (7, 32, " ".join(["00000000"] * 6), "5f6fb709 0d893f64 4f121f81 4f730a48"),
    (7, 32, " ".join(["ffffffff"] * 6), "5207ddc2 45165e59 4d8ee751 8c52f662"),
    (7, 32, PI, "4dfccaba 190a87f0 c47362ba b6b5242a"),
    (10, 32, " ".join(["00000000"] * 6), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    (10, 32, " ".join(["ffffffff"] * 6), "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (10, 32, PI, "d16cfe09 94fdcceb 5001e420 24126ea1"),
    (10, 64, " ".join(["0" * 16] * 6), "16554d9eca36314c db20fe9d672d0fdc d7e772cee186176b 7e68b68aec7ba23b"),
    (10, 64, " ".join(["f" * 16] * 6), "87b092c3013fe90b 438c3c67be8d0224 9cc7d7c69cd777b6 a09caebf594f0ba0"),
    (10, 64, PI_64, "a528f45403e61d95 38c72dbd566e9788 a5a1610e72fd18b5 57bd43b5e52b7fe6"),
]


@tilefw.jit
def rounds_of_philox(in_ptr, out_ptr, ROUNDS: tl.constexpr):
    c0, c1, c2, c3 = tl.load(in_ptr), tl.load(in_ptr + 1), tl.load(in_ptr + 2), tl.load(in_ptr + 3)
    found = tl.philox_impl(c0, c1, c2, c3, tl.load(in_ptr + 4), tl.load(in_ptr + 5), ROUNDS)
    for i in tl.static_range(4):
        tl.store(out_ptr + i, found[i])


def test_philox_gives_the_published_answers(everywhere: str) -> None:
    for rounds, bits, given, wanted in KNOWN:
        numbers, answers = (np.array([int(word, 16) for word in words.split()], f"uint{bits}") for words in (given, wanted))
        found = np.zeros_like(answers)
        rounds_of_philox[(1,)](numbers, found, ROUNDS=rounds)
        np.testing.assert_array_equal(found, answers)


@tilefw.jit
def philox_of_64_bits(out_ptr, seed, SIZE: tl.constexpr):
    places = tl.arange(0, SIZE)
    zero = tl.zeros((SIZE,), tl.int64)
    found = tl.philox(seed, places.to(tl.int64), zero, zero, zero)
    for i in tl.static_range(4):
        tl.static_assert(found[i].dtype == tl.uint64)
        tl.store(out_ptr + places * 4 + i, found[i])


@pytest.mark.parametrize("seed", [0, 7, 2**40 + 5, -1])
def test_philox_of_64_bits_is_numpys(seed: int) -> None:
    found = np.zeros((16, 4), np.uint64)
    philox_of_64_bits[(1,)](found, seed, SIZE=16)
    # NumPy counts up before it generates.
    theirs = np.random.Philox(counter=2**256 - 1, key=seed % 2**64).random_raw(64)
    np.testing.assert_array_equal(found.reshape(-1), theirs)


def philox(seed: int, offsets: np.ndarray, rounds: int = 10) -> list[np.ndarray]:
    """Philox4x32 as its paper has it, in Python's whole numbers: the counter is (low, high, 0, 0), the key the seed."""
    mask = 2**32 - 1
    c0, c1, c2, c3 = offsets & mask, (offsets >> 32) & mask, offsets * 0, offsets * 0
    k0, k1 = seed & mask, (seed >> 32) & mask
    for _ in range(rounds):
        high, low = 0xCD9E8D57 * c2, 0xD2511F53 * c0
        c0, c1, c2, c3 = (high >> 32) ^ c1 ^ k0, high & mask, (low >> 32) ^ c3 ^ k1, low & mask
        k0, k1 = (k0 + 0x9E3779B9) & mask, (k1 + 0xBB67AE85) & mask
    return [c.astype(np.uint32) for c in (c0, c1, c2, c3)]


@tilefw.jit
def random_tile(start_ptr, out_ptr, seed, SIZE: tl.constexpr, FUNCTION: tl.constexpr, ROUNDS: tl.constexpr):
    places = tl.arange(0, SIZE)
    found = getattr(tl, FUNCTION)(seed, tl.load(start_ptr) + places, ROUNDS)
    if FUNCTION == "randint4x":
        for i in tl.static_range(4):
            tl.store(out_ptr + places * 4 + i, found[i])
    else:
        tl.store(out_ptr + places, found)


STARTS = [np.int32(0), np.int32(-3), np.uint32(2**32 - 4), np.int64(2**40), np.int64(-70), np.uint64(2**63)]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("seed", [0, -1, 2**31, 2**63 + 11, -(2**63)])
def test_random_bits_depend_on_all_bits_of_seed_and_offset(start: np.generic, seed: int) -> None:
    offsets = (np.asarray(start) + np.arange(8, dtype=np.asarray(start).dtype)).astype(object)
    wanted = philox(seed, offsets if start.dtype.itemsize == 8 else offsets & (2**32 - 1), rounds=6)
    found = np.zeros((8, 4), np.uint32)
    random_tile[(1,)](np.array([start]), found, seed, SIZE=8, FUNCTION="randint4x", ROUNDS=6)
    np.testing.assert_array_equal(found, np.stack(wanted, axis=-1))


def test_uniform_numbers_are_the_scaled_bits(everywhere: str) -> None:
    bits = philox(42, np.arange(256).astype(object))[0].view(np.int32)
    wanted = np.where(bits < 0, ~bits, bits).astype(np.float32) * np.float32(4.6566127342e-10)
    found = np.zeros(256, np.float32)
    random_tile[(1,)](np.zeros(1, np.int32), found, 42, SIZE=256, FUNCTION="rand", ROUNDS=10)
    np.testing.assert_array_equal(found, wanted)
    assert found.min() >= 0 and found.max() < 1 and abs(found.mean() - 0.5) < 0.06


@tilefw.jit
def floats_of_bits(x_ptr, out_ptr, SIZE: tl.constexpr):
    places = tl.arange(0, SIZE)
    tl.store(out_ptr + places, tl.uint_to_uniform_float(tl.load(x_ptr + places)))


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_all_bits_give_floats_below_one(dtype: str, ran: Callable[..., np.ndarray]) -> None:
    bits = np.dtype(dtype).itemsize * 8
    ends = np.array([0, 1, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2**bits - 1, 2 ** (bits - 2), 3, 5], object)
    found = ran(floats_of_bits, ends.astype(f"uint{bits}").view(dtype), (8,), np.float32, SIZE=8)
    folded = np.minimum(ends, 2**bits - 1 - ends).astype(np.float64)
    assert (found >= 0).all() and (found < 1).all()
    np.testing.assert_allclose(found, folded / 2 ** (bits - 1), rtol=2**-22)


def test_normal_numbers_are_those_of_box_and_muller(everywhere: str) -> None:
    bits = [word.view(np.int32) for word in philox(9, np.arange(512).astype(object))[:2]]
    u1, u2 = (np.where(word < 0, ~word, word) * 4.6566127342e-10 for word in bits)
    wanted = np.sqrt(-2 * np.log(np.maximum(u1, 1e-7))) * np.cos(2 * np.pi * u2)
    found = np.zeros(512, np.float32)
    random_tile[(1,)](np.zeros(1, np.int32), found, 9, SIZE=512, FUNCTION="randn", ROUNDS=10)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=4e-6)  # of the angle, below 2π, half a unit is 2.4e-7, times 5.7
    assert abs(found.mean()) < 0.15 and abs(found.std() - 1) < 0.1


@tilefw.jit
def mistaken(out_ptr, seed, rounds, MISTAKE: tl.constexpr):
    places = tl.arange(0, 8)
    if MISTAKE == "seed":
        tl.store(out_ptr, tl.rand(1.5, places))
    elif MISTAKE == "rounds":
        tl.store(out_ptr, tl.rand(seed, places, rounds))
    elif MISTAKE == "part of a round":
        tl.store(out_ptr, tl.rand(seed, places, 2.5))  # pyright: ignore[reportArgumentType]
    elif MISTAKE == "counter":
        tl.store(out_ptr, tl.philox(seed, places.to(tl.int16), 0, 0, 0)[0])
    elif MISTAKE == "signed":
        tl.store(out_ptr, tl.philox_impl(places, places, places, places, places, places)[0])
    else:
        tl.store(out_ptr, tl.uint_to_uniform_float(places.to(tl.int16)))


@pytest.mark.parametrize(("mistake", "code", "message"), [
    ("seed", "TFW0209", "a seed is an integer, not fp32"), ("rounds", "TFW0106", "n_rounds must be known at compile time"),
    ("part of a round", "TFW0212", "n_rounds is a number of rounds, not constexpr 2.5"),
    ("counter", "TFW0209", "counts in 32 or 64 bits, but int16 has 16"), ("signed", "TFW0209", "uint32 or uint64, not int32"),
    ("floats", "TFW0209", "Expected dtype int32 or uint32 or int64 or uint64 for tl.uint_to_uniform_float, not int16"),
])
def test_mistakes_are_told(mistake: str, code: str, message: str) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        mistaken[(1,)](np.zeros(8, np.float32), 3, 7, MISTAKE=mistake)
    assert caught.value.code == code and caught.value.place is not None
