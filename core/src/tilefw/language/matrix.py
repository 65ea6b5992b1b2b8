"""Products of matrices held in tiles."""

from __future__ import annotations

from typing import Any

from tilefw.language.dtypes import dtype as DType  # noqa: N812  (parameters are named dtype)
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
    is the compiler's. `max_num_imprecise_acc` is a permission of 8-bit floats that tilefw does not use.
    """
    ...
