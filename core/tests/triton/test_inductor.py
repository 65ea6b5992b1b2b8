"""PyTorch's compiler writes Triton kernels for tensors of the host, and tilefw compiles and runs them, on any target."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tilefw.runtime.plugins.listings import targets

PROGRAM = '''
import torch
import torch.nn.functional as F
from torch._inductor import config

import tilefw
from tilefw.triton.importing import leave_torch

leave_torch()  # its tensors are the host's here, and say so
config.cpu_backend, config.compile_threads, config.force_disable_caches = "triton", 1, True

def pointwise(x, y):
    return (F.gelu(x) + torch.sin(y) * (x > 0),)

def reductions(x, y):
    return F.layer_norm(x, x.shape[1:]).amax(1), torch.argmin(y, 0)

def dropout(x, y):
    return F.dropout(x, 0.25)

x, y = torch.randn(2, 5, 40)
for target in TARGETS:
    tilefw.set_target(target)
    torch._dynamo.reset()
    for function in (pointwise, reductions):
        for found, due in zip(torch.compile(function)(x, y), function(x, y)):
            torch.testing.assert_close(found, due, rtol=1e-4, atol=1e-4)
    kept = torch.compile(dropout)(x, y)
    assert ((kept == 0) | torch.isclose(kept, x / 0.75)).all() and 0.1 < (kept == 0).float().mean() < 0.4

print("done")
'''

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")


@needs_torch
def test_what_pytorchs_compiler_writes_runs_as_its_functions_do(tmp_path: Path) -> None:
    gpus = {t.info.triton.backend: t.info.name for t in reversed(targets()) if t.info.triton is not None}
    (tmp_path / "program.py").write_text(PROGRAM.replace("TARGETS", repr(["reference", *gpus.values()])))
    found = subprocess.run(
        [sys.executable, "-m", "tilefw.triton", "program.py"], capture_output=True, text=True, timeout=300, cwd=tmp_path
    )
    assert found.returncode == 0 and found.stdout.endswith("done\n"), found.stderr[-3000:]
