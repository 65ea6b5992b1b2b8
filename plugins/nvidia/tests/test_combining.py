"""What combining does to PTX: fewer instructions, contraction only where it is allowed, results as before."""

from __future__ import annotations

import numpy as np
import pytest
from row_kernels import compile_text

import tilefw
import tilefw.language as tl
from tilefw.api.simt import Combiner
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.select.lanes import PtxChip


@tilefw.jit
def fused_sum(x, y, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    tl.store(out + i, a * tl.load(y + i) + a)


@tilefw.jit
def scaled(x, out, n, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        a = tl.load(x + i, mask=i < n)
        tl.store(out + i, a * a + a, mask=i < n)


def axpy(element: str) -> str:
    """x * y + x."""
    pointers = ", ".join(f'%{p}: !tile.ptr<{element}> {{tile.name = "{p}", tile.divisible = 16 : i64}}' for p in "xyo")
    tile, where = f"tensor<1024x{element}>", "at (%zero : i32) strides (%one : i32)"
    return f"""func.func @axpy({pointers}) {{
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %a = tile.load_block %x {where} : !tile.ptr<{element}>, {tile}
  %b = tile.load_block %y {where} : !tile.ptr<{element}>, {tile}
  %p = tile.mulf %a, %b : {tile}
  %s = tile.addf %p, %a : {tile}
  tile.store_block %o, %s {where} : !tile.ptr<{element}>, {tile}
  func.return
}}"""


@tilefw.jit
def centred(x, mean, out, scale, rest, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    shifted = tl.load(x + i) * scale - tl.load(mean)
    tl.store(out + i, rest - shifted * 0.5)


def opcodes(text: str) -> list[str]:
    return [line.split()[0] for line in text.splitlines() if line.startswith("\t") and not line.startswith("\t.")]


@pytest.mark.parametrize(("element", "name", "count"), [("f32", "f32", 8), ("f64", "f64", 8), ("f16", "f16x2", 4)])
def test_products_and_sums_contract_only_with_fusion(element, name, count):
    fused = opcodes(compile_text(axpy(element)).text)
    assert fused.count(f"fma.rn.{name}") == count and not any(o.startswith(("mul.f", "add.f")) for o in fused)
    apart = opcodes(compile_text(axpy(element), enable_fp_fusion=False).text)
    assert apart.count(f"mul.rn.{name}") == apart.count(f"add.rn.{name}") == count
    assert not any(o.startswith("fma") for o in apart)


def test_what_is_subtracted_from_products_is_negated_once():
    signature = {"x": "*fp32", "mean": "*fp32", "out": "*fp32", "scale": "fp32", "rest": "fp32"}
    found = opcodes(tilefw.compile(centred, target="nvidia-sm80", signature=signature, constexprs={"BLOCK": 1024}).text)
    assert found.count("neg.f32") == 1, "of the mean; the factor 0.5 takes the sign into its literal"
    assert found.count("fma.rn.f32") == 16 and not any(o.startswith(("sub.f", "mul.f")) for o in found)


def test_combining_makes_kernels_shorter(monkeypatch):
    after = len(opcodes(compile_text(axpy("f32")).text))
    init = PtxChip.__init__

    def bare(lanes: PtxChip, chip: Chip, fusion: bool, deals: bool) -> None:
        init(lanes, chip, fusion, deals)
        lanes.combiner = Combiner({})

    monkeypatch.setattr(PtxChip, "__init__", bare)
    before = len(opcodes(compile_text(axpy("f32")).text))
    assert after <= before - 8


@pytest.mark.parametrize("fusion", [True, False])
def test_results_stay_those_of_the_roundings_that_were_asked_for(fusion):
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(1024).astype(np.float32) for _ in range(2))
    out = np.zeros_like(x)
    fused_sum[(1,)](x, y, out, BLOCK=1024, target="nvidia-sm80", enable_fp_fusion=fusion)
    exact = x.astype(np.float64) * y + x
    expected = exact.astype(np.float32) if fusion else x * y + x
    np.testing.assert_array_equal(out, expected)


def test_what_a_thread_computes_once_stands_before_the_loop():
    signature = {"x": "*fp32", "out": "*fp32", "n": "i32"}
    text = tilefw.compile(scaled, target="nvidia-sm80", signature=signature, constexprs={"BLOCK": 256}).text
    before, _, loop = text.partition("$scaled_loop_1:")
    assert "%tid.x" in before and "%tid.x" not in loop
    # Of x and of out: the bound asks for the lane's index, and scaling it leaves no part of an address alive over the loop.
    assert "mad.wide.s32" not in before and loop.count("mad.wide.s32") == 2
    assert loop.count("fma.rn.f32") == 2, "values loaded under a predicate are contracted too"


@tilefw.jit
def gathered(x, out, n, stride, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    for start in range(0, n, BLOCK):
        rows = tl.arange(0, 16)
        where = rows[:, None] * stride + (start + column)[None, :]
        inside = (start + column)[None, :] < n
        tl.store(out + where, tl.load(x + where, mask=inside), mask=inside)


def test_loops_hold_one_register_for_offsets_that_differ_by_constants():
    signature = {"x": "*fp32", "out": "*fp32", "n": "i32", "stride": "i32"}
    text = tilefw.compile(gathered, target="nvidia-sm80", signature=signature, constexprs={"BLOCK": 512}).text
    before, _, loop = text.partition("$gathered_loop_1:")
    compared = {line.split()[2] for line in loop.splitlines() if line.startswith("\tsetp.lt.s32") and "%r" in line.split()[2]}
    made = {line.split()[1] for line in before.splitlines() if line.startswith("\t") and len(line.split()) > 1}
    assert len(compared) > 2 and len(compared & made) <= 1, "columns are made from one register in the loop"


@tilefw.jit
def between(x, out, low, high, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    inside = ((a > low) & (a < high)) | (a == 0.0)
    tl.store(out + i, tl.where(inside ^ (i < 8), a, -1.0))


def test_a_compare_takes_the_predicate_of_another_with_it():
    data = np.linspace(-3, 3, 128, dtype=np.float32)
    data[64] = 0.0
    out = np.zeros_like(data)
    result = between[(1,)](data, out, 1.0, 2.0, 128, target="nvidia-sm80", checks="all")
    inside = ((data > 1) & (data < 2)) | (data == 0)
    assert (out == np.where(inside ^ (np.arange(128) < 8), data, -1)).all()
    combined = [o for o in opcodes(result.artifact.text) if o.startswith("setp") and o.count(".") == 3]
    assert len(combined) == 3 and not any(".pred" in o for o in opcodes(result.artifact.text))


@tilefw.jit
def turned(x, out, BLOCK: tl.constexpr):
    i, j = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    tl.store(out + i[:, None] * BLOCK + j[None, :], tl.trans(tl.load(x + i[:, None] * BLOCK + j[None, :])))


def test_halves_change_places_between_registers_in_one_instruction():
    data = np.arange(64 * 64, dtype=np.int16).reshape(64, 64)
    out = np.zeros_like(data)
    result = turned[(1,)](data, out, 64, target="nvidia-sm80", num_warps=1)
    assert (out == data.T).all()
    found = opcodes(result.artifact.text)
    assert found.count("prmt.b32") >= 64 * 64 // 32 // 2 // 2 and "%rs" not in result.artifact.text.split("ld.global", 1)[1]
