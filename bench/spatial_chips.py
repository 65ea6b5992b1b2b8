"""Four chips against one on a matrix product: cycles predicted and simulated, what the links bound, and how far results are apart.

    python bench/spatial_chips.py [--size 4096] [--chips 4] [--split n ...] [--report bench/spatial-chips.md]

The bound of the links counts bytes alone: what one link must carry, by the bytes of a vector and the cycles that it takes. For
`gather` that is a chip's part of A; for `k` a chip's sums of the block that another owns (fp32), and its finished block (fp16).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilefw.api import LaunchArguments
from tilefw.api.integers import ceil_div
from tilefw.api.ir import context
from tilefw.kernels.instance import instance
from tilefw.kernels.spec import load as kernel_named
from tilefw.passes.pipeline import default_passes
from tilefw.runtime.arguments.bound_launch import launch_of
from tilefw_spatial.machine import Machine, load
from tilefw_spatial.pipeline import compile_kernel
from tilefw_spatial.simulate.device import simulate
from tilefw_spatial.simulate.transfers import HostBuffer
from tilefw_spatial.target import SDM1

CONFIGURATIONS = ("one chip", "n", "gather", "k")


@dataclass(frozen=True, slots=True)
class Product:
    """C = A · B of one size in fp16, bound to its arrays."""

    size: int
    module: Any
    launch: LaunchArguments
    names: Sequence[str]
    arrays: dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Ran:
    """One configuration: cycles of the scheduler and of the simulator, seconds of each, and the result."""

    configuration: str
    predicted: int
    cycles: int
    scheduling: float
    simulating: float
    memory: int
    result: np.ndarray


def product(size: int) -> Product:
    """A launch of the library's matmul; A and B are uniform in [-1, 1]."""
    spec = kernel_named("matmul")
    prepared = spec.prepare(spec.resolve({"m": size, "n": size, "k": size}), np.random.default_rng(0))
    made = instance(spec, prepared)
    rng = np.random.default_rng(1)
    arrays = {name: rng.uniform(-1, 1, (size, size)).astype(np.float16) for name in ("a_ptr", "b_ptr")}
    arrays["out_ptr"] = np.zeros((size, size), np.float16)
    values = {name: arrays.get(name, value) for name, value in made.passed.items() if value is not None}
    launch = launch_of(SDM1, values, (*prepared.grid, 1, 1)[:3])
    assert launch is not None
    module = made.source.build()
    for step in default_passes(launch):
        step.apply(context(), module)
    return Product(size, module, launch, list(values), arrays)


def ran(found: Product, configuration: str, chips: int, machine: Machine) -> Ran:
    """Compile and simulate one configuration."""
    begin = time.perf_counter()
    split = (1, "n") if configuration == "one chip" else (chips, configuration)
    made = compile_kernel(found.module, found.launch, machine, *split)
    scheduled = time.perf_counter()
    out = np.zeros_like(found.arrays["out_ptr"])
    arrays = {name: array.reshape(-1).view(np.uint8) for name, array in {**found.arrays, "out_ptr": out}.items()}
    names = [parameter.name for parameter in made.program.parameters]
    done = simulate(made.program, machine, [HostBuffer(name, arrays[name], 0) if name in arrays else None for name in names])
    if done.findings.all:
        raise SystemExit(f"{configuration}: {done.findings.all[0].message}")
    memory = max(schedule.used for schedule in made.schedules)
    return Ran(configuration, made.program.cycles, done.cycles, scheduled - begin, time.perf_counter() - scheduled, memory, out)


def link_bound(configuration: str, size: int, chips: int, machine: Machine) -> int | None:
    """Cycles that a link needs for the bytes it must carry, whatever else happens."""
    part = size * size // chips
    if configuration not in ("gather", "k"):
        return None
    sent_bytes = part * 2 if configuration == "gather" else part * (4 + 2)
    return ceil_div(sent_bytes, machine.lanes) * machine.link_interval


def apart(one: Ran, other: Ran, found: Product, chips: int) -> float:
    """The largest difference of two results over what rounding allows: of sums of K / 160 terms in fp32, added over the chips, and
    of the result in fp16."""
    a, b = (np.abs(found.arrays[name]).astype(np.float32) for name in ("a_ptr", "b_ptr"))
    sums = a @ b
    terms = ceil_div(found.size, 160) + chips
    allowed = 2 * (terms * 2.0**-24 * 1.01 * sums + 2.0**-11 * np.abs(one.result.astype(np.float32)) + 2.0**-24)
    return float((np.abs(one.result.astype(np.float32) - other.result.astype(np.float32)) / allowed).max())


def rows(results: Sequence[Ran], found: Product, chips: int, machine: Machine) -> list[str]:
    """The table, a configuration a row."""
    one = results[0]
    lines = [
        "| split | predicted cycles | simulated | times one chip | link bound | over it | memory of a chip | difference / allowed "
        "| schedule s | simulate s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        bound = link_bound(result.configuration, found.size, chips, machine)
        over = "" if bound is None else f"{100 * (result.cycles / bound - 1):.2f} %"
        lines.append(
            f"| {result.configuration} | {result.predicted:,} | {result.cycles:,} | {one.cycles / result.cycles:.3f} "
            f"| {'' if bound is None else f'{bound:,}'} | {over} | {result.memory / machine.capacity:.1%} "
            f"| {apart(one, result, found, chips):.3g} | {result.scheduling:.1f} | {result.simulating:.1f} |"
        )
    return lines


def main() -> None:
    parse = argparse.ArgumentParser(description="one chip and several on a matrix product of fp16")
    parse.add_argument("--size", type=int, default=4096)
    parse.add_argument("--chips", type=int, default=4)
    parse.add_argument("--split", nargs="*", default=list(CONFIGURATIONS[1:]), choices=CONFIGURATIONS[1:])
    parse.add_argument("--report", type=Path)
    args = parse.parse_args()
    machine, found = load(), product(args.size)
    results: list[Ran] = []
    for configuration in ("one chip", *args.split):
        results.append(ran(found, configuration, args.chips, machine))
        print(configuration, results[-1].predicted, results[-1].cycles, flush=True)
    title = f"# {args.chips} chips and one: [{args.size} × {args.size}] · [{args.size} × {args.size}], fp16"
    text = "\n".join([title, "", "Made by `python bench/spatial_chips.py`; its docstring explains the columns.", "",
                      *rows(results, found, args.chips, machine)])
    print(text)
    if args.report:
        args.report.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
