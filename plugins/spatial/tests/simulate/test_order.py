"""Bursts that overlap in time on rows or accumulators have the results of the order of cycles."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made import MACHINE, allocation, kinds, matrix, program, run

from tilefw_spatial.isa import ACCUMULATE_FLAG, PUT_FLAG
from tilefw_spatial.program import HostTensor, QueueInst

N = 40
VXM, EAST = MACHINE.position("VXM"), MACHINE.position("MXM.E")
GENERATOR = np.random.default_rng(11)


def at(unit: str) -> int:
    return MACHINE.position(unit)


def feed(name: str, passes: int, where: int, stream: int, count: int, row: int = 0) -> tuple[int, QueueInst]:
    """The RD whose first vector passes position `where` at cycle `passes`."""
    return passes - 5 - abs(where - at(name)), QueueInst("RD", "", count, dst=stream, address=row, step=1)


def test_a_sum_over_time_that_an_alu_keeps_by_itself() -> None:
    """An ALU that takes its own result of 4 cycles ago: four interleaved sums; the burst is cut by its own operand."""
    start = 80
    timed = {
        "MEM.W0": [feed("MEM.W0", start, VXM, 0, N)],
        "VXM.1": [
            (start, QueueInst("MOV", "uint8", 4, a=0, dst=8, flags=PUT_FLAG, map=kinds(0))),
            (start + 4, QueueInst("ADD", "uint8", N - 4, a=0, b=1, dst=8, flags=PUT_FLAG, map=kinds(0, 1))),
        ],
        "MEM.E0": [(start + 4 + 1 - 2, QueueInst("WR", "", N, a=8, address=0, step=1))],
    }
    x = GENERATOR.integers(0, 256, (N, 320)).astype(np.uint8)
    z = np.zeros_like(x)
    tensors = [
        HostTensor("x", "in", allocation("uint8", N, [("MEM.W0", 0, 0)]), (matrix(0, N),)),
        HostTensor("z", "out", allocation("uint8", N, [("MEM.E0", 0, 0)]), (matrix(1, N),)),
    ]
    done = run(program(timed, tensors, [("x", "uint8"), ("z", "uint8")]), x, z)
    assert not done.findings.all
    assert np.array_equal(z, np.cumsum(x.reshape(N // 4, 4, 320), axis=0, dtype=np.uint8).reshape(N, 320))


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("chase", [-30, 0, 7, 30])
def test_a_drain_beside_products_sees_each_accumulator_as_it_is_then(step: int, chase: int) -> None:
    """Ones times ones set rows to 1, then a burst adds 1 to each while a drain, upwards or downwards, passes it at any distance."""
    weights, first, latency = 100, 200, MACHINE.delays["multiply_int8"]
    second = first + N
    drained = second + latency + chase
    timed: dict = {f"MEM.E{i}": [feed(f"MEM.E{i}", weights, EAST, i, 1)] for i in range(16)}
    timed["MEM.E20"] = [feed("MEM.E20", first, EAST, 16, N), feed("MEM.E20", second, EAST, 16, N)]
    timed["MXM.E0.LW"] = [(weights, QueueInst("LW", "int8", 1, a=0)), (weights + 1, QueueInst("IW", "int8"))]
    timed["MXM.E0.MAC"] = [
        (first, QueueInst("MAC", "int8", N, a=16, address=0, step=1, imm=16)),
        (second, QueueInst("MAC", "int8", N, a=16, address=0, step=1, imm=16, flags=ACCUMULATE_FLAG)),
    ]
    begin = 0 if step > 0 else N - 1
    timed["MXM.E0.DRN"] = [(drained, QueueInst("DRN", "int32", N, dst=32, address=begin, step=step))]
    for p in range(4):
        way = EAST - at(f"MEM.W{p}")
        timed[f"MEM.W{p}"] = [(drained + 4 + way - 2, QueueInst("WR", "", N, a=32 + p, address=0, step=1))]
    tensors = [
        HostTensor("w", "in", allocation("int8", 16, [(f"MEM.E{i}", 0, 0) for i in range(16)], 16), (matrix(0, 16),)),
        HostTensor("x", "in", allocation("int8", N, [("MEM.E20", 0, 0)]), (matrix(1, N),)),
        HostTensor("z", "out", allocation("int32", N, [(f"MEM.W{p}", 0, 0) for p in range(4)]), (matrix(2, N),)),
    ]
    z = np.zeros((N, 320), np.int32)
    ones = np.ones((N, 320), np.int8)
    done = run(program(timed, tensors, [("w", "int8"), ("x", "int8"), ("z", "int32")]), ones[:16].copy(), ones, z)
    rows = begin + step * np.arange(N)
    times = drained + np.arange(N)
    counted = 16 * ((first + rows + latency <= times).astype(int) + (second + rows + latency <= times))
    unset = counted == 0
    assert np.array_equal(z[~unset], np.repeat(counted[~unset, None], 320, axis=1))
    assert [f.code for f in done.findings.all] == (["TFW0833"] * 4 if unset.any() else [])


def test_weights_change_within_a_burst_of_products() -> None:
    """The second IW takes effect while a burst multiplies: what issues from then on has the new weights."""
    weights, first, change = 100, 200, 13
    timed: dict = {
        f"MEM.E{i}": [feed(f"MEM.E{i}", weights + 10 * k, EAST, i, 1, k) for k in range(2)] for i in range(16)
    }
    timed["MEM.E20"] = [feed("MEM.E20", first, EAST, 16, N)]
    timed["MXM.E0.LW"] = [
        (weights, QueueInst("LW", "int8", 1, a=0, imm=0)), (weights + 1, QueueInst("IW", "int8", imm=0)),
        (weights + 10, QueueInst("LW", "int8", 1, a=0, imm=1)), (first + change - 20, QueueInst("IW", "int8", imm=1)),
    ]
    timed["MXM.E0.MAC"] = [(first, QueueInst("MAC", "int8", N, a=16, address=0, step=1, imm=16))]
    drained = first + MACHINE.delays["multiply_int8"]
    timed["MXM.E0.DRN"] = [(drained, QueueInst("DRN", "int32", N, dst=32, address=0, step=1))]
    for p in range(4):
        timed[f"MEM.W{p}"] = [(drained + 4 + EAST - at(f"MEM.W{p}") - 2, QueueInst("WR", "", N, a=32 + p, address=0, step=1))]
    tensors = [
        HostTensor("w", "in", allocation("int8", 32, [(f"MEM.E{i}", 0, 0) for i in range(16)], 16), (matrix(0, 32),)),
        HostTensor("x", "in", allocation("int8", N, [("MEM.E20", 0, 0)]), (matrix(1, N),)),
        HostTensor("z", "out", allocation("int32", N, [(f"MEM.W{p}", 0, 0) for p in range(4)]), (matrix(2, N),)),
    ]
    x = GENERATOR.integers(-128, 128, (N, 320), np.int8)
    w = GENERATOR.integers(-128, 128, (32, 320), np.int8)
    z = np.zeros((N, 320), np.int32)
    done = run(program(timed, tensors, [("w", "int8"), ("x", "int8"), ("z", "int32")]), w, x, z)
    assert not done.findings.all
    wide = x[:, :16].astype(np.int32)
    assert np.array_equal(z[:change], wide[:change] @ w[:16].astype(np.int32))
    assert np.array_equal(z[change:], wide[change:] @ w[16:].astype(np.int32))


@pytest.mark.parametrize("split", [3, 12, 24])
def test_a_reduction_waits_for_vectors_that_another_burst_brings(split: int) -> None:
    """Sums of 8 successive vectors, whose reads change slices within a group; results come each 8 cycles and are stored by REP."""
    start, every = 100, 8
    timed = {
        "MEM.W0": [feed("MEM.W0", start, VXM, 0, split)],
        "MEM.W1": [feed("MEM.W1", start + split, VXM, 0, N - split)],
        "VXM.0": [(start, QueueInst("TRED.add", "uint8", N, a=0, dst=8, step=every, flags=PUT_FLAG, map=kinds(0)))],
        "MEM.E0": [
            (start + every - 1 + 4 + 1 - 2, QueueInst("WR", "", 1, a=8, address=5, step=1)),
            (start + every - 1 + 4, QueueInst("REP", "", N // every - 1, imm=every, step=2)),
        ],
    }
    x = GENERATOR.integers(0, 256, (N, 320)).astype(np.uint8)
    z = np.zeros((N // every, 320), np.uint8)
    tensors = [
        HostTensor("x", "in", allocation("uint8", split, [("MEM.W0", 0, 0)]), (matrix(0, split),)),
        HostTensor("y", "in", allocation("uint8", N - split, [("MEM.W1", 0, 0)]), (matrix(1, N - split),)),
        *(
            HostTensor(
                f"z{i}", "out", allocation("uint8", 1, [("MEM.E0", 0, 5 + 2 * i)]), (matrix(2 + i, 1),)
            ) for i in range(N // every)
        ),
    ]
    names = [("x", "uint8"), ("y", "uint8"), *((f"z{i}", "uint8") for i in range(N // every))]
    done = run(program(timed, tensors, names), x[:split].copy(), x[split:].copy(), *z)
    assert not done.findings.all
    assert np.array_equal(z, x.reshape(-1, every, 320).sum(axis=1, dtype=np.uint8))


def test_a_repeated_read_sees_what_a_write_just_before_it_stores() -> None:
    """WR at 124 stores at 126; an RD of the same row at 125 and again at 199 reads the old row, then the new one."""
    timed = {
        "MEM.E0": [(126 - 5 - 4, QueueInst("RD", "", 1, dst=0, address=0))],
        "MEM.E4": [
            (124, QueueInst("WR", "", 1, a=0, address=5)), (
                125, QueueInst("RD", "", 1, dst=8, address=5)
            ), (126, QueueInst("REP", "", 1, imm=74)),
        ],
        "MEM.E6": [(125 + 5 + 2 - 2, QueueInst("WR", "", 1, a=8, address=0)), (131, QueueInst("REP", "", 1, imm=74, step=1))],
    }
    tensors = [
        HostTensor("x", "in", allocation("uint8", 1, [("MEM.E0", 0, 0)]), (matrix(0, 1),)),
        HostTensor("old", "in", allocation("uint8", 1, [("MEM.E4", 0, 5)]), (matrix(1, 1),)),
        HostTensor("z", "out", allocation("uint8", 2, [("MEM.E6", 0, 0)]), (matrix(2, 2),)),
    ]
    x, old = GENERATOR.integers(0, 256, (2, 1, 320)).astype(np.uint8)
    z = np.zeros((2, 320), np.uint8)
    done = run(program(timed, tensors, [("x", "uint8"), ("old", "uint8"), ("z", "uint8")]), x, old, z)
    assert not done.findings.all
    assert np.array_equal(z, np.concatenate([old, x]))
