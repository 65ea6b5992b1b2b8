"""A function with its gradient for JAX's transformations: both run on the target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

Function = Callable[..., Any]


def differentiable(
    run: Function, meaning: Function, types: Sequence[Any], compiled: Callable[[Function], Function]
) -> Function:
    """`run` of leaves of these types, with the gradient of `meaning`, which JAX can trace, as `compiled` makes it. The gradient
    computes the function again, as nothing is kept of the first run."""
    floats = [place for place, type in enumerate(types) if jnp.issubdtype(type.dtype, jnp.inexact)]

    @jax.custom_vjp
    def function(*leaves: Any) -> Any:
        return run(*leaves)

    def forward(*leaves: Any) -> tuple[Any, Any]:
        return run(*leaves), leaves

    gradient = compiled(_gradient(meaning, floats))

    def backward(leaves: Any, cotangent: Any) -> tuple[Any, ...]:
        found = dict(zip(floats, gradient(list(leaves), cotangent), strict=True))
        return tuple(
            found[place] if place in found else np.zeros(leaf.shape, jax.dtypes.float0) for place, leaf in enumerate(leaves)
        )

    function.defvjp(forward, backward)
    return function


def _gradient(meaning: Function, floats: Sequence[int]) -> Function:
    """The product of a cotangent with the derivative, by those leaves that are floats."""

    def gradient(leaves: list[Any], cotangent: Any) -> tuple[Any, ...]:
        def of_floats(*given: Any) -> Any:
            held = dict(zip(floats, given, strict=True))
            return meaning(*(held.get(place, leaf) for place, leaf in enumerate(leaves)))

        _, back = jax.vjp(of_floats, *(leaves[place] for place in floats))
        return back(cotangent)

    return gradient
