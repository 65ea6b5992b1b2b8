"""A set of weights is read from where its rows lie, also where it goes on in another segment."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tilefw_spatial.program import RowAllocation, SliceRows
from tilefw_spatial.schedule.matrix import weight_rows


@settings(max_examples=100, deadline=None, derandomize=True)
@given(groups=st.sampled_from([1, 8, 16]), rows=st.integers(1, 30), first=st.integers(0, 90), cycles=st.integers(1, 20))
def test_every_row_is_read_where_it_lies(groups: int, rows: int, first: int, cycles: int) -> None:
    segments = (first + cycles) // rows + 1
    blocks = tuple(SliceRows(f"MEM.W{n % 44}", 0, 0) for n in range(segments * groups))
    allocation = RowAllocation("fp16", segments * rows * groups, (blocks, blocks), groups, rows * groups)
    found = {
        (access.point + k, neighbour): (access.block, access.row + k * access.step)
        for neighbour, access in weight_rows(first * groups, cycles, allocation) for k in range(access.count)
    }
    for cycle in range(cycles):
        for neighbour in range(groups):
            segment, within = divmod((first + cycle) * groups + neighbour, allocation.segment)
            assert found.pop((cycle, neighbour)) == (segment * groups + within % groups, within // groups)
    assert not found
