"""Every element type of the language as plain data: kind, width, float format, spellings.

Nothing here computes; encoding, rounding and arithmetic stand in `tile/numbers.py`. Formats are those of
IEEE 754-2019, of the OCP "8-bit Floating Point Specification" (OFP8) and "Microscaling Formats" (MX) 1.0, and, for
the `fnuz` and `b15` forms, of LLVM's APFloat.h and Triton's fp8e4b15 notes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["int", "uint", "float"]
# What the all-ones exponent means: IEEE (infinities and NaNs), only NaN at all-ones ("fn"), NaN at minus zero
# ("fnuz", no infinities, no minus zero), or all codes finite.
Specials = Literal["ieee", "fn", "fnuz", "finite"]


@dataclass(frozen=True, slots=True)
class DType:
    """One element type.

    `name` is Triton's spelling (`fp16`, `int32`, `fp8e4nv`); `ir` is its spelling in tile IR (`f16`, `i32`);
    `numpy` that of NumPy or ml_dtypes, None where neither has it. `bits` is the width of a value, `storage_bits`
    that of an element in memory (types narrower than a byte take a whole one).
    """

    name: str
    kind: Kind
    bits: int
    ir: str
    numpy: str | None
    exponent_bits: int = 0
    mantissa_bits: int = 0
    bias: int = 0
    specials: Specials = "ieee"

    @property
    def storage_bits(self) -> int:
        """Bits of an element in memory: whole bytes, the value in the low bits."""
        return max(8, self.bits)

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point format."""
        return self.kind == "float"

    @property
    def is_int(self) -> bool:
        """Whether it is an integer, signed or not; `int1` is one."""
        return self.kind != "float"

    @property
    def is_signed(self) -> bool:
        """Whether values may be negative: signed integers and all floats."""
        return self.kind != "uint"

    def __str__(self) -> str:
        return self.name


def _float(name: str, ir: str, numpy: str | None, exponent: int, mantissa: int, bias: int, specials: Specials = "ieee") -> DType:
    return DType(name, "float", 1 + exponent + mantissa, ir, numpy, exponent, mantissa, bias, specials)


# Integers are signless in tile IR (`i32`); signedness lives in the operations, as in MLIR.
INTEGERS = tuple(
    [DType("int1", "uint", 1, "i1", "bool")]
    + [DType(f"int{n}", "int", n, f"i{n}", f"int{n}") for n in (4, 8, 16, 32, 64)]
    + [DType(f"uint{n}", "uint", n, f"i{n}", f"uint{n}") for n in (4, 8, 16, 32, 64)]
)

FLOATS = (
    _float("fp64", "f64", "float64", 11, 52, 1023),
    _float("fp32", "f32", "float32", 8, 23, 127),
    _float("bf16", "bf16", "bfloat16", 8, 7, 127),
    _float("fp16", "f16", "float16", 5, 10, 15),
    _float("fp8e5", "f8E5M2", "float8_e5m2", 5, 2, 15),
    _float("fp8e4nv", "f8E4M3FN", "float8_e4m3fn", 4, 3, 7, "fn"),
    _float("fp8e5b16", "f8E5M2FNUZ", "float8_e5m2fnuz", 5, 2, 16, "fnuz"),
    _float("fp8e4b8", "f8E4M3FNUZ", "float8_e4m3fnuz", 4, 3, 8, "fnuz"),
    _float("fp8e4b15", "!tile.fp8e4b15", None, 4, 3, 15, "finite"),
    _float("fp6e3m2", "f6E3M2FN", "float6_e3m2fn", 3, 2, 3, "finite"),
    _float("fp6e2m3", "f6E2M3FN", "float6_e2m3fn", 2, 3, 1, "finite"),
    _float("fp4e2m1", "f4E2M1FN", "float4_e2m1fn", 2, 1, 1, "finite"),
)

DTYPES: dict[str, DType] = {d.name: d for d in INTEGERS + FLOATS}
"""Every element type, by Triton's name."""

# Other spellings that signatures, launch files and options may use: NumPy's, LLVM's and Triton's signature forms.
_ALIASES: dict[str, str] = {
    **{d.numpy: d.name for d in DTYPES.values() if d.numpy},
    **{f"i{n}": f"int{n}" for n in (1, 4, 8, 16, 32, 64)},
    **{f"u{n}": f"uint{n}" for n in (4, 8, 16, 32, 64)},
    "f64": "fp64", "f32": "fp32", "f16": "fp16", "half": "fp16", "float": "fp32", "double": "fp64",
    "u1": "int1", "uint1": "int1",
}


def dtype(name: str) -> DType:
    """The element type spelled `name` in Triton's, NumPy's or LLVM's way; raises KeyError for any other word."""
    return DTYPES[_ALIASES.get(name, name)]
