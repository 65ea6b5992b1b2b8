"""What the R1 makes of kernels: values in the file of their type, spills from one file to the other, masks for predicates."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.machine import Function, parse_functions
from tilefw.cli.main import main
from tilefw.testing import contention, wrapped_offsets
from tilefw_rook.isa import ROWS

KERNELS = (
    "vector_add", "rope", "cast", "integer_mix", "softmax rows=5 columns=300", "argmax rows=6 columns=300",
    "transpose rows=40 columns=70 block_rows=32 block_columns=32", "histogram",
    "matmul m=32 n=32 k=40 block_m=32 block_n=32 block_k=16", "int8_matmul m=32 n=32 k=32 block_m=32 block_n=32 block_k=32",
)


@tilefw.jit
def scaled(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=inside) * factor, mask=inside)


def code(block: int, dtype: str = "fp32") -> Function:
    signature = {"x_ptr": f"*{dtype}", "out_ptr": f"*{dtype}", "factor": dtype, "n": "i32"}
    artifact = tilefw.compile(scaled, target="rook-r1", signature=signature, constexprs={"BLOCK": block})
    (function,) = parse_functions(artifact.text)
    return function


def opcodes(function: Function) -> Counter[str]:
    return Counter(inst.opcode for inst in function.insts())


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_is_right_under_all_checks(kernel: str, capsys) -> None:
    name, *parameters = kernel.split()
    given = [word for p in parameters for word in ("--param", p)]
    assert main(["run", name, "--target", "rook-r1", "--checks", "all", *given]) == 0, capsys.readouterr()


def test_floats_go_from_memory_to_memory_in_their_own_file() -> None:
    used = opcodes(code(1024))
    assert used["flw"] == used["fsw"] == used["fmul"] == 1024 // 64 and not used["lw"] and not used["fmv.x"]
    assert used["fmv.f"] == 1  # the factor, an argument


def test_integers_stay_out_of_the_float_file() -> None:
    used = opcodes(code(256, "i32"))
    assert used["lw"] == used["sw"] == 256 // 64
    assert not any(opcode.startswith("f") for opcode in used)


def test_code_has_physical_registers_and_masks_in_the_place_of_predicates() -> None:
    function = code(1024)
    assert {inst.opcode for inst in function.insts()} <= ROWS.keys()
    assert all(piece.reg.physical for inst in function.insts() for piece in (*inst.reads(), *inst.writes()))
    assert not any(inst.predicate for inst in function.insts())
    used = opcodes(function)
    assert 0 < used["pop"] == used["push"] + used["push.n"]


def test_integers_wait_in_free_float_registers_before_memory() -> None:
    """A tile of int64 takes two registers an element; its kernel has no float to compute with."""
    used = opcodes(code(2048, "i64"))
    assert used["fmv.f"] and used["fmv.x"]
    x, out = np.arange(2000, dtype=np.int64) << 20, np.zeros(2000, np.int64)
    scaled[(1,)](x, out, 3, 2000, BLOCK=2048, target="rook-r1", checks="all")
    np.testing.assert_array_equal(out, x * 3)


@pytest.mark.parametrize("seed", [0, 4])
def test_atomics_are_right_in_any_order_of_programs_and_lanes(seed: int) -> None:
    with tilefw.target("rook-r1", checks="all", seed=seed):
        for name in ("fp16", "fp32", "int32", "int64"):
            contention.check_sums(name, "acq_rel" if seed else "relaxed", warps=2)
        contention.check_tickets(4)
        contention.check_swaps("int16")
        contention.check_swaps("int64")


# Of integers of 64 bits, in two registers each, only the values of the registers are known.
FOUND = [name for name in wrapped_offsets.WRONG if "64 bits" not in name]


@pytest.mark.parametrize("name", [*FOUND, *wrapped_offsets.WRONG_IN_ELEMENTS])
def test_an_offset_that_wraps_around_32_bits_is_found(name: str) -> None:
    case = {**wrapped_offsets.WRONG, **wrapped_offsets.WRONG_IN_ELEMENTS}[name]
    assert wrapped_offsets.codes(case, "rook-r1") == {"TFW0817"}


@pytest.mark.parametrize("name", wrapped_offsets.RIGHT)
def test_an_offset_that_is_right_where_it_is_used_is_none(name: str) -> None:
    assert wrapped_offsets.codes(wrapped_offsets.RIGHT[name], "rook-r1", "all") == set()
