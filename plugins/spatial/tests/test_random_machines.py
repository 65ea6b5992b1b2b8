"""Machines drawn at random: a launch on one is right and takes the predicted cycles, or an error names what the machine lacks."""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from launches import bound
from test_machine_file import lanes, ran, text_of

from tilefw.api import CapacityError, CompileError
from tilefw_spatial.machine import Machine, load, read
from tilefw_spatial.pipeline import compile_kernel

LAUNCHES: list[tuple[str, dict[str, Any]]] = [
    ("vector_add", {"n": 1500}), ("softmax", {"rows": 5, "columns": 40}), ("matmul", {"m": 40, "n": 30, "k": 50}),
    ("transpose", {"rows": 20, "columns": 30}), ("column_sum", {}), ("embedding", {}),
]
# What a refusal says: the stage and the number of the machine that it cannot work with, or the memory that is too small.
STAGE = re.compile(r"(the instruction words|the units across superlanes|arrange|chain|schedule|partition|lower|emit) needs ")
MEMORY = re.compile(r"no slices of drawn are left|bytes of memory")


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


def outcome(machine: Machine, kernel: str, parameters: dict[str, Any]) -> str:
    """Run a launch, or see why not: `right`, `stage` or `memory`. What it stores is what the packaged machine stores."""
    launch = bound(kernel, parameters)
    try:
        made = compile_kernel(launch.module(), launch.launch, machine, 1, "k").program
    except CapacityError as error:
        assert MEMORY.search(error.message), error
        return "memory"
    except CompileError as error:
        assert error.code == "TFW0739" and STAGE.search(error.message), error
        return "stage"
    usual = compile_kernel(launch.module(), launch.launch, load(), 1, "k").program
    assert all(np.array_equal(a, b) for a, b in zip(ran(launch, usual, load()), ran(launch, made, machine), strict=True))
    return "right"


@pytest.mark.parametrize("seed", range(3))
def test_a_machine_works_or_the_error_names_what_it_lacks(seed: int) -> None:
    rng = random.Random(seed)
    machine = drawn(rng)
    outcomes = [outcome(machine, *launch) for launch in rng.sample(LAUNCHES, 2)]
    assert len(outcomes) == 2


def test_most_drawn_machines_work() -> None:
    found = Counter(outcome(drawn(random.Random(100 + seed)), "vector_add", {"n": 700}) for seed in range(4))
    assert found["right"] >= 3, found


@pytest.mark.campaign
def test_hundreds_of_machines_work_or_say_what_they_lack() -> None:
    found: Counter[str] = Counter()
    for seed in range(1000, 1300):
        machine = drawn(random.Random(seed))
        found.update(outcome(machine, *launch) for launch in LAUNCHES)
    assert found["right"] > 1000, found
