"""The target's own launch keywords do what they say, and refuse values that they do not have."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from served import CHIP, CHIPS

import tilefw
import tilefw.language as tl
from tilefw.api import CapacityError, CheckError, LaunchError
from tilefw.cli.main import main
from tilefw_amd.machine import spill
from tilefw_amd.machine.spill import model
from tilefw_amd.options import OPTIONS

TARGET = CHIP.target
on_each_chip = pytest.mark.parametrize("target", [chip.target for chip in CHIPS])
DIES = CHIP.limits["dies"]


@tilefw.jit
def visit(visits_ptr, wanted, width, height, programs):
    program = tl.program_id(0) + width * (tl.program_id(1) + height * tl.program_id(2))
    tl.store(visits_ptr + program, tl.load(visits_ptr + program) + 1)
    if program == wanted:
        tl.store(visits_ptr + programs, 1)  # behind the end: the report says which workgroup it was


def visits(grid: tuple[int, ...], chunk: int, wanted: int = -1) -> np.ndarray:
    width, height, _ = (*grid, 1, 1)[:3]
    found = np.zeros(math.prod(grid), np.int32)
    visit[grid](found, wanted, width, height, found.size, num_warps=1, xcd_chunk=chunk, target=TARGET)
    return found


@pytest.mark.parametrize("chunk", [0, 1, 4])
@pytest.mark.parametrize("grid", [(1,), (33,), (100,), (5, 7), (9, 4, 3), (1, 1, 70)], ids=str)
def test_every_program_runs_once_in_any_order(grid: tuple[int, ...], chunk: int) -> None:
    assert (visits(grid, chunk) == 1).all()


@pytest.mark.parametrize(("grid", "chunk"), [((35,), 2), ((3, 4, 3), 4)], ids=str)
def test_consecutive_programs_run_on_one_die(grid: tuple[int, ...], chunk: int) -> None:
    """The hardware gives workgroup n to die n mod 8: all programs of a chunk have the same."""
    width, height, _ = (*grid, 1, 1)[:3]
    programs = math.prod(grid)
    dies: dict[int, set[int]] = defaultdict(set)
    for program in range(programs):
        with pytest.raises(CheckError) as caught:
            visits(grid, chunk, program)
        found = re.search(r"workgroup \((\d+), (\d+), (\d+)\)", str(caught.value))
        assert found
        x, y, z = map(int, found.groups())
        if program < programs // (DIES * chunk) * (DIES * chunk):
            dies[program // chunk].add((x + width * (y + height * z)) % DIES)
        else:
            assert x + width * (y + height * z) == program
    assert all(len(found) == 1 for found in dies.values())
    assert {d for found in dies.values() for d in found} == set(range(DIES))


@tilefw.jit
def product(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    places = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(c_ptr + places, tl.dot(tl.load(a_ptr + places), tl.load(b_ptr + places)))


@pytest.mark.parametrize("rows", [16, 32])
@on_each_chip
def test_matrix_instructions_have_the_rows_that_were_asked_for(target: str, rows: int) -> None:
    a, b = np.random.default_rng(0).integers(-4, 4, (2, 64, 64)).astype(np.float16)
    c = np.zeros((64, 64), np.float32)
    result = product[(1,)](a, b, c, N=64, matrix_instr_nonkdim=rows, target=target)
    assert set(re.findall(r"v_mfma_f32_(\d+x\d+)", result.artifact.text)) == {f"{rows}x{rows}"}
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@on_each_chip
def test_types_without_such_a_matrix_instruction_take_another(target: str) -> None:
    a, b = np.random.default_rng(0).integers(-4, 4, (2, 32, 32)).astype(np.float64)
    c = np.zeros((32, 32))
    result = product[(1,)](a, b, c, N=32, matrix_instr_nonkdim=32, target=target)
    assert "v_mfma_f64_16x16x4_f64" in result.artifact.text
    assert np.array_equal(c, a @ b)


@tilefw.jit
def double(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * 2)


def test_so_many_waves_fit_on_a_simd() -> None:
    x = np.arange(8192, dtype=np.float32)
    out = np.zeros_like(x)
    free = double[(1,)](x, out, BLOCK=8192, num_warps=1, target=TARGET).artifact.resources
    few = double[(1,)](x, out, BLOCK=8192, num_warps=1, waves_per_eu=8, target=TARGET).artifact.resources
    assert free.registers is not None and few.registers is not None
    assert free.registers["vector"] > 64 >= few.registers["vector"] + few.registers["accumulation"]
    assert np.array_equal(out, 2 * x)


def test_a_refusal_names_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a chip with less scratch than there is, as a tile that is too large for all of it takes long to lower."""
    monkeypatch.setattr(spill, "model", lambda isa: replace(model(isa), memory_bytes=4096))
    with pytest.raises(CapacityError, match=r"of which it may use 64 \(waves_per_eu=8\)"):
        tilefw.compile(double, TARGET, {"x_ptr": "*fp32", "out_ptr": "*fp32"}, {"BLOCK": 1 << 17}, num_warps=1, waves_per_eu=8)


@pytest.mark.parametrize(
    ("name", "value"),
    [("xcd_chunk", 3), ("xcd_chunk", -1), ("xcd_chunk", "a"), ("waves_per_eu", 9), ("matrix_instr_nonkdim", 4), ("kpack", True)],
)
def test_other_values_are_refused_with_what_the_option_is(name: str, value: object) -> None:
    with pytest.raises(LaunchError) as caught:
        tilefw.compile(double, TARGET, {"x_ptr": "*fp32", "out_ptr": "*fp32"}, {"BLOCK": 64}, **{name: value})
    assert caught.value.code == "TFW0321" and OPTIONS[name].values in caught.value.message
    assert OPTIONS[name].text in (caught.value.note or "")


def test_the_command_line_takes_them() -> None:
    assert main(["run", "vector_add", "--target", TARGET, "--option", "xcd_chunk=2", "waves_per_eu=8", "--checks", "all"]) == 0
    assert main(["run", "vector_add", "--target", TARGET, "--option", "xcd_chunk=3"]) == 1
    assert main(["run", "vector_add", "--target", TARGET, "--option", "xcd_chunks=2"]) == 2  # there is none
