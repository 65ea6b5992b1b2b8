"""out = f(x, y, z) for one elementwise operation of the language, any element type: `elementwise_table.py` has the operations."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.dtypes import dtype
from tilefw.api.errors import UsageError
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs
from tilefw.kernels.elementwise_table import OPERATIONS, Operation, function
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def elementwise(
    x_ptr, y_ptr, z_ptr, out_ptr, n, FUNCTION: tl.constexpr, OPERANDS: tl.constexpr, WIDENED: tl.constexpr, BLOCK: tl.constexpr,
):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    y = x
    z = x
    if OPERANDS > 1:
        y = tl.load(y_ptr + offsets, mask=inside)
    if OPERANDS > 2:
        z = tl.load(z_ptr + offsets, mask=inside)
    if WIDENED:
        x = x.to(tl.float32)
        y = y.to(tl.float32)
        z = z.to(tl.float32)
    tl.store(out_ptr + offsets, FUNCTION(x, y, z), mask=inside)


def _operands(operation: Operation) -> int:
    """How many of x, y, z it reads: the last named one counts."""
    words = operation.text.replace("(", " ").replace(")", " ").replace(",", " ").split()
    return max(index for index, name in enumerate("xyz", 1) if name in words or f"-{name}" in words or f"~{name}" in words)


def _operand(p: Parameters, rng: np.random.Generator) -> Buffer:
    drawn = inputs.draw(rng, p["inputs"], (p["n"],), p["dtype"])
    divides = p["operation"] in ("rem", "quotient") and dtype(p["dtype"]).is_int
    return inputs.nonzero(drawn) if divides else drawn


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    operation = OPERATIONS[p["operation"]]
    if p["dtype"] not in operation.types:
        raise UsageError(
            f"elementwise: {p['operation']} of {p['dtype']}", code="TFW0942", note=f"it is there for {', '.join(operation.types)}",
        )
    count = _operands(operation)
    arguments = {
        "x_ptr": inputs.draw(rng, p["inputs"], (p["n"],), p["dtype"]),
        "y_ptr": _operand(p, rng) if count > 1 else None, "z_ptr": _operand(p, rng) if count > 2 else None,
        "out_ptr": inputs.empty((p["n"],), operation.result or p["dtype"]), "n": p["n"],
    }
    grid = (max(1, ceil_div(p["n"], p["block"])), 1, 1)
    constexprs = {
        "FUNCTION": function(p["operation"]), "OPERANDS": count,
        "WIDENED": operation.widened and p["dtype"] not in ("fp64", "fp32"), "BLOCK": p["block"],
    }
    return Launch(arguments, constexprs, grid, ("out_ptr",), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    operation, name = OPERATIONS[p["operation"]], p["dtype"]
    given = ["x_ptr" if launch.arguments[argument] is None else argument for argument in ("x_ptr", "y_ptr", "z_ptr")]
    x, y, z = (formats.decode(launch.buffer(argument).array, name) for argument in given)
    found = operation.numpy(x, y, z)
    return {"out_ptr": formats.wrap(found, operation.result or name)}


SPEC = KernelSpec("elementwise", elementwise, _prepare, _expected)
