"""Rows that came with the fourth generation: lanes that exchange, reads that transpose, wide loads to LDS, logic by a table,
minima that keep NaN, bf16 and stochastic conversions."""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from served import CHIPS

from cdna3.lanes import lanes, meaning
from cdna3.memory_machine import BASE, LDS_BYTES, Outcome, inst, run, s, v
from cdna3.vector import run as on_columns
from tilefw.api.errors import CodeError
from tilefw_amd.isa.encoding.decode import decode
from tilefw_amd.isa.encoding.encode import encode
from tilefw_amd.isa.set import instruction_set
from tilefw_amd.isa.text.parser import parse
from tilefw_amd.isa.text.printer import text

CHIP = next(chip for chip in CHIPS if chip.generation >= 4)
ISA = instruction_set(CHIP)
RNG = np.random.default_rng(11)
LANES = np.arange(64)
WORDS = RNG.integers(0, 1 << 32, LDS_BYTES // 4, np.uint64).astype(np.uint32)


def of(name: str, operands: dict[str, Any], **modifiers: Any) -> Any:
    return inst(name, operands, ISA, **modifiers)


def clean(out: Outcome) -> Outcome:
    assert out.findings == (), out.findings
    return out


def floats(patterns: np.ndarray) -> np.ndarray:
    return patterns.astype(np.uint32).view(np.float32)


def patterns(values: Any) -> np.ndarray:
    return np.asarray(values, np.float32).view(np.uint32)


# --- lanes ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [16, 32])
def test_odd_rows_of_the_first_operand_exchange_with_even_rows_of_the_second(rows: int) -> None:
    first, second = LANES.astype(np.uint32) + np.uint32(1000), LANES.astype(np.uint32) + np.uint32(2000)
    d, a = on_columns(f"v_permlane{rows}_swap_b32", first, second, chip=CHIP)
    odd = LANES & rows != 0
    assert (d == np.where(odd, second[LANES ^ rows], first)).all()
    assert (a == np.where(odd, second, first[LANES ^ rows])).all()


def test_two_exchanges_are_none() -> None:
    swap = of("v_permlane32_swap_b32", {"d": v(1), "da": v(2)})
    held = {v(1): LANES + 7, v(2): LANES + 900}
    out = clean(run([swap, swap], held, (v(1), v(2))))
    assert out.registers[0].tolist() == (LANES + 7).tolist() and out.registers[1].tolist() == (LANES + 900).tolist()


def test_what_an_inactive_lane_gives_in_an_exchange_is_undefined_unless_it_is_fetched() -> None:
    upper = LANES >= 32
    held = {v(1): LANES, v(2): LANES + 900}
    store = of("global_store_dword", {"vaddr": v(4, 2), "a": v(1)})
    held[v(4, 2)] = np.array([np.full(64, BASE & 0xFFFFFFFF) + 4 * LANES, np.full(64, BASE >> 32)])
    without, fetching = (of("v_permlane32_swap_b32", {"d": v(1), "da": v(2)}, **fetch) for fetch in ({}, {"fi": 1}))
    assert [f.code for f in run([without, store], held, exec_lanes=upper).findings] == ["TFW0803"]
    out = clean(run([fetching, store], held, exec_lanes=upper))
    assert out.memory[32:64].tolist() == (LANES[:32] + 900).tolist()


# --- LDS ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "bits", "registers"), [
    ("ds_read_b64_tr_b16", 16, 2), ("ds_read_b64_tr_b8", 8, 2), ("ds_read_b64_tr_b4", 4, 2), ("ds_read_b96_tr_b6", 6, 3),
])  # fmt: skip
def test_a_group_of_lanes_reads_rows_and_gets_columns(name: str, bits: int, registers: int) -> None:
    count = 32 * registers // bits
    at = RNG.permutation(64) * 16
    read = of(name, {"d": v(4, registers), "addr": v(2)}, offset=32)
    out = clean(run(read, {v(2): at}, tuple(v(4 + i) for i in range(registers)), lds=WORDS))
    raw = WORDS.tobytes()
    rows = [int.from_bytes(raw[address + 32 : address + 32 + 4 * registers], "little") for address in at]
    for lane in range(64):
        group, j = lane & ~15, lane & 15
        got = sum(int(out.registers[i][lane]) << 32 * i for i in range(registers))
        for r in range(count):
            row = rows[group + r * 16 // count + j // count]
            assert got >> bits * r & (1 << bits) - 1 == row >> bits * (j % count) & (1 << bits) - 1, (lane, r)


@pytest.mark.parametrize("first", [3, 4])
def test_three_registers_of_columns_begin_at_any(first: int) -> None:
    """What arrives does not depend on where it goes; text and bytes name the registers either way, of both files."""
    outcomes = []
    for at in (first, 8):
        read = of("ds_read_b96_tr_b6", {"d": v(at, 3), "addr": v(2)})
        outcomes.append(clean(run(read, {v(2): LANES * 16}, tuple(v(at + i) for i in range(3)), lds=WORDS)))
    assert all((one == other).all() for one, other in zip(outcomes[0].registers, outcomes[1].registers, strict=True))
    for file in "va":
        written = f"ds_read_b96_tr_b6 {file}[{first}:{first + 2}], v2 offset:16"
        assert text(decode(ISA, encode(parse(ISA, written)))) == written


@pytest.mark.parametrize("written", ["ds_read_b96 v[1:3], v0", "ds_read_b64_tr_b8 v[1:2], v0", "ds_write_b96 v0, v[1:3]"])
def test_other_tuples_of_vectors_begin_at_even_registers(written: str) -> None:
    with pytest.raises(CodeError, match="must begin at an even number") as caught:
        parse(ISA, written)
    assert caught.value.code == "TFW0721"
    bytes_of = bytearray(encode(parse(ISA, written.replace("[1:", "[2:").replace(":3]", ":4]").replace(":2]", ":3]"))))
    place = 7 if "read" in written else 5  # VDST, DATA0
    bytes_of[place] = 1
    with pytest.raises(CodeError) as refused:
        decode(ISA, bytes(bytes_of))
    assert "must begin at an even number" in (refused.value.note or "")


def test_a_column_of_a_matrix_of_halves_in_row_order_is_one_lanes() -> None:
    """Sixteen rows of four halves, row after row: lane j of a group holds column j % 4 of rows 4 * (j / 4) on, as documented."""
    matrix = np.arange(64, dtype=np.uint16)
    lds = np.zeros(LDS_BYTES // 4, np.uint32)
    lds[:32] = matrix.view(np.uint32)
    at = (LANES & 15) * 8
    out = clean(run(of("ds_read_b64_tr_b16", {"d": v(4, 2), "addr": v(2)}), {v(2): at}, (v(4), v(5)), lds=lds))
    tile = matrix.reshape(4, 16)  # four rows of sixteen, of which lane j holds column j
    for lane in range(16):
        got = np.array([out.registers[0][lane], out.registers[1][lane]], np.uint32).view(np.uint16)
        assert got.tolist() == tile[:, lane].tolist()


@pytest.mark.parametrize("on", [LANES < 48, LANES != 3], ids=["a group is off", "a lane is off"])
def test_a_transposing_read_wants_all_lanes(on: np.ndarray) -> None:
    read = of("ds_read_b64_tr_b8", {"d": v(4, 2), "addr": v(2)})
    out = run(read, {v(2): LANES * 8}, exec_lanes=on, lds=WORDS)
    assert any("EXEC must be all ones" in str(f.message) for f in out.findings)


@pytest.mark.parametrize(("name", "registers", "step"), [("ds_read_b64_tr_b4", 2, 8), ("ds_read_b96_tr_b6", 3, 16)])
def test_a_transposing_read_wants_aligned_addresses(name: str, registers: int, step: int) -> None:
    read = of(name, {"d": v(4, registers), "addr": v(2)})
    clean(run(read, {v(2): LANES * step}, lds=WORDS))
    assert [f.check for f in run(read, {v(2): LANES * step + step // 2}, lds=WORDS).findings] == ["alignment"]


@pytest.mark.parametrize(("name", "size"), [("dwordx3", 12), ("dwordx4", 16)])
def test_a_wide_load_to_lds_puts_each_lanes_bytes_behind_m0(name: str, size: int) -> None:
    memory = RNG.integers(0, 1 << 32, 512, np.uint64).astype(np.uint32)
    at = RNG.permutation(64) * 16
    address = np.array([(BASE + at) & 0xFFFFFFFF, np.full(64, BASE >> 32)])
    load = of(f"global_load_lds_{name}", {"vaddr": v(2, 2)}, offset=16)
    on = RNG.random(64) < 0.7
    lds = np.full(LDS_BYTES // 4, 5, np.uint32)
    out = clean(run(load, {v(2, 2): address, s(124): 0x40}, exec_lanes=on, memory=memory, lds=lds))
    want = lds.copy()
    for lane in np.flatnonzero(on):
        first = (0x40 + 16 + size * lane) // 4
        want[first : first + size // 4] = memory[(at[lane] + 16) // 4 :][: size // 4]
    assert out.lds.tolist() == want.tolist()


def test_dwords_beyond_a_buffers_end_come_to_lds_as_zeros() -> None:
    memory = RNG.integers(1, 1 << 32, 512, np.uint64).astype(np.uint32)
    records = 16 * 63 + 8
    held = {v(2): LANES * 16, s(124): 0} | {s(4): BASE & 0xFFFFFFFF, s(5): BASE >> 32, s(6): records, s(7): 0x27000}
    load = of("buffer_load_dwordx4_lds", {"vaddr": v(2), "srsrc": s(4, 4), "soffset": s(8)}, offen=1, lds=1)
    out = clean(run(load, held | {s(8): 0}, memory=memory, lds=np.full(LDS_BYTES // 4, 5, np.uint32)))
    want = memory[:256].copy()
    want[254:] = 0
    assert out.lds[:256].tolist() == want.tolist()


# --- bits -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", [0x00, 0x96, 0xE8, 0xCA, 0x01, 0x80, 0xFF])
def test_each_bit_is_looked_up_in_the_table(table: int) -> None:
    a, b, c = (RNG.integers(0, 1 << 32, 64, np.uint64).astype(np.uint32) for _ in range(3))
    got = on_columns("v_bitop3_b32", a, b, c, chip=CHIP, bitop3=table)
    narrow = on_columns("v_bitop3_b16", *(x.astype(np.uint16) for x in (a, b, c)), chip=CHIP, bitop3=table)
    want = np.zeros(64, np.uint32)
    for bit in range(32):
        index = 4 * (a >> bit & 1) + 2 * (b >> bit & 1) + (c >> bit & 1)
        want |= (np.uint32(table) >> index & 1) << np.uint32(bit)
    assert (got == want).all() and (narrow == want.astype(np.uint16)).all()


def test_the_random_number_is_a_feedback_shift() -> None:
    a = np.array([0, 1, 0x80000000, 0xFFFFFFFF, 0x40000000], np.uint32)
    assert on_columns("v_prng_b32", a, chip=CHIP).tolist() == [0, 2, 0xC5, 0xFFFFFFFE ^ 0xC5, 0x80000000]


def test_shifted_words_are_limited_to_bytes() -> None:
    a = np.array([1000, -1000, 64, -64, 255], np.int32).view(np.uint32)
    b, c = a[::-1].copy(), np.array([0, 0, 1, 1, 33], np.uint32)
    shifted = [x.view(np.int32) >> (c & 31).astype(np.int32) for x in (a, b)]
    for name, low, high in (("v_ashr_pk_i8_i32", -128, 127), ("v_ashr_pk_u8_i32", 0, 255)):
        x, y = (np.clip(value, low, high) & 255 for value in shifted)
        assert on_columns(name, a, b, c, chip=CHIP).tolist() == (x | y << 8).tolist()


# --- floats ---------------------------------------------------------------------------------------------------------------

SPECIAL = patterns([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, 3e38, 1e-40, 65519.0, 65520.0])


def test_minima_and_maxima_of_three_are_nan_where_one_is() -> None:
    a, b, c = (np.resize(np.roll(SPECIAL, shift), 121)[np.argsort(RNG.random(121))] for shift in (0, 1, 2))
    for name, function in (("v_minimum3_f32", np.minimum), ("v_maximum3_f32", np.maximum)):
        got, want = floats(on_columns(name, a, b, c, chip=CHIP)), function(function(floats(a), floats(b)), floats(c))
        assert np.array_equal(got, want, equal_nan=True)


def test_pairs_of_floats_become_halves_rounded_to_nearest() -> None:
    a = np.concatenate([SPECIAL, patterns(RNG.normal(size=200).astype(np.float32))])
    b = a[::-1].copy()
    with np.errstate(over="ignore"):
        halves = [floats(x).astype(np.float16).view(np.uint16).astype(np.uint32) for x in (a, b)]
    got = on_columns("v_cvt_pk_f16_f32", a, b, chip=CHIP)
    for part, want in zip((got & 0xFFFF, got >> 16), halves, strict=True):
        not_a_number = [np.isnan(x.astype(np.uint16).view(np.float16)) for x in (part, want)]
        assert ((part == want) | (not_a_number[0] & not_a_number[1])).all()
    wide = on_columns("v_cvt_pk_bf16_f32", a, b, chip=CHIP)
    for part, source in zip((wide & 0xFFFF, wide >> 16), (a, b), strict=True):
        number = ~np.isnan(floats(source))
        want = (source.astype(np.uint64) + 0x7FFF + (source >> 16 & 1)) >> 16
        assert (part[number] == want[number]).all()
        assert np.isnan(floats(part[~number] << 16)).all()


def test_a_bf16_is_the_high_half_of_its_f32() -> None:
    a = RNG.integers(0, 1 << 16, 64).astype(np.uint16)
    assert on_columns("v_cvt_f32_bf16", a, chip=CHIP).tolist() == (a.astype(np.uint32) << 16).tolist()


@pytest.mark.parametrize(("name", "kept"), [("v_cvt_sr_bf16_f32", 7), ("v_cvt_sr_f16_f32", 10)])
def test_stochastic_rounding_goes_up_as_often_as_the_rest_says(name: str, kept: int) -> None:
    value = Fraction(1) + Fraction(1, 1 << kept) + Fraction(3, 8 << kept)  # three eighths of a step above a number
    a = np.full(4096, patterns([float(value)])[0], np.uint32)
    chance = (np.arange(4096, dtype=np.uint64) << 20).astype(np.uint32)
    got = on_columns(name, a, chance, np.full(4096, 0xABCD1234, np.uint32), chip=CHIP)
    assert (got >> 16 == 0xABCD).all()
    low = int(on_columns(name, a[:1], chance[:1], a[:1], chip=CHIP)[0]) & 0xFFFF
    assert set((got & 0xFFFF).tolist()) == {low, low + 1}
    assert int((got & 0xFFFF == low + 1).sum()) == 4096 * 3 // 8
    other = on_columns(name, a, chance, np.full(4096, 0xABCD1234, np.uint32), chip=CHIP, op_sel=(0, 0, 1))
    assert (other & 0xFFFF == 0x1234).all() and (other >> 16 == got & 0xFFFF).all()


@pytest.mark.parametrize("name", ["v_dot2_f32_bf16", "v_dot2c_f32_bf16"])
def test_products_of_bf16_pairs_are_added_in_f32(name: str) -> None:
    a, b = (RNG.integers(0x3C00, 0x4200, (2, 64)).astype(np.uint32) for _ in range(2))
    c = RNG.normal(size=64).astype(np.float32)
    parts = [floats(x << 16) for x in (*a, *b)]
    first, second = (np.float32(x * y) for x, y in ((parts[0], parts[2]), (parts[1], parts[3])))
    want = (first + second) + c if name == "v_dot2_f32_bf16" else (c + first) + second
    got = on_columns(name, a[0] | a[1] << 16, b[0] | b[1] << 16, patterns(c), chip=CHIP)
    assert (got == patterns(want)).all()


FP8 = {"fp8": (4, 3, 7), "bf8": (5, 2, 15)}  # exponent bits, mantissa bits, bias of OCP's formats


def value_of(code: int, name: str) -> float:
    """An 8-bit float by its definition; NaN and infinities as OCP's formats have them."""
    bits, mantissa, bias = FP8[name]
    sign, field, part = code >> 7, code >> mantissa & (1 << bits) - 1, code & (1 << mantissa) - 1
    if name == "fp8" and code & 0x7F == 0x7F:
        return float("nan")
    if name == "bf8" and field == 31:
        return float("nan") if part else (-1) ** sign * float("inf")
    scale = 2.0 ** (max(field, 1) - bias - mantissa)
    return (-1) ** sign * (part + (1 << mantissa if field else 0)) * scale


@pytest.mark.parametrize("name", ["fp8", "bf8"])
@pytest.mark.parametrize("power", [-20, 0, 3])
def test_bytes_become_wider_times_the_scale(name: str, power: int) -> None:
    codes = np.arange(256, dtype=np.uint32)
    want = np.array([value_of(code, name) for code in range(256)]) * 2.0**power
    scale = np.full(256, patterns([1.75 * 2.0**power])[0], np.uint32)  # its mantissa does not count
    for index in range(4):
        chosen = (index & 1, index >> 1, 0)
        got = on_columns(f"v_cvt_scalef32_f32_{name}", codes << np.uint32(8 * index), scale, chip=CHIP, op_sel=chosen)
        assert np.array_equal(floats(got), want.astype(np.float32), equal_nan=True)
    pair = on_columns(f"v_cvt_scalef32_pk_f32_{name}", codes << np.uint32(16), scale, chip=CHIP, op_sel=(1, 0, 0))
    assert np.array_equal(floats(pair & 0xFFFFFFFF), want.astype(np.float32), equal_nan=True) and not (pair >> 32).any()
    half = on_columns(f"v_cvt_scalef32_f16_{name}", codes, scale, np.full(256, 0x1234, np.uint32), chip=CHIP, op_sel=(0, 0, 1))
    assert (half & 0xFFFF == 0x1234).all()
    with np.errstate(over="ignore"):
        assert np.array_equal((half >> 16).astype(np.uint16).view(np.float16), want.astype(np.float16), equal_nan=True)


@pytest.mark.parametrize("name", ["fp8", "bf8"])
def test_floats_over_the_scale_become_the_nearest_bytes(name: str) -> None:
    finite = sorted(code for code in range(128) if np.isfinite(value_of(code, name)))
    values = np.array([value_of(code, name) for code in finite])
    source = np.concatenate([values, (values[1:] + values[:-1]) / 2, RNG.uniform(0, values[-1], 300)]).astype(np.float32)
    distance = np.abs(source[:, None].astype(np.float64) - values)
    nearest = distance.argmin(1)
    tie = (distance == distance.min(1, keepdims=True)).sum(1) == 2
    nearest = nearest + (tie & (nearest % 2 == 1))  # ties to the even code
    scale = np.full(len(source), patterns([8.0])[0], np.uint32)
    got = on_columns(f"v_cvt_scalef32_pk_{name}_f32", patterns(source * 8), patterns(-source * 8), scale,
                     np.full(len(source), 0xABCD1234, np.uint32), chip=CHIP)
    assert (got >> 16 == 0xABCD).all()
    assert (got & 0xFF == nearest).all() and (got >> 8 & 0x7F == nearest).all()


def test_a_scale_of_all_ones_makes_not_a_number() -> None:
    lost = np.full(4, 0x7F800000, np.uint32)
    one = np.full(4, 0x38, np.uint32)
    assert np.isnan(floats(on_columns("v_cvt_scalef32_f32_fp8", one, lost, chip=CHIP, op_sel=(0, 0, 0)))).all()
    got = on_columns("v_cvt_scalef32_pk_fp8_f32", patterns(np.ones(4)), patterns(np.ones(4)), lost, one, chip=CHIP)
    assert (got & 0x7F7F == 0x7F7F).all()


def test_scaled_stochastic_rounding_goes_up_as_often_as_the_rest_says() -> None:
    a = np.full(4096, patterns([4 * (1 + 3 / 8 / 8)])[0], np.uint32)  # over 4: three eighths of a step above one
    chance = (np.arange(4096, dtype=np.uint64) << 20).astype(np.uint32)
    scale, old = np.full(4096, patterns([4.0])[0], np.uint32), np.full(4096, 0x11223344, np.uint32)
    got = on_columns("v_cvt_scalef32_sr_fp8_f32", a, chance, scale, old, chip=CHIP, op_sel=(0, 0, 1, 0))
    assert (got & 0xFFFF00FF == 0x11220044).all()
    assert set((got >> 8 & 0xFF).tolist()) == {0x38, 0x39} and int((got >> 8 & 0xFF == 0x39).sum()) == 4096 * 3 // 8


def test_packed_minima_keep_nan() -> None:
    pair = struct.unpack("<I", struct.pack("<ee", 1.0, float("nan")))[0]
    other = struct.unpack("<I", struct.pack("<ee", -3.0, 2.0))[0]
    halves = [np.array([x], np.uint32) for x in (pair, other, other)]
    low = [(x & 0xFFFF).astype(np.uint16) for x in halves]
    high = [(x >> 16).astype(np.uint16) for x in halves]
    assert on_columns("v_pk_minimum3_f16", *low, chip=CHIP).view(np.float16)[0] == -3.0
    assert np.isnan(on_columns("v_pk_maximum3_f16", *high, chip=CHIP).view(np.float16)[0])


def test_the_rows_are_of_this_generation_on_alone() -> None:
    for chip in CHIPS:
        assert ("v_permlane32_swap_b32" in instruction_set(chip).rows) == (chip.generation >= 4)
    assert meaning("v_prng_b32", chip=CHIP)(lanes(), np.zeros((1, 1, 64), np.uint32)).max() == 0
