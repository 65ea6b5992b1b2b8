"""`tilefw trace` on a GPU: one processor by the model of time, of the library's kernels and of a function of a file for Triton."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilefw.cli.main import main

KERNEL = """
import triton
import triton.language as tl

@triton.jit
def doubled(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n)
"""


def test_waves_pipes_and_memory_are_in_perfettos_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.json"
    assert main(["trace", "matmul", "--target", "nvidia-sm90a", "--param", "m=64", "n=64", "k=64", "-o", str(path)]) == 0
    assert "(the model of time)" in capsys.readouterr().out
    events = json.loads(path.read_text())["traceEvents"]
    names = {event["args"]["name"] for event in events if event["name"] in ("thread_name", "process_name")}
    assert names >= {"workgroup 0", "wave 0", "tensor 0", "shared", "L2", "DRAM"}
    assert any("tl.dot" in event["name"] for event in events if event.get("cat") == "executes"), "spans are named by source lines"


def test_a_function_of_a_file_for_triton_is_traced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    stated = ["--signature", "x_ptr=*fp32", "n=i32", "--constexpr", "BLOCK=256", "--grid", "4", "--scalar", "n=1000"]
    stated += ["--extent", "x_ptr=4000"]
    assert main(["trace", f"{tmp_path / 'kernel.py'}:doubled", "--target", "nvidia-sm80", *stated, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["kernel"], told["executor"], told["facts"]["workgroups"]) == ("doubled", "the model of time", "1 of 4")
    assert {row["group"] for row in told["rows"]} == {"workgroup 0", "pipes", "memory"}
