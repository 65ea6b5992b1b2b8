"""Triton compiles, tilefw is the device: programs and test suites run as they are, and mistakes are found."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tilefw
import tilefw.triton
from tilefw.api.errors import UsageError
from tilefw.triton import chip, sanitizer

PROGRAM = '''
import torch
import triton
import triton.language as tl

@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128}, num_warps=2)], key=["n"])
@triton.jit
def scale(x_ptr, out_ptr, n, factor, pair, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * factor + pair[0], mask=at < n)

x = torch.arange(300, device="cuda", dtype=torch.float32)
out = torch.zeros_like(x)
scale[lambda meta: (triton.cdiv(300, meta["BLOCK"]),)](x, out, 300, 0.5, (3, 1.5))
assert torch.equal(out, x * 0.5 + 3), out
first, second = scale.configs_timings.values()
assert scale.best_config is scale.configs[0] and first[0] < second[0] == float("inf")

kernel = scale.fn.warmup(x, out, 300, 0.5, (3, 1.5), BLOCK=64, grid=(1,))
assert kernel.asm["ttir"] and triton.__file__ and "tilefw" not in triton.__file__

@triton.jit
def product(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    tl.store(c_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)))

a, b = torch.randn(2, 32, 32, device="cuda", dtype=torch.float16)
c = torch.empty(32, 32, device="cuda")
product[(1,)](a, b, c, N=32)
assert torch.allclose(c, a.float() @ b.float(), atol=1e-2)

import triton.profiler as proton
from triton._C.libtriton import amd, nvidia
proton.start("nothing", hook="triton")
nvidia.cublas.CublasLt(None).matmul(a, b, c), amd.hipblas.HipblasLt(None).matmul(a, b, c)
assert torch.allclose(c, a.float() @ b.float().T)

from tilefw.runtime.arguments.registered import registered
assert not registered()  # Triton's launcher asks for addresses; the program does not

runs = []
report = triton.testing.Benchmark(
    x_names=["n"], x_vals=[1], line_arg="who", line_vals=["a"], line_names=["A"], plot_name="plot", args={},
)
triton.testing.perf_report(report)(lambda n, who: runs.append(n)).run(print_data=True)
triton.testing.perf_report([report])(lambda n, who: runs.append(n)).run(show_plots=True)
triton.testing.do_bench(lambda: runs.append("once"))
assert runs == ["once"]
print("done")
'''

SUITE = '''
import torch
import triton
import triton.language as tl

@triton.jit
def shift(x_ptr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(x_ptr + at, tl.load(x_ptr + at + 1))

def test_within():
    x = torch.arange(65, device="cuda", dtype=torch.float32)
    shift[(1,)](x, N=64, num_warps=1)  # more waves would race
    assert x[0] == 1

def test_beyond():
    shift[(1,)](torch.arange(64, device="cuda", dtype=torch.float32), N=64, num_warps=1)

@triton.jit
def total(x_ptr, out_ptr, N: tl.constexpr):
    mine = tl.sum(tl.load(x_ptr + tl.program_id(0) * N + tl.arange(0, N)))
    tl.store(out_ptr, tl.load(out_ptr) + mine)

def test_race():
    total[(4,)](torch.ones(256, device="cuda"), torch.zeros(1, device="cuda"), N=64)

def test_uninitialised():
    x = torch.empty(64, device="cuda")
    x[:60] = 1
    total[(1,)](x, torch.zeros(1, device="cuda"), N=64)

@triton.jit
def mean_of(a, b, n, other_a, other_b, other_n):
    part = other_n / (n + other_n)
    return a + (other_a - a) * part, b + other_b, n + other_n

@triton.jit
def means(x_ptr, out_ptr, ROWS: tl.constexpr, N: tl.constexpr):
    row = tl.arange(0, ROWS)
    x = tl.load(x_ptr + row[:, None] * N + tl.arange(0, N)[None, :])
    a, b, n = tl.reduce((x, x * x, tl.full((ROWS, N), 1.0, tl.float32)), 1, mean_of)
    tl.store(out_ptr + row, a + b * 0 + n * 0)

def test_waves_that_store_roundings_of_one_value_in_shared_memory_race_by_design():
    x, out = torch.rand(4, 512, device="cuda") / 3, torch.empty(4, device="cuda")
    means[(1,)](x, out, ROWS=4, N=512)
    assert torch.allclose(out, x.mean(1))
'''

needs_both = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "triton")), reason="Triton and PyTorch are not both installed"
)


def gpus() -> list[str]:
    """A target of each backend of Triton's that is installed."""
    from tilefw.runtime.plugins.listings import targets

    return list({t.info.triton.backend: t.info.name for t in reversed(targets()) if t.info.triton is not None}.values())


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    wide = {**os.environ, "COLUMNS": "200"}  # pytest's summary has the beginning of each message
    return subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, timeout=300, cwd=folder, env=wide)


@needs_both
@pytest.mark.parametrize("target", gpus())
def test_a_program_runs_as_triton_compiles_it(target: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    found = run(tmp_path, "tilefw", "run", "program.py", "--compiler", "triton", "--target", target)
    assert found.returncode == 0 and found.stdout.endswith("done\n"), found.stderr


@needs_both
def test_a_suite_of_tests_finds_its_mistake(tmp_path: Path) -> None:
    for target in gpus():
        (tmp_path / "test_shift.py").write_text(SUITE)
        found = run(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", f"--tilefw-sanitize={target}", "test_shift.py")
        assert "3 failed, 2 passed" in found.stdout, found.stdout + found.stderr
        for mistake, code in (("test_beyond", "TFW0801"), ("test_uninitialised", "TFW0803"), ("test_race", "TFW0804")):
            assert f"FAILED test_shift.py::{mistake} - tilefw.api.errors.CheckError: error[{code}" in found.stdout, found.stdout


def test_a_chip_has_the_name_that_triton_gives_it() -> None:
    for target in gpus():
        with tilefw.target(target):
            words = chip.current_target()
        assert chip.named(target) == target == chip.named(f"{words.backend}:{words.arch}")
    with pytest.raises(UsageError, match="no installed target is Triton's 'acme:1'") as caught:
        chip.named("acme:1")
    assert caught.value.code == "TFW0919"


def test_what_cannot_be_sanitized_is_told(installed: None) -> None:
    with pytest.raises(UsageError, match="stands in Triton's place"):
        tilefw.triton.sanitize()
    tilefw.triton.uninstall()
    with tilefw.target("reference"), pytest.raises(UsageError, match="Triton compiles nothing for reference"):
        tilefw.triton.sanitize()


def test_arguments_are_told_apart_by_their_types() -> None:
    types = ("*fp32", "constexpr", ("i32", ("fp32", "constexpr")), "fp64")
    passed = list(sanitizer._passed(types, ("x", 5, (7, (0.5, None)), 2.0)))
    assert passed[:2] == ["x", 7] and [(p.value, p.dtype) for p in passed[2:]] == [(0.5, "fp32"), (2.0, "fp64")]
