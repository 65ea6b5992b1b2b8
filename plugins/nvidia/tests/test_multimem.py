"""Floats of 16 bits in all ranks' memory at once, on sm_90a: pairs by one instruction, one alone by the word around it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from test_warpgroup import assembled

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.api.errors import CheckError
from tilefw.distributed.node import DeviceNode

RANKS, BLOCK = 3, 64


@tilefw.jit
def load_all(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tld.multicast_load_reduce(x + at, "add", mask=at < n, other=7))


@tilefw.jit
def add_to_all(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tld.multicast_reduce(out + at, tl.load(x + at), "add", mask=at < n)


class _Watched(DeviceNode):
    """Keeps the machine code of its launches."""

    text = ""

    def made(self, function: Any, values: Any, extents: Any, options: Any) -> Any:
        made = super().made(function, values, extents, options)
        assert made is not None
        self.text = made.compiled.artifact.text
        return made


def launched(kernel: Any, dtype: Any, n: int, num_warps: int) -> tuple[np.ndarray, np.ndarray, str]:
    """The ranks' x, and their out; the machine code."""
    node, random = _Watched("nvidia-sm90a", RANKS), np.random.default_rng(2)
    x = node.array([random.standard_normal(BLOCK).astype(dtype) for _ in node.ranks])
    out = node.zeros((BLOCK,), np.dtype(dtype).name)
    node.launch(kernel, (1,), x, out, n, BLOCK=BLOCK, num_warps=num_warps)
    return np.stack([*x]).astype(np.float64), np.stack([*out]).astype(np.float64), node.text


# Nobody knows that 50 is even: each element is of a word of its own.
CASES = pytest.mark.parametrize(("n", "num_warps", "accesses"), [(64, 1, 1), (50, 1, 2), (49, 4, 1)])
DTYPES = pytest.mark.parametrize(("dtype", "pair"), [(np.float16, "f16x2"), (ml_dtypes.bfloat16, "bf16x2")])


@CASES
@DTYPES
def test_sums_over_ranks_are_made_in_fp32_and_rounded_once(
    dtype: Any, pair: str, n: int, num_warps: int, accesses: int, tmp_path: Path
) -> None:
    x, out, text = launched(load_all, dtype, n, num_warps)
    due = x.sum(axis=0).astype(np.float32).astype(dtype).astype(np.float64)
    assert all((part[:n] == due[:n]).all() and (part[n:] == 7).all() for part in out)
    assert len(re.findall(r"multimem\.[lr]", text)) == accesses
    assert f"multimem.ld_reduce.relaxed.sys.global.add.acc::f32.{pair}" in text
    assembled(text, tmp_path)


@CASES
@DTYPES
def test_sums_into_ranks_memory_leave_the_other_half_as_it_is(
    dtype: Any, pair: str, n: int, num_warps: int, accesses: int, tmp_path: Path
) -> None:
    x, out, text = launched(add_to_all, dtype, n, num_warps)
    error = max(np.abs(part[:n] - x.sum(axis=0)[:n]).max() for part in out)
    assert error < 4 * float(ml_dtypes.finfo(dtype).eps) and not out[:, n:].any()
    assert len(re.findall(r"multimem\.[lr]", text)) == accesses and f"multimem.red.relaxed.sys.global.add.{pair}" in text
    assembled(text, tmp_path)


def test_pairs_take_half_as_many_lanes() -> None:
    """A thread holds two neighbours: no word around one of them is made."""
    assert "sel" not in launched(add_to_all, np.float16, 64, 1)[2]


def test_arrays_of_odd_numbers_of_halves_end_within_a_word() -> None:
    """No other array begins there: what is loaded or added to beside the last half is nobody's."""
    node, count = DeviceNode("nvidia-sm90a", RANKS), 49
    x = node.array([np.arange(count, dtype=np.float16) + rank for rank in node.ranks])
    loaded, added, due = node.zeros((BLOCK,), "float16"), node.zeros((count,), "float16"), sum(x[rank] for rank in node.ranks)
    node.launch(load_all, (1,), x, loaded, count, BLOCK=BLOCK)
    node.launch(add_to_all, (1,), node.array([np.pad(part, (0, BLOCK - count)) for part in x]), added, count, BLOCK=BLOCK)
    assert all((part[:count] == due).all() for part in (*loaded, *added))


@tilefw.jit
def store_then_load(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, 1.0, mask=at < n)
    tld.barrier()
    tl.store(out + at, tld.multicast_load_reduce(x + at, "add", mask=at < n, other=0))


def test_a_half_is_as_defined_as_itself() -> None:
    """That nobody has written the other half of its word is not said of what is loaded."""
    node = DeviceNode("nvidia-sm90a", RANKS)
    x, out = node.empty((BLOCK,), "float16"), node.zeros((BLOCK,), "float16")
    node.launch(store_then_load, (1,), x, out, 49, BLOCK=BLOCK, num_warps=1)
    assert all((part[:49] == RANKS).all() and not part[49:].any() for part in out)
    with pytest.raises(CheckError, match="never written"):
        node.launch(load_all, (1,), node.empty((BLOCK,), "float16"), out, BLOCK, BLOCK=BLOCK)
