"""Kernels in Iris's way: jit functions of a checkout over heap bases, its host object on a node. The checkout here is made up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilefw
from tilefw.api.errors import CodeError, UsageError
from tilefw.triton.iris import DEVICE_FUNCTIONS, all_ranks, device_functions, kernels

_LIBRARY = '''import missing_library
import triton
import triton.language as tl

raise RuntimeError("only jit functions are run")

@triton.jit
def moved(pointer, here, there, heap_bases):
    distance = tl.cast(pointer, tl.uint64) - tl.load(heap_bases + here)
    return tl.cast(tl.cast(tl.load(heap_bases + there), tl.pointer_type(tl.int8)) + distance, pointer.dtype)
'''
_EXAMPLE = '''import iris

@triton.jit
def pull(source, result, n, here: tl.constexpr, there: tl.constexpr, BLOCK: tl.constexpr, heap_bases: tl.tensor):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(result + at, tl.load(iris.moved(source + at, here, there, heap_bases), mask=at < n), mask=at < n)
'''


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / DEVICE_FUNCTIONS).parent.mkdir()
    (tmp_path / DEVICE_FUNCTIONS).write_text(_LIBRARY)
    (tmp_path / "example.py").write_text(_EXAMPLE)
    return tmp_path


@pytest.mark.parametrize("target", ["reference", "nvidia-sm80", "amd-cdna3"])
def test_kernels_of_a_checkout_reach_other_ranks(checkout: Path, target: str) -> None:
    code = kernels(checkout / "example.py", device_functions(checkout))
    node = tilefw.node(target, 2)
    hosts = all_ranks(node)
    source, result = ([host.randn(100) for host in hosts] for _ in range(2))
    bases = hosts[0].get_heap_bases()
    node.run([
        (host.get_rank(), code.pull, (2,), [source[rank], result[rank], 100, rank, 1 - rank, 64, bases], {"checks": "all"})
        for rank, host in enumerate(hosts)
    ])
    assert all((result[rank] == source[1 - rank]).all() for rank in range(2))
    assert (source[0] != source[1]).any()


def test_allocations_are_those_of_every_rank() -> None:
    first, second = all_ranks(tilefw.node("reference", 2))
    arrays = [first.ones(3), first.full((2, 2), 7), first.arange(5), first.zeros((4,), dtype=np.int64)]
    assert [array.tolist() for array in arrays] == [[1, 1, 1], [[7, 7], [7, 7]], [0, 1, 2, 3, 4], [0, 0, 0, 0]]
    second.ones(3)
    with pytest.raises(UsageError, match="allocation 1 of rank 1") as caught:
        second.full((2, 3), 7)
    assert caught.value.code == "TFW0902"


def test_files_without_kernels_are_told(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "broken.py").write_text("def (\n")
    for name, told in (("empty.py", "no function under"), ("broken.py", "cannot be read"), ("absent.py", "cannot be read")):
        with pytest.raises(CodeError, match=told):
            kernels(tmp_path / name)
