"""The model of time for gfx942: no figure is dead, products take the chip's passes, and time goes where the code's faults are."""

from types import SimpleNamespace

import pytest

from tilefw.kernels.profiled import profiled, recorded
from tilefw.kernels.spec import load
from tilefw.runtime.plugins.loader import find_target
from tilefw.testing.figures import dead_figures

TARGET = "amd-cdna3"
LAUNCHES = (
    ("vector_add", {"n": 5000}), ("vector_add", {"n": 1 << 19}), ("matmul", {"m": 64, "n": 64, "k": 64}), ("attention", {}),
    ("atomic_mix", {"n": 4096, "share": 4096}),
)


def test_every_figure_changes_the_time_of_some_launch() -> None:
    given = ((name, {k: str(v) for k, v in parameters.items()}) for name, parameters in LAUNCHES)
    made = (recorded(load(name), parameters, TARGET, workgroups=32) for name, parameters in given)
    assert dead_figures(find_target(TARGET).backend, made) == set()


def test_products_take_the_passes_of_the_chip() -> None:
    """At most what the matrix units of 304 compute units can do: 1307 T operations a second in fp16 at 2100 MHz."""
    profile = profiled(load("matmul"), {"m": "128", "n": "128", "k": "128"}, TARGET)
    assert profile.peak == pytest.approx(1307e12, rel=0.01)
    assert 0 < profile.operations < profile.peak


def test_spills_show_as_traffic_and_time() -> None:
    shape = {"m": "128", "n": "256", "k": "64", "block_m": "128", "block_n": "256", "block_k": "32"}
    few, many = (profiled(load("matmul"), {**shape, "num_warps": warps}, TARGET) for warps in ("2", "8"))
    assert few.seconds > 1.3 * many.seconds, "two waves have no room for the tile's sums"


def test_a_mixed_product_by_one_that_adds_nothing_converts() -> None:
    cost = find_target(TARGET).backend.timing().cost
    name = "v_fma_mixlo_f16"
    operands = ("s4, neg(0)", "1.0, neg(0) op_sel_hi:[1,0,0]", "s4, v3", "v4, neg(0)")
    found = [cost(SimpleNamespace(mnemonic=name, text=f"{name} v1, v2, {said}")).purpose for said in operands]
    assert found == ["conversion", "conversion", "", ""], "what is multiplied by another value is arithmetic"
