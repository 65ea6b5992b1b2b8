"""Switches, gathers, scatters, links and notifications do what the table of instructions says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hand_made import MACHINE, allocation, counted, matrix, program, run

from tilefw_spatial.program import ChipCode, HostTensor, QueueInst

GENERATOR = np.random.default_rng(5)
N = 6


def at(unit: str) -> int:
    return MACHINE.position(unit)


def switched(inst: QueueInst, planes: int, results: int, maps: tuple = ()) -> tuple[np.ndarray, np.ndarray]:
    """`planes` streams from MEM.E0.. through SXM.E at cycle 100, back to MEM.W0..: what went in and what came out, by plane."""
    delay = {"LSH": 24, "PRM": 24, "DST": 4, "SELL": 4, "TRN": 20}[inst.op]
    timed: dict = {"SXM.E2": [(100, inst)]}
    tensors = []
    for p in range(planes):
        name = f"MEM.E{p}"
        timed[name] = [(100 - 5 - at("SXM.E") + at(name), QueueInst("RD", "", N, dst=p, address=0, step=1))]
        tensors.append(HostTensor(f"x{p}", "in", allocation("uint8", N, [(name, 0, 0)]), (matrix(p, N),)))
    for p in range(results):
        name = f"MEM.W{p}"
        timed[name] = [(100 + delay + at("SXM.E") - at(name) - 2, QueueInst("WR", "", N, a=32 + p, address=0, step=1))]
        tensors.append(HostTensor(f"z{p}", "out", allocation("uint8", N, [(name, 0, 0)]), (matrix(planes + p, N),)))
    x = GENERATOR.integers(0, 256, (planes, N, 320)).astype(np.uint8)
    z = np.zeros((results, N, 320), np.uint8)
    done = run(program(timed, tensors, [(t.name, "uint8") for t in tensors], maps), *x, *z)
    assert not done.findings.all
    return x, z


@pytest.mark.parametrize("by", [-320, -17, 0, 1, 300])
def test_lanes_shift_and_zeros_come_in(by: int) -> None:
    x, z = switched(QueueInst("LSH", "fp16", N, a=0, dst=32, step=by), 2, 2)
    want = np.zeros_like(x)
    for lane in range(320):
        if 0 <= lane - by < 320:
            want[..., lane] = x[..., lane - by]
    assert np.array_equal(z, want)


def test_lanes_permute_by_a_map() -> None:
    source = tuple(int(i) for i in GENERATOR.integers(-1, 320, 320))
    x, z = switched(QueueInst("PRM", "uint8", N, a=0, dst=32, map=0), 1, 1, (source,))
    assert np.array_equal(z, np.where(np.array(source) >= 0, x[..., np.maximum(source, 0)], 0))


def test_lanes_distribute_within_a_superlane() -> None:
    source = tuple(i // 16 * 16 + i * 7 % 16 for i in range(320))
    x, z = switched(QueueInst("DST", "uint8", N, a=0, dst=32, map=0), 1, 1, (source,))
    assert np.array_equal(z, x[..., source])


def test_lanes_of_two_vectors_merge() -> None:
    chosen = GENERATOR.integers(-1, 1, 320)
    x, z = switched(QueueInst("SELL", "uint8", N, a=0, b=1, dst=32, map=0), 2, 1, (tuple(int(i) for i in chosen),))
    assert np.array_equal(z[0], np.where(chosen >= 0, x[0], x[1]))


def test_sixteen_streams_transpose_in_each_superlane() -> None:
    x, z = switched(QueueInst("TRN", "", N, a=0, dst=32), 16, 16)
    for superlane in range(20):
        lanes = slice(superlane * 16, superlane * 16 + 16)
        assert np.array_equal(z[:, :, lanes], x[:, :, lanes].transpose(2, 1, 0))


def test_a_gather_and_a_scatter_address_each_lane_by_itself() -> None:
    rows = 50
    index = GENERATOR.permuted(np.tile(np.arange(rows, dtype=np.uint16), (320, 1)), axis=1).T.copy()
    table = GENERATOR.integers(0, 256, (rows, 320)).astype(np.uint8)
    back, z = np.zeros((2, rows, 320), np.uint8)
    timed = {
        # Indices pass MEM.E5 at 100: bytes at MEM.E6 at 110. Once more: indices pass MEM.E8 at 160 + 5 + 8, bytes at 166 + 5 + 2.
        "MEM.E0": [
            (90, QueueInst("RD", "", rows, dst=0, address=0, step=1)), (160, QueueInst("RD", "", rows, dst=4, address=0, step=1))
        ],
        "MEM.E1": [
            (91, QueueInst("RD", "", rows, dst=1, address=0, step=1)), (161, QueueInst("RD", "", rows, dst=5, address=0, step=1))
        ],
        "MEM.E5": [(100, QueueInst("GTH", "", rows, a=0, dst=8, address=30))],
        "MEM.E6": [
            (108, QueueInst("WR", "", rows, a=8, address=0, step=1)), (166, QueueInst("RD", "", rows, dst=8, address=0, step=1))
        ],
        "MEM.E8": [(171, QueueInst("SCT", "", rows, a=4, b=8, address=100))],
    }
    tensors = [
        HostTensor("i", "in", allocation("uint16", rows, [("MEM.E0", 0, 0), ("MEM.E1", 0, 0)]), (matrix(0, rows),)),
        HostTensor("t", "in", allocation("uint8", rows, [("MEM.E5", 0, 30)]), (matrix(1, rows),)),
        HostTensor("z", "out", allocation("uint8", rows, [("MEM.E6", 0, 0)]), (matrix(2, rows),)),
        HostTensor("b", "out", allocation("uint8", rows, [("MEM.E8", 0, 100)]), (matrix(3, rows),)),
    ]
    names = [("i", "uint16"), ("t", "uint8"), ("z", "uint8"), ("b", "uint8")]
    done = run(program(timed, tensors, names), index, table, z, back)
    assert [f.message for f in done.findings.all] == []
    assert np.array_equal(z, np.take_along_axis(table, index.astype(int), axis=0))
    assert np.array_equal(back, table)


def test_a_vector_goes_to_another_chip_in_217_cycles() -> None:
    """Chip 1 sends by its link to chip 0, whichever switches the two ends are at."""
    out, into = MACHINE.link(1, 0), MACHINE.link(0, 1)
    source, to = (MACHINE.queues[f"C2C.{link}"].position for link in (out, into))
    leaves, arrives = 100, 100 + 217
    towards, away = (32 if source < at("VXM") else 0), (3 if to < at("VXM") else 35)
    sender = {
        "MEM.E0": [(leaves - 5 - abs(source - at("MEM.E0")), QueueInst("RD", "", 1, dst=towards))],
        f"C2C.{out}": [(leaves, QueueInst("SND", a=towards))],
    }
    receiver = {
        f"C2C.{into}": [(arrives, QueueInst("RCV", dst=away))],
        "MEM.W7": [(arrives + abs(at("MEM.W7") - to) - 2, QueueInst("WR", a=away))],
    }
    tensors = [
        HostTensor("x", "in", allocation("uint8", 1, [("MEM.E0", 0, 0, 1)]), (matrix(0, 1),)),
        HostTensor("z", "out", allocation("uint8", 1, [("MEM.W7", 0, 0, 0)]), (matrix(1, 1),)),
    ]
    x, z = GENERATOR.integers(0, 256, (2, 1, 320)).astype(np.uint8)
    done = run(program([receiver, sender], tensors, [("x", "uint8"), ("z", "uint8")]), x, z)
    assert not done.findings.all
    assert np.array_equal(x, z)
    late = {**receiver, f"C2C.{into}": [(arrives + 1, QueueInst("RCV", dst=away))]}
    codes = [f.code for f in run(program([late, sender], tensors, [("x", "uint8"), ("z", "uint8")]), x, z).findings.all]
    assert codes[0] == "TFW0840"


def test_queues_go_on_35_cycles_after_a_notification() -> None:
    """MEM.E1 parks at once, MEM.E0 notifies at 20: the burst behind the SYNC issues at 55; who parks later waits for the next."""
    queues = {
        "MEM.E0": (QueueInst("NOP", imm=20), QueueInst("NTFY"), QueueInst("NOP", imm=79), QueueInst("NTFY")),
        "MEM.E1": (QueueInst("SYNC"), QueueInst("RD", "", 4, dst=0, step=1)),
        "MEM.E2": (QueueInst("NOP", imm=56), QueueInst("SYNC"), QueueInst("RD", "", 4, dst=1, step=1)),
    }
    done = run(counted(replace(program({}, []), chips=(ChipCode(queues),))))
    assert not done.findings.all
    assert [b.time for b in done.bursts if b.inst.op == "RD"] == [55, 135]
