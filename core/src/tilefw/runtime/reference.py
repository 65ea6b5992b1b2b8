"""`tilefw.reference`: what a kernel's result must be, as values with an error bound for every element; no array is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilefw.api.device import DEFAULT_BUDGET, Finding
from tilefw.api.errors import CompileError
from tilefw.runtime import jit
from tilefw.runtime.arguments.arrays import HostArray
from tilefw.runtime.arguments.binding import grid_of
from tilefw.runtime.checks.interpreted_launch import InterpretedLaunch
from tilefw.runtime.compilation.kernel_source import from_jit
from tilefw.runtime.diagnostics import check_error


@dataclass(frozen=True, slots=True)
class Expected:
    """An array argument after the launch, in its own shape.

    A result is right where it is within `bound` of `value` (float64; integers are exact and have bound 0). Where `free` is
    True the reference cannot tell: nobody wrote the element, or its bounds straddle a discontinuity.
    """

    value: np.ndarray
    bound: np.ndarray
    free: np.ndarray


@dataclass(frozen=True, slots=True)
class ReferenceResult:
    """Every array argument by name, and the warnings of the interpreter's checks."""

    arrays: Mapping[str, Expected]
    diagnostics: tuple[Finding, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Expected:
        return self.arrays[name]


def reference(kernel: Any, grid: Any, *args: Any, budget: int = DEFAULT_BUDGET, **keywords: Any) -> ReferenceResult:
    """Run a jit function's tile IR, as the front end makes it, on the reference interpreter, over copies of the arrays.

    `args` and `keywords` are those of a launch; launch keywords that shape code mean nothing here but `enable_fp_fusion`. Raises
    CompileError, LaunchError, and CheckError when a check of the interpreter found a fault.
    """
    if not isinstance(kernel, jit.JITFunction):
        raise CompileError(f"{kernel!r} is not a jit function", code="TFW0640", help="decorate the kernel with @tilefw.jit")
    bound, options = jit.bind(kernel, args, dict(keywords))
    signature, constexprs, values = jit.specialize(kernel, bound)
    extents = grid_of(grid(bound) if callable(grid) else grid)
    passed = {name: value for name, value in values.items() if not signature[name].endswith(":1")}
    launch = InterpretedLaunch(passed)
    module = from_jit(kernel, signature, constexprs).build()
    report = launch.run(module, extents, fusion=bool(options.get("enable_fp_fusion", True)), budget=budget)
    if any(finding.severity == "error" for finding in report.findings):
        raise check_error(report.findings)
    arrays = {name: _expected(host, *launch.below(host)) for name, host in launch.hosts.items()}
    return ReferenceResult(arrays, report.findings, report.counters)


def _expected(host: HostArray, offset: int, buffer: Any) -> Expected:
    from tilefw.tile.numbers import as_unsigned

    found = buffer.read_reference(host.dtype)
    size = host.dtype.storage_bits // 8
    strides = tuple(step // size for step in host.strides)

    def view(part: np.ndarray) -> np.ndarray:
        steps = tuple(step * part.itemsize for step in strides)
        return np.lib.stride_tricks.as_strided(part[offset // size :], host.shape, steps).copy()

    count = len(found.x)
    bound = np.zeros(count) if found.err is None else found.err
    free = np.zeros(count, bool) if found.free is None else found.free
    value = as_unsigned(found.x, host.dtype.bits) if host.dtype.kind == "uint" else found.x  # tile IR has signless integers
    return Expected(view(value), view(bound), view(free))
