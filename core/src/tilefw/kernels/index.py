"""The table of the kernel library: names, parameters, defaults. Light, so that `tilefw kernels` imports no NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

FLOATS = ("fp64", "fp32", "bf16", "fp16")
NARROW_FLOATS = ("fp8e5", "fp8e4nv", "fp8e5b16", "fp8e4b8", "fp8e4b15", "fp6e3m2", "fp6e2m3", "fp4e2m1")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NARROW_INTEGERS = ("int1", "int4", "uint4")
ALL_DTYPES = FLOATS + NARROW_FLOATS + INTEGERS + NARROW_INTEGERS
# `specials` are zeros, infinities, NaN, the ends of every range; `edges` leaves out the largest values: their sums may overflow
# or not.
INPUTS = ("normal", "uniform", "ints", "specials", "edges")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a library kernel; the default's type is the parameter's type. `least` bounds whole numbers."""

    name: str
    default: Any
    doc: str
    choices: tuple[Any, ...] = ()
    least: int = 0


@dataclass(frozen=True, slots=True)
class KernelInfo:
    name: str
    summary: str
    parameters: tuple[Parameter, ...]

    @property
    def defaults(self) -> dict[str, Any]:
        return {p.name: p.default for p in self.parameters}


def _block(default: int, name: str = "block", doc: str = "elements of the tile of one program") -> Parameter:
    return Parameter(name, default, doc + ", a power of two", tuple(2**k for k in range(17)))


def _inputs(*kinds: str) -> Parameter:
    return Parameter("inputs", kinds[0], "how the input arrays are drawn", kinds)


_NUM_WARPS = Parameter("num_warps", 4, "warps (waves) of one program", (1, 2, 4, 8, 16, 32))
_SIZE = Parameter("n", 5000, "elements")

_TABLE = (
    KernelInfo("vector_add", "out = x + y", (
        _SIZE, Parameter("dtype", "fp32", "element type", FLOATS + INTEGERS),
        _block(1024), _NUM_WARPS, _inputs(*INPUTS),
    )),
    KernelInfo("gelu_bias_residual", "out = gelu(x + bias) + residual, rows × columns", (
        Parameter("rows", 37, "rows"), Parameter("columns", 300, "columns"),
        Parameter("dtype", "fp16", "element type", FLOATS),
        Parameter("approximation", "erf", "exact gelu by erf, or its tanh approximation", ("erf", "tanh")),
        _block(512), _NUM_WARPS, _inputs(*INPUTS),
    )),
    KernelInfo("swiglu", "out = silu(gate) · up over rows of packed [gate, up]", (
        Parameter("rows", 33, "rows"), Parameter("columns", 700, "columns of the result; the input has twice as many"),
        Parameter("dtype", "bf16", "element type", FLOATS),
        _block(256), _NUM_WARPS, _inputs(*INPUTS),
    )),
    KernelInfo("rope", "rotary embedding of (tokens, heads, head size)", (
        Parameter("tokens", 19, "tokens"), Parameter("heads", 6, "heads"),
        Parameter("head_size", 64, "elements of a head, even"),
        Parameter("rotary_size", 64, "leading elements of a head that turn, even; the others are copied"),
        Parameter("interleaved", False, "pairs are neighbours (GPT-J) instead of halves (GPT-NeoX)"),
        Parameter("dtype", "fp16", "element type", FLOATS),
        _block(4, "block_heads", "heads of one program"), _NUM_WARPS, _inputs(*INPUTS),
    )),
    KernelInfo("cast", "out = x in another element type", (
        _SIZE, Parameter("source", "fp32", "element type of x", ALL_DTYPES),
        Parameter("result", "fp16", "element type of out", ALL_DTYPES),
        Parameter("rounding", "rtne", "rounding of a float to a narrower float: nearest even or toward zero", ("rtne", "rtz")),
        _block(1024), _NUM_WARPS, _inputs(*INPUTS),
    )),
    KernelInfo("quantize", "out = clamp(round(x / scale[row])) for int8, clamp(x / scale[row]) for fp8", (
        Parameter("rows", 21, "rows, each with its scale"), Parameter("columns", 500, "columns"),
        Parameter("dtype", "fp32", "element type of x", ("fp32", "bf16", "fp16")),
        Parameter("result", "int8", "element type of out", ("int8", "fp8e4nv", "fp8e5")),
        _block(512), _NUM_WARPS, _inputs("normal", "uniform", "ints"),
    )),
    KernelInfo("embedding", "out[i] = table[index[i]], zeros where index[i] is the padding index", (
        Parameter("tokens", 75, "rows that are gathered"), Parameter("vocabulary", 501, "rows of the table", least=1),
        Parameter("columns", 100, "columns of the table"),
        Parameter("dtype", "fp16", "element type of the table", FLOATS + INTEGERS),
        Parameter("index_dtype", "int64", "element type of the indices", ("int32", "int64", "uint32")),
        Parameter("padding_index", 3, "the index whose row is zeros; -1 for none", least=-1),
        _block(16, "block_tokens", "tokens of one program"), _block(64, "block_columns", "columns of one program"),
        _NUM_WARPS, _inputs(*INPUTS),
    )),
    KernelInfo("strided_copy", "out = x for two-dimensional x of any strides", (
        Parameter("rows", 70, "rows"), Parameter("columns", 90, "columns"),
        Parameter("dtype", "fp32", "element type", ALL_DTYPES),
        Parameter("source_layout", "transposed", "memory order of x", (
            "contiguous", "transposed", "padded", "every_third_column", "reversed_rows", "reversed",
            "repeated_row", "repeated_column",
        )),
        Parameter("result_layout", "contiguous", "memory order of out", (
            "contiguous", "transposed", "padded", "every_third_column", "reversed_rows", "reversed",
        )),
        _block(32, "block_rows", "rows of one program"), _block(32, "block_columns", "columns of one program"),
        _NUM_WARPS, _inputs(*INPUTS),
    )),
    KernelInfo("integer_mix", "quotients, remainders, high products, shifts and a hash with run-time loops", (
        _SIZE, Parameter("dtype", "int32", "element type", INTEGERS),
        Parameter("divisor", 7, "a scalar that divides as well", least=1),
        Parameter("rounds", 3, "trips of the hash's run-time `for` loop"),
        _block(512), _NUM_WARPS, _inputs("uniform", "ints", "specials"),
    )),
)

KERNELS: dict[str, KernelInfo] = {info.name: info for info in _TABLE}
