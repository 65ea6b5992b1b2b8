"""Fusion: a module means the same before and after, its launches compute that, and are as few as they can be."""

from __future__ import annotations

import numpy as np
import pytest

from tilefw.api.errors import CheckError, UnsupportedError
from tilefw.graph.builder import ModuleBuilder, shape_of
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.emit.model import kernel_graph
from tilefw.graph.meaning import run
from tilefw.graph.normalise.constants import fold_constants
from tilefw.graph.session import Session


def norm(b, x):
    """Layer norm along the last dim, without weights."""
    count = shape_of(x)[-1]
    centred = b.map("subf", x, b.map("divf", b.reduce("addf", x, [-1], keep=True), count))
    variance = b.map("divf", b.reduce("addf", b.map("mulf", centred, centred), [-1], keep=True), count)
    return b.map("mulf", centred, b.map("rsqrt", b.map("addf", variance, 1e-5)))


def softmax(b, x):
    held = b.map("exp", b.map("subf", x, b.reduce("maxf", x, [-1], keep=True)))
    return b.map("divf", held, b.reduce("addf", held, [-1], keep=True))


def launches(builder, inputs, target="cpu", tolerance=1e-5):
    """The launches of a model, whose outputs on the target are NumPy's before and after fusion."""
    module = builder.module()
    given = [one.astype(np.float64) if one.dtype.kind == "f" else one for one in inputs.values()]
    wanted = run(module, given)
    graph = kernel_graph(module)
    for before, after in zip(wanted, run(module, given), strict=True):
        np.testing.assert_array_equal(before, after)
    with Session(compile_graph(graph, target)) as session:
        found = session.run(inputs)
    for before, after in zip(wanted, found.values(), strict=True):
        np.testing.assert_allclose(np.asarray(after, np.float64), before, rtol=tolerance, atol=tolerance)
    return [call.label for call in graph.calls]


@pytest.mark.parametrize("target", ["cpu", "nvidia-sm80"])
def test_a_norm_and_a_softmax_are_one_launch_each(target):
    b, given = ModuleBuilder(), np.random.default_rng(1).standard_normal((2, 3, 20)).astype(np.float32)
    x = b.input("x", "fp32", given.shape)
    b.output("y", norm(b, b.map("addf", x, 1.0)))
    assert launches(b, {"x": given}, target) == ["rows1"]
    b = ModuleBuilder()
    causal = b.fused_map(lambda s: s("les", s.index(1), s.index(0)), shape=(3, 20))[0]
    x = b.input("x", "fp32", given.shape)
    b.output("y", softmax(b, b.map("select", causal, x, float("-inf"))))
    assert launches(b, {"x": given}, target) == ["rows1"]


def test_epilogues_are_of_their_product_and_a_factor_is_computed_once():
    rng = np.random.default_rng(2)
    given, weights = rng.standard_normal((4, 12)).astype(np.float32), rng.standard_normal((12, 20)).astype(np.float32)
    b = ModuleBuilder()
    x, w = b.input("x", "fp32", given.shape), b.constant(weights, "fp32")
    hidden = b.map("maxf", b.matmul(norm(b, x), w), 0.0)
    b.output("y", b.map("addf", b.matmul(hidden, b.transpose(w, [1, 0])), x))
    assert launches(b, {"x": given}) == ["rows1", "contract1", "contract2"]


def test_what_follows_from_constants_is_no_launch():
    b, given = ModuleBuilder(), np.random.default_rng(4).standard_normal((4, 6)).astype(np.float32)
    scale = b.map("rsqrt", b.map("addf", b.constant(np.arange(1, 7, dtype=np.float32), "fp32"), 1.0))
    scaled = b.map("mulf", b.input("x", "fp32", given.shape), scale)
    b.output("y", b.take(scaled, b.constant(np.array([3, 0]), "int64"), 1))
    b.output("scale", scale)
    module = b.module()
    wanted = run(module, [given])
    fold_constants(module)
    np.testing.assert_array_equal(run(module, [given])[0], wanted[0])
    assert [call.label for call in kernel_graph(module).calls] == ["pointwise1"]


