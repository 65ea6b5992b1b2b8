"""Several chips give one chip's results at the cycles that the scheduler tells, and nothing depends on when each chip began."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import launches
import numpy as np
import pytest
from graph_evaluator import GraphEvaluator
from launches import LibraryLaunch, bound

from tilefw.api import LaunchError, UnsupportedError
from tilefw.kernels.spec import load as kernel_named
from tilefw.kernels.verify import verify
from tilefw_spatial import container
from tilefw_spatial.arrange.stores import unconditional
from tilefw_spatial.check import check
from tilefw_spatial.elements import on_machine_types
from tilefw_spatial.graph import Graph
from tilefw_spatial.lower import lower
from tilefw_spatial.machine import load
from tilefw_spatial.partition import node_options
from tilefw_spatial.partition.exchange import same_data
from tilefw_spatial.partition.strategies import gathered_split, shares
from tilefw_spatial.pipeline import compile_kernel
from tilefw_spatial.program import ChipCode, QueueInst, SpatialProgram
from tilefw_spatial.simulate.device import simulate
from tilefw_spatial.simulate.transfers import HostBuffer
from tilefw_spatial.stream_program import LinkStreamOp
from tilefw_spatial.tick import TickArray
from tilefw_spatial.tick import simulate as simulate_slowly

MACHINE = load()
SMALL = {"m": 24, "n": 20, "k": 40}
LAUNCHES: list[tuple[str, dict[str, Any], int, str]] = [
    ("matmul", {"m": 70, "n": 150, "k": 100}, 8, "n"),
    ("softmax", {"rows": 5, "columns": 40}, 3, "n"),
    ("vector_add", {"n": 3}, 4, "n"),
    ("matmul", {"m": 70, "n": 90, "k": 700}, 4, "k"),
    ("matmul", {"m": 33, "n": 50, "k": 170, "bias": True, "activation": "relu"}, 3, "k"),
    ("int8_matmul", {"m": 40, "n": 30, "k": 700}, 2, "k"),
    ("matmul", {"m": 128, "n": 128, "k": 608}, 3, "k"),  # in whole sets of weights the chips' sums would have different layouts
    ("matmul", {"m": 33, "n": 50, "k": 170}, 4, "gather"),
    ("attention", {"queries": 33, "keys": 40, "heads": 1}, 2, "gather"),
    ("attention", {"queries": 33, "keys": 40}, 2, "stages"),
    ("layernorm", {"rows": 4, "columns": 50}, 2, "stages"),
]


def program(launch: LibraryLaunch, chips: int, split: str) -> SpatialProgram:
    """As it comes back from its file."""
    made = compile_kernel(launch.module(), launch.launch, MACHINE, chips, split)
    assert {schedule.cycles for schedule in made.schedules} == {made.program.cycles}
    return container.read(container.write(made.program), "program")


def memory(launch: LibraryLaunch) -> list[np.ndarray]:
    """A copy of the launch's storages."""
    return [storage.copy() for storage in launches.memory(launch.passed)]


def hosts(kind: type, launch: LibraryLaunch, made: SpatialProgram, stores: list[np.ndarray]) -> list[Any]:
    """What a simulator takes for each parameter."""
    places = [launch.launch.buffers.get(parameter.name) for parameter in made.parameters]
    return [None if place is None else kind("", stores[place.storage], place.offset) for place in places]


@pytest.mark.parametrize(("kernel", "parameters", "chips", "split"), LAUNCHES)
def test_results_are_right_and_the_prediction_too(kernel: str, parameters: Mapping[str, Any], chips: int, split: str) -> None:
    keywords = {"chips": chips, "split": split}
    verdict = verify(kernel_named(kernel), dict(parameters), "spatial-sdm1", executor="sim", keywords=keywords)
    assert verdict.ok, verdict.failed
    assert verdict.counters["cycles"] == verdict.counters["cycles_predicted"]


@pytest.mark.parametrize("split", ["n", "k", "gather"])
def test_the_checker_proves_every_arrival(split: str) -> None:
    made = program(bound("matmul", {"m": 40, "n": 50, "k": 330}), 4, split)
    assert check(made, MACHINE) == []
    assert len(made.chips) == 4
    sent = sum(inst.op == "SND" for code in made.chips for queue in code.queues.values() for inst in queue)
    assert bool(sent) == (split != "n")


