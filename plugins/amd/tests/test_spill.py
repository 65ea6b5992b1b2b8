"""Where spilled values go: what one side writes the other reads back, and accumulators stay where matrix products take them."""

from __future__ import annotations

import numpy as np
import pytest
from served import CHIP, ISA, instruction

import tilefw
import tilefw.language as tl
from tilefw.api.machine import MEMORY, WHOLE, Inst, Reg, Slice, parse_function
from tilefw.machine.assign_registers import assign
from tilefw_amd.isa.text import printer
from tilefw_amd.machine.expand import instructions
from tilefw_amd.machine.spill import SLOT_CLASSES, copied, limits, model
from tilefw_amd.machine.traits import instructions as table_of

V, S = Reg(-1, "v", 256, 1, physical=True), Reg(-1, "s", 128, 1, physical=True)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 16])
def test_scratch_brings_back_what_went_there(count: int) -> None:
    home = SLOT_CLASSES["v"][-1]
    value = Reg(0, "v", count, 2).whole
    stored, loaded = home.store(value, None, 64), home.load(value, None, 64)
    for inst in (*stored, *loaded):
        for at, piece in enumerate(inst.defs):
            inst.defs = (*inst.defs[:at], V.slice(8 + piece.first, piece.count), *inst.defs[at + 1 :])
        inst.uses = tuple(V.slice(8 + u.first, u.count) if not isinstance(u, (int, str)) else u for u in inst.uses)
        instruction(inst)  # there is an encoding
    out = [pair for inst in stored for pair in copied(inst) or ()]
    back = [(source, to) for inst in loaded for to, source in copied(inst) or ()]
    assert out == back == [((MEMORY, 64 + 4 * i, WHOLE), ("v", 8 + i, WHOLE)) for i in range(count)]


def test_lanes_bring_back_what_went_there() -> None:
    (home,) = SLOT_CLASSES["s"]
    value, holder = S.slice(10, 2), V.slice(5, 1)
    stored, loaded = home.store(value, holder, 6), home.load(value, holder, 6)
    for inst in (*stored, *loaded):
        instruction(inst)
    wanted = [(("v", 5, 6 + i), ("s", 10 + i, WHOLE)) for i in range(2)]
    assert [pair for inst in stored for pair in copied(inst) or ()] == wanted
    assert [(source, to) for inst in loaded for to, source in copied(inst) or ()] == wanted


def test_matrix_products_and_stores_take_accumulation_registers_but_arithmetic_does_not() -> None:
    d, a, other = Reg(0, "v", 4, 2), Reg(1, "v", 2, 2), Reg(2, "v", 4, 2)
    product = Inst("v_mfma_f32_16x16x16_f16", [d.whole], [a.whole, a.whole, d.whole])
    assert model(ISA).accepts(product, d, "a") and model(ISA).accepts(product, a, "a")
    assert not model(ISA).accepts(Inst("v_mfma_f32_16x16x16_f16", [d.whole], [a.whole, a.whole, other.whole]), d, "a")
    assert model(ISA).accepts(Inst("global_store_dwordx4", (), [a.whole, d.whole, "off"]), d, "a")
    assert not model(ISA).accepts(Inst("v_add_f32", [d.slice(0, 1)], [d.slice(0, 1), a.slice(0, 1)]), d, "a")


def test_waves_of_a_workgroup_share_the_registers_of_a_simd() -> None:
    assert limits(CHIP, 4) == {"v": 256, "a": 256}
    assert limits(CHIP, 8) == {"v": 256, "a": 0}
    assert limits(CHIP, 16) == {"v": 128, "a": 0}


def test_accumulation_registers_take_the_constants_that_need_no_literal() -> None:
    pair, word = Reg(0, "v", 2, 2), Reg(1, "v", 1, 1)
    accepts = model(ISA).accepts
    assert accepts(Inst("v_mov_b64", [pair.whole], [0]), pair, "a") and accepts(Inst("move.v", [pair.whole], [0]), pair, "a")
    assert not accepts(Inst("v_mov_b32", [word.whole], [0x12345678]), word, "a")
    assert not accepts(Inst("v_mov_b64", [pair.whole], [0x3FF0000000000001]), pair, "a")
    made = Inst("v_mov_b64", [Reg(-1, "a", 256, 1, physical=True).slice(4, 2)], [0])
    assert [printer.text(instruction(inst)) for inst in instructions(made, S)] == [
        "v_accvgpr_write_b32 a4, 0", "v_accvgpr_write_b32 a5, 0"]


SUMS = """func @f target "amd-cdna3"
  regs v x16 a2: 0-17
  regs v x2 a2: 18
  regs v: 19
entry:
  %18 = v_mov_b64 0
ZEROS
PRODUCTS
READS
  s_endpgm
"""


def test_sums_that_only_ever_stand_in_accumulation_registers_are_not_spilled() -> None:
    """288 registers of sums: some begin, stay and end there, and are copied out where arithmetic reads them."""
    zeros = "\n".join(f"  %{i}[{2 * j}:2] = v_mov_b64 0" for i in range(18) for j in range(8))
    products = "\n".join(f"  %{i} = v_mfma_f32_32x32x8_f16 %18, %18, %{i}" for i in range(18))
    reads = "\n".join(f"  global_store_dword %18, %19, \"off\"\n  %19 = v_add_f32 %{i}[{j}:1], %{i}[{j}:1]"
                      for i in range(18) for j in range(16))
    text = SUMS.replace("ZEROS", zeros).replace("PRODUCTS", products).replace("READS", reads)
    function = parse_function(text)
    table = table_of(ISA)
    assign(function, table, {"v": 256, "a": 256}, model(ISA))
    assert function.attributes.spills.get("v", 0) == 0 and function.attributes.scratch_bytes == 0
    copies = [i for i in function.insts() if i.opcode == "move.v" and isinstance(i.uses[0], Slice) and i.uses[0].reg.cls == "a"]
    assert 32 <= sum(i.defs[0].count for i in copies) <= 80


@tilefw.jit
def one_sided_scales(a_ptr, b_ptr, scale_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    scale = tl.load(scale_ptr + n[:, None] * (K // 32) + tl.arange(0, K // 32)[None, :])
    product = tl.dot_scaled(a, None, "e5m2", b, scale, "e4m3")
    tl.store(out_ptr + m[:, None] * N + n[None, :], product)


def test_values_without_a_free_register_are_spilled_though_enough_registers_are_free_at_each_point() -> None:
    """Lives with holes leave no register free for the whole of a life, at 248 live of 256."""
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 0x40, (64, 128), np.uint8), rng.integers(0, 0x40, (128, 128), np.uint8)
    scale = rng.integers(124, 131, (128, 4), np.uint8)
    found = []
    for target in ("amd-cdna3", "reference"):
        out = np.zeros((64, 128), np.float32)
        with tilefw.target(target):
            result = one_sided_scales[(1,)](a, b, scale, out, M=64, N=128, K=128, num_warps=4)
        found.append(out)
        assert target == "reference" or result.n_spills
    np.testing.assert_allclose(*found, rtol=1e-5)
