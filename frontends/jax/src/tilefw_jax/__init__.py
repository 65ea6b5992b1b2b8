"""`tilefw_jax.jit(f, target=…)`: JAX traces a function, tilefw compiles what it does and runs it on a target."""

from __future__ import annotations

from tilefw_jax.target_function import TargetFunction, jit

__all__ = ["TargetFunction", "jit"]
