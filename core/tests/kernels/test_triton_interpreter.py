"""What Triton's own interpreter makes of kernels with atomics, scans, random numbers and sorts is the reference's result."""

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

SCANS = [
    *(("scan_tile", {"operation": op, "axis": axis, "reverse": reverse, "layers": 2, "rows": 4, "columns": 16})
      for op in ("sum", "product", "max", "min", "latest", "recurrence") for axis in "012" for reverse in (False, True)),
    *(("scan_tile", {"operation": op, "dtype": t, "rows": 2, "columns": 32, "inputs": "ints"})
      for op in ("sum", "max", "latest", "recurrence") for t in ("fp64", "fp16", "int8", "int16", "int32", "int64", "uint8")),
    *(("scan_tile", {"operation": "product", "dtype": t, "rows": 2, "columns": 32}) for t in ("int8", "int16", "int64", "uint8")),
    *(("scan_tile", {"operation": op, "dtype": "int32", "rows": 2, "columns": 32}) for op in ("xor", "or", "and")),
    ("selective_scan", {"states": 4, "length": 40, "block": 16}), ("selective_scan", {"states": 1, "length": 5, "block": 8}),
]

RANDOM = [
    *(("random_numbers", {"kind": kind, "seed": seed, "offset": offset, "n": 40, "block": 32, "inputs": "specials"})
      for kind in ("bits", "words", "uniform") for seed in WORDS for offset in WORDS),
    *(("random_numbers", {"kind": kind, "rounds": rounds, "n": 40, "block": 32})
      for kind in ("bits", "normal") for rounds in (0, 7)),
]

SORTS = [
    *(("sort_tile", {"operation": operation, "descending": descending, "rows": 2, "columns": 16, "k": 4})
      for operation in ("sort", "merge", "topk") for descending in (False, True)),
    *(("sort_tile", {"operation": operation, "dtype": t, "rows": 2, "columns": 8, "k": k})
      for operation, k in (("sort", 1), ("topk", 1), ("topk", 8)) for t in ("fp64", "fp16", "int8", "uint8", "uint32", "int64")),
    *(("gather_tile", {"axis": axis, "dtype": t, "index": index, "rows": 4, "columns": 16, "count": count})
      for axis in "01" for count in (2, 32) for t, index in (("fp32", "int32"), ("fp16", "int64"), ("int8", "uint8"))),
]


GROUPS = {"atomics": ATOMICS, "scans": SCANS, "random numbers": RANDOM, "sorts and gathers": SORTS}


@pytest.mark.parametrize("requests", list(GROUPS.values()), ids=list(GROUPS))
def test_kernels_are_tritons(requests: list[tuple[str, dict[str, object]]]) -> None:
    for package in ("triton", "torch"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed, which Triton's interpreter needs")
    command = [sys.executable, str(Path(__file__).with_name("interpreted.py"))]
    ran = subprocess.run(command, input=json.dumps(requests), capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == []
