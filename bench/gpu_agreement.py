"""The simulator against the card: the same machine code over the same inputs, and every bit of the results compared."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from gpu_vendors import VENDORS
from library import Work
from reports import table
from works import every_kernel

from tilefw.api import KernelError
from tilefw.api.dtypes import dtype
from tilefw.kernels.index import KERNELS
from tilefw.kernels.reference import typed
from tilefw.kernels.spec import Launch
from tilefw.runtime.executor import Executor
from tilefw.runtime.plugins.loader import find_target

# Their programs add floats in whatever order they come.
_ANY_ORDER = {"split_k_matmul", "locked_accumulate", "atomic_mix"}


def works(kernels: Sequence[str]) -> Iterator[Work]:
    """Each kernel's defaults, products of every type, attention; those of the named kernels alone, where some are named."""
    types = next(parameter.choices for parameter in KERNELS["matmul"].parameters if parameter.name == "dtype")
    more = [Work("matmul", {"dtype": name}, label=f"matmul, {name}") for name in types]
    more += [
        Work("attention", {"head_size": 128, "causal": causal}, label=f"attention, head 128{', causal' if causal else ''}")
        for causal in (False, True)
    ]
    yield from (work for work in (*every_kernel(), *more) if not kernels or work.name in kernels)


def agreement(asked: Any) -> tuple[list[str], bool]:
    """The lines of the page, and whether both sides agree in every bit where they must."""
    vendor = VENDORS[asked.vendor]
    made = vendor.simulator(asked.target, asked.card.info.chip)
    if made is not None:
        find_target(asked.target).executors["sim"] = Executor(made.device)
    rows, same, compared, unequal = [], 0, 0, False
    for work in works(asked.kernels):
        print(f"  {work.shown}", file=sys.stderr)
        try:
            (simulated, code), (real, _) = (run(work, asked.target, executor) for executor in ("sim", "hw"))
        except KernelError as error:
            rows.append([work.shown, "", "", f"not run: {error.message.partition(chr(10))[0]}"])
            continue
        elements, different, furthest = difference(simulated, real)
        compared += 1
        same += different == 0
        if different:
            why = "programs add in any order" if work.name in _ANY_ORDER else vendor.approximate(code)
            unequal = unequal or not why
            apart = f"at most {furthest} units in the last place"
            rows.append([work.shown, str(elements), str(different), f"{apart}; {why}" if why else apart])
    lines = [
        f"{same} of {compared} launches of library kernels give the same bits on the simulator (matrix arithmetic `hw`) and on",
        "the card." + (f" {made.note}" if made is not None else ""),
    ]
    if rows:
        lines += ["", *table(["launch", "elements", "that differ", ""], rows)]
    return lines, compared > 0 and not unequal


def run(work: Work, target: str, executor: str) -> tuple[Launch, str]:
    """The launch after it has run, with its outputs, and its machine code as text."""
    launch = work.launch()
    arguments = {name: typed(value) for name, value in launch.arguments.items()}
    keywords = {"target": target, "executor": executor, "numerics": "hw", "checks": "none"}
    result = work.spec.kernel[launch.grid](**arguments, **launch.constexprs, **launch.keywords, **keywords)
    return launch, result.artifact.text


def difference(one: Launch, other: Launch) -> tuple[int, int, int]:
    """How many elements the outputs have, how many differ in a bit, and by how many units in the last place at most."""
    elements = different = furthest = 0
    for name in one.outputs:
        mine, theirs = one.buffer(name), other.buffer(name)
        width = mine.array.dtype.itemsize
        codes = [np.ascontiguousarray(buffer.array).view(f"u{width}").reshape(-1) for buffer in (mine, theirs)]
        unequal = codes[0] != codes[1]
        elements += unequal.size
        different += int(unequal.sum())
        if unequal.any():
            places = [_place(code[unequal], 8 * width, dtype(mine.dtype).is_float) for code in codes]
            furthest = max(furthest, max(abs(a - b) for a, b in zip(*places, strict=True)))
    return elements, different, furthest


def _place(codes: np.ndarray, bits: int, is_float: bool) -> list[int]:
    """Where each value stands among all of its type, so that neighbours are one apart: a float's code has its sign apart."""
    half = 1 << (bits - 1)
    values = [int(code) for code in codes]
    return [half - value if value >= half else value for value in values] if is_float else values
