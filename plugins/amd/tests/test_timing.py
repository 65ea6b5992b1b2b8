"""The timing table against the chip's published peaks, and against LLVM's scheduling model as llvm-mca reads it."""

from __future__ import annotations

import random
import re
import shutil
import subprocess

import pytest
from served import CHIPS, ISA, ISAS, ROWS

from cdna3.random_inst import random_inst
from tilefw_amd.chips import WAVE, Chip
from tilefw_amd.isa.meaning.fragments import SHAPES
from tilefw_amd.isa.set import InstructionSet, instruction_set
from tilefw_amd.isa.text.printer import text
from tilefw_amd.machine.timing import timing

# The clock of the fastest product of each chip (ROCm, "GPU hardware specifications"; AMD, data sheet of the MI355X).
HERTZ = {"gfx942": 2.1e9, "gfx950": 2.4e9}


def tera(chip: Chip, name: str, operations: int) -> float:
    """10^12 operations a second when nothing else runs."""
    simds = chip.limits["processors"] * chip.limits["simds_per_processor"]
    return operations / timing(instruction_set(chip))[name].issue * simds * HERTZ[chip.name] / 1e12


# AMD, "Instinct TARGET data sheet"; sparse ones twice the dense.
MATRIX_PEAKS = {
    "gfx942": [
        ("v_mfma_f32_16x16x16_f16", 1307), ("v_mfma_f32_32x32x8_bf16", 1307), ("v_mfma_f32_32x32x16_fp8_fp8", 2615),
        ("v_mfma_i32_16x16x32_i8", 2615), ("v_mfma_f32_32x32x4_xf32", 654), ("v_mfma_f32_32x32x2_f32", 163.4),
        ("v_mfma_f64_16x16x4_f64", 163.4), ("v_smfmac_f32_16x16x32_f16", 2615), ("v_smfmac_i32_32x32x32_i8", 5230),
    ],
    "gfx950": [
        ("v_mfma_f32_16x16x32_f16", 2517), ("v_mfma_f32_32x32x16_bf16", 2517), ("v_mfma_i32_16x16x64_i8", 5033),
        ("v_mfma_i32_32x32x32_i8", 5033), ("v_mfma_f32_32x32x2_f32", 157.3), ("v_mfma_f64_16x16x4_f64", 78.6),
    ],
}  # fmt: skip
VECTOR_PEAKS = {
    "gfx942": [("v_pk_fma_f32", 4, 163.4), ("v_fma_f32", 2, 81.7), ("v_fma_f64", 2, 81.7)],
    "gfx950": [("v_pk_fma_f32", 4, 157.3), ("v_fma_f32", 2, 78.6), ("v_fma_f64", 2, 78.6)],
}


@pytest.mark.parametrize(("chip", "name", "peak"), [(chip, *peak) for chip in CHIPS for peak in MATRIX_PEAKS[chip.name]], ids=str)
def test_matrix_instructions_reach_the_published_peak(chip: Chip, name: str, peak: float) -> None:
    shape = next(s for s in SHAPES if s.name == name and s.serves(chip))
    assert tera(chip, name, 2 * shape.m * shape.n * shape.k * shape.blocks) == pytest.approx(peak, rel=0.002)


@pytest.mark.parametrize(
    ("chip", "name", "each", "peak"), [(chip, *peak) for chip in CHIPS for peak in VECTOR_PEAKS[chip.name]], ids=str
)
def test_vector_instructions_reach_the_published_peak(chip: Chip, name: str, each: int, peak: float) -> None:
    assert tera(chip, name, each * WAVE) == pytest.approx(peak, rel=0.002)


@pytest.mark.parametrize(("isa", "cycles"), list(zip(ISAS, ([2, 4, 8], [1, 2, 4]), strict=True)), ids=str)
def test_accesses_keep_their_pipe_as_long_as_their_bytes_need(isa: InstructionSet, cycles: list[int]) -> None:
    """LDS moves 128 bytes a cycle, later 256; the vector cache 64."""
    times = timing(isa)
    assert [times[f"ds_read_b{bits}"].issue for bits in (32, 64, 128)] == cycles
    assert [times[f"global_load_dword{x}"].issue for x in ("", "x2", "x4")] == [4, 8, 16]


def test_vector_instructions_run_beside_matrix_instructions_as_the_calculator_says() -> None:
    beside = {name: time.beside for name, time in timing(ISA).items() if ROWS[name].passes}
    assert beside["v_mfma_f32_16x16x16_f16"] == 4 and beside["v_smfmac_f32_16x16x64_fp8_fp8"] == 8
    assert beside["v_mfma_f32_16x16x4_f32"] is None and beside["v_mfma_f64_4x4x4_4b_f64"] is None


@pytest.mark.parametrize("isa", ISAS, ids=str)
def test_slow_instructions_are_rows(isa: InstructionSet) -> None:
    assert set(isa.rows) >= isa.chip.rates.slow


@pytest.mark.skipif(shutil.which("llvm-mca-22") is None, reason="no llvm-mca-22 (apt-get install llvm-22)")
@pytest.mark.parametrize("isa", ISAS, ids=str)
def test_latencies_are_those_of_llvm(isa: InstructionSet) -> None:
    """Four times LLVM's figures; of matrix instructions how long the pipe is kept."""
    lines = {}
    for form in isa.forms:
        if form.row.name not in lines and form.row.unit in ("valu", "valu64", "trans", "matrix", "salu", "lds"):
            lines[form.row.name] = text(random_inst(form, random.Random(0)))
    answers = _mca(isa.chip, lines)
    assert len(answers) > 0.9 * len(lines)
    for name, (latency, throughput) in answers.items():
        time = timing(isa)[name]
        # llvm-mca counts the same passes whatever the formats are; GCNHazardRecognizer.cpp does not (hazards/test_format_waits).
        if "f8f6f4" in name:
            continue
        if isa.rows[name].passes:
            assert time.issue == 4 * throughput, name
        else:
            assert time.latency == 4 * latency, name


def _mca(chip: Chip, lines: dict[str, str]) -> dict[str, tuple[int, float]]:
    """(Latency, reciprocal throughput) by name, of the lines that llvm-mca takes."""
    command = ["llvm-mca-22", "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={chip.name}", "-instruction-tables", "-iterations=1"]
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
