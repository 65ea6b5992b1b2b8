"""Kernels with more shared memory than is static on their chip: what ptxas is told of them."""

import numpy as np
import pytest

import tilefw
from tilefw.kernels.reference import typed
from tilefw.kernels.spec import load
from tilefw.runtime.jit import specialize
from tilefw_nvidia.ptxas import find_ptxas


def matmul(stages, **keywords):
    spec = load("matmul")
    asked = {"dtype": "fp32", "num_warps": 8, "num_stages": stages, "block_m": 64, "block_n": 128, "block_k": 64}
    launch = spec.prepare(spec.resolve({"m": 256, "n": 256, "k": 128, **asked}), np.random.default_rng(0))
    given = {**{key: typed(value) for key, value in launch.arguments.items()}, **launch.constexprs}
    signature, constexprs, _ = specialize(spec.kernel, given)
    keywords = {"num_warps": 8, "num_stages": stages, **keywords}
    return tilefw.compile(spec.kernel, target="nvidia-sm80", signature=signature, constexprs=constexprs, **keywords)


@pytest.mark.skipif(find_ptxas() is None, reason="no ptxas")
def test_ptxas_is_told_how_many_workgroups_dynamic_shared_memory_leaves_room_for():
    alone = matmul(3)  # 96 KiB: no second workgroup fits, whatever its registers
    assert ".minnctapersm 1\n" in alone.text and not alone.resources.spills
    assert ".minnctapersm" not in matmul(3, maxnreg=255).text  # which says it all
    assert ".minnctapersm" not in matmul(1).text  # static: ptxas sees it
