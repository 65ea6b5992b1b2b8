"""How many workgroups ptxas is told to aim at: where shared memory is dynamic, and where registers say it."""

import numpy as np
import pytest

import tilefw
from tilefw.kernels.reference import typed
from tilefw.kernels.spec import load
from tilefw.runtime.jit import specialize
from tilefw_nvidia.ptxas import find_ptxas

WIDE = {"dtype": "fp32", "num_warps": 8, "block_m": 64, "block_n": 128, "block_k": 64}
SQUARE = {"dtype": "fp16", "num_warps": 4, "block_m": 128, "block_n": 128, "block_k": 32}


def matmul(stages, tile=WIDE, **keywords):
    spec = load("matmul")
    asked = {**tile, "num_stages": stages}
    launch = spec.prepare(spec.resolve({"m": 256, "n": 256, "k": 128, **asked}), np.random.default_rng(0))
    given = {**{key: typed(value) for key, value in launch.arguments.items()}, **launch.constexprs}
    signature, constexprs, _ = specialize(spec.kernel, given)
    keywords = {"num_warps": tile["num_warps"], "num_stages": stages, **keywords}
    return tilefw.compile(spec.kernel, target="nvidia-sm80", signature=signature, constexprs=constexprs, **keywords)


@pytest.mark.skipif(find_ptxas() is None, reason="no ptxas")
def test_ptxas_is_told_how_many_workgroups_dynamic_shared_memory_leaves_room_for():
    alone = matmul(3)  # 144 KiB: no second workgroup fits, whatever its registers
    assert ".minnctapersm 1\n" in alone.text and not alone.resources.spills
    assert ".minnctapersm" not in matmul(3, maxnreg=255).text  # which says it all


def test_ptxas_is_told_of_workgroups_that_registers_keep_out_and_shared_memory_would_let_in():
    assert ".minnctapersm 2\n" in matmul(1, SQUARE).text  # both operands in registers besides the sums: 226 of them
    assert ".minnctapersm" not in matmul(2, SQUARE).text  # ptxas might do with a third of a processor's
