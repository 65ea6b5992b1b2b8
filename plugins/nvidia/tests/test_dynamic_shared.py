"""How many workgroups ptxas is told to aim at: where shared memory is dynamic, and where registers say it."""

import numpy as np
import pytest

import tilefw
from tilefw.kernels.reference import typed
from tilefw.kernels.spec import load
from tilefw.runtime.jit import specialize
from tilefw_nvidia.ptxas import find_ptxas

TILE = {"dtype": "fp32", "block_m": 64, "block_n": 128, "block_k": 64, "m": 256, "n": 256, "k": 128}
BLOCKS = {"block_m": 128, "block_n": 64, "heads": 1, "queries": 128, "keys": 128}


def compiled(kernel, warps, parameters, stages=2, **keywords):
    spec = load(kernel)
    asked = {**parameters, "num_warps": warps, "num_stages": stages}
    launch = spec.prepare(spec.resolve(asked), np.random.default_rng(0))
    given = {**{key: typed(value) for key, value in launch.arguments.items()}, **launch.constexprs}
    signature, constexprs, _ = specialize(spec.kernel, {p.name: given[p.name] for p in spec.kernel.params})
    keywords = {"num_warps": warps, "num_stages": stages, **keywords}
    return tilefw.compile(spec.kernel, target="nvidia-sm80", signature=signature, constexprs=constexprs, **keywords)


@pytest.mark.skipif(find_ptxas() is None, reason="no ptxas")
def test_ptxas_is_told_how_many_workgroups_dynamic_shared_memory_leaves_room_for():
    alone = compiled("matmul", 8, TILE, 3)  # 144 KiB: no second workgroup fits, whatever its registers
    assert ".minnctapersm 1\n" in alone.text and not alone.resources.spills
    assert ".minnctapersm" not in compiled("matmul", 8, TILE, 3, maxnreg=255).text  # which says it all
    assert ".minnctapersm" not in compiled("matmul", 8, TILE, 1).text  # static, and not many registers


@pytest.mark.parametrize(("kernel", "head", "told"), [
    ("attention", 64, ".minnctapersm 2\n"), ("fp8_attention", 32, ".minnctapersm 3\n"), ("attention", 32, None),
])
def test_ptxas_is_told_of_workgroups_that_registers_keep_out_and_shared_memory_would_let_in(kernel, head, told):
    """With heads of 32, three workgroups may have enough registers: of 16 bits ptxas finds out."""
    text = compiled(kernel, 4, {**BLOCKS, "head_size": head, "causal": kernel != "attention"}).text
    assert told in text if told else ".minnctapersm" not in text
