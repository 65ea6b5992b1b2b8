"""Sharded inputs go over links that are never idle, in hardly more vectors than their bytes fill, and are whole again after."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from launches import bound
from stream_evaluator import StreamEvaluator, cells

from tilefw_spatial.machine import load
from tilefw_spatial.partition.packing import packed_transfers, packing, unpacked
from tilefw_spatial.pipeline import compile_kernel
from tilefw_spatial.program import AxisMap, Transfer
from tilefw_spatial.stream_program import Array, StreamProgram

MACHINE = load()
LANES = MACHINE.lanes
MATMUL = {"m": 600, "n": 1280, "k": 1024}  # over four chips no tile of columns is cut, and K ends within a vector


@pytest.mark.parametrize(("rows", "used", "expected"), [
    (128, 256, 103),
    (25, 128, 10), (20, 64, 4), (7, 170, 4), (3, 1, 1), (41, 100, 13), (9, 300, None), (5, 320, None), (1, 9, None),
])
def test_packed_vectors_are_whole_again(rows: int, used: int, expected: int | None) -> None:
    packed = packing(rows, used, LANES)
    assert (packed and packed.sent) == expected
    if packed is None:
        return
    host = np.random.default_rng(rows).integers(0, 1 << 16, rows * used).astype(np.uint16)
    whole = Transfer(0, 0, (AxisMap(used, np.arange(used), 0, 1), AxisMap(rows, np.arange(rows) * used, 1, 0)), 320)
    sent = np.zeros((rows, LANES), np.uint16)
    for transfer in (whole, *packed_transfers(packed, whole)):
        element, vector, lane = cells(transfer)
        sent[vector, lane] = host[element]
    sent[packed.sent :] = 0xDEAD
    arrived = Array("arrived", "fp16", rows, "const", data=sent)
    stream_ops, parts = unpacked(packed, arrived, MACHINE)
    ran = StreamEvaluator(StreamProgram(stream_ops, [arrived, *parts]), {})
    assert np.array_equal(ran.memory[arrived].view(np.uint16)[:, :used], host.reshape(rows, used))


def test_links_are_never_idle_and_end_together() -> None:
    launch = bound("matmul", MATMUL)
    made = compile_kernel(launch.module(), launch.launch, MACHINE, 4, "gather")
    spans: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    for chip, schedule in enumerate(made.schedules):
        for issue in schedule.issues:
            if issue.inst.op == "SND":
                spans[chip, issue.queue].append((issue.cycle, issue.last + MACHINE.link_interval))
    assert len(spans) == 4 * 3
    needed = -(-MATMUL["m"] * MATMUL["k"] * 2 // 4 // MACHINE.lanes) * MACHINE.link_interval  # by A's bytes alone
    for transmissions in spans.values():
        transmissions.sort()
        assert transmissions[0][0] <= 4 * MACHINE.link_interval
        assert all(end == begin for (_, end), (begin, _) in pairwise(transmissions))
        assert transmissions[-1][1] < 1.05 * needed
    assert made.program.cycles < 1.1 * needed
