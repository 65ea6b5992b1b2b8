"""Random numbers that depend on a seed and a counter alone: Philox (Salmon et al., SC11), bit for bit as Triton's."""

from __future__ import annotations

from typing import Any

from tilefw.language.markers import builtin
from tilefw.language.tensor import tensor

N_ROUNDS_DEFAULT = 10


@builtin
def philox_impl(
    c0: tensor, c1: tensor, c2: tensor, c3: tensor, k0: tensor, k1: tensor, n_rounds: int = N_ROUNDS_DEFAULT
) -> tuple[tensor, tensor, tensor, tensor]:
    """`n_rounds` rounds of Philox on the counter (c0, c1, c2, c3) with the key (k0, k1): Philox4x32 where `c0` is uint32,
    Philox4x64 where it is uint64.
    """
    ...


@builtin
def philox(
    seed: Any, c0: Any, c1: Any, c2: Any, c3: Any, n_rounds: int = N_ROUNDS_DEFAULT
) -> tuple[tensor, tensor, tensor, tensor]:
    """Four random values of the counter (c0, c1, c2, c3), whose bits are read as uint32, or as uint64 where `c0` has 64 bits.

    `seed` is an integer. Its two halves are the key of Philox4x32; Philox4x64 has the key (seed, 0).
    """
    ...


@builtin
def randint(seed: Any, offset: tensor, n_rounds: int = N_ROUNDS_DEFAULT) -> tensor:
    """A random uint32 for each element of `offset`: the first of `randint4x`."""
    ...


@builtin
def randint4x(seed: Any, offset: tensor, n_rounds: int = N_ROUNDS_DEFAULT) -> tuple[tensor, tensor, tensor, tensor]:
    """Four random uint32 for each element of `offset`, an integer of up to 64 bits; one call costs little more than `randint`."""
    ...


@builtin
def uint_to_uniform_float(x: tensor) -> tensor:
    """A float32 in [0, 1) for random bits: 32 or 64 of them, signed or unsigned."""
    ...


@builtin
def rand(seed: Any, offset: tensor, n_rounds: int = N_ROUNDS_DEFAULT) -> tensor:
    """A random float32, uniform in [0, 1), for each element of `offset`."""
    ...


@builtin
def rand4x(seed: Any, offsets: tensor, n_rounds: int = N_ROUNDS_DEFAULT) -> tuple[tensor, tensor, tensor, tensor]:
    """Four random float32, uniform in [0, 1), for each element of `offsets`."""
    ...


@builtin
def pair_uniform_to_normal(u1: tensor, u2: tensor) -> tuple[tensor, tensor]:
    """Two normal values of two uniform ones, by Box and Muller; float32, float64. `u1` counts as 1e-7 at least."""
    ...


@builtin
def randn(seed: Any, offset: tensor, n_rounds: int = N_ROUNDS_DEFAULT) -> tensor:
    """A random float32 of mean 0 and variance 1, normally distributed, for each element of `offset`."""
    ...


@builtin
def randn4x(seed: Any, offset: tensor, n_rounds: int = N_ROUNDS_DEFAULT) -> tuple[tensor, tensor, tensor, tensor]:
    """Four random float32 of mean 0 and variance 1, normally distributed, for each element of `offset`."""
    ...
