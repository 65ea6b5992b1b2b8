"""Estimates rank configurations as the detailed model does where the reason is plain, and read work from tile IR by its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilefw.api.backend import CompileOptions
from tilefw.api.errors import LaunchError
from tilefw.kernels.estimated import KernelEstimates
from tilefw.kernels.spec import load
from tilefw.kernels.tuning import Search, Trial
from tilefw.passes.pipeline import default_passes
from tilefw.runtime.estimates import FEW
from tilefw.runtime.plugins.loader import find_target
from tilefw.tile.text.module import parse
from tilefw.timing.estimate.machine_work import WavesOfChip, work_on
from tilefw.timing.estimate.program_parts import WorkRegion
from tilefw.timing.estimate.program_work import program_work

LOOP = """
func.func public @kernel(
  %x: !tile.ptr<f32> {tile.name = "x"}, %out: !tile.ptr<f32> {tile.name = "out"}, %n: i32 {tile.name = "n"}
) {
  %zero = tile.constant 0 : i32
  %step = tile.constant 64 : i32
  %at = tile.iota 0 to 64
  %first = tile.constant 0.0 : tensor<64xf32>
  %sum = scf.for %i = %zero to %n step %step iter_args(%acc = %first) -> (tensor<64xf32>) : i32 {
    %start = tile.splat %i : i32 to tensor<64xi32>
    %places = tile.addi %start, %at : tensor<64xi32>
    %part = tile.load %x[%places] : !tile.ptr<f32>[tensor<64xi32>]
    %next = tile.addf %acc, %part : tensor<64xf32>
    scf.yield %next : tensor<64xf32>
  }
  tile.store %out[%at], %sum : !tile.ptr<f32>[tensor<64xi32>]
  func.return
}
"""


def test_a_program_is_read_with_the_numbers_of_its_launch() -> None:
    module = parse(LOOP, "loop.mlir")
    work = program_work(module, {"n": 1024}, {"x": 4096, "out": 256}, (10, 1, 1))
    loop = next(item for item in work.whole.items if isinstance(item, WorkRegion))
    load = next(part for part in loop.parts() if part.what == "load")
    assert loop.times == 16 and work.programs == 10
    assert (load.nbytes, load.chunks, load.run, load.argument) == (256, 8, 64, 0)
    assert load.advance == 256, "the next turn begins where this one ends"
    store = next(part for part in work.whole.parts() if part.what == "store")
    assert store.argument == 1 and store.nbytes == 256


@pytest.mark.parametrize("target", ["nvidia-sm80", "amd-cdna3"])
def test_turns_that_go_through_a_line_bring_its_bytes_once(target: str) -> None:
    short = LOOP.replace("64", "16")
    work = program_work(parse(short, "loop.mlir"), {"n": 1024}, {"x": 4096, "out": 64}, (10, 1, 1))
    backend = find_target(target).backend
    lanes = backend.lane_machine(CompileOptions())
    assert lanes is not None
    assert work_on(WavesOfChip(backend.timing(), lanes, 1), work.whole).moved[0] == 4096, "64 bytes a turn, whatever a line has"


def test_simplified_tile_ir_has_the_same_work() -> None:
    module = parse(LOOP, "loop.mlir")
    for one in default_passes(None, lambda _: False, False):
        one.apply(None, module)  # type: ignore[arg-type]
    work = program_work(module, {"n": 1024}, {}, (10, 1, 1))
    loop = next(item for item in work.whole.items if isinstance(item, WorkRegion))
    assert loop.times == 16 and sum(part.nbytes for part in loop.parts()) == 256


def test_an_unsigned_argument_may_have_the_highest_bit() -> None:
    work = program_work(parse(LOOP, "loop.mlir"), {"n": 2**64 - 64}, {}, (1, 1, 1))
    assert next(item.times for item in work.whole.items if isinstance(item, WorkRegion)) == 0, "the loop compares signed numbers"


TWICE = """
func.func public @kernel(%out: !tile.ptr<i32> {tile.name = "out"}, %n: i32 {tile.name = "n"}) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %before = tile.constant 5 : i32
  %after = tile.constant 7 : i32
  %count = scf.for %i = %zero to %n step %one iter_args(%held = %before) -> (i32) : i32 {
    scf.yield %after : i32
  }
  scf.for %j = %zero to %count step %one : i32 {
    tile.store %out, %j : !tile.ptr<i32>
  }
  func.return
}
"""


@pytest.mark.parametrize(("n", "turns"), [(0, 5), (2, 7)])
def test_a_loop_without_a_turn_gives_what_it_was_given(n: int, turns: int) -> None:
    work = program_work(parse(TWICE, "twice.mlir"), {"n": n}, {}, (1, 1, 1))
    assert [item.times for item in work.whole.items if isinstance(item, WorkRegion)] == [n, turns]


WALK = """
func.func public @kernel(%ends: !tile.ptr<i32> {tile.name = "ends"}, %out: !tile.ptr<i32> {tile.name = "out"}) {
  %one = tile.constant 1 : i32
  %me = tile.program_id 0
  %end = tile.load %ends[%me] : !tile.ptr<i32>[i32]
  %zero = tile.constant 0 : i32
  %last = scf.while (%at = %zero) : (i32) -> i32 {
    %more = tile.lts %at, %end : i32
    scf.condition(%more) %at : i32
  } do {
  ^bb0(%b: i32):
    %next = tile.addi %b, %one : i32
    scf.yield %next : i32
  }
  %old = tile.atomic_rmw add relaxed device %out, %last : !tile.ptr<i32>
  func.return
}
"""


def test_programs_that_differ_are_read_all_over_the_grid() -> None:
    ends = np.arange(10, dtype=np.int64)
    work = program_work(parse(WALK, "walk.mlir"), {}, {"ends": 40, "out": 4}, (10, 1, 1), {"ends": ends})
    turns = [next(item.times for item in one.items if isinstance(item, WorkRegion)) for one in (work.whole, *work.others)]
    assert turns == [5, 0, 3, 6, 9], "as many as what each reads says: the middle, the first, two between, the last"
    assert next(part.contended for part in work.whole.parts() if part.what == "atomic") == 1.0, "all programs want one address"


def test_lengths_that_a_kernel_of_the_library_draws_are_read_as_long_as_they_are_few() -> None:
    estimates = KernelEstimates(load("ragged_sums"), {"rows": FEW, "columns": 300}, find_target("nvidia-sm80"))
    estimates({"block": 64})
    (work,) = estimates.works
    turns = [next(item.times for item in one.items if isinstance(item, WorkRegion)) for one in (work.whole, *work.others)]
    assert turns[1] == 0 and max(turns) > 1, "the first row is empty by its kernel, others are as they are drawn"


@pytest.mark.parametrize("target", ["nvidia-sm80", "amd-cdna3"])
@pytest.mark.parametrize(("kernel", "given", "better", "worse"), [
    ("elementwise", {"n": 1 << 18, "operation": "erf"}, {"block": 1024, "num_warps": 4}, {"block": 4096, "num_warps": 1}),
    ("matmul", {"m": 512, "n": 512, "k": 512}, {"block_m": 64, "block_n": 64}, {"block_m": 256, "block_n": 256}),
    ("softmax", {"rows": 512, "columns": 4096}, {"block": 4096, "programs": 256}, {"block": 256, "programs": 256}),
])
def test_few_workgroups_and_small_tiles_are_slow(target: str, kernel: str, given: Any, better: Any, worse: Any) -> None:
    estimates = KernelEstimates(load(kernel), given, find_target(target))
    assert estimates(better).seconds * 1.2 < estimates(worse).seconds


def test_who_waits_at_the_same_addresses_is_slow() -> None:
    estimates = KernelEstimates(load("histogram"), {"n": 131072}, find_target("nvidia-sm80"))
    one, two = (estimates({"block": block}).seconds for block in (2048, 1024))
    assert one * 1.2 < two, "a processor that has two workgroups of 1,024 elements waits for 108 others that have as many"


def test_a_search_times_the_best_by_estimates_as_long_as_they_leave_it_open() -> None:
    real = {size: abs(size - 40) + 10.0 for size in range(0, 100, 5)}
    asked: list[int] = []

    def timer(configurations: Any, best: float | None) -> Any:
        asked.extend(one["size"] for one in configurations)
        return [Trial(one, real[one["size"]]) for one in configurations]

    def search(estimate: Any, part: float) -> Any:
        asked.clear()
        return Search({"size": sorted(real)}, {"size": 0}, timer, estimate, timed_part=part).run()

    assert search(lambda one: real[one["size"]] * 3, 1.0).configuration == {"size": 40}
    assert len(asked) == 1, "nobody else is within twice the band of estimates"
    assert search(lambda one: 10 + abs(one["size"] - 45) / 50, 0.25).configuration == {"size": 40}
    assert len(asked) == 5, "a part of all, where estimates do not tell"


def test_of_many_configurations_those_on_the_way_of_descents_are_estimated() -> None:
    over = {name: range(10) for name in "abcd"}
    found = Search(over, dict.fromkeys(over, 0), lambda some, _: [Trial(one, sum(map(abs, one.values()))) for one in some],
                   lambda one: 1.0 + sum((value - 7) ** 2 for value in one.values()))
    assert found.run().configuration == dict.fromkeys(over, 7)  # type: ignore[union-attr]
    assert len(found.estimates) < 1000 < found.size


def test_a_descent_leaves_a_start_that_is_refused() -> None:
    over, asked = {name: range(10) for name in "abcd"}, []

    def estimate(one: Any) -> float:
        if one["a"] not in (1, 2, 3):  # nor where other descents begin
            raise LaunchError("there is no such launch", "TFW0305")
        return 1.0 + one["a"]

    found = Search(over, dict.fromkeys(over, 0), lambda some, _: [Trial(one, 1.0) for one in some], estimate,
                   estimated=asked.append)
    assert found.ranked()[0][0] == 2.0 and asked == list(range(1, len(found.estimates) + 1))


def test_who_says_which_part_is_timed_gets_it() -> None:
    def timed(part: float | None) -> int:
        search = Search({"size": range(1000)}, {"size": 0}, lambda some, _: [Trial(one, 1.0) for one in some], lambda _: 1.0,
                        only=[{"size": size} for size in range(1000)], timed_part=part)
        search.run()
        return len(search.trials)

    assert (timed(None), timed(0.04)) == (16, 40)
