"""What data chooses beside its buffer is a finding with the user's line, from both simulators; what a mask leaves out is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cycles.launched import MACHINE
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import tilefw
import tilefw.language as tl
from tilefw.api import BufferPlacement, CodeError, Finding, LaunchArguments
from tilefw.api.ir import context
from tilefw.passes.pipeline import default_passes
from tilefw.runtime.compilation.kernel_source import from_jit
from tilefw_spatial import container, text
from tilefw_spatial.checked import arguments
from tilefw_spatial.pipeline import compile_kernel
from tilefw_spatial.program import SpatialProgram
from tilefw_spatial.simulate.device import simulate
from tilefw_spatial.simulate.transfers import HostBuffer
from tilefw_spatial.tick import TickArray
from tilefw_spatial.tick import simulate as simulate_slowly

NOBODY = 999  # an index that the kernel leaves out


@tilefw.jit
def rows_of(index_ptr, table_ptr, out_ptr, N: tl.constexpr, WIDTH: tl.constexpr, PITCH: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.arange(0, 8)
    index = tl.load(index_ptr + row, mask=row < N, other=-5)
    inside = (row < N)[:, None] & (column < WIDTH)[None, :]
    wanted = inside & (index != 999)[:, None]
    found = tl.load(table_ptr + index[:, None] * PITCH + column[None, :], mask=wanted, other=0)
    tl.store(out_ptr + row[:, None] * 8 + column[None, :], found, mask=inside)


@tilefw.jit
def elements_of(index_ptr, table_ptr, out_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + i, mask=i < N, other=-5)
    tl.store(out_ptr + i, tl.load(table_ptr + 2 + index, mask=i < N), mask=i < N)


def compiled(kernel: Any, sizes: dict[str, int], programs: int, constexprs: dict[str, int]) -> SpatialProgram:
    """The program of a launch with int32 arrays of so many elements, as read from its file."""
    buffers = {name: BufferPlacement(number, 0, 4 * size) for number, (name, size) in enumerate(sizes.items())}
    launch = LaunchArguments((programs, 1, 1), {}, buffers)
    module = from_jit(kernel, dict.fromkeys(sizes, "*i32") | dict.fromkeys(constexprs, "constexpr"), constexprs).build()
    for step in default_passes(launch):
        step.apply(context(), module)
    return container.read(container.write(compile_kernel(module, launch, MACHINE).program), kernel.__name__)


def found(program: SpatialProgram, *arrays: np.ndarray) -> tuple[list[Finding], list[Finding]]:
    """The findings of both simulators; the arrays change in place, identically."""
    others = [array.copy() for array in arrays]
    fast = simulate(program, MACHINE, [HostBuffer("", array.view(np.uint8), 0) for array in arrays]).findings.all
    slow = simulate_slowly(program, MACHINE, [TickArray("", array.view(np.uint8)) for array in others]).findings
    assert all(np.array_equal(a, b) for a, b in zip(arrays, others, strict=True))
    return list(fast), list(slow)


def counts(findings: list[Finding]) -> list[int]:
    assert all((f.check, f.code) == ("bounds", "TFW0801") for f in findings)
    return [finding.count for finding in findings]


@settings(max_examples=6, deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate))
@given(st.data())
def test_elements_beside_a_table_are_counted_and_others_are_right(data: st.DataObject) -> None:
    """Ten rows of `width` elements, `pitch` apart: where the table ends within a row only some of its elements are outside."""
    width, extra = data.draw(st.integers(1, 8)), data.draw(st.integers(0, 4))
    pitch = width + data.draw(st.integers(0, 3))
    size = 9 * pitch + width + extra
    program = compiled(rows_of, {"index_ptr": 21, "table_ptr": size, "out_ptr": 168}, 3,
                       {"N": 21, "WIDTH": width, "PITCH": pitch, "BLOCK": 8})
    choices = st.one_of(st.integers(0, 9), st.sampled_from([-1, 10, 11, NOBODY, -(2**31), 2**31 - 1, 1 << 20]))
    index = np.array(data.draw(st.lists(choices, min_size=21, max_size=21)), np.int32)
    table, out = np.arange(1, size + 1, dtype=np.int32), np.zeros(168, np.int32)
    places = (index.astype(np.int64)[:, None] * pitch + np.arange(width)) * (index != NOBODY)[:, None]
    outside = (places < 0) | (places >= size)
    wanted = np.where(outside | (index == NOBODY)[:, None], 0, table[np.where(outside, 0, places)])
    fast, slow = found(program, index, table, out)
    assert fast == slow
    if outside.any():
        # Where all elements of a row are outside together they have one flag.
        assert counts(fast) in ([int(outside.sum())], [int(outside.any(axis=1).sum())])
    else:
        assert fast == []
    told = out.reshape(21, 8)[:, :width]
    assert np.array_equal(told[~outside], wanted[~outside])


def test_the_finding_says_the_users_line_and_the_parameter() -> None:
    program = compiled(elements_of, {"index_ptr": 20, "table_ptr": 12, "out_ptr": 20}, 2, {"N": 20, "BLOCK": 16})
    index = np.full(20, 9, np.int32)
    index[[3, 19]] = -2, -1
    arrays = [index, np.arange(12, dtype=np.int32), np.zeros(20, np.int32)]
    assert found(program, *arrays) == ([], [])
    assert arrays[2].tolist() == [2 + i for i in index]
    index[[0, 5, 19]] = 10, -3, 2**31 - 1
    (finding,), _ = found(program, *arrays)
    assert (finding.message, finding.count) == ("out-of-bounds load of elements that data chooses beside table_ptr", 3)
    assert finding.source is not None and "table_ptr + 2 + index" in finding.source.text
    assert finding.source.file == __file__


def test_a_check_is_no_argument_and_survives_text() -> None:
    program = compiled(elements_of, {"index_ptr": 20, "table_ptr": 12, "out_ptr": 20}, 2, {"N": 20, "BLOCK": 16})
    assert [p.name for p in arguments(program)] == ["index_ptr", "table_ptr", "out_ptr"]
    again = text.parse(text.render(program), "again.s")
    assert (again.parameters, again.metadata) == (program.parameters, program.metadata)
    with pytest.raises(CodeError, match="come after all others"):
        container.write(replace(program, parameters=program.parameters[::-1], tensors=()))


@tilefw.jit
def blocks_of_rows(index_ptr, table_ptr, out_ptr, N: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.arange(0, 8)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + row, mask=row < N, other=0)
    inside = (row < N)[:, None] & (column < WIDTH)[None, :]
    found = tl.load(table_ptr + index[:, None] * WIDTH + column[None, :], mask=inside, other=0)
    tl.store(out_ptr + row[:, None] * WIDTH + column[None, :], found, mask=inside)


def test_a_row_has_one_flag_although_the_last_block_of_columns_is_not_full() -> None:
    """Columns beyond the table's would leave the last row's buffer; the mask leaves them out, so that the index alone decides."""
    sizes = {"index_ptr": 7, "table_ptr": 50, "out_ptr": 70}
    program = compiled(blocks_of_rows, sizes, 3, {"N": 7, "WIDTH": 10, "BLOCK": 4})
    assert [parameter.nbytes for parameter in program.parameters[3:]] == [8]
    index = np.array([0, 4, 5, 1, -1, 2, 3], np.int32)
    fast, slow = found(program, index, np.arange(50, dtype=np.int32), np.zeros(70, np.int32))
    assert fast == slow and counts(fast) == [2]


@tilefw.jit
def kept_elements(choice_ptr, x_ptr, out_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    chosen = (i < N) & (tl.load(choice_ptr + i, mask=i < N, other=1) != 0)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=chosen, other=7), mask=chosen)


def test_known_elements_that_data_asks_for_are_within_the_buffer_too() -> None:
    """x has 15 elements and out 18: beyond them only what data leaves out is no finding; beyond N nothing is asked for."""
    program = compiled(kept_elements, {"choice_ptr": 20, "x_ptr": 15, "out_ptr": 18}, 2, {"N": 20, "BLOCK": 16})
    choice, x, out = np.ones(20, np.int32), np.arange(15, dtype=np.int32), np.full(18, -1, np.int32)
    choice[15:] = 0
    assert found(program, choice, x, out) == ([], [])
    assert out.tolist() == [*range(15), -1, -1, -1]
    choice[[16, 19]] = 1
    fast, slow = found(program, choice, x, out)
    assert fast == slow
    assert {f.message: f.count for f in fast} == {
        "out-of-bounds load beside x_ptr that data asks for": 2, "out-of-bounds store beside out_ptr that data asks for": 1,
    }
    whole = compiled(kept_elements, {"choice_ptr": 20, "x_ptr": 20, "out_ptr": 20}, 2, {"N": 20, "BLOCK": 16})
    assert arguments(whole) == list(whole.parameters), "nothing to check: no flags"
