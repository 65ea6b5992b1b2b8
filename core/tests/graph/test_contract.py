"""A contraction and what is computed of its elements are one kernel: found in the module, written, and right on any target."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.ir import Operation, SSAValue

from tilefw.graph.builder import ModuleBuilder
from tilefw.graph.certificate import certified
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.dialect.grouping_ops import FusedOp
from tilefw.graph.emit.contract import write
from tilefw.graph.fuse.contract import fuse_contractions
from tilefw.graph.kernel_graph import GraphBuilder
from tilefw.graph.meaning import model_function, run
from tilefw.graph.session import Session
from tilefw.tile import types


def product(b, x, w, bias):
    """silu(x · wᵀ + bias), whose one value is read twice."""
    y = b.map("addf", b.matmul(x, b.transpose(w, [1, 0])), bias)
    return b.map("divf", y, b.map("addf", b.map("exp", b.map("negf", y)), 1.0))


def heads(b, x, w, _bias):
    """Products of heads, stored with the heads inside: what is behind a contraction is a transposition."""
    left = b.transpose(b.reshape(x, (2, 5, 2, 4)), [0, 2, 1, 3])
    return b.transpose(b.matmul(left, b.transpose(b.reshape(w, (6, 2, 4)), [1, 2, 0])), [0, 2, 1, 3])


def convolution(b, x, w, bias):
    """A grouped convolution of stride 2 with padding: its bias is added behind a reshape."""
    return b.map("maxf", b.map("addf", b.convolve(x, w, (2, 1), (1, 1), (1, 0), (1, 2), 2), b.reshape(bias, (6, 1, 1))), 0.0)


def residual(b, x, w, addend):
    """A tensor of the result's shape is added: compilers may let the sum of products begin from it."""
    return b.map("addf", b.matmul(x, w), addend)


def taps(b, x, w, bias):
    """A convolution of many channels, padded: its sum is a loop over taps around a tile of channels."""
    return b.map("addf", b.convolve(x, w, (1, 2), (1, 0), (1, 1), (1, 1), 1), b.reshape(bias, (6, 1, 1)))


CASES = {
    "taps": (taps, ((1, 40, 5, 6), (6, 40, 3, 2), (6,)), ["contract", "reshape", "view", "map"]),
    "residual": (residual, ((8, 64), (64, 32), (8, 32)), ["contract", "map"]),
    "product": (product, ((2, 5, 8), (70, 8), (70,)), ["contract", "view", "map", "map", "map", "constant", "view", "map", "map"]),
    "heads": (heads, ((2, 5, 8), (6, 8), (1,)), ["contract"]),
    "convolution": (
        convolution, ((1, 4, 6, 7), (6, 2, 3, 2), (6,)), ["contract", "reshape", "view", "map", "constant", "view", "map"],
    ),
}


def fused(case):
    """The module before and after, with inputs."""
    make, shapes, _ = CASES[case]
    modules = []
    for _ in range(2):
        b = ModuleBuilder()
        b.output("y", make(b, *(b.input(name, "fp32", shape) for name, shape in zip("xwb", shapes, strict=True))))
        modules.append(b.module())
    fuse_contractions(modules[1])
    modules[1].verify()
    rng = np.random.default_rng(3)
    return modules, [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("case", CASES)
def test_a_group_means_what_its_ops_meant(case):
    modules, given = fused(case)
    wanted, found = (run(module, [one.astype(np.float64) for one in given])[0] for module in modules)
    np.testing.assert_array_equal(found, wanted)
    (group,) = (op for op in model_function(modules[1]).body.block.ops if isinstance(op, FusedOp))
    assert [op.name.removeprefix("graph.") for op in group.body.block.ops][:-1] == CASES[case][2]


@pytest.mark.parametrize("target", ["reference", "nvidia-sm80"])
@pytest.mark.parametrize("case", CASES)
def test_its_kernel_is_within_its_bounds(case, target):
    modules, given = fused(case)
    (group,) = (op for op in model_function(modules[1]).body.block.ops if isinstance(op, FusedOp))
    kernel, made = write(group, case), GraphBuilder()
    names: dict[SSAValue, str] = dict(zip(model_function(modules[1]).body.block.args, "xwb", strict=True))
    arguments = {}
    for number, value in enumerate(group.operands):
        owner = value.owner.operands[0] if isinstance(value.owner, Operation) else value  # a reshape of an input, or one
        arguments[f"in{number}_ptr"] = made.input(names[owner], "fp32", types.shape_of(owner.type))
    arguments["out0_ptr"] = made.temporary("y", "fp32", types.shape_of(group.results[0].type))
    made.product(case, kernel.kernel(), arguments, kernel.extents)
    made.output("y", arguments["out0_ptr"])
    inputs = dict(zip("xwb", given, strict=True))
    with Session(compile_graph(made.graph(), target)) as session:
        certificate = certified(session, {name: inputs[name] for name in session.plan.inputs})
    assert certificate.ok and certificate.launches[0].worst > 0
    wanted = run(modules[0], [one.astype(np.float64) for one in given])[0]
    np.testing.assert_allclose(certificate.outputs["y"].reshape(wanted.shape), wanted, rtol=2e-5, atol=1e-5)


def test_the_sum_begins_from_what_is_added_first():
    modules, _ = fused("residual")
    (group,) = (op for op in model_function(modules[1]).body.block.ops if isinstance(op, FusedOp))
    source = write(group, "residual").source
    assert "total = tl.zeros((ROWS, COLUMNS), tl.float32) + tl.load(in2_ptr" in source
    assert source.count("in2_ptr + ") == 1
