"""Integer vector rows against Python's exact integers, clamps and carries included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cdna3.exact import UNSIGNED, crossed
from cdna3.vector import VECTOR, run

M = {bits: (1 << bits) - 1 for bits in (8, 16, 24, 32, 64)}
Reference = Callable[..., Any]


def signed(x: int, bits: int) -> int:
    x &= M[bits]
    return x - (1 << bits) if x >> (bits - 1) else x


def limited(x: int, bits: int, with_sign: bool) -> int:
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if with_sign else (0, M[bits])
    return min(max(x, low), high)


def typed(function: Reference, bits: int, with_sign: bool, sources: tuple[int, ...] | None = None) -> Reference:
    """On numbers of a type; the last parameter `clamp` limits instead of wrapping. `sources`: bits of each, if other."""

    def reference(*given: int, clamp: bool) -> int:
        widths = sources or (bits,) * len(given)
        numbers = [signed(x, w) if with_sign else x & M[w] for x, w in zip(given, widths, strict=True)]
        exact = function(*numbers)
        return (limited(exact, bits, with_sign) if clamp else exact) & M[bits]

    return reference


def plain(function: Reference) -> Reference:
    return lambda *given, clamp: function(*given)


def byte(x: int, index: int) -> int:
    return x >> (8 * index) & 255


def sad(a: int, b: int, masked: bool = False) -> int:
    return sum(abs(byte(a, i) - byte(b, i)) for i in range(4) if byte(b, i) or not masked)


def windows(a: int, b: int, c: list[int], bits: int, masked: bool, clamp: bool) -> list[int]:
    totals = [sad(a >> (8 * i) & M[32], b, masked) + c[i] for i in range(4)]
    return [limited(t, bits, False) if clamp else t & M[bits] for t in totals]


def quad(masked: bool) -> Reference:
    def reference(a: int, b: int, c: int, clamp: bool) -> int:
        halves = windows(a, b, [c >> (16 * i) & M[16] for i in range(4)], 16, masked, clamp)
        return sum(half << (16 * i) for i, half in enumerate(halves))

    return reference


def carried(function: Callable[..., int]) -> Reference:
    def reference(*given: int, clamp: bool) -> tuple[int, bool]:
        exact = function(*map(int, given))
        return (limited(exact, 32, False) if clamp else exact) & M[32], not 0 <= exact <= M[32]

    return reference


def mad64(with_sign: bool) -> Reference:
    def reference(a: int, b: int, c: int, clamp: bool) -> tuple[int, bool]:
        exact = signed(a, 32) * signed(b, 32) + signed(c, 64) if with_sign else a * b + c
        return (limited(exact, 64, with_sign) if clamp else exact) & M[64], bool(exact >> 64 & 1)

    return reference


def perm(a: int, b: int, c: int) -> int:
    data = a << 32 | b
    table = [byte(data, i) for i in range(8)] + [255 * (data >> (16 * i + 15) & 1) for i in range(4)] + [0] + [255] * 243
    return sum(table[byte(c, i)] << (8 * i) for i in range(4))


def high_zeros(x: int) -> int:
    return 32 - x.bit_length() if x else M[32]


def low_zeros(x: int) -> int:
    return (x & -x).bit_length() - 1 if x else M[32]


def sign_copies(x: int) -> int:
    return high_zeros(x ^ M[32] if x >> 31 else x)


def lerp(a: int, b: int, c: int) -> int:
    return sum((byte(a, i) + byte(b, i) + (byte(c, i) & 1) >> 1) << (8 * i) for i in range(4))


def saturated_bytes(a: int) -> int:
    return limited(signed(a, 16), 8, False) | limited(signed(a >> 16, 16), 8, False) << 8


def field(a: int, b: int, c: int, with_sign: bool) -> int:
    width = c & 31
    found = (signed(a, 32) if with_sign else a) >> (b & 31) & (1 << width) - 1
    return (found - (1 << width) if with_sign and width and found >> (width - 1) else found) & M[32]


def _reference_table() -> dict[str, Reference]:
    found: dict[str, Reference] = {
        "v_add3_u32": plain(lambda a, b, c: a + b + c & M[32]),
        "v_lshl_add_u32": plain(lambda a, b, c: (a << (b & 31)) + c & M[32]),
        "v_lshl_or_b32": plain(lambda a, b, c: (a << (b & 31)) & M[32] | c),
        "v_lshl_add_u64": plain(lambda a, b, c: (a << (b & 7)) + c & M[64]),
        "v_xad_u32": plain(lambda a, b, c: (a ^ b) + c & M[32]),
        "v_not_b32": plain(lambda a: a ^ M[32]), "v_and_b32": plain(lambda a, b: a & b), "v_or_b32": plain(lambda a, b: a | b),
        "v_xor_b32": plain(lambda a, b: a ^ b), "v_xnor_b32": plain(lambda a, b: a ^ b ^ M[32]),
        "v_and_or_b32": plain(lambda a, b, c: a & b | c), "v_or3_b32": plain(lambda a, b, c: a | b | c),
        "v_bfi_b32": plain(lambda a, b, c: a & b | ~a & c & M[32]),
        "v_alignbit_b32": plain(lambda a, b, c: (a << 32 | b) >> (c & 31) & M[32]),
        "v_alignbyte_b32": plain(lambda a, b, c: (a << 32 | b) >> 8 * (c & 3) & M[32]),
        "v_bfe_u32": plain(lambda a, b, c: field(a, b, c, False)), "v_bfe_i32": plain(lambda a, b, c: field(a, b, c, True)),
        "v_bfm_b32": plain(lambda a, b: ((1 << (a & 31)) - 1) << (b & 31) & M[32]),
        "v_ffbh_u32": plain(high_zeros), "v_ffbl_b32": plain(low_zeros), "v_ffbh_i32": plain(sign_copies),
        "v_bfrev_b32": plain(lambda a: int(f"{a:032b}"[::-1], 2)), "v_bcnt_u32_b32": plain(lambda a, b: a.bit_count() + b & M[32]),
        "v_perm_b32": plain(perm), "v_pack_b32_f16": plain(lambda a, b: a | b << 16), "v_lerp_u8": plain(lerp),
        "v_sad_u8": typed(lambda a, b, c: sad(a, b) + c, 32, False),
        "v_sad_hi_u8": typed(lambda a, b, c: (sad(a, b) << 16) + c, 32, False),
        "v_sad_u16": typed(lambda a, b, c: abs((a & M[16]) - (b & M[16])) + abs((a >> 16) - (b >> 16)) + c, 32, False),
        "v_sad_u32": typed(lambda a, b, c: abs(a - b) + c, 32, False),
        "v_msad_u8": typed(lambda a, b, c: sad(a, b, True) + c, 32, False),
        "v_qsad_pk_u16_u8": quad(False), "v_mqsad_pk_u16_u8": quad(True),
        "v_mul_lo_u32": typed(lambda a, b: a * b, 32, False), "v_mul_lo_u16": typed(lambda a, b: a * b, 16, False),
        "v_mul_hi_u32": typed(lambda a, b: a * b >> 32, 32, False), "v_mul_hi_i32": typed(lambda a, b: a * b >> 32, 32, True),
        "v_mad_u64_u32": mad64(False), "v_mad_i64_i32": mad64(True),
        "v_add_co_u32": carried(lambda a, b: a + b), "v_sub_co_u32": carried(lambda a, b: a - b),
        "v_subrev_co_u32": carried(lambda a, b: b - a), "v_addc_co_u32": carried(lambda a, b, c: a + b + c),
        "v_subb_co_u32": carried(lambda a, b, c: a - b - c), "v_subbrev_co_u32": carried(lambda a, b, c: b - a - c),
        "v_cvt_pk_u16_u32": plain(lambda a, b: min(a, M[16]) | min(b, M[16]) << 16),
        "v_cvt_pk_i16_i32": plain(lambda a, b: sum((limited(signed(x, 32), 16, True) & M[16]) << s for x, s in ((a, 0), (b, 16)))),
        "v_sat_pk_u8_i16": plain(saturated_bytes), "v_mov_b32": plain(lambda a: a), "v_mov_b64": plain(lambda a: a),
        "v_cndmask_b32": plain(lambda a, b, c: b if c else a),
    }
    found["v_add_lshl_u32"] = plain(lambda a, b, c: (a + b << (c & 31)) & M[32])
    for kind, bits, sign in (("u32", 32, False), ("i32", 32, True), ("u16", 16, False), ("i16", 16, True)):
        letter = kind[0]
        found |= {
            f"v_add_{kind}": typed(lambda a, b: a + b, bits, sign), f"v_sub_{kind}": typed(lambda a, b: a - b, bits, sign),
            f"v_min_{kind}": typed(min, bits, sign), f"v_max_{kind}": typed(max, bits, sign),
            f"v_min3_{kind}": typed(min, bits, sign), f"v_max3_{kind}": typed(max, bits, sign),
            f"v_med3_{kind}": typed(lambda a, b, c: sorted((a, b, c))[1], bits, sign),
        }
        if not sign:
            found[f"v_subrev_{kind}"] = typed(lambda a, b: b - a, bits, sign)
        if bits == 16:
            found[f"v_mad_{kind}"] = found[f"v_mad_legacy_{kind}"] = typed(lambda a, b, c: a * b + c, 16, sign)
            found[f"v_mad_{letter}32_{kind}"] = typed(lambda a, b, c: a * b + c, 32, sign, (16, 16, 32))
        else:
            found[f"v_mul_{kind}_{letter}24"] = typed(lambda a, b: a * b, 32, sign, (24, 24))
            found[f"v_mul_hi_{kind}_{letter}24"] = typed(lambda a, b: a * b >> 32, 32, sign, (24, 24))
            found[f"v_mad_{kind}_{letter}24"] = typed(lambda a, b, c: a * b + c, 32, sign, (24, 24, 32))
    for bits, mask in ((16, 15), (32, 31), (64, 63)):
        found[f"v_lshlrev_b{bits}"] = plain(lambda a, b, n=bits, m=mask: b << (a & m) & M[n])
        found[f"v_lshrrev_b{bits}"] = plain(lambda a, b, m=mask: b >> (a & m))
        found[f"v_ashrrev_i{bits}"] = plain(lambda a, b, n=bits, m=mask: signed(b, n) >> (a & m) & M[n])
    return found


REFERENCES = _reference_table()
EDGES = [0, 1, 2, 3, 5, 7, 15, 31, 32, 33, 63, 64, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFF, 0x800000, 0xFFFFFF, 0x80FF7F01,
         0x0D0C0B08, 0x0A09070F, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 1 << 63, M[64]]


def column(bits: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if bits == 1:
        return np.array([False, True])
    random = rng.integers(0, 1 << 63, 24, np.uint64) * 2 + rng.integers(0, 2, 24, np.uint64)
    return np.concatenate([np.array([e & M[bits] for e in EDGES], np.uint64), random]).astype(UNSIGNED[bits])


def width(operand) -> int:
    return 1 if operand.type.kind == "mask" else operand.type.bits


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_integers_are_pythons(name: str) -> None:
    row, reference = VECTOR[name], REFERENCES[name]
    columns = crossed(*(column(width(o), i) for i, o in enumerate(row.sources)), limit=3000)
    for clamp in (False, True) if "clamp" in row.modifiers and "align" not in name and "pack" not in name else (False,):
        found = run(name, *columns, clamp=int(clamp))
        found = found if isinstance(found, tuple) else (found,)
        for index, sources in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
            wanted = reference(*sources, clamp=clamp)
            got = tuple(int(f[index]) for f in found)
            assert got == (wanted if isinstance(wanted, tuple) else (wanted,)), (name, clamp, [hex(s) for s in sources])


def test_four_words_at_once() -> None:
    columns = crossed(column(64, 1), column(32, 2), *(column(32, s) for s in (3, 4, 5, 6)), limit=2000)
    for clamp in (False, True):
        found = run("v_mqsad_u32_u8", columns[0], columns[1], tuple(columns[2:]), clamp=int(clamp))
        for index, (a, b, *c) in enumerate(zip(*(x.tolist() for x in columns), strict=True)):
            assert [int(f[index]) for f in found] == windows(a, b, c, 32, True, clamp)


def test_bits_of_lower_lanes() -> None:
    for mask in (0, 1, 0x80000000, 0xFFFFFFFF, 0x5A5A1234):
        ones, base = np.full(64, mask, np.uint32), np.arange(64, dtype=np.uint32) * 3
        for name, first in (("v_mbcnt_lo_u32_b32", 0), ("v_mbcnt_hi_u32_b32", 32)):
            found = run(name, ones, base)
            for lane in range(64):
                below = (1 << min(max(lane - first, 0), 32)) - 1
                assert found[lane] == (mask & below).bit_count() + 3 * lane