def test_a_gather_of_one_constant_place_is_a_view_that_a_product_reads():
    b, given = ModuleBuilder(), np.random.default_rng(5).integers(-4, 5, (3, 4, 6)).astype(np.float32)
    x, places = b.input("x", "fp32", given.shape), [b.constant(np.array(place), "int64") for place in (-1, 7)]
    last = [b.take(x, b.map("select", b.map("lts", place, 0), b.map("addi", place, 3), place), 0) for place in places]
    b.output("y", b.matmul(last[0], b.transpose(last[1], [1, 0])))
    assert launches(b, {"x": given}, tolerance=0) == ["contract1"]


def test_what_two_groups_read_is_stored_by_the_first():
    b, given = ModuleBuilder(), np.random.default_rng(3).standard_normal((4, 16)).astype(np.float32)
    x = b.input("x", "fp32", given.shape)
    added = b.map("addf", x, b.map("sin", x))
    b.output("sum", b.map("addf", b.reduce("addf", norm(b, added), [0]), 1.0))
    b.output("added", b.transpose(added, [1, 0]))
    assert len(launches(b, {"x": given})) == 3


@pytest.mark.parametrize("seed", range(3))
def test_random_programs_mean_the_same_fused(seed):
    rng = np.random.default_rng(seed)
    b, given = ModuleBuilder(), rng.integers(-4, 5, (3, 4, 5)).astype(np.float32)  # sums and products of few integers are exact
    values = [b.input("x", "fp32", given.shape)]
    for step in rng.integers(0, 8, 9):
        value = values[rng.integers(len(values))]
        rank = len(shape_of(value))
        if step < 2:
            values.append(b.map(("addf", "maxf")[step], value, b.map("negf", value) if step else float(rng.integers(3))))
        elif step == 2 and rank > 1:
            values.append(b.reduce(("maxf", "minf")[rng.integers(2)], value, [int(rng.integers(rank))], keep=bool(rng.integers(2))))
        elif step == 3:
            values.append(b.transpose(value, [int(k) for k in rng.permutation(rank)]))
        elif step == 4:
            values.append(b.pad(value, [1] * rank, [0] * rank, 2.0))
        elif step == 5:
            values.append(b.concat([value, b.map("absf", value)], rank - 1))
        elif step == 6:
            values.append(b.map("subf", value, b.reduce("maxf", value, [rank - 1], keep=True)))
        else:
            axis = int(rng.integers(rank))
            indices = rng.integers(0, shape_of(value)[axis], (2,))
            values.append(b.take(value, b.constant(indices, "int64"), axis))
    for place, value in enumerate(values[-3:]):
        b.output(f"y{place}", value)
    assert launches(b, {"x": given}, tolerance=0)


@pytest.mark.parametrize("place", [2, np.array(2)], ids=["number", "input"])
def test_an_element_that_one_index_names_is_read_as_a_number(place):
    """As is the weight of a row, where a model takes one row."""
    b, given = ModuleBuilder(), np.arange(12, dtype=np.float32).reshape(4, 3)
    index = b.constant(np.array(place, np.int64), "int64") if isinstance(place, int) else b.input("place", "int64", ())
    x, weights = b.input("x", "fp32", given.shape), b.input("w", "fp32", (4, 1))
    b.output("y", b.take(b.map("addf", x, weights), index, 0))
    inputs = {"x": given, "w": given[:, 1:2]}
    inputs = inputs if isinstance(place, int) else {"place": np.array(2, np.int64), **inputs}
    assert launches(b, inputs) == ["pointwise1"]


def test_a_contraction_reads_zero_beside_a_view_and_takes_a_number():
    b, rng = ModuleBuilder(), np.random.default_rng(6)
    given, weights = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((1, 2, 6, 6), (3, 2, 3, 3)))
    x = b.input("x", "fp32", given.shape)
    inner = b.slice(x, [0, 0, 1, 1], [1, 2, 4, 4])  # what is padded is the slice: its neighbours are not read
    b.output("y", b.convolve(inner, b.constant(weights, "fp32"), (1, 1), (1, 1), (1, 1), (1, 1)))
    number = b.broadcast(b.constant(np.array(3, np.float32), "fp32"), (1, 1))
    b.output("z", b.matmul(b.reshape(x, (72, 1)), number))
    launches(b, {"x": given}, tolerance=0)


def test_an_epilogue_knows_its_place_along_dims_that_are_walked_as_one():
    b, given = ModuleBuilder(), np.arange(80, dtype=np.float32).reshape(2, 5, 8)
    y = b.matmul(b.input("x", "fp32", given.shape), b.constant(np.ones((8, 6), np.float32), "fp32"))
    b.output("y", b.fused_map(lambda s, v: s("addf", v, s("s2f", s("addi", s.index(1), s.index(2)), to="fp32")), y)[0])
    dead = b.map("negf", b.map("absf", y))
    assert dead is not None
    assert launches(b, {"x": given}, tolerance=0)[0] == "contract1"


def test_rows_in_another_shape_keep_the_places_of_their_elements():
    b, rng = ModuleBuilder(), np.random.default_rng(14)
    given, weights = (rng.standard_normal(shape).astype(np.float32) for shape in ((3, 4, 5), (5,)))
    found = b.map("mulf", b.input("x", "fp32", given.shape), b.input("w", "fp32", weights.shape))
    b.output("y", softmax(b, b.reshape(found, (3, 20))))
    assert launches(b, {"x": given, "w": weights}) == ["rows1"]


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_scans_of_rows_that_do_not_fill_a_tile_are_a_launch_with_what_surrounds_them(target):
    b, given = ModuleBuilder(), np.random.default_rng(12).integers(-4, 5, (3, 5, 12)).astype(np.float32)
    x = b.input("x", "fp32", given.shape)
    b.output("sums", b.map("mulf", b.scan("addf", b.map("negf", x), 2), 2.0))
    b.output("greatest", b.scan("maxf", x, 1, reverse=True))
    b.output("same", b.scan("mulf", b.slice(x, [0, 2, 0], [3, 1, 12]), 1))
    assert launches(b, {"x": given}, target, tolerance=0) == ["rows1", "rows2", "pointwise1"]


@pytest.mark.parametrize("kind", ["fp32", "fp64"])
def test_a_convolution_of_each_channel_alone_is_one_launch_with_what_follows(kind):
    b, rng = ModuleBuilder(), np.random.default_rng(13)
    stored = kind.replace("fp", "float")
    given, weights = (rng.integers(-4, 5, shape).astype(stored) for shape in ((2, 6, 7, 7), (6, 1, 3, 3)))
    given += 0 if kind == "fp32" else 2.0**-30  # which remains where the rest of a sum is 0
    x = b.input("x", kind, given.shape)
    y = b.convolve(x, b.constant(weights, kind), (2, 2), (1, 1), (1, 1), (1, 1), groups=6, to="fp32")
    b.output("y", b.map("maxf", b.map("mulf", y, 2.0), 0.0))
    assert launches(b, {"x": given}, tolerance=0) == ["lines1"]


@pytest.mark.parametrize("target", ["cpu", "nvidia-sm80"])
def test_a_convolution_of_each_channel_alone_is_of_the_mean_of_its_channels(target):
    b, rng = ModuleBuilder(), np.random.default_rng(7)
    given, weights = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 6, 9, 7), (6, 1, 3, 3)))
    x = b.input("x", "fp32", given.shape)
    y = b.map("maxf", b.convolve(x, b.constant(weights, "fp32"), (2, 1), (1, 1), (1, 1), (1, 1), groups=6), 0.0)
    b.output("y", y)
    b.output("mean", b.map("divf", b.reduce("addf", y, [2, 3], keep=True), 35.0))
    assert launches(b, {"x": given}, target) == ["rows1"]


@pytest.mark.parametrize("target", ["cpu", "nvidia-sm80", "amd-cdna3"])
def test_a_convolution_of_each_channel_alone_reads_planes_as_they_lie(target):
    """Sums of few terms are written out, and no place in a plane is divided: windows are blocks of memory."""
    b, rng = ModuleBuilder(), np.random.default_rng(14)
    given, weights = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((1, 5, 6, 11), (5, 1, 3, 3)))
    x = b.input("x", "fp32", given.shape)
    b.output("y", b.convolve(x, b.constant(weights, "fp32"), (1, 1), (1, 1), (1, 1), (1, 1), groups=5))
    (call,) = kernel_graph(b.module()).calls
    divided = (f"{word} {sign}" for word in ("row", "column") for sign in ("//", "%"))
    assert not any(text in call.kernel.src for text in divided) and "tl.static_range(9)" in call.kernel.src
    b = ModuleBuilder()
    x = b.input("x", "fp32", given.shape)
    b.output("y", b.convolve(x, b.constant(weights, "fp32"), (1, 1), (1, 1), (1, 1), (1, 1), groups=5))
    assert launches(b, {"x": given}, target, tolerance=0) == ["planes1"]


def test_a_sum_of_one_term_is_scaled_by_a_tensor_of_one_element():
    b, rng = ModuleBuilder(), np.random.default_rng(8)
    given, scale = rng.standard_normal((1, 6, 3, 5)).astype(np.float32), np.array([0.5], np.float32)
    weights = rng.standard_normal((6, 1, 1, 1)).astype(np.float32)
    y = b.convolve(b.input("x", "fp32", given.shape), b.constant(weights, "fp32"), (1, 1), (0, 0), (0, 0), (1, 1), groups=6)
    b.output("y", b.map("mulf", y, b.input("scale", "fp32", scale.shape)))
    assert launches(b, {"x": given, "scale": scale}, "reference") == ["lines1"]


def test_a_trusted_index_that_is_a_constant_and_names_no_element_is_a_fault():
    b, given = ModuleBuilder(), np.arange(12, dtype=np.float32).reshape(4, 3)
    x = b.input("x", "fp32", given.shape)
    b.output("near", b.take(x, b.constant(np.array(7), "int64"), 0))
    assert launches(b, {"x": given}, "reference", tolerance=0) == ["pointwise1"]
    b = ModuleBuilder()
    b.output("y", b.take(b.input("x", "fp32", given.shape), b.constant(np.array(7), "int64"), 0, trusted=True))
    with Session(compile_graph(kernel_graph(b.module()), "reference")) as session, pytest.raises(CheckError, match="of its 4"):
        session.run({"x": given})


def test_a_product_of_many_rows_counts_its_programs_along_the_longest_dim_of_a_grid():
    b = ModuleBuilder()
    b.output("y", b.matmul(b.input("x", "fp16", (1 << 23, 2)), b.input("w", "fp16", (2, 3))))
    (call,) = kernel_graph(b.module()).calls
    assert call.grid == (1 << 17, 1, 1)


def test_axes_that_a_tensor_has_not_are_refused():
    b = ModuleBuilder()
    with pytest.raises(ValueError, match="of a tensor of 2 dims"):
        b.reduce("addf", b.input("x", "fp32", (3, 4)), [2])


def test_reductions_that_differ_in_their_function_alone_are_two_kernels():
    b, given = ModuleBuilder(), np.arange(64, dtype=np.int32).reshape(4, 16) * 37
    x = b.input("x", "int32", given.shape)
    for row in ("ori", "xori", "maxu"):
        b.output(row, b.reduce(row, x, [1]))
    assert launches(b, {"x": given}) == ["rows1", "rows2", "rows3"]


def test_steps_in_16_bits_are_rounded_each():
    b, given = ModuleBuilder(), np.random.default_rng(8).standard_normal((3, 20)).astype(np.float16)
    x = b.input("x", "fp16", given.shape)
    b.output("y", softmax(b, x))
    b.output("z", b.map("subf", b.reduce("maxf", x, [1], keep=True), b.map("divf", x, 3.0)))
    launches(b, {"x": given}, tolerance=1e-3)


@pytest.mark.parametrize("kinds", [("int16", "int32"), ("int8", "int64"), ("int32", "int32"), ("fp32", "fp64"), ("int8", "int32")])
def test_contractions_add_up_in_the_precision_of_their_result(kinds):
    b, rng = ModuleBuilder(), np.random.default_rng(9)
    stored = kinds[0].replace("fp", "float")
    given, weights = (rng.integers(-128, 128, shape).astype(stored) for shape in ((1, 2, 5, 4), (3, 2, 3, 3)))
    if kinds[1] == "fp64":
        given *= np.float32(1 + 2.0**-20)
    x = b.input("x", kinds[0], given.shape)
    b.output("y", b.convolve(x, b.constant(weights, kinds[0]), (1, 1), (1, 1), (1, 1), (1, 1), to=kinds[1]))
    launches(b, {"x": given}, tolerance=0 if kinds[1] != "fp64" else 1e-13)


