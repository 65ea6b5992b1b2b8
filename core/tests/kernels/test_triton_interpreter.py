"""What Triton's own interpreter makes of our kernels with atomics is what the reference says, within its bounds."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tilefw.kernels.index import WORDS

ATOMICS = [
    *(("atomic_mix", {"operation": op, "dtype": t, "n": 90, "block": 32, "share": share, "inputs": "uniform"})
      for op in ("add", "max", "min", "and", "or", "xor", "xchg") for t in WORDS for share in (1, 7)),
    *(("atomic_mix", {"operation": op, "dtype": t, "n": 90, "block": 32, "share": share})
      for op in ("add", "max", "min") for t in ("fp32", "fp64") for share in (1, 7)),  # it exchanges no floats
    *(("atomic_mix", {"operation": "cas", "dtype": t, "n": 96, "block": 32, "mask": "none", "share": share})
      for t in ("int32", "int64", "fp32", "fp64") for share in (1, 3)),
    *(("atomic_mix", {"mask": mask, "n": 90, "block": 32}) for mask in ("none", "alternating", "single", "never", "data")),
    ("atomic_mix", {"scalar": True, "n": 9, "share": 3}),
    ("atomic_mix", {"operation": "add", "dtype": "fp16", "n": 90, "share": 9}),
    *(("histogram", {"spread": spread, "n": 300, "bins": 20, "block": 64}) for spread in ("even", "one")),
    ("split_k_matmul", {"m": 40, "n": 40, "k": 100, "splits": 3}), ("locked_accumulate", {"rows": 9}),
    ("grid_argmax", {"n": 500, "block": 64}), ("chained_sum", {"n": 300, "block": 64, "dtype": "fp32", "inputs": "normal"}),
]


def test_atomics_are_tritons() -> None:
    for package in ("triton", "torch"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed, which Triton's interpreter needs")
    command = [sys.executable, str(Path(__file__).with_name("interpreted.py"))]
    ran = subprocess.run(command, input=json.dumps(ATOMICS), capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == []
