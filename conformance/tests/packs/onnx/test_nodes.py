"""ONNX's node tests as cases: the subset's size, one of each kind of operator on every target, and planted bugs that are found."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tilefw_onnx", reason="the ONNX pack is an extra")

from tilefw.api.errors import UnsupportedError, UsageError
from tilefw.kernels.verify import verify
from tilefw.runtime.jit import JITFunction
from tilefw.runtime.plugins.loader import find_target
from tilefw_conformance import runner
from tilefw_conformance.packs import onnx as pack
from tilefw_conformance.packs.onnx.subject import spec_of
from tilefw_conformance.packs.onnx.subset import nodes
from tilefw_onnx.lowerings import elementwise, functions, normalize, reductions
from tilefw_onnx.lowerings.elementwise import Formula
from tilefw_onnx.lowerings.node import Node
from tilefw_onnx.lowerings.operators import OPERATORS
from tilefw_onnx.lowerings.reductions import Reduction

TARGETS = ("reference", "nvidia-sm80", "amd-cdna3")

# One of each kind, those first whose lowering is longest.
SAMPLE = (
    "attention_4d_gqa_with_past_and_present_fp16", "attention_local_window_ext_cache_rank3_head_mask",
    "attention_23_boolmask_fullymasked_row_nan_robustness", "flexattention_relative_positional", "linear_attention_gated_delta_gqa",
    "rotary_embedding_no_position_ids_interleaved", "causal_conv_with_state_with_bias_and_past_state", "cumprod_1d_int32_exclusive",
    "qlinearmatmul_3D_int8_float16", "gemm_all_attributes", "einsum_batch_matmul_bfloat16", "layer_normalization_4d_axis2",
    "batchnorm_epsilon_training_mode", "group_normalization_epsilon", "logsoftmax_axis_0", "reduce_log_sum_exp_empty_set",
    "cast_no_saturate_FLOAT_to_FLOAT8E4M3FN", "cast_e8m0_FLOAT_to_FLOAT8E8M0", "quantizelinear_blocked_asymmetric",
    "dynamicquantizelinear_max_adjusted", "slice_neg_steps", "gather_negative_indices", "split_2d_uneven_split_opset18", "tile",
    "mod_float_edge_cases_fmod_0_float64", "einsum_batch_diagonal",
    "bitshift_left_int8_negative_shift", "pow_types_int32_float32", "acos", "and_bcast4v4d",
)


def test_the_strict_subset_is_739_tests_of_115_operators() -> None:
    cases = pack.cases()
    assert len({case.id for case in cases}) == len(cases)
    assert Counter(case.level for case in cases) == {"core": 739, "extended": 130}
    assert {node.operator for node in nodes().values() if node.strict} == set(OPERATORS) and len(OPERATORS) == 115


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", SAMPLE)
def test_a_node_of_each_kind_passes(name: str, target: str) -> None:
    verdict = verify(pack.spec(name), {}, target)
    assert verdict.ok, str(verdict.failed and verdict.failed.error)
    assert verdict.comparisons


def test_a_case_names_its_command() -> None:
    case = next(case for case in pack.cases() if case.id == "onnx/Abs/abs")
    result = runner.run(case, find_target("reference"))
    assert result.outcome == "pass"
    assert result.record()["reproduce"].startswith("tilefw conformance --target reference --pack onnx --level core -k onnx/Abs/abs")


def test_a_node_that_is_not_lowered_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(node: Node) -> Any:
        raise UnsupportedError(f"{node.operator} of this kind", code="TFW0992")

    case = next(case for case in pack.cases() if case.id == "onnx/Abs/abs")
    monkeypatch.setattr(runner, "spec_of", lambda case: refused(nodes()["abs"]))
    result = runner.run(case, find_target("reference"))
    assert result.outcome == "unsupported" and result.error is not None and "Abs of this kind" in str(result.error)


def test_a_test_of_another_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="no node test") as caught:
        pack.spec("softmax_axis_9")
    assert caught.value.code == "TFW0991" and caught.value.help is not None and "softmax_axis_" in caught.value.help


def test_without_onnx_the_pack_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "find_spec", lambda name: None)
    with pytest.raises(UsageError) as caught:
        pack.spec("abs")
    assert caught.value.code == "TFW0990" and "tilefw-conformance[onnx]" in str(caught.value.help)


# What a lowering may get wrong, by the test that must find it. ONNX's values alone can: the kernel is its own reference.
PLANTED = {
    "swapped operands": ("sub", Formula("{1} - {0}", wide=False)),
    "remainder of the divisor's sign": ("mod_mixed_sign_int32", Formula("{0} % {1}")),
    "constant left out": ("softplus", Formula("tl.log(tl.exp({0}))")),
    "another rounding": ("round", Formula("tl.floor({0} + 0.5)")),
    "strict comparison": ("greater_equal_uint8", Formula("{0} > {1}")),
    "truncated quotient of floats": ("div", Formula("tl.floor({0} / {1})")),
    "wrong default of an attribute": ("selu_default", Formula("functions.selu({0}, 1.0, 1.0)")),
    "NaN lost": ("sign", Formula("tl.where({0} > 0, 1.0, tl.where({0} < 0, -1.0, 1.0))")),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_formula_fails(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, formula = PLANTED[bug]
    node = nodes()[name]
    monkeypatch.setattr(elementwise, "FORMULAS", {**elementwise.FORMULAS, node.operator: formula})
    assert failing(node)


def test_a_planted_reduction_or_norm_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Reduction("tl.sum({x}, axis=1, keep_dims=True)", before="tl.abs({x})")
    monkeypatch.setattr(reductions, "REDUCTIONS", {**reductions.REDUCTIONS, "ReduceSumSquare": wrong})
    assert failing(nodes()["reduce_sum_square_do_not_keepdims_random"])
    monkeypatch.setattr(normalize, "_ALONG_AXIS", {"Softmax": ("functions.softmax_rows({x} * 1.001)", "float('-inf')")})
    assert failing(nodes()["softmax_axis_2"])


def test_each_output_is_compared() -> None:
    """A wrong value of any one output fails the case, the last as well as the first."""
    node = nodes()["layer_normalization_3d_axis1_epsilon"]
    outputs = [tensor for tensor in node.outputs if tensor is not None]
    assert len(outputs) == 3
    for index, tensor in enumerate(outputs):
        moved = replace(tensor, array=(tensor.array * np.float32(1.01)).astype(np.float32))
        changed = tuple(moved if place == index else other for place, other in enumerate(outputs))
        assert failing(replace(node, outputs=changed))


def failing(node: Node) -> bool:
    """Whether the node's case fails on the reference for what its values are."""
    verdict = verify(spec_of(node), {}, "reference")
    return verdict.failed is not None and verdict.failed.name == "compare" and verdict.failed.outcome == "fail"


def test_functions_have_users() -> None:
    """Every function of elements is called by a formula, a lowering or another function."""
    folder = Path(inspect.getfile(elementwise)).parent
    words = Counter(word for path in folder.glob("*.py") for word in re.findall(r"\w+", path.read_text("utf-8")))
    defined = [name for name, value in vars(functions).items() if isinstance(value, JITFunction)]
    assert len(defined) > 20 and [name for name in defined if words[name] < 2] == []
