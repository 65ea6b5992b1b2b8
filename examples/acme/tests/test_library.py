"""Reductions, dots and moves of the library on both chips: right by the reference's bounds, and by the means that a chip has."""

from __future__ import annotations

import pytest

from tilefw.api import CompileOptions
from tilefw.api.capabilities import PROFILES, profiles
from tilefw.api.machine import Function, parse_functions
from tilefw.cli.main import main
from tilefw_acme.backend import AcmeBackend
from tilefw_acme.isa import ROWS
from tilefw_acme.matrix import MATRICES
from tilefw_acme.target import X1, X2

CHIPS = pytest.mark.parametrize("target", [X1, X2], ids=lambda target: target.name)
_TILE = "block_m=32 block_n=32 block_k=32"
KERNELS = (
    "softmax rows=5 columns=300", "softmax rows=3 columns=700 block=256", "layernorm rows=4 columns=300",
    "argmax rows=6 columns=300", "welford rows=5 columns=300", "transpose rows=40 columns=70 block_rows=32 block_columns=32",
    f"matmul m=40 n=48 k=70 {_TILE}", f"matmul m=32 n=32 k=64 dtype=fp32 input_precision=ieee {_TILE}",
    f"matmul m=32 n=32 k=64 dtype=bf16 {_TILE}", f"int8_matmul m=40 n=32 k=64 {_TILE}",
    "attention queries=20 keys=40 head_size=16 heads=1 block_m=16 block_n=16",
)


def run(kernel: str, target: str, *more: str) -> int:
    name, *parameters = kernel.split()
    return main(["run", name, "--target", target, "--checks", "all", *(word for p in parameters for word in ("--param", p)), *more])


def code(kernel: str, target: str, directory) -> Function:
    """The kernel's machine code."""
    assert run(kernel, target, "--save-temps", str(directory)) == 0
    (path,) = directory.rglob("*.machine")
    (function,) = parse_functions(path.read_text(encoding="utf-8"), path.name)
    return function


@CHIPS
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_is_right_under_all_checks(kernel, target, capsys) -> None:
    assert run(kernel, target.name) == 0, capsys.readouterr()


@CHIPS
def test_a_chip_is_used_as_far_as_its_description_goes(target, tmp_path, capsys) -> None:
    """The X1 multiplies in its lanes and exchanges through shared memory; the X2 has an instruction for the one, and shuffles."""
    used = {inst.opcode for inst in code(f"matmul m=32 n=32 k=64 {_TILE}", target.name, tmp_path / "matmul").insts()}
    assert used <= ROWS[target.chip].keys() and {"lds32", "sts32", "barrier"} <= used
    assert bool(used & MATRICES.keys()) == (target is X2)
    used = {inst.opcode for inst in code("softmax rows=2 columns=300", target.name, tmp_path / "softmax").insts()}
    assert ("shuffle" in used) == (target is X2)


@pytest.mark.parametrize("kernel", [
    "matmul dtype=fp16", "matmul dtype=bf16", "matmul dtype=fp32 input_precision=tf32", "int8_matmul",
])
def test_the_dots_of_the_profile_are_made_by_the_matrix_unit(kernel, tmp_path, capsys) -> None:
    """`tile-mma` and `tile-mma-int8`, which a report lists by the claims, are what the X2 has instructions for."""
    assert {"tile-mma", "tile-mma-int8"} <= set(profiles(X2.capabilities))
    used = {inst.opcode for inst in code(f"{kernel} m=32 n=32 k=64 {_TILE}", "acme-x2", tmp_path).insts()}
    assert used & MATRICES.keys()


def test_all_profiles_are_claimed_but_the_one_of_binary64() -> None:
    for target in (X1, X2):
        assert PROFILES.keys() - set(profiles(target.capabilities)) == {"tile-fp64"}


@CHIPS
def test_a_dot_reads_shared_memory_without_bank_conflicts(target, capsys) -> None:
    assert run(f"matmul m=32 n=32 k=64 dtype=fp32 {_TILE}", target.name, "--json") == 0
    assert '"bank_conflicts": 0' in capsys.readouterr().out


def test_an_atom_lies_where_the_simulator_has_it() -> None:
    """Both sides read one `Fragment`: here element by element, as the simulator's documentation says it and as the layout does."""
    for atom in AcmeBackend(X2).chip(CompileOptions()).description.atoms:
        row = MATRICES[atom.name]
        for layout, fragment in ((atom.a_layout, row.a), (atom.b_layout, row.b), (atom.d_layout, row.d)):
            names = (*fragment.columns, *fragment.rows)
            inside = sum(name[0] == "e" for name in names)
            for lane in range(X2.limits["lanes"]):
                for register in range(layout.registers):
                    place = {"e": register, "r": register >> inside, "l": lane}
                    flat = sum((place[n[0]] >> int(n[1:]) & 1) << i for i, n in enumerate(names))
                    assert layout.element(register, lane) == flat
            rows, columns = layout.shape
            assert layout.covers and layout.registers * X2.limits["lanes"] == rows * columns
