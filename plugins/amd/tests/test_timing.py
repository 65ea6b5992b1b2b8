"""The timing table against the chip's published peaks, and against LLVM's scheduling model as llvm-mca reads it."""

from __future__ import annotations

import random
import re
import shutil
import subprocess

import pytest
from served import ISA, ROWS

from cdna3.random_inst import random_inst
from tilefw_amd.chips import WAVE
from tilefw_amd.isa.meaning.fragments import SHAPES
from tilefw_amd.isa.text.printer import text
from tilefw_amd.machine.timing import timing

# TARGET: 304 compute units of four SIMDs at 2.1 GHz (ROCm, "GPU hardware specifications").
SIMDS, HERTZ = 304 * 4, 2.1e9


def tera(name: str, operations: int) -> float:
    """10^12 operations a second when nothing else runs."""
    return operations / timing(ISA)[name].issue * SIMDS * HERTZ / 1e12


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("v_mfma_f32_16x16x16_f16", 1307), ("v_mfma_f32_32x32x8_bf16", 1307), ("v_mfma_f32_32x32x16_fp8_fp8", 2615),
        ("v_mfma_i32_16x16x32_i8", 2615), ("v_mfma_f32_32x32x4_xf32", 654), ("v_mfma_f32_32x32x2_f32", 163.4),
        ("v_mfma_f64_16x16x4_f64", 163.4), ("v_smfmac_f32_16x16x32_f16", 2615), ("v_smfmac_i32_32x32x32_i8", 5230),
    ],
)  # fmt: skip
def test_matrix_instructions_reach_the_published_peak(name: str, peak: float) -> None:
    """AMD, "Instinct TARGET data sheet"; sparse ones twice the dense."""
    shape = next(s for s in SHAPES if s.name == name)
    assert tera(name, 2 * shape.m * shape.n * shape.k * shape.blocks) == pytest.approx(peak, rel=0.002)


@pytest.mark.parametrize(("name", "each", "peak"), [("v_pk_fma_f32", 4, 163.4), ("v_fma_f32", 2, 81.7), ("v_fma_f64", 2, 81.7)])
def test_vector_instructions_reach_the_published_peak(name: str, each: int, peak: float) -> None:
    assert tera(name, each * WAVE) == pytest.approx(peak, rel=0.002)


def test_accesses_keep_their_pipe_as_long_as_their_bytes_need() -> None:
    """LDS moves 128 bytes a cycle, the vector cache 64."""
    times = timing(ISA)
    assert [times[f"ds_read_b{bits}"].issue for bits in (32, 64, 128)] == [2, 4, 8]
    assert [times[f"global_load_dword{x}"].issue for x in ("", "x2", "x4")] == [4, 8, 16]


def test_vector_instructions_run_beside_matrix_instructions_as_the_calculator_says() -> None:
    beside = {name: time.beside for name, time in timing(ISA).items() if ROWS[name].passes}
    assert beside["v_mfma_f32_16x16x16_f16"] == 4 and beside["v_smfmac_f32_16x16x64_fp8_fp8"] == 8
    assert beside["v_mfma_f32_16x16x4_f32"] is None and beside["v_mfma_f64_4x4x4_4b_f64"] is None


def test_slow_instructions_are_rows() -> None:
    assert set(ROWS) >= ISA.chip.rates.slow


@pytest.mark.skipif(shutil.which("llvm-mca-22") is None, reason="no llvm-mca-22 (apt-get install llvm-22)")
def test_latencies_are_those_of_llvm() -> None:
    """Four times LLVM's figures; of matrix instructions how long the pipe is kept."""
    lines = {}
    for form in ISA.forms:
        if form.row.name not in lines and form.row.unit in ("valu", "valu64", "trans", "matrix", "salu", "lds"):
            lines[form.row.name] = text(random_inst(form, random.Random(0)))
    answers = _mca(lines)
    assert len(answers) > 0.9 * len(lines)
    for name, (latency, throughput) in answers.items():
        time = timing(ISA)[name]
        if ROWS[name].passes:
            assert time.issue == 4 * throughput, name
        else:
            assert time.latency == 4 * latency, name


def _mca(lines: dict[str, str]) -> dict[str, tuple[int, float]]:
    """(Latency, reciprocal throughput) by name, of the lines that llvm-mca takes."""
    command = ["llvm-mca-22", "-mtriple=amdgcn-amd-amdhsa", "-mcpu=gfx942", "-instruction-tables", "-iterations=1"]
    command += ["-skip-unsupported-instructions=any"]
    names = list(lines)
    while True:
        done = subprocess.run(command, input="\n".join(lines[n] for n in names) + "\n", capture_output=True, text=True, timeout=120)
        refused = {int(line) - 1 for line in re.findall(r"^<stdin>:(\d+):\d+: error", done.stderr, re.MULTILINE)}
        if not refused:
            break
        names = [name for i, name in enumerate(names) if i not in refused]
    rows = re.findall(r"^ \d+ +(\d+) +([\d.]+) .*$", done.stdout, re.MULTILINE)
    assert len(rows) == len(names), done.stderr[-500:]
    return {name: (int(latency), float(throughput)) for name, (latency, throughput) in zip(names, rows, strict=True)}
