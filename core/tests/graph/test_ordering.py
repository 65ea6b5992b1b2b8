"""Order, scatters and scans of rows of any length: NumPy's results, by kernels of every target that has what they need."""

from __future__ import annotations

import numpy as np
import pytest

from tilefw.graph import ordering, prefixes
from tilefw.graph.builder import ModuleBuilder
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.emit.model import kernel_graph
from tilefw.graph.index_maps import linear_map
from tilefw.graph.ordering import order_key, places_in_order, sorted_rows
from tilefw.graph.scattering import scattered
from tilefw.graph.session import Session

RNG = np.random.default_rng(11)
TARGETS = ["reference", "cpu", "nvidia-sm80", "amd-cdna3"]


@pytest.fixture(autouse=True)
def _short_parts(monkeypatch):
    """Rows of some sixty elements have several parts, which are merged."""
    monkeypatch.setattr(ordering, "_PART", 16)
    monkeypatch.setattr(prefixes, "_LONGEST", 32)


def computed(builder, inputs, target):
    with Session(compile_graph(kernel_graph(builder.module()), target)) as session:
        return list(session.run(inputs).values())


@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_several_parts_are_in_order(target):
    x, b = np.round(RNG.standard_normal((2, 60)) * 4).astype(np.float32), ModuleBuilder()
    x[0, [3, 55]], x[1, 7], x[:, 9] = np.nan, -0.0, -np.inf
    b.output("order", places_in_order(b, [order_key(b, b.input("x", "fp32", x.shape), "fp32")], 1))
    np.testing.assert_array_equal(computed(b, {"x": x}, target)[0], np.argsort(x, 1, kind="stable"))


def test_equal_elements_stay_in_order_and_nan_comes_first_where_they_fall():
    x = np.round(RNG.standard_normal((2, 60)) * 4).astype(np.float32)
    x[0, [3, 55]], x[1, 7], x[:, 9] = np.nan, -0.0, -np.inf
    wide = RNG.integers(-2, 2, (2, 9)) * (1 << 40) + RNG.integers(-2, 2, (2, 9))
    b = ModuleBuilder()
    given, other = b.input("x", "fp32", x.shape), b.input("wide", "int64", wide.shape)
    b.output("top", places_in_order(b, [order_key(b, given, "fp32", falling=True)], 1, 5))
    b.output("wide order", places_in_order(b, [order_key(b, other, "uint64")], 0))
    top, columns = computed(b, {"x": x, "wide": wide}, "reference")
    falling = np.argsort(np.where(np.isnan(x), -np.inf, -x), 1, kind="stable")
    np.testing.assert_array_equal(top, falling[:, :5])
    np.testing.assert_array_equal(columns, np.argsort(wide.view(np.uint64), 0, kind="stable"))


def test_a_chip_without_computed_addresses_sorts():
    x, b = RNG.integers(-99, 99, (2, 11)), ModuleBuilder()
    b.output("y", sorted_rows(b, b.input("x", "int64", x.shape)))
    np.testing.assert_array_equal(computed(b, {"x": x}, "spatial-sdm1")[0], np.sort(x, 1))


SCATTERS = [
    ("fp32", "addf", np.add), ("int8", "addi", np.add), ("uint16", "maxu", np.maximum), ("fp64", "maxf_nan", np.maximum),
    ("fp32", "minf", np.fmin), ("int64", "mins", np.minimum), ("int1", "ori", np.logical_or), ("fp32", None, lambda held, new: new),
]


@pytest.mark.parametrize("target", TARGETS)
def test_many_updates_of_one_element_have_the_result_of_their_order(target):
    """Sums are of whole numbers, which are exact in any order; places outside are dropped."""
    b, given, due = ModuleBuilder(), {}, []
    places = RNG.integers(-3, 9, 300)
    given["places"] = places
    at = b.view(b.input("places", "int64", (300,)), linear_map([[1, 0]], [0], 2), (300, 3))
    for number, (kind, row, combine) in enumerate(SCATTERS):
        type = {"fp32": np.float32, "fp64": np.float64, "int1": np.bool_}.get(kind) or np.dtype(kind)
        source, updates = (RNG.integers(0, 200, shape).astype(type) for shape in ((7, 3), (300, 3)))
        if row in ("maxf_nan", "minf"):
            updates[::97] = np.nan
        values = [b.input(f"{word}{number}", kind, one.shape) for word, one in (("x", source), ("u", updates))]
        b.output(f"y{number}", scattered(b, *values, [at], [0], linear_map([[0, 0], [0, 1]], [0, 0], 2), kind, row))
        given |= {f"x{number}": source, f"u{number}": updates}
        wanted = source.copy()
        for place, update in zip(places, updates, strict=True):
            if 0 <= place < 7:
                wanted[place] = combine(wanted[place], update)
        due.append(wanted)
    for (kind, row, _), found, wanted in zip(SCATTERS, computed(b, given, target), due, strict=True):
        np.testing.assert_array_equal(found.view(wanted.dtype), wanted, f"{kind} {row}")


@pytest.mark.parametrize("backwards", [False, True])
def test_a_scan_of_parts_is_one_scan(backwards):
    x, b = RNG.integers(-9, 9, (3, 150, 2)).astype(np.int32), ModuleBuilder()

    def scalars(s, held, more):
        return [s("subi", s("addi", held, more), 1)]  # associative, and what it begins with matters

    def tensors(held, more):
        return [b.map("subi", b.map("addi", held[0], more[0]), 1)]

    b.output("y", prefixes.prefixes(b, scalars, tensors, [b.input("x", "int32", x.shape)], 1, backwards)[0])
    turned = x[:, ::-1] if backwards else x
    wanted = turned.cumsum(1) - np.arange(150)[:, None]
    np.testing.assert_array_equal(computed(b, {"x": x}, "cpu")[0], wanted[:, ::-1] if backwards else wanted)