@pytest.mark.parametrize("split", ["n", "k", "gather"])
def test_both_simulators_agree(split: str) -> None:
    launch = bound("matmul", SMALL)
    made = program(launch, 2, split)
    fast, slow = memory(launch), memory(launch)
    first = simulate(made, MACHINE, hosts(HostBuffer, launch, made, fast))
    second = simulate_slowly(made, MACHINE, hosts(TickArray, launch, made, slow))
    assert (first.findings.all, second.findings) == ((), ())
    assert first.cycles == second.cycles == made.cycles
    assert all(np.array_equal(a, b) for a, b in zip(fast, slow, strict=True))


def test_what_is_gathered_is_sent_once() -> None:
    """Second copies of what the host fills cost nothing; of what comes by links they cost the links' time again."""
    launch = bound("matmul", {"m": 400, "n": 3000, "k": 700})
    stream_program = gathered_split(lower(launch.module(), launch.launch), 4, load())
    sent = list({id(step.array): step.array for step in stream_program.order if isinstance(step, LinkStreamOp)}.values())
    assert sent
    assert not any(same_data(one, other) for number, one in enumerate(sent) for other in sent[:number])


def begun_late(made: SpatialProgram, late: tuple[int, ...]) -> SpatialProgram:
    """The program on chips whose counters are behind by so many cycles."""
    codes = []
    for code, cycles in zip(made.chips, late, strict=True):
        ahead = (QueueInst("NOP", imm=cycles),) if cycles else ()
        codes.append(ChipCode({name: (*ahead, *queue) for name, queue in code.queues.items()}, code.maps))
    return replace(made, chips=tuple(codes))


@pytest.mark.parametrize("late", [(0, 251), (100, 0), (251, 251)])
def test_chips_that_begin_apart_meet_at_an_epoch(late: tuple[int, ...]) -> None:
    launch = bound("matmul", SMALL)
    made = program(launch, 2, "k")
    together, apart = memory(launch), memory(launch)
    simulate(made, MACHINE, hosts(HostBuffer, launch, made, together))
    ran = simulate(begun_late(made, late), MACHINE, hosts(HostBuffer, launch, made, apart))
    assert (ran.findings.all, ran.cycles) == ((), made.cycles)
    assert all(np.array_equal(a, b) for a, b in zip(together, apart, strict=True))


def test_a_chip_that_begins_after_the_epoch_is_found_out() -> None:
    launch = bound("matmul", SMALL)
    made = begun_late(program(launch, 2, "k"), (0, 252))
    ran = simulate(made, MACHINE, hosts(HostBuffer, launch, made, memory(launch)))
    assert {finding.code for finding in ran.findings.all} >= {"TFW0840"}


@pytest.mark.parametrize(("kernel", "parameters"), [
    ("softmax", {"rows": 5, "columns": 40}), ("matmul", SMALL), ("transpose", {}), ("rope", {}), ("embedding", {}),
])
@pytest.mark.parametrize("chips", [2, 7])
def test_shares_of_a_graph_are_the_graph(kernel: str, parameters: dict[str, Any], chips: int) -> None:
    launch = bound(kernel, parameters)
    graph = on_machine_types(lower(launch.module(), launch.launch))
    parts = shares(Graph(unconditional(graph.stores)), chips)
    whole, divided = memory(launch), memory(launch)
    names = [name for name, value in launch.instance.passed.items() if value is not None]
    buffers = {names.index(name): buffer for name, buffer in launch.launch.buffers.items()}
    GraphEvaluator(whole, buffers).run(graph)
    begin = [store.copy() for store in divided]
    for part in parts:
        stores = [store.copy() for store in begin]
        GraphEvaluator(stores, buffers).run(Graph(list(part.values())))
        for store, old, new in zip(divided, begin, stores, strict=True):
            store[old != new] = new[old != new]
    assert all(np.array_equal(a, b) for a, b in zip(whole, divided, strict=True))


@pytest.mark.parametrize(("kernel", "split", "code", "said"), [
    ("softmax", "k", "TFW0656", "has none"), ("attention", "k", "TFW0656", "has 22"),
    ("matmul", "stages", "TFW0658", "2 chips need 2 stages, and this one has 1"),
])
def test_what_a_split_does_not_serve_is_refused_by_name(kernel: str, split: str, code: str, said: str) -> None:
    launch = bound(kernel, {})
    with pytest.raises(UnsupportedError) as error:
        compile_kernel(launch.module(), launch.launch, MACHINE, 2, split)
    assert error.value.code == code
    assert error.value.message.endswith(said)


@pytest.mark.parametrize("given", [{"chips": 0}, {"chips": 9}, {"chips": "two"}, {"chips": 2, "split": "m"}])
def test_chips_and_ways_that_there_are_not(given: dict[str, Any]) -> None:
    with pytest.raises(LaunchError) as error:
        node_options(given, MACHINE)
    assert error.value.code == "TFW0655"
