"""Products of a warpgroup are those of their operands, wherever these lie, and faults of their order are found."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from isa.machine import launch
from isa.wgmma_kernel import NUMPY, ROWS, Product, operands, results, text_and_buffers
from isa.wgmma_numerics import COLUMNS, MODELLED, as_words, differing, modelled, product_of
from tilefw.api.checks import ALL_CHECKS
from tilefw_nvidia.chips import named

HOPPER = named("sm_90a")
# The kernels fill more of shared memory than they multiply.
CHECKS = ALL_CHECKS - {"leftovers"}
CASES = [
    Product(".f32.f16.f16", 8, 2, "f32"),
    Product(".f32.f16.f16", 256, 2, "f32", modes=(2, 3)),
    Product(".f32.f16.f16", 24, 2, "f32", a_in_registers=True, modes=(1, 0)),
    Product(".f32.f16.f16", 64, 2, "f32", orders=(1, 1)),
    Product(".f32.f16.f16", 128, 2, "f32", orders=(0, 1), modes=(0, 0)),
    Product(".f32.f16.f16", 64, 2, "f32", orders=(1, 1), modes=(3, 2)),
    Product(".f32.f16.f16", 64, 2, "f32", orders=(1, 0), modes=(0, 2)),
    Product(".f16.f16.f16", 40, 2, "f16", scales=(-1, 1)),
    Product(".f32.bf16.bf16", 16, 2, "f32", orders=(1, 1), modes=(3, 3), accumulate=0),
    Product(".f32.bf16.bf16", 16, 2, "f32", a_in_registers=True, scales=(-1, -1)),
    Product(".f32.tf32.tf32", 32, 4, "f32", modes=(0, 2)),
    Product(".f32.tf32.tf32", 32, 4, "f32", a_in_registers=True, scales=(-1, 1)),
    Product(".f32.e4m3.e5m2", 48, 1, "f32", modes=(3, 1)),
    Product(".f16.e5m2.e4m3", 16, 1, "f16", a_in_registers=True),
    Product(".s32.s8.u8", 96, 1, "s32", modes=(2, 1)),
    Product(".satfinite.s32.u8.u8", 8, 1, "s32", a_in_registers=True),
]


def multiply(product: Product, a: np.ndarray, b: np.ndarray, c: np.ndarray, **options) -> np.ndarray:
    text, buffers = text_and_buffers(product, (a, b, c))
    found, findings = launch(text, buffers, 1, 128, chip=HOPPER, checks=CHECKS, **options)
    assert findings == ()
    return results(product, found[2])[0]


@pytest.mark.parametrize("product", CASES, ids=str)
def test_products_are_those_of_the_operands(product: Product) -> None:
    a, b, c = operands(product, product.n)
    got = multiply(product, a, b, c).astype(np.float64)
    x, y = a.astype(np.float64) * product.scales[0], b.astype(np.float64).T * product.scales[1]
    addend = c.astype(np.float64) * product.accumulate
    if product.sums == "s32":
        assert np.array_equal(got, x @ y + addend)
        return
    bound = (np.abs(x) @ np.abs(y) + np.abs(addend)) * float(np.finfo(NUMPY[product.sums]).eps) * (product.k + 1)
    assert (np.abs(got - (x @ y + addend)) <= bound).all()


def test_accumulators_that_hold_nothing_yet_are_no_addend() -> None:
    """The first product of a chain, in several workgroups: what its accumulators hold is undefined, and does not count."""
    product = Product(".f32.f16.f16", 8, 2, "f32", accumulate=0)
    a, b, c = operands(product, 3)
    text, buffers = text_and_buffers(product, *[(a, b, c)] * 3)
    text = "\n".join(line for line in text.splitlines() if not line.startswith("ld.global.b32 %d"))
    found, findings = launch(text, buffers, 3, 128, chip=HOPPER, checks=CHECKS)
    assert findings == ()
    wanted = a.astype(np.float64) @ b.astype(np.float64).T
    assert all(np.allclose(got, wanted, atol=1e-4) for got in results(product, found[2]))


def test_satfinite_clamps() -> None:
    product = Product(".satfinite.s32.u8.u8", 8, 1, "s32")
    a, b = np.full((ROWS, 32), 255, np.uint8), np.full((8, 32), 255, np.uint8)
    c = np.full((ROWS, 8), 2**31 - 100, np.int32)
    assert (multiply(product, a, b, c) == 2**31 - 1).all()


# --- the hardware's own rounding ------------------------------------------------------------------------------------------

@pytest.mark.skipif(importlib.util.find_spec("mmasim") is None, reason="mmasim is not installed: pip install torch==2.13.0 mmasim")
@pytest.mark.parametrize("product", [product_of(types, 8) for types in MODELLED[::2]], ids=str)
@pytest.mark.parametrize("spread", [0, 4, 12])
def test_hardware_numerics_agree_with_mmasim_bit_for_bit(product: Product, spread: int) -> None:
    a, b, c = operands(product, spread, spread)
    got, wanted = as_words(multiply(product, a, b, c, numerics="hw")), as_words(modelled(product, a, b, c))
    assert np.array_equal(got, wanted)


@pytest.mark.campaign
@pytest.mark.parametrize("types", MODELLED)
def test_hardware_numerics_agree_with_mmasim_in_every_shape(types: str) -> None:
    assert [n for n in COLUMNS if differing(types, n)[0]] == []


# --- faults ---------------------------------------------------------------------------------------------------------------

FENCE, COMMIT, WAIT = "wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"
STORE = "st.shared.v4.b32 [%s + 8192], {%w0, %w1, %w2, %w3};"
FAULTS = {
    "no fence of views": ("fence.proxy.async.shared::cta;", "", "TFW0827", "no fence between their views"),
    "no fence": (FENCE, "", "TFW0829", "which the wave has accessed since the last fence"),
    "written behind the fence": (FENCE, f"{FENCE} mov.b32 %d0, 0;", "TFW0829", "%d0"),
    "A written behind the fence": (FENCE, f"{FENCE} mov.b32 %a2, 0;", "TFW0829", "%a2"),
    "no commit": (COMMIT, "", "TFW0820", "is read while a result for it is still to come"),
    "no wait": (WAIT, "", "TFW0820", "is read while a result for it is still to come"),
    "a wait that leaves it": (WAIT, WAIT.replace("0", "1"), "TFW0820", "%d0 is read"),
    "accumulators written early": (COMMIT, f"{COMMIT} mov.b32 %d3, 0;", "TFW0820", "%d3 is written"),
    "A written early": (COMMIT, f"{COMMIT} mov.b32 %a1, 0;", "TFW0820", "%a1 is written while a unit may still read it"),
    "shared memory overwritten early": (COMMIT, f"{COMMIT} {STORE}", "TFW0804", "this store is not ordered with a load"),
    "shared memory overwritten behind a barrier": (COMMIT, f"{COMMIT} bar.sync 0; {STORE}", "TFW0804", "this store is not ordered"),
    "never waited for": (f"{WAIT}\n", "ret;\n", "TFW0808", "never waited for"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_order_are_found(fault: str) -> None:
    old, new, code, words = FAULTS[fault]
    product = Product(".f32.f16.f16", 8, 2, "f32", a_in_registers=True)
    text, buffers = text_and_buffers(product, operands(product, 1))
    assert text.count(old) == 1
    _, findings = launch(text.replace(old, new), buffers, 1, 128, chip=HOPPER, checks=ALL_CHECKS)
    assert any(f.code == code and words in f.message for f in findings), findings


MEETINGS = {
    "a warp that stays away": ("setp.ge.u32 %p, %t, 96; @%p bra over;", 128, "TFW0811", "the other waves"),
    "lanes that stay away": ("setp.eq.u32 %p, %t, 5; @%p bra over;", 128, "TFW0807", "part of a wave"),
    "a warpgroup of two warps": ("", 64, "TFW0811", "the other waves"),
    "descriptors that differ": ("cvt.u64.u32 %q7, %t; add.u64 %q5, %q5, %q7;", 128, "TFW0812", "disagree on a descriptor"),
}


@pytest.mark.parametrize("meeting", MEETINGS)
def test_the_warps_of_a_warpgroup_must_meet(meeting: str) -> None:
    before, threads, code, words = MEETINGS[meeting]
    product = Product(".f32.f16.f16", 8, 2, "f32")
    text, buffers = text_and_buffers(product, operands(product, 1))
    text = text.replace(FENCE, before + FENCE).replace(f"{WAIT}\n", f"{WAIT}\nover:\n")
    _, findings = launch(text, buffers, 1, threads, chip=HOPPER)
    assert any(f.code == code and words in f"{f.message} {f.note}" for f in findings), findings


def test_warps_that_come_one_after_the_other_meet() -> None:
    """Warps go different ways to the product; under every seed they are parted elsewhere, and the result is the same."""
    product = Product(".f32.f16.f16", 8, 2, "f32")
    text, buffers = text_and_buffers(product, operands(product, 1))
    way = "shr.u32 %w0, %t, 5; @%p bra one; setp.eq.u32 %p, %w0, 0; @%p bra one; add.u32 %w1, %w0, 1; one:\n"
    found_by_seed = []
    for seed in (0, 1, 2):
        found, findings = launch(text.replace(FENCE, way + FENCE), buffers, 1, 128, chip=HOPPER, seed=seed)
        found_by_seed.append(found[2])
        assert findings == ()
    assert len(set(found_by_seed)) == 1


def test_a_sparse_product_is_refused_by_name() -> None:
    from tilefw.api.errors import CodeError

    product = Product(".f32.f16.f16", 8, 2, "f32")
    text, buffers = text_and_buffers(product, operands(product, 1))
    with pytest.raises(CodeError, match=r"no modifier \.sp"):
        launch(text.replace("wgmma.mma_async.sync", "wgmma.mma_async.sp.sync"), buffers, 1, 128, chip=HOPPER)
