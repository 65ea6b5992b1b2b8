"""Meanings against AMD's own pseudocode, as the parser of tinygrad's emulator reads it (`TILEFW_TINYGRAD`: a checkout of tinygrad).

The pseudocode is that of the next generation's manual, which has all of these instructions. Constants go in, and tinygrad's
simplifier folds the expression; what its parser, its float arithmetic or its simplifier cannot do stands in the tables below.
"""

from __future__ import annotations

import importlib
import math
import os
import sys
from typing import Any

import numpy as np
import pytest

from cdna3.exact import FORMATS, UNSIGNED, samples, value
from cdna3.test_vector_integer import column
from cdna3.vector import VECTOR, run

CHECKOUT = os.environ.get("TILEFW_TINYGRAD", "")
pytestmark = pytest.mark.skipif(not CHECKOUT, reason="TILEFW_TINYGRAD does not name a checkout of tinygrad")
SAMPLES = 24

_FLUSHED = "f32 functions know no subnormals (LLVM); the parser's do"
_NAN = "the parser drops the branch of MODE.IEEE"
_RANGE = "the parser casts as C does, without the manual's clamp"
_DIGITS = "the parser knows no type of 24 bits"
_NORMAL = "the parser takes the fields of zero and of subnormals as they stand"
_ROUGH = "the simplifier computes halves in several roundings"
DIFFERENT = {
    **dict.fromkeys((f"v_{n}_f32" for n in ("log", "sqrt", "sin", "rcp", "rcp_iflag", "rsq")), _FLUSHED),
    "v_mad_f16": "the parser does not flush, which unfused products do (LLVM, isFMADLegal)",
    **dict.fromkeys((f"v_{n}_{f}" for n in ("min", "max") for f in FORMATS), _NAN),
    **dict.fromkeys((f"v_{n}3_{f}" for n in ("min", "max", "med") for f in ("f16", "f32")), _NAN),
    **dict.fromkeys((f"v_cvt_{n}" for n in ("flr_i32_f32", "rpi_i32_f32", "i32_f32", "i32_f64", "i16_f16", "u16_f16")), _RANGE),
    **dict.fromkeys(("v_cvt_norm_i16_f16", "v_cvt_norm_u16_f16"), _RANGE),
    **dict.fromkeys((f"v_{n}_{k}32_{k}24" for n in ("mul", "mul_hi", "mad") for k in "iu"), _DIGITS),
    **dict.fromkeys((f"v_frexp_{n}_{f}" for n in ("mant", "exp_i32") for f in ("f32", "f64")), _NORMAL),
    "v_frexp_exp_i16_f16": _NORMAL,
    **dict.fromkeys(("v_fma_f16", "v_rsq_f16", "v_sin_f16", "v_cos_f16"), _ROUGH),
    "v_cos_f32": "the manual's older text gives 1 outside the domain",
    **dict.fromkeys((f"v_fract_{f}" for f in FORMATS), "below 1 (LLVM), which the text's difference need not be"),
    **dict.fromkeys((f"v_ldexp_{f}" for f in FORMATS), "the simplifier's power overflows"),
    **dict.fromkeys(("v_cvt_pk_u8_f32", "v_cvt_pkaccum_u8_f32"), "rounded as MODE says (CLRX), where the parser cuts off"),
    **dict.fromkeys(("v_div_fixup_f32", "v_div_fixup_f64"), "the parser's underflow is the least subnormal in every rounding mode"),
    "v_fma_f64": "the parser rounds the product",
    "v_cvt_off_f32_i4": "the parser has no table",
    "v_trig_preop_f64": "the simplifier's power underflows",
    "v_xnor_b32": "the parser reads ~(a ^ b) as b",
}
"""Rows where the pseudocode's reading differs from our meaning, and why; other tests judge these."""


def names() -> list[str]:
    """Rows with plain sources and one plain destination."""
    return sorted(
        name for name, row in VECTOR.items()
        if "screen" not in name and len(row.destinations) == 1 and all(o.role in ("destination", "source") for o in row.operands)
        and all(o.type and o.type.kind != "mask" and o.type.bits <= 64 for o in row.operands) and row.sources
    )


