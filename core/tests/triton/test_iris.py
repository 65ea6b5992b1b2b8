"""Kernels in Iris's way: jit functions of a checkout over heap bases, its host object on a node. The checkout here is made up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilefw
from tilefw.api.errors import CodeError, UnsupportedError, UsageError
from tilefw.triton.iris import DEVICE_FUNCTIONS, all_ranks, device_functions, kernels
from tilefw.triton.iris.process import IrisProcess

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


def test_a_process_makes_no_tensor_that_its_heap_cannot_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    here = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "iris", "MASTER_PORT": str(os.getpid())}
    for name, value in {**here, "TILEFW_TARGET": "reference"}.items():
        monkeypatch.setenv(name, value)
    host = IrisProcess(1 << 20)
    try:
        assert host.ones(2, 3, device="cuda", requires_grad=False).tolist() == [[1, 1, 1], [1, 1, 1]]
        assert host.linspace(0, 1, 3, out=None).tolist() == [0, 0.5, 1] and host.zeros_like(torch.ones(2)).tolist() == [0, 0]
        for more in ({"requires_grad": True}, {"out": torch.ones(4)}, {"names": "x"}):
            with pytest.raises(UnsupportedError, match="makes no tensor with"):
                host.zeros(4, **more)
    finally:
        host._launching.__exit__(None, None, None)
        host.node.close()


_PROGRAM = '''import sys
import torch, triton, iris
import torch.distributed as dist
import triton.language as tl

@triton.jit
def send(source, target, flag, heap_bases, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(iris.moved(target + at, 0, 1, heap_bases), tl.load(source + at))
    tl.debug_barrier()
    tl.atomic_xchg(iris.moved(flag, 0, 1, heap_bases), 1, sem="release", scope="sys")

@triton.jit
def receive(target, flag, result, BLOCK: tl.constexpr):
    while tl.atomic_cas(flag, 1, 0, sem="acquire", scope="sys") == 0:
        pass
    tl.debug_barrier()
    at = tl.arange(0, BLOCK)
    tl.store(result + at, 2 * tl.load(target + at))

def run(rank, ranks, url):
    dist.init_process_group("nccl", init_method=url, rank=rank, world_size=ranks, device_id=torch.device(f"cuda:{rank}"))
    torch.cuda.set_device(rank)
    torch.ones(1 << 20).exp()
    shmem = iris.iris(1 << 20)
    source, target = shmem.randn(64, device="cuda", dtype=torch.float32), shmem.zeros(64, dtype=torch.bfloat16)
    flag, result = shmem.zeros((1,)), torch.zeros(64, device="cuda")
    if rank == 0:
        send[(1,)](source, target, flag, shmem.get_heap_bases(), 64)
    else:
        receive[(1,)](target, flag, result, 64)
    shmem.barrier()
    sent = torch.tensor(shmem.broadcast(source.tolist(), 0), device="cuda")
    if rank == 1:
        assert torch.equal(result, 2 * sent.to(torch.bfloat16).float()), (result, sent)
        shmem.log("has it")
    iris.finish()

if __name__ == "__main__":
    torch.ones(1 << 20).exp()  # by threads that no started process has
    torch.multiprocessing.spawn(run, args=(2, sys.argv[1]), nprocs=2)
'''


@pytest.mark.parametrize(("ranks", "told"), [("0", "TFW0911"), ("2", "TFW0780")])
def test_what_cannot_be_started_is_told_without_a_traceback(ranks: str, told: str, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tilefw.triton.iris", "--ranks", ranks, str(tmp_path), "program.py"]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert ran.returncode != 0 and ran.stderr.startswith(f"error[{told}]") and "Traceback" not in ran.stderr


def test_programs_run_as_processes_with_their_own_host_code(checkout: Path) -> None:
    pytest.importorskip("torch")
    (checkout / "program.py").write_text(_PROGRAM)
    words = [sys.executable, "-m", "tilefw.triton.iris", str(checkout), str(checkout / "program.py"), f"file://{checkout}/store"]
    ran = subprocess.run(words, env={**os.environ, "TILEFW_TARGET": "reference"}, capture_output=True, text=True, timeout=300)
    assert ran.stdout == "[Iris] [1/2] has it\n", ran.stderr
    assert ran.returncode == 1 and "error[TFW0103]: tilefw serves no iris.finish" in ran.stderr
