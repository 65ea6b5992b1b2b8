"""Packed, mixed and dot rows from their text: every combination of op_sel, op_sel_hi and signs, clamp, against plain Python."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from served import ROWS, parse

from cdna3.bound import State, execute
from cdna3.lanes import WAVE
from tilefw_amd.isa.meaning.binding import Site, bind
from tilefw_amd.isa.row import Mode

BITS = list(itertools.product((0, 1), repeat=2))
SPECIAL_HALVES = [0x0000, 0x8000, 0x0001, 0x83FF, 0x3C00, 0xBC00, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0x7FFF, 0xFFFF, 0x4000]
SPECIAL_WORDS = [0, 1 << 31, 1, 0x007FFFFF, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFFFFFFF]


def words(seed: int, count: int, special: list[int], half: bool) -> State:
    """v0 to v(count - 1): random words, some of special values."""
    rng = np.random.default_rng(seed)
    state = {}
    for register in range(count):
        found = rng.integers(0, 1 << 32, WAVE, np.uint64)
        odd = rng.choice(np.array(special, np.uint64), (2, WAVE))
        odd = odd[0] | odd[1] << np.uint64(16) if half else odd[0]
        state[register] = np.where(rng.random(WAVE) < 0.5, odd, found).astype(np.uint32)
    return state


def signed(value: int, bits: int) -> int:
    return (value ^ (1 << (bits - 1))) - (1 << (bits - 1))


def limited(value: int, bits: int, sign: bool) -> int:
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if sign else (0, (1 << bits) - 1)
    return min(max(value, low), high)


# --- halves as integers ---------------------------------------------------------------------------------------------------------

INTEGER: dict[str, Callable[..., int]] = {
    "mad": lambda a, b, c: a * b + c,
    "mul_lo": lambda a, b: a * b,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "max": max,
    "min": min,
    "lshlrev": lambda a, b: b << (a & 15),
    "lshrrev": lambda a, b: b >> (a & 15),
    "ashrrev": lambda a, b: b >> (a & 15),
}  # fmt: skip
INTEGER_ROWS = [n for n in ROWS if n.startswith("v_pk_") and n.endswith(("i16", "u16", "b16"))]


def halves_of(word: int, low: int, high: int) -> tuple[int, int]:
    return word >> 16 * low & 0xFFFF, word >> 16 * high & 0xFFFF


@pytest.mark.parametrize("name", INTEGER_ROWS)
def test_integer_halves(name: str) -> None:
    count = len(ROWS[name].sources)
    sign = name.endswith("i16")
    kind = name.removeprefix("v_pk_").rpartition("_")[0]
    limits = kind in ("mad", "mul_lo", "add", "sub")
    state = words(1, 4, SPECIAL_HALVES, True)
    operands = ", ".join(f"v{i}" for i in range(4 - count, 4))
    for low, high, clamp in itertools.product(BITS, BITS, (False, True)):
        selected = [(*low, 0)[:count], (*high, 1)[:count]]
        text = f"{name} v0, {operands} op_sel:{_list(selected[0])} op_sel_hi:{_list(selected[1])}{' clamp' if clamp else ''}"
        got = execute(text, state)[0]
        for lane in range(WAVE):
            pairs = [
                halves_of(int(state[4 - count + i][lane]), selected[0][i], selected[1][i]) for i in range(count)
            ]
            wanted = 0
            for place in range(2):
                numbers = [signed(p[place], 16) if sign else p[place] for p in pairs]
                exact = INTEGER[kind](*numbers)
                value = limited(exact, 16, sign) if clamp and limits else exact
                wanted |= (value & 0xFFFF) << 16 * place
            assert int(got[lane]) == wanted, (text, lane)


def _list(bits: Any) -> str:
    return f"[{','.join(map(str, bits))}]"


# --- halves and f32 as floats -------------------------------------------------------------------------------------------------


def _fma(a: Any, b: Any, c: Any) -> Any:
    """Exact in f64 for f16; f32 by two f64 operations on values that NumPy's longdouble holds."""
    return a.astype(np.longdouble) * b.astype(np.longdouble) + c.astype(np.longdouble)


FLOAT: dict[str, Callable[..., Any]] = {
    "fma": _fma,
    "add": lambda a, b: a.astype(np.float64) + b.astype(np.float64),
    "mul": lambda a, b: a.astype(np.float64) * b.astype(np.float64),
    "min": np.fmin,
    "max": np.fmax,
}
FLOAT_ROWS = [f"v_pk_{kind}_f16" for kind in FLOAT] + [f"v_pk_{kind}_f32" for kind in ("fma", "add", "mul")]


