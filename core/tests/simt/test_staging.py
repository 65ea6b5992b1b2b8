"""Tiles go through shared memory to a dot in wide accesses without bank conflicts, whether they are transposed or not."""

from __future__ import annotations

import re
from typing import Any

import pytest
from library_on_chips import lowered
from made_up import RUNS

from tilefw.api.integers import log2
from tilefw.simt.assign.staging import _candidates
from tilefw.simt.description import LaneMachine
from tilefw.simt.layout import atoms, blocked, f2, swizzle

F16 = atoms.DotTypes("f16", "f16", "f32")
RINGS = re.compile(r"lane\.(load|store) .*?width = (\d+).*ring = 1")


def widths(**parameters: Any) -> dict[str, set[int]]:
    """The elements that each access to the rings of a matmul's operands takes, of loads and of stores."""
    given = {"m": 256, "n": 256, "k": 256, "num_stages": 2, **parameters}
    function, *_ = lowered("matmul", given, RUNS)
    found: dict[str, set[int]] = {"load": set(), "store": set()}
    for kind, width in RINGS.findall(str(function)):
        found[kind].add(int(width))
    return found


@pytest.mark.parametrize("b_layout", ["rows", "columns"])
@pytest.mark.parametrize("a_layout", ["rows", "columns"])
@pytest.mark.parametrize("block", [(128, 128, 64), (128, 64, 64), (64, 64, 64)], ids=str)
def test_operands_are_read_and_stored_wide_however_they_lie_in_memory(block, a_layout, b_layout):
    m, n, k = block
    found = widths(block_m=m, block_n=n, block_k=k, a_layout=a_layout, b_layout=b_layout)
    assert max(found["load"]) == 8 and min(found["load"]) >= 4
    assert min(found["store"]) >= 2


@pytest.mark.parametrize("waves", [1, 4, 8])
@pytest.mark.parametrize("shape", [(64, 128), (32, 128), (64, 64), (128, 32)], ids=str)
def test_each_candidate_holds_the_tile_once_and_some_are_free_of_conflicts(shape, waves):
    """Of a B whose columns are in a row in memory: k x n."""
    k, n = shape
    reader = atoms.choose((128, n, k), F16, LaneMachine(RUNS, waves)).b
    own = blocked(shape, (1, 0), min(8, k * n // 64 // waves), 64, waves)
    found = list(_candidates(own, log2(min(8, own.registers)), [reader], 16, 16))
    free = [not found]
    for layout in found:
        assert layout.covers and layout.registers == own.registers and f2.rank(layout.bases) == f2.rank(own.bases)
        shared = swizzle.choose(shape, 16, [layout], [reader], RUNS)
        free.append(not any(swizzle.bank_conflicts(shared, side, 16, RUNS) for side in (layout, reader)))
    assert any(free)
