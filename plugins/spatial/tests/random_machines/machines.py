"""Machine files drawn at random, and what becomes of a launch on one: right, or refused with the stage or for its memory."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from launches import LibraryLaunch, bound
from test_machine_file import lanes, ran, text_of

from tilefw.api import CapacityError, CompileError
from tilefw_spatial.machine import Machine, load, read
from tilefw_spatial.pipeline import compile_kernel

LAUNCHES: Mapping[str, Mapping[str, Any]] = {
    "vector_add": {"n": 1500}, "softmax": {"rows": 5, "columns": 40}, "matmul": {"m": 40, "n": 30, "k": 50},
    "transpose": {"rows": 20, "columns": 30}, "column_sum": {"rows": 12, "columns": 40},
    "embedding": {"tokens": 9, "vocabulary": 21, "columns": 30},
}
SMALL = {"n": 700}
"""Parameters of a `vector_add` for tests that run on several machines."""
RIGHT, MEMORY = "right", "too little memory"
# What a refusal says: each stage with what it cannot work with, or the memory that is too small.
_STAGE = re.compile(r"(the instruction words|the units across superlanes|arrange|chain|schedule|partition|lower|emit) needs ")
_MEMORY = re.compile(r"no slices of drawn are left|bytes of memory")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a launch: `RIGHT` with its cycles, `MEMORY`, or the stages that cannot work with the machine."""

    word: str
    cycles: int = 0


def drawn(rng: random.Random) -> Machine:
    """A machine that differs from the packaged one in a few of its counts and delays; most of them every stage can work with."""
    superlanes = rng.choice((4, 7, 10, 12, 16, 20))
    step = rng.choice((1, 2, 3, 4, 8))
    counts = {
        **(lanes(superlanes) if rng.random() < 0.6 else {}),
        "slices": rng.randint(12, 60), "banks": rng.choice((1, 2)), "rows": rng.choice((256, 512, 1000, 2048, 4096)),
        "alus": rng.randint(2, 16), "delay_step": step, "delay_steps": rng.randint(1, 4),
        "accumulator_rows": rng.choice((32, 100, 1024, 4096)), "accumulator_banks": rng.choice((1, 2)),
        "epoch": rng.randint(200, 400),
    }
    delays = {
        "read": rng.randint(1, 12), "write": rng.randint(1, 9), "gather": rng.randint(4, 15), "scatter": rng.randint(1, 9),
        "alu": step, "transcendental": step * rng.randint(1, 6), "multiply_pair": rng.randint(20, 40),
        "multiply_int8": rng.randint(30, 60), "drain": rng.randint(2, 12), "switch": rng.randint(2, 9),
        "load_weights": rng.randint(20, 40), "install_weights": rng.randint(20, 40), "notify": rng.randint(20, 60),
    }
    kept = {name: number for name, number in counts.items() if rng.random() < 0.5 or name in lanes(1) or name.startswith("delay")}
    slower = {name: number for name, number in delays.items() if rng.random() < 0.5 or name in ("alu", "transcendental")}
    return read(text_of("drawn", kept, slower))


def outcome(machine: Machine, kernel: str, parameters: Mapping[str, Any]) -> Outcome:
    """Run a launch, or see why not. What it stores is what the packaged machine stores, its cycles are those predicted."""
    launch, usual = _usual(kernel, tuple(parameters.items()))
    try:
        program = compile_kernel(launch.module(), launch.launch, machine, 1, "k").program
    except CapacityError as error:
        assert _MEMORY.search(error.message), error
        return Outcome(MEMORY)
    except CompileError as error:
        stages = _STAGE.findall(error.message)
        assert error.code == "TFW0739" and stages, error
        return Outcome(", ".join(dict.fromkeys(stages)))
    assert all(np.array_equal(a, b) for a, b in zip(usual, ran(launch, program, machine), strict=True)), "other results"
    return Outcome(RIGHT, program.cycles)


@cache
def _usual(kernel: str, parameters: tuple[tuple[str, Any], ...]) -> tuple[LibraryLaunch, Sequence[np.ndarray]]:
    """A launch, and the memory after it on the packaged machine."""
    launch = bound(kernel, dict(parameters))
    return launch, ran(launch, compile_kernel(launch.module(), launch.launch, load(), 1, "k").program, load())