@pytest.mark.parametrize("name", FLOAT_ROWS)
def test_floats(name: str) -> None:
    """Rounded once; the sign of a source flips after the element is chosen; clamp limits to [0, 1]."""
    count = len(ROWS[name].sources)
    kind, fmt = name.removeprefix("v_pk_").split("_")
    registers = 1 if fmt == "f16" else 2
    state = words(2, 8, SPECIAL_HALVES if fmt == "f16" else SPECIAL_WORDS, fmt == "f16")
    if fmt == "f32":  # Between these the sum of an f32 product and an f32 is exact in longdouble.
        near_one = {r: w & np.uint32(0x83FFFFFF) | np.uint32(0x3C000000) for r, w in state.items()}
        state = {r: np.where((w >> 23 & 255) % 254 < 2, w, near_one[r]) for r, w in state.items()}
    for low, high, neg_low, neg_high, clamp in itertools.product(BITS, BITS, BITS, ((0, 0), (0, 1)), (False, True)):
        chosen = [(*low, 0)[:count], (*high, 1)[:count]]
        flipped = [(*neg_low, 0)[:count], (*neg_high, 1)[:count]]
        sources = [_operand(2 * (i + 1), registers) for i in range(count)]
        written = zip(("op_sel", "op_sel_hi", "neg_lo", "neg_hi"), (*chosen, *flipped), strict=True)
        text = f"{name} {_operand(0, registers)}, {', '.join(sources)} {' '.join(f'{m}:{_list(b)}' for m, b in written)}"
        found = execute(text + " clamp" * clamp, state)
        for place in range(2):
            values = [_element(state, 2 * (i + 1), chosen[place][i], fmt, flipped[place][i]) for i in range(count)]
            with np.errstate(all="ignore"):
                exact = FLOAT[kind](*values)
                wanted = exact.astype(values[0].dtype)
                if clamp:
                    wanted = np.fmin(np.fmax(wanted, values[0].dtype.type(0)), values[0].dtype.type(1))
            got = _element(found, 0, place, fmt, 0)
            assert np.array_equal(got, wanted, equal_nan=True), text


def _operand(first: int, registers: int) -> str:
    return f"v{first}" if registers == 1 else f"v[{first}:{first + 1}]"


def _element(state: State, first: int, place: int, fmt: str, negate: int) -> np.ndarray:
    if fmt == "f16":
        found = (state[first] >> np.uint32(16 * place)).astype(np.uint16).view(np.float16)
    else:
        found = state[first + place].view(np.float32)
    return -found if negate else found


def test_fused_multiply_add_of_halves_in_place() -> None:
    state = words(3, 3, SPECIAL_HALVES, True)
    got = execute("v_pk_fmac_f16 v0, v1, v2", state)
    for place in range(2):
        a, b, d = (_element(state, r, place, "f16", 0) for r in (1, 2, 0))
        with np.errstate(all="ignore"):
            assert np.array_equal(_element(got, 0, place, "f16", 0), _fma(a, b, d).astype(np.float16), equal_nan=True)


def test_words_are_moved_by_op_sel() -> None:
    state = words(4, 6, SPECIAL_WORDS, False)
    for first, second in BITS:
        got = execute(f"v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[{first},{second}]", state)
        assert (got[0] == state[2 + first]).all() and (got[1] == state[4 + second]).all()


# --- mixed ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["v_fma_mix_f32", "v_fma_mixlo_f16", "v_fma_mixhi_f16"])
def test_mixed_sources(name: str) -> None:
    """op_sel_hi makes a source f16, op_sel chooses its half, |a| comes before -a."""
    state = {r: w & np.uint32(0xBFFFBFFF) for r, w in words(5, 4, SPECIAL_HALVES, True).items()}
    for halves, high, negated, absolute in itertools.product(itertools.product((0, 1), repeat=3), BITS, BITS, BITS):
        chosen, negative, positive = (*high, 1), (*negated, 0), (0, *absolute)
        operands = [
            f"{'-' if n else ''}{'|' if p else ''}v{i + 1}{'|' if p else ''}"
            for i, (n, p) in enumerate(zip(negative, positive, strict=True))
        ]
        text = f"{name} v0, {', '.join(operands)} op_sel:{_list(chosen)} op_sel_hi:{_list(halves)}"
        got = execute(text, state)[0]
        values = []
        for i in range(3):
            value = (
                _element(state, i + 1, chosen[i], "f16", 0).astype(np.float32) if halves[i] else state[i + 1].view(np.float32)
            )
            value = np.abs(value) if positive[i] else value
            values.append(-value if negative[i] else value)
        with np.errstate(all="ignore"):
            wanted = np.array([_fma_exactly(*map(float, lane)) for lane in zip(*values, strict=True)]).astype(np.float32)
            half = wanted.astype(np.float16).view(np.uint16).astype(np.uint32)
        expected = {
            "v_fma_mix_f32": wanted.view(np.uint32), "v_fma_mixlo_f16": state[0] & 0xFFFF0000 | half,
            "v_fma_mixhi_f16": state[0] & 0xFFFF | half << np.uint32(16),
        }[name]  # fmt: skip
        assert _equal(got, expected, name), text