def pseudocode(name: str) -> str | None:
    sys.path.insert(0, CHECKOUT)
    enum = importlib.import_module("tinygrad.runtime.autogen.amd.cdna.enum")
    emulator = importlib.import_module("test.mockgpu.amd.emu")
    for group in ("VOP1Op", "VOP2Op", "VOP3Op"):
        for suffix in ("_E32", "_E64", ""):
            op = getattr(getattr(enum, group), name.upper() + suffix, None)
            if op is not None:
                try:
                    return emulator.get_pcode(op)
                except KeyError:
                    continue
    return None


def folded(text: str, sources: dict[str, int], bits: dict[str, int]) -> tuple[str, Any] | None:
    """(destination, value) of the pseudocode on constants; None where it does not fold to one constant."""
    parse = importlib.import_module("test.mockgpu.amd.pcode").parse_pcode
    uop = importlib.import_module("tinygrad.uop.ops").UOp
    dtypes = importlib.import_module("tinygrad.dtype").dtypes
    given = {s: uop.const(v, dtypes.uint64 if bits[s] == 64 else dtypes.uint32) for s, v in sources.items()}
    mode = uop.const(1, dtypes.uint32)
    _, assigns = parse(text, {**given, "WAVE_MODE.IEEE": mode, "D0": uop.const(0, dtypes.uint32)})
    if len(assigns) != 1:
        return None
    where, expression = assigns[0]
    found = expression.simplify()
    return (where, found.arg) if found.op.name == "CONST" else None


def draw(kind: Any, seed: int) -> np.ndarray:
    pool = samples(kind.format, 40, seed) if kind.kind == "float" else column(kind.bits, seed)
    return np.random.default_rng(seed).choice(pool, SAMPLES)


def agrees(got: int, wanted: Any, kind: Any) -> bool:
    if kind.kind != "float":
        return int(wanted) % (1 << kind.bits) == got
    number, wanted = value(got, kind.format), float(wanted)
    return number == wanted or (math.isnan(number) and math.isnan(wanted)) or math.isclose(number, wanted, rel_tol=1e-6)


def test_most_rows_are_compared() -> None:
    """So that a change of tinygrad's parser cannot silently empty the comparison."""
    compared = [name for name in names() if name not in DIFFERENT and (text := pseudocode(name)) and _cases(name, text)]
    assert len(compared) > 130


def _cases(name: str, text: str) -> list[tuple[list[int], int, Any]]:
    """(sources, our result, the pseudocode's) of the samples that fold."""
    row = VECTOR[name]
    columns = [draw(o.type, i + 1) for i, o in enumerate(row.sources)]
    old = [np.zeros(SAMPLES, UNSIGNED[o.type.bits]) for o in row.destinations if o.read]
    found = run(name, *columns, *old)
    bits = {f"S{i}": o.type.bits for i, o in enumerate(row.sources)}
    cases = []
    for index in range(SAMPLES):
        sources = [int(c[index]) for c in columns]
        try:
            result = folded(text, dict(zip(bits, sources, strict=True)), bits)
        except (RuntimeError, OverflowError, ValueError):
            continue  # words that the parser does not know, or numbers that the simplifier cannot hold
        if result is not None and (isinstance(result[1], float) == (row.destinations[0].type.kind == "float")):
            cases.append((sources, int(found[index]), result[1]))
    return cases


@pytest.mark.parametrize("name", [n for n in names() if n not in DIFFERENT])
def test_meanings_are_those_of_the_pseudocode(name: str) -> None:
    text = pseudocode(name)
    cases = _cases(name, text) if text else []
    if not cases:
        pytest.skip("tinygrad's parser does not fold it")
    kind = VECTOR[name].destinations[0].type
    for sources, got, wanted in cases:
        assert agrees(got, wanted, kind), ([hex(x) for x in sources], hex(got), wanted)
