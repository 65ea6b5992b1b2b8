"""Programs that name only Triton run on tilefw: by the command line, as a module, with and without PyTorch."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

NUMPY_PROGRAM = '''
import sys
import numpy as np
import triton
import triton.language as tl

@triton.heuristics({"num_warps": lambda args: 2})
@triton.jit
def scale(x_ptr, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at, mask=at < n) * FACTOR, mask=at < n)

x = np.arange(100, dtype=np.float32)
scale[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, 100, FACTOR=3, BLOCK=64)
assert np.array_equal(x, 3 * np.arange(100))
assert "torch" not in sys.modules
print(sys.argv[1:], triton.runtime.driver.active.get_current_target().backend)
'''

TORCH_PROGRAM = '''
import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()

@triton.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n)

x = torch.randn(300, device="cuda", dtype=torch.bfloat16)
out = torch.empty_like(x)
assert x.device == out.device == DEVICE and x.is_cuda and x.get_device() == 0
double[(triton.cdiv(300, 128),)](x, out, 300, BLOCK=128)
assert torch.equal(out, 2 * x) and torch.equal(out.cpu().float(), 2 * x.to("cpu").float())

layer = torch.nn.Linear(4, 2).cuda()
assert next(layer.parameters()).is_cuda and layer(torch.ones(1, 4, device=DEVICE)).shape == (1, 2)
assert torch.zeros(3, pin_memory=True).cuda(0).to("cuda:0", non_blocking=True).to(0).sum() == 0
with torch.cuda.device(0), torch.cuda.stream(torch.cuda.Stream()), torch.device("cuda"):
    assert torch.ones(2).device.type == "cuda"
begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
begin.record(); end.record(); torch.cuda.synchronize()
assert begin.elapsed_time(end) >= 0
assert torch.cuda.is_available() and torch.cuda.device_count() == 1
assert torch.cuda.get_device_properties(0).multi_processor_count >= 1
noise = torch.rand(4, generator=torch.Generator(device="cuda").manual_seed(1), device="cuda")
assert torch.equal(noise, torch.rand(4, generator=torch.Generator().manual_seed(1)))
torch.cuda.manual_seed(7)
state, first = torch.cuda.get_rng_state(), torch.rand(2, device="cuda")
torch.cuda.set_rng_state(state)
assert torch.cuda.initial_seed() == 7 and torch.equal(first, torch.rand(2, device="cuda"))
torch.cuda.manual_seed_all(7)
assert torch.equal(first, torch.rand(2, device="cuda"))
assert torch.empty(1, device="meta").device.type == "meta"

leaf = torch.ones(3, device="cuda", requires_grad=True)
(leaf * 2).sum().backward()
assert leaf.grad.tolist() == [2, 2, 2] and leaf.grad.is_cuda
class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        assert grad.device == DEVICE and x.is_cuda and torch.ones(1, device="cuda").is_cuda
        return grad * 2

for run in (lambda y: y.backward(), lambda y: torch.autograd.backward(y), lambda y: torch.autograd.grad(y, (leaf,))):
    run(Doubled.apply(leaf).sum())
assert leaf.grad.tolist() == [6, 6, 6]

for second in (lambda: torch.ones(1, device="cuda:1"), lambda: leaf.to("cuda:1"), lambda: torch.cuda.set_device(1)):
    try:
        second()
    except Exception as error:
        assert "there is one device" in str(error), error
    else:
        raise AssertionError("a second device")

warm = double.warmup(torch.float32, triton.MockTensor(tl.float32), 300, BLOCK=128, grid=(1,), num_warps=2)
warm._init_handles()
assert warm.asm and warm.name == "double" and warm.n_regs >= 1 and warm.metadata.shared == 1  # the reference has none
again = torch.empty_like(x)
warm[(3, 1, 1)](x, again, 300, 128)
assert torch.equal(again, out)

launched = double[(3,)](x, again, 300, BLOCK=128)
for args in ((x, again, 300), (x, again, 300, 128)):
    again.zero_()
    launched[(3, 1, 1)](*args)
    assert torch.equal(again, out)
assert double.__globals__ is globals() and double.constexprs == [3] and double.raw_src[0].startswith("@triton.jit")
assert double.do_not_specialize == [] and "double" in double.get_capture_scope()

@triton.jit
def fill(table_ptr, N: tl.constexpr):
    x_ptr = tl.load(table_ptr + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(x_ptr + tl.arange(0, N), 5.0)

one, other = torch.zeros(8, device="cuda"), torch.zeros(8, device="cuda")
fill[(2,)](torch.tensor([one.data_ptr(), other.data_ptr()], device="cuda"), N=8)
assert (one == 5).all() and (other == 5).all()

weight, ones = torch.ones(8, dtype=torch.float16, requires_grad=True), torch.full((4000, 8), 1.01, dtype=torch.float16)
torch.nn.functional.layer_norm(torch.randn(4000, 8).half(), (8,), bias=weight).backward(ones)
assert (weight.grad - ones.double().sum(0)).abs().max() <= 1  # summed in half precision it is off by more

import tilefw.triton
tilefw.triton.uninstall()
assert torch.zeros(1).device.type == "cpu" and not torch.cuda.is_available() and not torch.zeros(1).is_cuda
print("done")
'''


def run(tmp_path: Path, text: str, *words: str) -> str:
    program = tmp_path / "program.py"
    program.write_text(text)
    command = [sys.executable, *(word.replace("PROGRAM", str(program)) for word in words)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_a_program_without_pytorch_runs(tmp_path: Path) -> None:
    assert run(tmp_path, NUMPY_PROGRAM, "-m", "tilefw", "run", "--triton", "PROGRAM", "--", "a", "--b") == "['a', '--b'] cuda\n"


def test_the_module_runs_a_program(tmp_path: Path) -> None:
    assert run(tmp_path, NUMPY_PROGRAM, "-m", "tilefw.triton", "PROGRAM", "a", "--b") == "['a', '--b'] cuda\n"


def test_pytorchs_gpu_is_the_host(tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    assert run(tmp_path, TORCH_PROGRAM, "-m", "tilefw.triton", "PROGRAM").endswith("done\n")