def _fma_exactly(a: float, b: float, c: float) -> float:
    """a * b + c of f32 values rounded to odd in f64, so that the rounding to f32 is the only one."""
    if not all(map(math.isfinite, (a, b, c))):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    near = float(exact)
    if Fraction(near) == exact:
        return near if near else a * b + c
    away = math.nextafter(near, math.inf if Fraction(near) < exact else -math.inf)
    return near if np.float64(near).view(np.uint64) & np.uint64(1) else away


def _equal(got: np.ndarray, wanted: np.ndarray, name: str) -> bool:
    if name == "v_fma_mix_f32":
        return np.array_equal(got.view(np.float32), wanted.view(np.float32), equal_nan=True)
    return np.array_equal(got.view(np.float16), wanted.view(np.float16), equal_nan=True)


def test_a_clamped_result_leaves_the_other_half() -> None:
    state = words(6, 4, [0x3C00, 0x4400, 0xC400], True)
    text = "v1, v2, v3 op_sel_hi:[1,1,1] clamp"
    low, high = (execute(f"v_fma_mix{half}_f16 v0, {text}", state)[0] for half in ("lo", "hi"))
    results = np.stack([low.view(np.float16)[::2], high.view(np.float16)[1::2]])
    assert ((results >= 0) & (results <= 1)).all() and len(set(results[0].tolist())) > 2
    assert (low >> 16 == state[0] >> 16).all() and (high & 0xFFFF == state[0] & 0xFFFF).all()


# --- dot products -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in ROWS if n.startswith("v_dot") and "f32" not in n])
@pytest.mark.parametrize("clamp", [False, True])
def test_integer_dot_products(name: str, clamp: bool) -> None:
    bits, sign = int(name.rpartition("_")[2][1:]), "_i32_" in name
    state = words(7, 4, [0x8000, 0x7FFF, 0x8080, 0x7F7F, 0xFFFF], True)
    in_place = name.split("_")[1].endswith("c")
    suffix = "_e64" if in_place and clamp else ""
    got = execute(f"{name}{suffix} v0, v1, v2{'' if in_place else ', v3'}{' clamp' * clamp}", state)[0]
    addend = state[0 if in_place else 3]
    for lane in range(WAVE):
        total = signed(int(addend[lane]), 32) if sign else int(addend[lane])
        for place in range(32 // bits):
            factors = [int(state[r][lane]) >> bits * place & (1 << bits) - 1 for r in (1, 2)]
            total += math.prod(signed(f, bits) if sign else f for f in factors)
        assert int(got[lane]) == (limited(total, 32, sign) if clamp else total) & 0xFFFFFFFF


@pytest.mark.parametrize("name", ["v_dot2_f32_f16", "v_dot2c_f32_f16"])
def test_dot_products_of_halves_round_after_each_product(name: str) -> None:
    state = words(8, 4, SPECIAL_HALVES, True)
    in_place = name.startswith("v_dot2c")
    for negated in [(0, 0, 0)] if in_place else [(0, 0, 0), (1, 0, 0), (0, 1, 1)]:
        text = f"{name} v0, v1, v2" if in_place else f"{name} v0, v1, v2, v3 neg_lo:{_list(negated)}"
        got = execute(text, state)[0].view(np.float32)
        total = state[0 if in_place else 3].view(np.float32)
        with np.errstate(all="ignore"):
            total = _flushed(-total if negated[2] else total)
            for place in range(2):
                a, b = (_element(state, r, place, "f16", negated[r - 1] and not place).astype(np.float32) for r in (1, 2))
                total = _flushed(total + a * b)
        assert np.array_equal(got, total, equal_nan=True), text


def _flushed(values: np.ndarray) -> np.ndarray:
    return np.where(np.abs(values) < 2.0**-126, np.float32(0), values)


@pytest.mark.parametrize("text", ["v_dot2c_f32_f16_e64 v0, -v1, v2", "v_pk_fmac_f16_e64 v0, v1, |v2|"])
def test_signs_of_packed_sources_without_a_meaning_stop_the_launch(text: str) -> None:
    class Stopped(Exception):
        pass

    class Lanes:
        def trap(self, message: str) -> None:
            raise Stopped(message)

    meaning = bind(parse(text), Mode(), Site(0), text).meaning
    assert meaning is not None
    with pytest.raises(Stopped, match="not documented"):
        meaning(Lanes())
