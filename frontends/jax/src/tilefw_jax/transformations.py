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
    computes the function again, as nothing is kept of the first run. Results that are no floats have none."""
    floats = [place for place, type in enumerate(types) if jnp.issubdtype(type.dtype, jnp.inexact)]

    @jax.custom_vjp
    def function(*leaves: Any) -> Any:
        return run(*leaves)

    def forward(*leaves: Any) -> tuple[Any, Any]:
        return run(*leaves), leaves

    gradient = compiled(_gradient(meaning, floats))

    def backward(leaves: Any, cotangent: Any) -> tuple[Any, ...]:
        given = [one for one in jax.tree.leaves(cotangent) if one.dtype != jax.dtypes.float0]
        found = dict(zip(floats, gradient(list(leaves), given), strict=True))
        return tuple(
            found[place] if place in found else np.zeros(leaf.shape, jax.dtypes.float0) for place, leaf in enumerate(leaves)
        )

    function.defvjp(forward, backward)
    return function


def _gradient(meaning: Function, floats: Sequence[int]) -> Function:
    """The product of cotangents with the derivative, of and by those leaves that are floats."""

    def gradient(leaves: list[Any], cotangents: list[Any]) -> tuple[Any, ...]:
        def of_floats(*given: Any) -> list[Any]:
            held = dict(zip(floats, given, strict=True))
            found = jax.tree.leaves(meaning(*(held.get(place, leaf) for place, leaf in enumerate(leaves))))
            return [one for one in found if jnp.issubdtype(jax.typeof(one).dtype, jnp.inexact)]

        _, back = jax.vjp(of_floats, *(leaves[place] for place in floats))
        return back(cotangents)

    return gradient
