"""A dot in its layouts is the matrix product, for every shape and type, with matrix atoms, with lane atoms, on any chip."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import BLOCKS, CHIPS, PLAIN, RUNS, WIDE

from tilefw.api.dtypes import DTYPES
from tilefw.api.errors import UnsupportedError
from tilefw.simt.description import LaneMachine
from tilefw.simt.layout import atoms, blocked, convert, swizzle
from tilefw.simt.layout.atoms import AtomChain, DotLayouts, DotTypes
from tilefw.simt.layout.pattern import banks_of, side
from tilefw.testing.dot_kernel import dot_kernel
from tilefw.testing.lane_interpreter import run
from tilefw.tile import numbers

DTYPE = {d.ir: d for d in DTYPES.values() if not d.name.startswith("u")}
SIZES = st.sampled_from([1, 2, 4, 8, 16, 32, 64])
TYPES = [
    DotTypes("f16", "f16", "f32"), DotTypes("f16", "f16", "f16"), DotTypes("bf16", "bf16", "f32"), DotTypes("f32", "f32", "f32"),
    DotTypes("f32", "f32", "f32", "tf32"), DotTypes("f32", "f32", "f32", "tf32x3"), DotTypes("f32", "f32", "f32", "bf16x3"),
    DotTypes("f32", "f32", "f32", "bf16x6"), DotTypes("i8", "i8", "i32"), DotTypes("i8", "i8", "i32", unsigned=True),
    DotTypes("f64", "f64", "f64"), DotTypes("f8E5M2", "f8E4M3FN", "f32"), DotTypes("f8E4M3FN", "f8E4M3FN", "f16"),
]


def multiply(
    layouts: DotLayouts, machine: LaneMachine, a: np.ndarray, b: np.ndarray, c: np.ndarray, by_step: bool = True
) -> np.ndarray:
    """a · b + c by the lowered code; arrays hold exact values of their types."""
    names = (layouts.types.a, layouts.types.b, layouts.types.acc)
    raw = [numbers.to_bytes(x.reshape(-1), DTYPE[name]).copy() for x, name in zip((a, b, c), names, strict=True)]
    out = np.zeros_like(raw[2])
    run(dot_kernel(layouts, machine, by_step), [*raw, out], (1,), machine)
    return numbers.from_bytes(out, DTYPE[names[2]]).reshape(c.shape)


def draw(rng: np.random.Generator, name: str, shape: tuple[int, ...], unsigned: bool) -> np.ndarray:
    """Small numbers whose products add up exactly in every accumulator."""
    if name.startswith("i"):
        return rng.integers(-128, 128, shape)
    return rng.integers(-3, 4, shape).astype(np.float64)


def product(a: np.ndarray, b: np.ndarray, c: np.ndarray, unsigned: bool) -> np.ndarray:
    a, b = (x & 0xFF for x in (a, b)) if unsigned else (a, b)
    total = np.matmul(a, b) + c
    return total


@settings(max_examples=120, deadline=None)
@given(
    SIZES, SIZES, SIZES, st.sampled_from([None, 1, 2, 8]), st.sampled_from(TYPES), st.sampled_from(CHIPS),
    st.sampled_from([1, 2, 4, 8, 16]), st.sampled_from(AtomChain), st.booleans(), st.integers(0, 1 << 16),
)
def test_every_shape_and_type_gives_the_product(m, n, k, batch, kinds, chip, waves, chain, by_step, seed):
    if m * n * k * (batch or 1) > 1 << 15:
        m, n, k = min(m, 16), min(n, 16), min(k, 16)
    machine = LaneMachine(chip, waves)
    front = () if batch is None else (batch,)
    layouts = atoms.choose((*front, m, n, k), kinds, machine, chain)
    assert layouts.d.covers and layouts.a.covers and layouts.b.covers
    rng = np.random.default_rng(seed)
    shapes = ((*front, m, k), (*front, k, n), (*front, m, n))
    assert tuple(layout.shape for layout in (layouts.a, layouts.b, layouts.d)) == shapes
    a, b, c = (draw(rng, name, shape, kinds.unsigned) for name, shape in zip((kinds.a, kinds.b, kinds.acc), shapes, strict=True))
    found = multiply(layouts, machine, a, b, c, by_step)
    np.testing.assert_array_equal(found, product(a, b, c, kinds.unsigned))


@pytest.mark.parametrize("kinds", TYPES[5:8], ids=lambda t: t.precision)
def test_parts_of_f32_add_up_to_more_than_one_narrow_product(kinds):
    machine = LaneMachine(BLOCKS, 4)
    layouts = atoms.choose((32, 16, 32), kinds, machine)
    assert len(layouts.recipe.products) > 1
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(s).astype(np.float32).astype(np.float64) for s in ((32, 32), (32, 16)))
    c = np.zeros((32, 16))
    error = np.abs(multiply(layouts, machine, a, b, c) - a @ b) / (np.abs(a) @ np.abs(b))
    # What the products leave out, relative: 2^-16 for three of bf16 cut off (7 bits each), 2^-20 for tf32 (10), f32's own for six.
    assert error.max() < {"bf16x3": 3 * 2**-14, "tf32x3": 3 * 2**-20, "bf16x6": 2**-20}[kinds.precision]


@pytest.mark.parametrize("kinds", TYPES[5:8], ids=lambda t: t.precision)
def test_infinities_and_nans_survive_the_split_into_parts(kinds):
    machine = LaneMachine(BLOCKS, 1)
    layouts = atoms.choose((16, 8, 16), kinds, machine)
    a, b, c = np.ones((16, 16)), np.ones((16, 8)), np.zeros((16, 8))
    a[0, 3], a[1, 0], a[2, 5], b[7, 2] = np.inf, -np.inf, np.nan, np.float32(3.4028235e38)
    with np.errstate(invalid="ignore"):
        expected = a @ b
    np.testing.assert_allclose(multiply(layouts, machine, a, b, c), expected, rtol=2**-14)


def test_all_waves_go_along_m_when_the_result_feeds_another_dot():
    kinds = TYPES[0]
    for waves in (1, 2, 4, 8):
        layouts = atoms.choose((128, 64, 64), kinds, LaneMachine(BLOCKS, waves), AtomChain.LEADS)
        assert all(basis >= 64 * 16 for basis in layouts.d.wave)
        assert all(not basis for basis in layouts.b.wave)


@pytest.mark.parametrize("chain", AtomChain)
@pytest.mark.parametrize(("k", "together"), [(64, 8), (32, 8), (8, 4)])
def test_a_lane_reads_the_k_of_several_atoms_at_once(k, together, chain):
    """16 bytes of f16, where k reaches that far; A and B hold the same k in the same places."""
    layouts = atoms.choose((128, 64, k), TYPES[0], LaneMachine(RUNS, 4), chain)
    of_a = [basis for basis in layouts.a_step.register if basis < k]
    of_b = [basis // 64 for basis in layouts.b_step.register if basis >= 64]
    assert of_a == of_b and 1 << len(of_a) == together
    assert (layouts.a_step.contiguous() == together) == (chain is not AtomChain.FOLLOWS or together == 4)


@pytest.mark.parametrize(("shape", "chain", "size"), [((64, 64, 32), AtomChain.NONE, 32), ((32, 32, 32), AtomChain.NONE, 16),
                                                      ((64, 64, 32), AtomChain.LEADS, 16), ((128, 64, 32), AtomChain.FOLLOWS, 32)])
def test_the_atom_is_as_large_as_all_waves_have_work(shape, chain, size):
    assert atoms.choose(shape, TYPES[0], LaneMachine(RUNS, 4), chain).atom.m == size


def test_the_grid_lets_a_wave_read_least():
    def grid(m: int, n: int, waves: int) -> tuple[int, int]:
        layouts = atoms.choose((m, n, 32), TYPES[0], LaneMachine(BLOCKS, waves))
        along_m = sum(1 for basis in layouts.d.wave if basis >= n)
        return 1 << along_m, waves >> along_m

    assert grid(128, 128, 4) == (2, 2)
    assert grid(128, 128, 8) == (4, 2)
    assert grid(64, 256, 4) == (1, 4)
    assert grid(256, 64, 8) == (8, 1)


def test_the_cheapest_atom_serves_and_others_where_it_does_not_fit():
    def name(shape: tuple[int, ...], kinds: DotTypes, chip: Any = BLOCKS) -> str:
        return atoms.choose(shape, kinds, LaneMachine(chip, 1)).atom.name

    assert name((16, 8, 16), TYPES[0]) == "blocks.16x8x16.f16.f32"
    assert name((16, 8, 8), TYPES[0]) == "blocks.16x8x8.f16.f32"
    assert name((16, 8, 16), TYPES[1]) == "blocks.16x8x16.f16.f16"
    assert name((16, 8, 32), DotTypes("i8", "i8", "i32", unsigned=True)) == "blocks.16x8x32.i8.i32.True"
    assert name((8, 8, 16), TYPES[0]) == "lane.f32"
    assert name((16, 8, 16), TYPES[3]) == "lane.f32"  # ieee on a chip whose atoms take tf32
    assert name((16, 16, 16), TYPES[3], WIDE) == "times.16x16x4.f32.f32"
    assert name((16, 16, 16), TYPES[1], WIDE) == "times.16x16x16.f16.f32"  # a wider accumulator, rounded once
    assert name((64, 64, 64), TYPES[8], PLAIN) == "lane.i32"


def test_an_atom_that_cannot_serve_is_refused_with_those_that_can():
    with pytest.raises(UnsupportedError, match="does not serve") as caught:
        atoms.choose((16, 8, 8), TYPES[0], LaneMachine(BLOCKS, 1), atom="blocks.16x8x16.f16.f32")
    assert caught.value.code == "TFW0622" and "blocks.16x8x8.f16.f32" in (caught.value.help or "")
    with pytest.raises(UnsupportedError) as caught:
        atoms.choose((16, 8, 16), DotTypes("i8", "i8", "i16"), LaneMachine(BLOCKS, 1))
    assert caught.value.code == "TFW0621"
    assert atoms.choose((16, 8, 16), TYPES[0], LaneMachine(BLOCKS, 1), atom="lane.f32").atom.name == "lane.f32"


def test_a_lane_atom_reads_runs_of_16_bytes():
    layouts = atoms.choose((64, 64, 32), TYPES[3], LaneMachine(PLAIN, 4))
    assert layouts.a_step.register[:2] == (1, 2) and layouts.b_step.register[:2] == (1, 2)
    assert layouts.b.lane[:3] == (4, 8, 0) or layouts.b.lane[:2] == (4, 8)


@pytest.mark.parametrize("waves", [1, 2, 4, 8])
@pytest.mark.parametrize("chip", [BLOCKS, RUNS], ids=lambda c: c.name)
@pytest.mark.parametrize(("m", "n", "k", "next_n"), [(128, 64, 64, 64), (64, 32, 128, 64), (128, 128, 32, 32)])
def test_a_result_becomes_the_next_a_without_leaving_its_thread(waves, m, n, k, next_n, chip):
    """Attention: probabilities, cut to f16, are multiplied again; where m reaches for all waves only registers are renamed."""
    if m < 16 * waves:
        pytest.skip("m does not reach for all waves")
    machine = LaneMachine(chip, waves)
    first = atoms.choose((m, n, k), TYPES[0], machine, AtomChain.LEADS)
    second = atoms.choose((m, next_n, n), TYPES[0], machine, AtomChain.FOLLOWS)
    found = convert.plan(first.d, second.a, 16, chip)
    assert isinstance(found, convert.RegisterMove) and found.cost == 0
    # The sums over rows that scale the second product's accumulator are where its rows are.
    rows = first.d.slice(1)[0], second.d.slice(1)[0]
    assert isinstance(convert.plan(*rows, 32, chip), convert.RegisterMove)


@pytest.mark.parametrize("kinds", [TYPES[0], TYPES[3], TYPES[10]], ids=lambda t: t.a)
@pytest.mark.parametrize("shape", [(128, 128, 32), (64, 64, 32), (64, 32, 64), (32, 128, 16)], ids=str)
def test_operands_of_lane_atoms_are_read_wide_and_without_bank_conflicts(kinds, shape):
    machine = LaneMachine(PLAIN, 4)
    layouts = atoms.choose(shape, kinds, machine)
    bits = {"f16": 16, "f32": 32, "f64": 64}[kinds.a]
    for step, whole in ((layouts.a_step, layouts.a), (layouts.b_step, layouts.b)):
        copied = blocked(whole.shape, (1, 0), 128 // bits, machine.lanes, machine.waves)
        shared = swizzle.choose(whole.shape, bits, (), (step,), PLAIN, ((copied, 128 // bits),))
        _, pattern, _ = side(step, bits, banks_of(PLAIN)).best(shared, banks_of(PLAIN))
        assert bits << pattern.width >= min(128, 4 * bits)
        assert swizzle.bank_conflicts(shared, step, bits, PLAIN) == 0
