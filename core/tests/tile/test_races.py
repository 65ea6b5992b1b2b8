"""Two accesses of one element by two programs race, whichever of them the interpreter carries out first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from launching import launch

import tilefw
import tilefw.language as tl
from tilefw.api.errors import CheckError

SIZE = 6
PLACES = st.lists(st.integers(0, SIZE - 1), min_size=3, max_size=3)
UNSHARED = st.permutations(range(SIZE)).map(lambda places: list(places[:3]))

# Program p loads element from[p] and stores its number (or `same`) to element to[p], in one of the two orders.
LOAD = "  %v = tile.load %at : !tile.ptr<i32>\n"
STORE = "  tile.store %to, %value : !tile.ptr<i32>\n"
ATOMIC = "  %old = tile.atomic_rmw add relaxed device %to, %value : !tile.ptr<i32>\n"
KERNEL = """
func.func @f(%x: !tile.ptr<i32>, %froms: !tile.ptr<i32>, %tos: !tile.ptr<i32>) {{
  %pid = tile.program_id 0
  %f = tile.addptr %froms, %pid : !tile.ptr<i32>, i32
  %from = tile.load %f : !tile.ptr<i32>
  %t = tile.addptr %tos, %pid : !tile.ptr<i32>, i32
  %to_index = tile.load %t : !tile.ptr<i32>
  %at = tile.addptr %x, %from : !tile.ptr<i32>, i32
  %to = tile.addptr %x, %to_index : !tile.ptr<i32>, i32
  %same = tile.constant 7 : i32
  %value = tile.{value} : i32
{accesses}  func.return
}}
"""


def races(accesses: str, froms: list[int], tos: list[int], value: str = "addi %pid, %same", **options: bool) -> bool:
    text = KERNEL.format(accesses=accesses, value=value)
    arrays = [np.zeros(SIZE, np.int32), np.array(froms, np.int32), np.array(tos, np.int32)]
    report, _ = launch(text, arrays, (len(froms),), **options)
    assert {finding.check for finding in report.findings} <= {"races"}
    return bool(report.findings)


@settings(max_examples=150, deadline=None)
@given(PLACES, PLACES, st.sampled_from([LOAD + STORE, STORE + LOAD]), st.booleans())
@example([0, 1, 2], [1, 2, 3], LOAD + STORE, False)
@example([5, 5, 5], [0, 5, 1], LOAD + STORE, False)
@example([5, 5, 5], [5, 0, 1], LOAD + STORE, True)
def test_a_load_and_a_store_of_two_programs_race_in_either_order(froms, tos, accesses, backwards) -> None:
    others = [(p, q) for p in range(3) for q in range(3) if p != q]
    expected = any(froms[p] == tos[q] or tos[p] == tos[q] for p, q in others)
    assert races(accesses, froms, tos, backwards=backwards) == expected


@settings(max_examples=50, deadline=None)
@given(PLACES, UNSHARED, st.sampled_from([LOAD + ATOMIC, ATOMIC + LOAD]), st.booleans())
def test_a_load_and_an_atomic_of_two_programs_race_in_either_order(froms, tos, accesses, backwards) -> None:
    expected = any(froms[p] == tos[q] for p in range(3) for q in range(3) if p != q)
    assert races(accesses, froms, tos, backwards=backwards) == expected


@pytest.mark.parametrize("backwards", [False, True])
def test_stores_of_equal_values_race_with_loads_alone(backwards: bool) -> None:
    assert not races(STORE, [0, 1, 2], [3, 3, 3], "addi %same, %same", backwards=backwards)
    assert races(LOAD + STORE, [0, 1, 3], [3, 3, 3], "addi %same, %same", backwards=backwards)


LOCK = """
func.func @f(%lock: !tile.ptr<i32>, %x: !tile.ptr<i32>, %last: i32) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %pid = tile.program_id 0
  scf.while () : () -> () {
    %old = tile.atomic_cas ACQUIRE device %lock, %zero, %one : !tile.ptr<i32>
    %taken = tile.eqi %old, %one : i32
    scf.condition(%taken)
  } do {
    scf.yield
  }
  %v = tile.load %x : !tile.ptr<i32>
  %writes = tile.eqi %pid, %last : i32
  scf.if %writes {
    tile.store %x, %one : !tile.ptr<i32>
  }
  %free = tile.atomic_rmw xchg RELEASE device %lock, %zero : !tile.ptr<i32>
  func.return
}
"""


@pytest.mark.parametrize("writer", [0, 2, 4])
@pytest.mark.parametrize("acquire, release", [("acquire", "release"), ("relaxed", "release"), ("acquire", "relaxed")])
def test_a_lock_orders_the_writer_behind_all_who_have_loaded(writer: int, acquire: str, release: str) -> None:
    text = LOCK.replace("ACQUIRE", acquire).replace("RELEASE", release)
    report, _ = launch(text, [np.zeros(1, np.int32), np.zeros(1, np.int32), writer], (5,))
    assert {finding.check for finding in report.findings} == ({"races"} if "relaxed" in (acquire, release) else set())


@tilefw.jit
def shift(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(y_ptr + i - 1, mask=i > 0, other=0) * 2 + 1)


@tilefw.jit
def count(x_ptr, bins_ptr, BLOCK: tl.constexpr):
    bins = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.store(bins_ptr + bins, tl.load(bins_ptr + bins) + 1)


def test_a_kernel_in_place_and_a_histogram_without_atomics_are_reported() -> None:
    x = np.arange(192, dtype=np.float32)
    shift[(3,)](x, np.ones(192, np.float32), BLOCK=64, target="reference", checks="all")
    message = "store to an element of x_ptr/y_ptr that another program of the launch loads"
    with pytest.raises(CheckError, match=f"TFW0444(?s:.*){message}"):
        shift[(3,)](x, x, BLOCK=64, target="reference", checks="all")
    with pytest.raises(CheckError, match="loaded by several programs"):
        count[(3,)](np.zeros(192, np.int32), np.zeros(8, np.int32), BLOCK=64, target="reference", checks="all")
