"""Accesses of all ranks' copies lowered to lanes: on a chip that has them as one access, and as a loop over ranks on any other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from made_up import PLAIN, WIDE
from xdsl.dialects.func import FuncOp

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.multicast_window import MulticastWindow
from tilefw.node_context import HEAP_BASES, IN_FRONT, MULTICAST_BASE, NUM_RANKS, WORD_BYTES
from tilefw.passes.manager import PassManager
from tilefw.passes.pipeline import default_passes
from tilefw.runtime.compilation import kernel_source
from tilefw.simt import lane
from tilefw.simt.description import ChipDescription, LaneMachine
from tilefw.simt.passes import lane_passes
from tilefw.testing.lane_interpreter import LaneFault, run

RANKS, N, BUFFER = 3, 64, 1 << 40
WINDOW = 9 * BUFFER  # where no buffer is


@tilefw.jit
def combine(heaps, out, words, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tld.multicast_load_reduce(heaps + at, OP, mask=at < n, other=7))


@tilefw.jit
def spread(heaps, out, words, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tld.multicast_store(heaps + at, tl.load(out + at), mask=at < n)


@tilefw.jit
def update(heaps, out, words, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tld.multicast_reduce(heaps + at, tl.load(out + at), OP, mask=at < n)


@tilefw.jit
def one_number(heaps, out, words, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    tld.multicast_reduce(heaps, tl.load(out), OP)
    tl.store(out + 1, tld.multicast_load_reduce(heaps + 1, OP))


def lowered(
    kernel: Any, types: dict[str, str], op: str, chip: ChipDescription, serves: bool, waves: int
) -> tuple[FuncOp, LaneMachine]:
    module = kernel_source.from_jit(kernel, types, {"OP": op, "BLOCK": N}).build()
    machine = LaneMachine(chip, waves)
    passes = default_passes(serves_multicast=lambda _: serves)
    PassManager([*passes, *lane_passes(machine, 1)], verify_each=True).run(module)
    (function,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    return function, machine


def launched(
    kernel: Any, dtype: str, op: str, chip: ChipDescription, serves: bool, window: int = WINDOW, n: int = 50,
    waves: int = 4, width: int = 1,
) -> Any:
    """The heaps before, `out` before, and both after: of the one rank that runs, 0. Four waves are more threads than elements.
    An `n` of whole vectors is known as that."""
    rng = np.random.default_rng(3)
    heaps = (4 * rng.standard_normal((RANKS, 2 * N))).astype(dtype)
    out = (4 * rng.standard_normal(N)).astype(dtype)
    bases = tuple(BUFFER + rank * heaps[0].nbytes for rank in range(RANKS))
    words = np.zeros(IN_FRONT + HEAP_BASES + RANKS, np.int64)
    words[IN_FRONT + MULTICAST_BASE], words[IN_FRONT + NUM_RANKS], words[IN_FRONT + HEAP_BASES :] = WINDOW, RANKS, bases
    known = "" if n % 16 else ":16"
    array = {"int32": "*i32", "float32": "*fp32", "float16": "*fp16"}[dtype] + known
    types = {"heaps": array, "out": array, "words": "*i64", "n": f"i32{known}"}
    function, machine = lowered(kernel, types, op, chip, serves, waves)
    multicast = [one for one in function.walk() if isinstance(one, lane.AtomicOp) and one.kind in lane.MULTICAST_KINDS]
    assert bool(multicast) == serves and all(one.width == width for one in multicast)
    after = heaps.copy(), out.copy()
    context = 3 * BUFFER + IN_FRONT * WORD_BYTES
    run(function, [*after, words, n, context], (1,), machine, MulticastWindow(window, heaps[0].nbytes, bases))
    return heaps, out, *after


CHIPS = pytest.mark.parametrize("chip", [PLAIN, WIDE], ids=lambda chip: chip.name)
SERVED = pytest.mark.parametrize("serves", [True, False])


@CHIPS
@SERVED
@pytest.mark.parametrize(("dtype", "op", "due"), [("float32", "add", np.add), ("int32", "min", np.minimum)])
def test_a_load_is_in_all_threads_and_another_value_where_it_is_masked(
    dtype: str, op: str, due: np.ufunc, chip: ChipDescription, serves: bool
) -> None:
    heaps, _, after, out = launched(combine, dtype, op, chip, serves)
    np.testing.assert_allclose(out[:50], due.reduce(heaps[:, :50].astype(np.float64)), rtol=1e-5)
    assert (out[50:] == 7).all() and (after == heaps).all()


@CHIPS
@SERVED
def test_a_store_and_an_update_reach_each_copy_once(chip: ChipDescription, serves: bool) -> None:
    heaps, given, after, out = launched(spread, "int32", "add", chip, serves)
    assert (after[:, :50] == given[:50]).all() and (after[:, 50:] == heaps[:, 50:]).all() and (out == given).all()
    heaps, given, after, out = launched(update, "int32", "add", chip, serves)
    assert (after[:, :50] == heaps[:, :50] + given[:50]).all() and (after[:, 50:] == heaps[:, 50:]).all() and (out == given).all()


@pytest.mark.parametrize(("n", "width"), [(48, 2), (50, 1)])
def test_sums_of_halves_are_of_pairs_where_one_wave_has_them(n: int, width: int) -> None:
    """Of 50 elements nobody knows that they are whole pairs."""
    heaps, given, after, out = launched(combine, "float16", "add", PLAIN, True, n=n, waves=1, width=width)
    np.testing.assert_allclose(out[:n], heaps[:, :n].astype(np.float64).sum(axis=0), atol=2e-2)
    assert (out[n:] == 7).all()
    heaps, given, after, out = launched(update, "float16", "add", PLAIN, True, n=n, waves=1, width=width)
    np.testing.assert_allclose(after[:, :n], heaps[:, :n] + given[:n], atol=2e-2)
    assert (after[:, n:] == heaps[:, n:]).all()


@SERVED
def test_a_program_accesses_one_number_once(serves: bool) -> None:
    heaps, given, after, out = launched(one_number, "int32", "add", WIDE, serves)
    assert (after[:, 0] == heaps[:, 0] + given[0]).all() and out[1] == heaps[:, 1].sum()


def test_an_address_that_is_none_of_the_mapping_is_a_fault() -> None:
    with pytest.raises(LaneFault, match="is no multicast address"):
        launched(combine, "int32", "add", WIDE, True, window=WINDOW + BUFFER)
