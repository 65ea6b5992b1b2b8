"""dot: which types and shapes multiply, and into which result."""

from __future__ import annotations

from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend.builder import Builder, element_count
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import cast, constant
from tilefw.frontend.semantics import checked_flag, not_constexpr
from tilefw.frontend.values import RuntimeValue, describe, named

meaning = Meanings()

_OPERANDS = (tl.float16, tl.bfloat16, tl.float32, tl.float64, tl.int8, tl.uint8)
# The result of operands that leave no choice; float16 and 8-bit floats give float32 or float16.
_RESULTS = {
    "bf16": tl.float32, "fp32": tl.float32, "fp64": tl.float64, "int8": tl.int32, "uint8": tl.int32,
}
_PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")


@meaning("dot")
def dot(
    b: Builder, input: Any, other: Any, acc: Any, input_precision: Any, allow_tf32: Any, max_num_imprecise_acc: Any, out_dtype: Any
) -> RuntimeValue:
    left, right = _operand("input", input), _operand("other", other)
    _check_types(left.dtype, right.dtype)
    shape = _product_shape(left.shape, right.shape)
    precision = _precision(input_precision, allow_tf32)
    imprecise = _may_be_imprecise(max_num_imprecise_acc, left)
    element = _result_type(left.dtype, acc, out_dtype)
    start = constant(b, 0, element, shape) if acc is None else _accumulator(acc, shape, element, left.dtype)
    if tl.float8e4b15 in (left.dtype, right.dtype):
        left, right = cast(b, left, tl.float16), cast(b, right, tl.float16)  # the format has no matrix arithmetic anywhere
    left, right, start = (_one_batch(b, value) for value in (left, right, start))
    imprecise &= left.dtype.is_fp8()  # not what was widened
    product = b.dot(left, right, start, precision if left.dtype.is_fp32() else "ieee", left.dtype == tl.uint8, imprecise)
    return product if len(shape) <= 3 else b.reshape(product, shape)


def _operand(name: str, value: Any) -> RuntimeValue:
    if not isinstance(value, RuntimeValue) or len(value.shape) < 2:
        raise CompileError(
            f"tl.dot multiplies tiles of two or more axes, but `{name}` is {named(value)}",
            "TFW0202",
            help="insert an axis, e.g. `x[None, :]`; for a product of vectors write `tl.sum(x * y)`",
        )
    return value


def _check_types(left: tl.dtype, right: tl.dtype) -> None:
    for found in (left, right):
        if found not in _OPERANDS and not found.is_fp8():
            raise CompileError(
                f"tl.dot does not multiply {found}",
                "TFW0216",
                note="it takes float16, bfloat16, float32, float64, int8, uint8 and 8-bit floats",
                help="cast first, e.g. `x.to(tl.float32)`" if not found.is_ptr() else "load the value that it points to",
            )
    if left != right and not (left.is_fp8() and right.is_fp8()):
        raise CompileError(
            f"tl.dot takes operands of one type, not {left} and {right}",
            "TFW0216",
            note="only 8-bit floats may differ",
            help="cast one to the other's type with `.to(…)`",
        )


def _product_shape(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    note = f"`input` has shape {list(left)}, `other` {list(right)}; (…, M, K) times (…, K, N) gives (…, M, N)"
    if len(left) != len(right):
        raise CompileError(f"tl.dot takes operands of one rank, not {len(left)} and {len(right)}", "TFW0202", note=note)
    if left[:-2] != right[:-2]:
        raise CompileError(f"the batches of tl.dot differ: {list(left[:-2])} and {list(right[:-2])}", "TFW0202", note=note)
    if left[-1] != right[-2]:
        raise CompileError(
            f"tl.dot cannot multiply rows of {left[-1]} elements with columns of {right[-2]}",
            "TFW0202",
            note=note,
            help="transpose one of them with tl.trans" if left[-1] == right[-1] or left[-2] == right[-2] else None,
        )
    return (*left[:-1], right[-1])


def _precision(input_precision: Any, allow_tf32: Any) -> str:
    if input_precision is not None and allow_tf32 is not None:
        raise CompileError("tl.dot takes input_precision or allow_tf32, not both", "TFW0212", help="leave allow_tf32 out")
    if input_precision is None:
        return "tf32" if allow_tf32 is None or checked_flag(allow_tf32, "allow_tf32") else "ieee"
    if not isinstance(input_precision, str) or input_precision.lower() not in _PRECISIONS:
        raise CompileError(
            f"tl.dot has no input_precision {describe(input_precision).removeprefix('constexpr ')}",
            "TFW0216",
            note=f"it is one of {', '.join(map(repr, _PRECISIONS))}, and concerns float32 operands only",
        )
    return input_precision.lower()


def _may_be_imprecise(count: Any, left: RuntimeValue) -> bool:
    """A permission to add that many products of 8-bit floats less exactly: whether it is for all of them, so that the sums may stay
    in the unit. For fewer it is not used."""
    if isinstance(count, RuntimeValue):
        raise not_constexpr("max_num_imprecise_acc")
    if count is None:
        return False
    if not isinstance(count, int) or count < 0:
        raise CompileError(f"max_num_imprecise_acc is a number of products, not {describe(count)}", "TFW0212")
    if left.dtype.is_fp8() and count > left.shape[-1]:
        raise CompileError(f"max_num_imprecise_acc is {count}, but only {left.shape[-1]} products are added", "TFW0212")
    return left.dtype.is_fp8() and count == left.shape[-1]


def _result_type(operand: tl.dtype, acc: Any, out_dtype: Any) -> tl.dtype:
    if isinstance(out_dtype, RuntimeValue) or (out_dtype is not None and not isinstance(out_dtype, tl.dtype)):
        raise CompileError(f"out_dtype is an element type such as tl.float32, not {describe(out_dtype)}", "TFW0205")
    wanted = out_dtype or (acc.dtype if isinstance(acc, RuntimeValue) else tl.float32)
    if isinstance(acc, RuntimeValue) and wanted != acc.dtype:
        raise CompileError(f"acc is {acc.dtype}, but out_dtype is {wanted}", "TFW0216", help="leave out_dtype out")
    fixed = _RESULTS.get(operand.name)
    if wanted.is_bf16() and not operand.is_int():
        raise CompileError("tl.dot does not add in bfloat16", "TFW0216", help="add in float32, and cast: `.to(tl.bfloat16)`")
    if fixed is not None:
        return fixed
    if wanted not in (tl.float16, tl.float32):
        raise CompileError(f"tl.dot of {operand} gives float32 or float16, not {wanted}", "TFW0216")
    return wanted


def _accumulator(acc: Any, shape: tuple[int, ...], element: tl.dtype, operand: tl.dtype) -> RuntimeValue:
    if not isinstance(acc, RuntimeValue):
        raise CompileError(f"acc is a tile, not {named(acc)}", "TFW0201", help="leave it out to start from zero")
    if acc.shape != shape:
        raise CompileError(f"acc has shape {list(acc.shape)}, but the product has {list(shape)}", "TFW0202")
    if acc.dtype != element:
        raise CompileError(
            f"acc is {acc.dtype}, but a product of {operand} is added in {element}",
            "TFW0216",
            help=f"start from `tl.zeros(…, tl.{element.codegen_name()})`",
        )
    return acc


def _one_batch(b: Builder, value: RuntimeValue) -> RuntimeValue:
    """All leading axes as one: tile IR has products with at most one."""
    if len(value.shape) <= 3:
        return value
    return b.reshape(value, (element_count(value.shape[:-2]), *value.shape[-2:]))
