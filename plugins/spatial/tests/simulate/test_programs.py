"""Programs by hand give what their instructions mean, in the cycles that the machine's delays add up to."""

import numpy as np
import pytest
from hand_made import MACHINE, allocation, kinds, matrix, program, run

from tilefw_spatial.isa import ACCUMULATE_FLAG, HALF_FLAG, PUT_FLAG
from tilefw_spatial.program import HostTensor, QueueInst

N = 24
GENERATOR = np.random.default_rng(3)


def at(unit: str) -> int:
    return MACHINE.position(unit)


def addition(shift: int = 0):
    """x + y of fp32: eight slices of the west, streams sE0-7, one ALU, four slices of the east. y comes `shift` cycles late."""
    due = 60
    timed = {}
    for i in range(8):
        name = f"MEM.W{i}"
        late = shift if i == 4 else 0
        timed[name] = [(due - 5 - (46 - at(name)) + late, QueueInst("RD", "", N, dst=i, address=100, step=1))]
    timed["VXM.3"] = [(due, QueueInst("ADD", "fp32", N, a=0, b=4, dst=8, flags=PUT_FLAG, map=kinds(0, 0)))]
    for p in range(4):
        name = f"MEM.E{p}"
        timed[name] = [(due + 4 + at(name) - 46 - 2, QueueInst("WR", "", N, a=8 + p, address=4096 + 7, step=1))]
    tensors = [
        HostTensor("x", "in", allocation("fp32", N, [(f"MEM.W{i}", 0, 100) for i in range(4)]), (matrix(0, N),)),
        HostTensor("y", "in", allocation("fp32", N, [(f"MEM.W{i}", 0, 100) for i in range(4, 8)]), (matrix(1, N),)),
        HostTensor("z", "out", allocation("fp32", N, [(f"MEM.E{p}", 1, 7) for p in range(4)]), (matrix(2, N),)),
    ]
    return program(timed, tensors, [("x", "fp32"), ("y", "fp32"), ("z", "fp32")]), due


def test_an_addition_is_right_and_takes_the_cycles_of_its_way() -> None:
    made, due = addition()
    x, y, z = GENERATOR.standard_normal((3, N, 320)).astype(np.float32)
    done = run(made, x, y, z)
    assert not done.findings.all
    assert np.array_equal(z, x + y)
    # The last store: the last point's result at MEM.E3, one cycle more for counting from 0, and the skew of 20 superlanes.
    assert done.cycles == due + N - 1 + 4 + (at("MEM.E3") - 46) + 1 + 19


@pytest.mark.parametrize("shift", [-1, 1])
def test_a_plane_that_comes_a_cycle_early_or_late_is_a_missing_operand(shift: int) -> None:
    made, due = addition(shift)
    done = run(made, *np.zeros((3, N, 320), np.float32))
    (finding,) = done.findings.all
    assert finding.code == "TFW0830"
    assert "sE4 at VXM" in finding.message
    assert f"cycle {due if shift > 0 else due + N - 1}" in finding.message


@pytest.mark.parametrize("dtype", ["fp16", "int8"])
@pytest.mark.parametrize("half", [0, 1])
def test_products_accumulate_over_two_sets_of_weights(dtype: str, half: int) -> None:
    """a0 · w0 + a1 · w1 on the east side, weights in two buffers, the second loaded and installed while the first multiplies."""
    kind = np.float16 if dtype == "fp16" else np.int8
    b = np.dtype(kind).itemsize
    depth = 160 if dtype == "fp16" else 320
    half = half if dtype == "fp16" else 0
    activations, weights = (
        GENERATOR.standard_normal(s).astype(kind) if b == 2 else GENERATOR.integers(-128, 128, s, kind)
        for s in ((2 * N, 320), (2 * depth, 320))
    )
    latency = MACHINE.delays["multiply_pair" if b == 2 else "multiply_int8"]
    timed: dict = {}
    per = 16 // b  # rows of K a cycle
    vectors, cycles = 2 * depth, depth // per
    load = [100, 120]
    for i in range(16):  # weights: row r of each cycle, byte p; groups interleave rows
        name = f"MEM.E{i}"
        way = 5 + at("MXM.E") - at(name)
        timed[name] = [(load[k] + k - way, QueueInst("RD", "", cycles, dst=i, address=k * cycles, step=1)) for k in range(2)]
    first = load[0] + cycles + 20
    second = max(load[1] + cycles + 20, first + N)
    timed["MXM.E0.LW"] = [
        (load[0], QueueInst("LW", dtype, cycles, a=0, imm=0)), (load[0] + cycles, QueueInst("IW", dtype, imm=0)),
        (load[1] + 1, QueueInst("LW", dtype, cycles, a=0, imm=1)), (second - 20, QueueInst("IW", dtype, imm=1)),
    ]
    flags = HALF_FLAG if half else 0
    timed["MXM.E0.MAC"] = [
        (first, QueueInst("MAC", dtype, N, a=16, address=5, step=1, imm=depth, flags=flags)),
        (second, QueueInst("MAC", dtype, N, a=16, address=5, step=1, imm=depth, flags=flags | ACCUMULATE_FLAG)),
    ]
    for p in range(b):
        name = f"MEM.E{20 + p}"
        way = 5 + at("MXM.E") - at(name)
        timed[name] = [(first - way, QueueInst("RD", "", N, dst=16 + p, address=0, step=1)),
                       (second - way, QueueInst("RD", "", N, dst=16 + p, address=N, step=1))]
    drained = second + latency
    timed["MXM.E0.DRN"] = [(drained, QueueInst("DRN", "fp32" if b == 2 else "int32", N, dst=32, address=5, step=1))]
    for p in range(4):
        name = f"MEM.W{p}"
        timed[name] = [(drained + 4 + at("MXM.E") - at(name) - 2, QueueInst("WR", "", N, a=32 + p, address=0, step=1))]
    places = [(f"MEM.E{r * b + p}", 0, 0) for p in range(b) for r in range(per)]
    result = "fp32" if b == 2 else "int32"
    tensors = [
        HostTensor("a", "in", allocation(dtype, 2 * N, [(f"MEM.E{20 + p}", 0, 0) for p in range(b)]), (matrix(0, 2 * N),)),
        HostTensor("w", "in", allocation(dtype, vectors, places, per), (matrix(1, vectors),)),
        HostTensor("c", "out", allocation(result, N, [(f"MEM.W{p}", 0, 0) for p in range(4)]), (matrix(2, N),)),
    ]
    made = program(timed, tensors, [("a", dtype), ("w", dtype), ("c", result)])
    c = np.zeros((N, 320), np.float32 if b == 2 else np.int32)
    done = run(made, activations, weights, c)
    assert [f.message for f in done.findings.all] == []
    lanes = slice(160 * half, 160 * half + depth)
    wide = np.float64 if b == 2 else np.int64
    x, w = activations[:, lanes].astype(wide), weights.astype(wide)
    parts = [(x[k * N : (k + 1) * N] @ w[k * depth : (k + 1) * depth]).astype(c.dtype) for k in range(2)]
    assert np.array_equal(c, parts[0] + parts[1])
    assert done.cycles == drained + 4 + at("MXM.E") - at("MEM.W3") + N - 1 + 1 + 19
