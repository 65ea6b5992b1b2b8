"""A kernel of the library as one launch specialises it: what the compiler reads, and what a launch passes at run time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilefw.kernels.reference import typed
from tilefw.kernels.spec import KernelSpec, Launch
from tilefw.runtime.compilation import kernel_source
from tilefw.runtime.jit import specialize


@dataclass(frozen=True, slots=True)
class Instance:
    """`values` are all arguments by name; `passed` those of them that are not constants of the compiled code, in order."""

    source: kernel_source.ModuleSource
    values: Mapping[str, Any]
    passed: Mapping[str, Any]


def instance(spec: KernelSpec, launch: Launch) -> Instance:
    """The instance of `spec` that `launch` asks for."""
    bound = {**{name: typed(value) for name, value in launch.arguments.items()}, **launch.constexprs}
    signature, constexprs, values = specialize(spec.kernel, {p.name: bound[p.name] for p in spec.kernel.params})
    passed = {name: values[name] for name, kind in signature.items() if not kind.endswith(":1")}  # an integer 1 is a constant
    return Instance(kernel_source.from_jit(spec.kernel, signature, constexprs), values, passed)
