"""Products of matrices held in tiles."""

from __future__ import annotations

from typing import Any

from tilefw.language.dtypes import dtype as DType  # noqa: N812  (parameters are named dtype)
from tilefw.language.dtypes import float32
from tilefw.language.markers import builtin
from tilefw.language.tensor import tensor


@builtin
def dot(
    input: tensor,
    other: tensor,
    acc: tensor | None = None,
    input_precision: str | None = None,
    allow_tf32: bool | None = None,
    max_num_imprecise_acc: int | None = None,
    out_dtype: DType | None = None,
) -> Any:
    """`input` (…, M, K) times `other` (…, K, N), plus `acc` (…, M, N) when given; leading axes are a batch.

    | element type of both | result |
    |---|---|
    | float16 | float32, or float16 by `out_dtype` or `acc` |
    | bfloat16, float32 | float32 |
    | float64 | float64 |
    | int8, or both uint8 | int32 |
    | 8-bit floats, of any two formats | float32, or float16 by `out_dtype` or `acc` |

    `input_precision` says how float32 operands may be multiplied: "tf32" (the default: 10 bits of mantissa are enough), "ieee",
    "tf32x3", "bf16x3" or "bf16x6" (sums of products of shorter parts); `allow_tf32` is its older form. The order of summation
    is the compiler's. `max_num_imprecise_acc` is for 8-bit floats: of K, a matrix unit may keep the sums to
    13 bits behind the leading one of the largest, where it does so; a lower number changes nothing.
    """
    ...


@builtin
def dot_scaled(
    lhs: tensor,
    lhs_scale: tensor | None,
    lhs_format: str,
    rhs: tensor,
    rhs_scale: tensor | None,
    rhs_format: str,
    acc: tensor | None = None,
    fast_math: bool = False,
    lhs_k_pack: bool = True,
    rhs_k_pack: bool = True,
    out_dtype: DType = float32,
) -> Any:
    """`lhs` (M, K) times `rhs` (K, N), whose elements have scales, plus `acc` (M, N) when given; a leading axis is a batch.

    | format | elements |
    |---|---|
    | "e2m1" | uint8, two elements a byte, the first in the low bits; or float4e2m1 |
    | "e2m3", "e3m2" | float6e2m3, float6e3m2 |
    | "e4m3", "e5m2" | float8e4nv, float8e5, or their bits as uint8 |
    | "bf16", "fp16" | bfloat16, float16, or their bits as uint16 |

    `lhs_scale` (M, K / 32) and `rhs_scale` (N, K / 32) have a scale for every 32 elements along K, or with K / 16 for every 16:
    bytes of e8m0, which mean 2^(byte - 127) and NaN for 0xff, or float8e4nv, as NVFP4 has them; None stands for scales of 1.
    Every target computes exact products, and sums in float32 in any order, at the ends of the scales' range too.

    `lhs_k_pack=False` and `rhs_k_pack=False` say that the two elements of a byte are neighbours along M, or along N, and not along
    K. `fast_math` is a permission that tilefw does not use. `out_dtype` is float32.
    """
    ...
