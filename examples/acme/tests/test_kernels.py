"""Every library kernel runs on the X1, in instructions of its own; what it cannot do is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

import tilefw
from tilefw.api import CapacityError
from tilefw.api.machine import parse_functions
from tilefw.cli.main import main
from tilefw_acme.isa import ROWS

KERNELS = (
    "vector_add", "gelu_bias_residual", "swiglu", "rope", "cast", "quantize", "embedding", "strided_copy", "integer_mix",
)


@pytest.mark.parametrize("name", KERNELS)
def test_a_library_kernel_is_right_under_all_checks(name: str, capsys) -> None:
    assert main(["run", name, "--target", "acme-x1", "--checks", "all"]) == 0, capsys.readouterr()


def test_a_launch_is_right(scale) -> None:
    x = np.arange(1000, dtype=np.float32)
    out = np.empty_like(x)
    scale[(4,)](x, out, 0.25, 1000, BLOCK=256, target="acme-x1")
    np.testing.assert_array_equal(out, x * np.float32(0.25))


def test_code_is_physical_instructions_of_this_machine(compiled) -> None:
    artifact = compiled()
    (function,) = parse_functions(artifact.text)
    insts = list(function.insts())
    assert insts and {inst.opcode for inst in insts} <= ROWS["x1"].keys()
    assert all(piece.reg.physical for inst in insts for piece in (*inst.reads(), *inst.writes()))
    assert artifact.resources.registers and artifact.resources.registers.keys() == {"p", "v"}


def test_too_many_registers_are_told_with_the_line_and_the_way_out(compiled) -> None:
    with pytest.raises(CapacityError, match="registers of class 'p' at once; the chip has 256") as caught:
        compiled(16384)
    assert caught.value.code == "TFW0650"
    assert caught.value.place is not None and caught.value.place.file.endswith("conftest.py")
    assert "num_warps" in caught.value.help


def test_binary64_arithmetic_is_refused_by_name(compiled) -> None:
    with pytest.raises(tilefw.CompileError, match=r"mulf.*f64"):
        compiled(256, "fp64")


def test_an_access_out_of_bounds_is_found(scale) -> None:
    x, out = np.ones(100, np.float32), np.empty(100, np.float32)
    with pytest.raises(tilefw.CheckError) as caught:
        scale[(1,)](x, out, 1.0, 128, BLOCK=128, target="acme-x1")
    finding = caught.value.findings[0]
    assert finding.check == "bounds" and "ld32" in finding.instruction
    assert finding.code_place is not None and finding.code_place.line > 1


def test_half_of_a_pair_is_carried_before_the_pair_moves_on(late) -> None:
    """The low half of the old pair goes into one loop register while the pair itself is overwritten."""
    x = np.arange(64, dtype=np.int64) + (1 << 33)
    out = np.empty(64, np.int32)
    late[(1,)](x, out, 3, BLOCK=64, target="acme-x1")
    np.testing.assert_array_equal(out, ((x * 3 + 1) * 3 + 1).astype(np.int32))
