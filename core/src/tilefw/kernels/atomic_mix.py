"""One atomic of one kind on each element: every kind, type, order, scope and mask, alone at its address or with others.

What is stored must not depend on who comes first: where several elements meet at a cell, exchanges all bring the same value,
and old values are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.dtypes import dtype
from tilefw.api.errors import UsageError
from tilefw.api.integers import ceil_div, round_up
from tilefw.kernels import formats, generated, inputs
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters

_BITS = ("and", "or", "xor")


@cache
def function(operation: str) -> Any:
    """The jit function of one operation; what `compare` is, only a compare-and-swap asks, which takes no mask."""
    given = "pointer, compare, x" if operation == "cas" else "pointer, x, mask=mask"
    return generated.function(
        f"changed_by_{operation}", "pointer, x, compare, mask, ORDER: tl.constexpr, SCOPE: tl.constexpr",
        f"tl.atomic_{operation}({given}, sem=ORDER, scope=SCOPE)",
    )


@tilefw.jit
def atomic_mix(
    x_ptr, compare_ptr, memory_ptr, old_ptr, n, cells, FUNCTION: tl.constexpr, ORDER: tl.constexpr, SCOPE: tl.constexpr,
    MASK: tl.constexpr, SCALAR: tl.constexpr, BLOCK: tl.constexpr,
):
    index = tl.program_id(0)
    if not SCALAR:
        index = index * BLOCK + tl.arange(0, BLOCK)
    inside = index < n
    cell = index % cells
    x = tl.load(x_ptr + index, mask=inside, other=0)
    compare = x
    if compare_ptr is not None:
        compare = tl.load(compare_ptr + cell)
    mask = inside
    if MASK == "alternating":
        mask = inside & (index % 2 == 0)
    elif MASK == "single":
        mask = index == n // 2
    elif MASK == "never":
        mask = index < 0
    elif MASK == "data":
        mask = inside & (x > 0)
    if MASK == "none":
        old = FUNCTION(memory_ptr + cell, x, compare, None, ORDER, SCOPE)
    else:
        old = FUNCTION(memory_ptr + cell, x, compare, mask, ORDER, SCOPE)
    if old_ptr is not None:
        tl.store(old_ptr + index, old, mask=mask)


def _refuse_odd_requests(p: Parameters) -> None:
    operation, name = p["operation"], p["dtype"]
    kind = dtype(name)
    small = kind.bits < 32 and operation not in (("cas", "add") if kind.is_float else ("cas",))
    if (kind.is_float and operation in _BITS) or kind.bits < 16 or small:
        raise UsageError(f"atomic_mix: {operation} of {name}", code="TFW0942", note="`tilefw explain TFW0220` lists them")
    if operation == "cas" and p["mask"] != "none":
        raise UsageError("atomic_mix: cas with a mask", code="TFW0942", note="tl.atomic_cas takes none")
    if p["scope"] == "cta" and p["share"] > 1 and (p["scalar"] or p["n"] > p["block"]):
        raise UsageError(
            "atomic_mix: cells of several programs with the scope cta", code="TFW0942",
            note="such accesses are atomic within one program only: they would race",
        )


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    _refuse_odd_requests(p)
    name, block = p["dtype"], 1 if p["scalar"] else p["block"]
    n = round_up(p["n"], block) if p["mask"] == "none" else p["n"]
    cells = max(1, n // p["share"])
    memory, x = (inputs.draw(rng, p["inputs"], (cells,), name) for _ in range(2))
    compare = memory.array.copy()
    compare[1::2] = inputs.draw(rng, p["inputs"], (cells,), name).array[1::2]
    same_for_a_cell = p["operation"] in ("xchg", "cas")
    values = x.array[np.arange(n) % cells] if same_for_a_cell else inputs.draw(rng, p["inputs"], (n,), name).array
    arguments = {
        "x_ptr": Buffer(values, name),
        "compare_ptr": Buffer(compare, name) if p["operation"] == "cas" else None,
        "memory_ptr": memory,
        "old_ptr": inputs.empty((n,), name) if p["share"] == 1 else None,
        "n": n, "cells": cells,
    }
    constexprs = {
        "FUNCTION": function(p["operation"]), "ORDER": p["order"], "SCOPE": p["scope"], "MASK": p["mask"],
        "SCALAR": p["scalar"], "BLOCK": block,
    }
    outputs = ("memory_ptr", "old_ptr") if p["share"] == 1 else ("memory_ptr",)
    return Launch(arguments, constexprs, (max(1, ceil_div(n, block)), 1, 1), outputs, {"num_warps": p["num_warps"]})


_COMBINED: dict[str, np.ufunc] = {
    "add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}


def _masked(p: Parameters, x: np.ndarray) -> np.ndarray:
    """Which elements the kernel touches."""
    index = np.arange(x.size)
    return {
        "none": index >= 0, "tail": index >= 0, "alternating": index % 2 == 0, "single": index == x.size // 2, "never": index < 0,
        "data": x > 0,
    }[p["mask"]]


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    name, operation = p["dtype"], p["operation"]
    x, memory = (formats.decode(launch.buffer(argument).array, name) for argument in ("x_ptr", "memory_ptr"))
    touched = _masked(p, x)
    cell = np.arange(x.size) % memory.size
    after = memory.copy()
    with np.errstate(over="ignore"):
        if operation == "xchg":
            after[cell[touched]] = x[touched]
        elif operation == "cas":
            equal = memory == formats.decode(launch.buffer("compare_ptr").array, name)
            after = np.where(equal, x[: memory.size], memory)
        else:
            _COMBINED[operation].at(after, cell[touched], x[touched])
    found = {"memory_ptr": formats.wrap(after, name)}
    if p["share"] == 1:
        found["old_ptr"] = np.where(touched, memory, formats.decode(launch.buffer("old_ptr").array, name))
    return found


SPEC = KernelSpec("atomic_mix", atomic_mix, _prepare, _expected)