def test_inputs_without_elements_and_inputs_without_signs():
    b, given = ModuleBuilder(), np.arange(240, 256, dtype=np.uint8).reshape(4, 4)
    x, none = b.input("x", "uint8", given.shape), b.input("none", "fp32", (0, 3))
    y = b.matmul(x, b.constant(np.eye(4, dtype=np.int8), "int8"), to="int32")  # integers have no sign in the dialect: -16 .. -1
    b.output("y", y)
    b.output("padded", b.pad(none, [1, 0], [1, 0], 2.0))
    b.output("nothing", b.matmul(none, b.constant(np.ones((3, 2), np.float32), "fp32")))
    with Session(compile_graph(kernel_graph(b.module()), "cpu")) as session:
        found = session.run({"x": given, "none": np.empty((0, 3), np.float32)})
    np.testing.assert_array_equal(found["y"], given.view(np.int8))
    np.testing.assert_array_equal(found["padded"], np.full((2, 3), 2.0))
    assert found["nothing"].shape == (0, 2)


def test_tensors_that_32_bits_do_not_count_are_refused():
    for make in (lambda b, x: b.map("negf", x), lambda b, x: b.matmul(x, b.transpose(x, [1, 0]))):
        b = ModuleBuilder()
        b.output("y", make(b, b.input("x", "fp16", (1 << 16, 1 << 15))))
        with pytest.raises(UnsupportedError, match="more than"):
            kernel_graph(b.module())


def test_extents_that_differ_have_no_product():
    b = ModuleBuilder()
    with pytest.raises(ValueError, match="'k' is 8 and 6"):
        b.matmul(b.input("x", "fp32", (4, 8)), b.input("w", "fp32", (6, 5)))


@pytest.mark.parametrize("target", ["cpu", "nvidia-sm80"])
def test_the_greatest_of_nan_alone_is_nan(target):
    b, given = ModuleBuilder(), np.array([[np.nan] * 3, [1, np.nan, -2], [-np.inf] * 3], np.float32)
    b.output("y", b.reduce("maxf", b.input("x", "fp32", given.shape), [1]))
    launches(b, {"x": given}, target, tolerance=0)


def test_sums_of_products_of_sums_of_other_rows_are_two_launches():
    b, given = ModuleBuilder(), np.arange(24, dtype=np.float32).reshape(3, 8)
    summed = b.reduce("addf", b.input("x", "fp32", given.shape), [0])
    b.output("y", b.reduce("addf", b.map("mulf", b.reshape(summed, (8, 1)), summed), [0]))
    assert len(launches(b, {"x": given})) == 2


def test_a_reshape_that_a_product_and_a_later_launch_read_is_of_both():
    rng = np.random.default_rng(20)
    given, weights = rng.standard_normal((2, 6)).astype(np.float32), rng.standard_normal((4, 4)).astype(np.float32)
    b = ModuleBuilder()
    held = b.reshape(b.map("absf", b.input("x", "fp32", given.shape)), (3, 4))
    b.output("y", b.map("addf", softmax(b, b.matmul(held, b.constant(weights, "fp32"))), held))
    assert launches(b, {"x": given}) == ["pointwise1", "contract1", "rows1"]


def test_models_are_as_deep_as_they_like():
    b = ModuleBuilder()
    x = b.input("x", "fp32", (4,))
    for _ in range(600):
        (x,) = b.kernel("step", [x], [("fp32", (4,))])
    for _ in range(300):
        x = b.map("negf", x)
    b.output("y", x)
    for _ in range(300):
        x = b.transpose(b.reshape(x, (2, 2)), (1, 0))
    b.output("z", b.reshape(x, (4,)))
    assert len(kernel_graph(b.module(), {"step": lambda made, read, results: None}).calls) < 30


def test_moves_in_a_row_are_cut_and_their_text_grows_with_their_number():
    given = np.arange(24, dtype=np.float32).reshape(4, 6)
    b = ModuleBuilder()
    x = b.input("x", "fp32", given.shape)
    for _ in range(20):
        x = b.transpose(b.reshape(x, (6, 4)), (1, 0))
    b.output("y", x)
    assert len(launches(b, {"x": given})) == 2
