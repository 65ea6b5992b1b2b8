"""The table of the kernel library: names, parameters, defaults. Light, so that `tilefw kernels` imports no NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any

FLOATS = ("fp64", "fp32", "bf16", "fp16")
NARROW_FLOATS = ("fp8e5", "fp8e4nv", "fp8e5b16", "fp8e4b8", "fp8e4b15", "fp6e3m2", "fp6e2m3", "fp4e2m1")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NARROW_INTEGERS = ("int1", "int4", "uint4")
ALL_DTYPES = FLOATS + NARROW_FLOATS + INTEGERS + NARROW_INTEGERS
# `specials` are zeros, infinities, NaN, the ends of every range; `edges` leaves out the largest values: their sums may overflow
# or not. `poles` are zeros, infinities and NaN among small numbers.
INPUTS = ("normal", "uniform", "ints", "specials", "edges", "poles")
# What sums and products are drawn from: each infinity makes a NaN there. `low` are far below zero, `tiny` around the least
# normal number.
FINITE = ("normal", "uniform", "ints", "low", "tiny")
ROWS = (*FINITE, "rare")  # `rare` has a zero, an infinity or NaN in every third row, which no other row may notice
MEMORY_ORDERS = ("rows", "columns", "padded")
REDUCTIONS = ("sum", "product", "max", "min", "argmax", "argmin", "xor", "or", "and", "farthest")
SCANS = ("sum", "product", "max", "min", "xor", "or", "and", "latest", "recurrence")
REARRANGEMENTS = (
    "trans", "permute", "reshape", "broadcast", "join", "split", "interleave", "cat", "flip_rows", "flip_columns",
)
ATOMICS = ("add", "max", "min", "and", "or", "xor", "xchg", "cas")
RANDOM_KINDS = ("bits", "words", "uniform", "normal")
WORDS = ("int32", "uint32", "int64", "uint64")  # the integers of every atomic
ELEMENTWISE = (
    "exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tanh", "erf", "sqrt", "rsqrt", "sqrt_rn", "pow", "sigmoid",
    "tan", "hypot", "gamma", "floor", "ceil", "trunc", "rint", "add", "sub", "mul", "div", "div_rn", "rem", "quotient", "fma",
    "neg", "abs", "min", "max", "min_nan", "max_nan", "clamp", "where", "map", "eq", "ne", "lt", "le", "gt", "ge", "isnan",
    "and", "or", "xor", "not", "shl", "shr", "umulhi", "clz", "popc",
)
MASKS = (
    "all", "none", "single", "alternating", "upper_bound", "lower_bound", "triangle", "outside_hole", "loaded", "loaded_lengths",
)
VIEWS = (
    "separate", "same_inputs", "in_place", "all_one", "interleaved", "read_after_write", "write_after_read", "both_behind",
)
VOLUME_ORDERS = tuple("_".join(order) for order in permutations(("depth", "rows", "columns")))
REPORTS = ("assert", "print", "both")
LOOPS = ("for", "backward", "nested", "while", "chain", "launched")
SCALED_FORMATS = ("e2m1", "e2m3", "e3m2", "e4m3", "e5m2", "bf16", "fp16")
SCALES = ("near", "ends", "nan", "e4m3")  # of groups: near one, from the least to the largest, with NaN among them; of NVFP4
DOT_OPERANDS = ("fp64", "fp32", "bf16", "fp16", "int8", "uint8", "fp8e5", "fp8e4nv", "fp8e5b16", "fp8e4b8")


@dataclass(frozen=True, slots=True)
class ParameterInfo:
    """One parameter of a library kernel; the default's type is the parameter's type. `least` bounds whole numbers."""

    name: str
    default: Any
    doc: str
    choices: tuple[Any, ...] = ()
    least: int = 0


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """What a listing says of a kernel without loading it: what it computes, and its parameters."""

    name: str
    summary: str
    parameters: tuple[ParameterInfo, ...]

    @property
    def defaults(self) -> dict[str, Any]:
        """The default of every parameter, by name, in the order of a listing."""
        return {p.name: p.default for p in self.parameters}


def _block(default: int, name: str = "block", doc: str = "elements of the tile of one program") -> ParameterInfo:
    return ParameterInfo(name, default, doc + ", a power of two", tuple(2**k for k in range(17)))


def _inputs(*kinds: str) -> ParameterInfo:
    return ParameterInfo("inputs", kinds[0], "how the input arrays are drawn", kinds)


def _layout(name: str, operand: str) -> ParameterInfo:
    return ParameterInfo(name, "rows", f"memory order of {operand}: rows or columns lie together, or padded rows", MEMORY_ORDERS)


def _row_layout(name: str, operand: str) -> ParameterInfo:
    return ParameterInfo(name, "rows", f"memory order of {operand}: rows lie together, or padded rows", ("rows", "padded"))


def _dtype(default: str, choices: tuple[str, ...] = FLOATS, name: str = "dtype", doc: str = "element type") -> ParameterInfo:
    return ParameterInfo(name, default, doc, choices)


def _extents(m: int, n: int, k: int) -> tuple[ParameterInfo, ...]:
    return (
        ParameterInfo("m", m, "rows of a and out", least=1), ParameterInfo("n", n, "columns of b and out", least=1),
        ParameterInfo("k", k, "columns of a, rows of b", least=1),
    )


def _blocks(m: int, n: int, k: int) -> tuple[ParameterInfo, ...]:
    return (
        _block(m, "block_m", "rows of one program"), _block(n, "block_n", "columns of one program"),
        _block(k, "block_k", "terms of one step"),
    )


def _stages(default: int) -> ParameterInfo:
    return ParameterInfo(
        "num_stages", default, "iterations of a loop that are under way at once, loads before use", (1, 2, 3, 4, 5)
    )


_NUM_WARPS = ParameterInfo("num_warps", 4, "warps (waves) of one program", (1, 2, 4, 8, 16, 32))
_UP_TO_8_WARPS = ParameterInfo("num_warps", 2, "warps (waves) of one program", (1, 2, 4, 8))
_SIZE = ParameterInfo("n", 5000, "elements")
_EPS = ParameterInfo("eps", 1e-5, "added to the variance")
_PRECISION = ParameterInfo(
    "input_precision", "tf32", "how fp32 operands are multiplied: rounded, in three products of parts, or as they are",
    ("tf32", "tf32x3", "ieee"),
)
_RESULT = ParameterInfo("result", "same", "element type of out; `same` as the operands", ("same", *FLOATS))
_ORDER = ParameterInfo("order", "acq_rel", "the order that the atomics ask for", ("acq_rel", "relaxed"))
_HAND_OVER = ParameterInfo(
    "order", "acq_rel", "atomics order both ways, or acquire and release where it matters", ("acq_rel", "least")
)
_GROUP_M = ParameterInfo("group_m", 8, "rows of blocks that neighbouring programs share", least=1)
_ROUTED = (
    ParameterInfo("tokens", 24, "tokens", least=1), ParameterInfo("experts", 5, "experts", least=1),
    ParameterInfo("top_k", 2, "experts of a token, not above experts", least=1),
    ParameterInfo(
        "spread", "skewed", "which experts are chosen: all alike, few more often, only the first", ("even", "skewed", "first"),
    ),
)
_CACHED = (
    ParameterInfo("sequences", 3, "sequences, a query each", least=1), ParameterInfo("keys", 50, "keys of the longest", least=1),
    ParameterInfo("page", 8, "keys of a page", least=1),
    ParameterInfo("splits", 2, "programs that share a sequence's keys", least=1),
)
_HEADS = (
    ParameterInfo("batch", 1, "sequences", least=1), ParameterInfo("heads", 2, "heads of queries", least=1),
    ParameterInfo("kv_heads", 1, "heads of keys and values, each for as many heads of queries", least=1),
    ParameterInfo("queries", 40, "queries", least=1), ParameterInfo("keys", 50, "keys, not below queries", least=1),
    ParameterInfo("head_size", 32, "elements of a head", (16, 32, 64, 128)),
)

_TABLE = (
    KernelInfo("vector_add", "out = x + y", (
        _SIZE, ParameterInfo("dtype", "fp32", "element type", FLOATS + INTEGERS),
        _block(1024), _NUM_WARPS, _inputs(*INPUTS),
    )),
    KernelInfo("elementwise", "out = f(x, y, z) for one elementwise operation", (
        _SIZE, ParameterInfo("operation", "exp", "which one", ELEMENTWISE), _dtype("fp32", FLOATS + INTEGERS),
        _block(256), _NUM_WARPS, _inputs(*INPUTS),
    )),
    KernelInfo("gelu_bias_residual", "out = gelu(x + bias) + residual, rows × columns", (
        ParameterInfo("rows", 37, "rows"), ParameterInfo("columns", 300, "columns"),
        ParameterInfo("dtype", "fp16", "element type", FLOATS),
        ParameterInfo("approximation", "erf", "exact gelu by erf, or its tanh approximation", ("erf", "tanh")),
        _block(512), _NUM_WARPS, _inputs(*INPUTS),
    )),
    KernelInfo("swiglu", "out = silu(gate) · up over rows of packed [gate, up]", (
        ParameterInfo("rows", 33, "rows"), ParameterInfo("columns", 700, "columns of the result; the input has twice as many"),
        ParameterInfo("dtype", "bf16", "element type", FLOATS),
        _block(256), _NUM_WARPS, _inputs(*INPUTS),
    )),
    KernelInfo("rope", "rotary embedding of (tokens, heads, head size)", (
        ParameterInfo("tokens", 19, "tokens"), ParameterInfo("heads", 6, "heads"),
        ParameterInfo("head_size", 64, "elements of a head, even"),
        ParameterInfo("rotary_size", 64, "leading elements of a head that turn, even; the others are copied"),
        ParameterInfo("interleaved", False, "pairs are neighbours (GPT-J) instead of halves (GPT-NeoX)"),
        ParameterInfo("dtype", "fp16", "element type", FLOATS),
        _block(4, "block_heads", "heads of one program"), _NUM_WARPS, _inputs(*INPUTS),
    )),
    KernelInfo("cast", "out = x in another element type", (
        _SIZE, ParameterInfo("source", "fp32", "element type of x", ALL_DTYPES),
        ParameterInfo("result", "fp16", "element type of out", ALL_DTYPES),
        ParameterInfo("rounding", "rtne", "rounding of a float to a narrower float: nearest even or toward zero", ("rtne", "rtz")),
        _block(1024), _NUM_WARPS, _inputs(*INPUTS),
    )),
    KernelInfo("quantize", "out = clamp(round(x / scale[row])) for int8, clamp(x / scale[row]) for fp8", (
        ParameterInfo("rows", 21, "rows, each with its scale"), ParameterInfo("columns", 500, "columns"),
        ParameterInfo("dtype", "fp32", "element type of x", ("fp32", "bf16", "fp16")),
        ParameterInfo("result", "int8", "element type of out", ("int8", "fp8e4nv", "fp8e5")),
        _block(512), _NUM_WARPS, _inputs("normal", "uniform", "ints"),
    )),
    KernelInfo("embedding", "out[i] = table[index[i]], zeros where index[i] is the padding index", (
        ParameterInfo("tokens", 75, "rows that are gathered"), ParameterInfo("vocabulary", 501, "rows of the table", least=1),
        ParameterInfo("columns", 100, "columns of the table"),
        ParameterInfo("dtype", "fp16", "element type of the table", FLOATS + INTEGERS),
        ParameterInfo("index_dtype", "int64", "element type of the indices", ("int32", "int64", "uint32")),
        ParameterInfo("padding_index", 3, "the index whose row is zeros; -1 for none", least=-1),
        _block(16, "block_tokens", "tokens of one program"), _block(64, "block_columns", "columns of one program"),
        _NUM_WARPS, _inputs(*INPUTS),
    )),
    KernelInfo("descriptor_rows", "out[target[i]] = x[source[i]] through tensor descriptors, and the sum over programs", (
        ParameterInfo("moves", 40, "rows that are moved, at most all", least=1), ParameterInfo("rows", 50, "rows of x", least=1),
        ParameterInfo("columns", 70, "columns of x", least=1),
        ParameterInfo("dtype", "fp32", "element type of x", ("fp32", "int32", "uint32", "uint64")),
        ParameterInfo("block_rows", 16, "moves of one program", (8, 16, 32)),
        ParameterInfo("block_columns", 32, "columns of one program", (32, 64, 128)), _NUM_WARPS,
    )),
    KernelInfo("strided_copy", "out = x for two-dimensional x of any strides", (
        ParameterInfo("rows", 70, "rows"), ParameterInfo("columns", 90, "columns"),
        ParameterInfo("dtype", "fp32", "element type", ALL_DTYPES),
        ParameterInfo("source_layout", "transposed", "memory order of x", (
            "contiguous", "transposed", "padded", "every_third_column", "reversed_rows", "reversed",
            "repeated_row", "repeated_column",
        )),
        ParameterInfo("result_layout", "contiguous", "memory order of out", (
            "contiguous", "transposed", "padded", "every_third_column", "reversed_rows", "reversed",
        )),
        _block(32, "block_rows", "rows of one program"), _block(32, "block_columns", "columns of one program"),
        _NUM_WARPS, _inputs(*INPUTS),
    )),
    KernelInfo("masks", "out = x under a mask of any kind, or what replaces masked-off elements", (
        ParameterInfo("rows", 21, "rows"), ParameterInfo("columns", 37, "columns"), _dtype("fp32", ALL_DTYPES),
        ParameterInfo("mask", "all", "which elements are loaded", MASKS),
        ParameterInfo(
            "other", "nothing", "what replaces them: nothing, which is not stored either, zero, a scalar argument, or a tile",
            ("nothing", "zero", "scalar", "tile"),
        ),
        _block(16, "block_rows", "rows of one program"), _block(32, "block_columns", "columns of one program"),
        _NUM_WARPS, _inputs(*INPUTS),
    )),
    KernelInfo("shared_buffers", "out = 2 · x + y, where arguments share one array", (
        ParameterInfo("n", 700, "elements"), _dtype("fp32"),
        ParameterInfo("views", "in_place", "how x, y and out lie to each other", VIEWS),
        _block(128), ParameterInfo("trips", 3, "tiles of one program, where several share the work", least=1),
        _NUM_WARPS, _stages(3), _inputs("normal", "uniform", "ints", "poles"),
    )),
    KernelInfo("far_rows", "out = x, rows that lie far apart in memory: byte and element offsets go beyond 32 bits", (
        ParameterInfo("rows", 3, "rows", least=2), ParameterInfo("columns", 100, "columns", least=1),
        _dtype("int8", ("int8", "uint8", "int16", "int32")),
        ParameterInfo("reach", 2, "GiB from the first row to the last, of each array that is far", (1, 2, 3)),
        ParameterInfo("far", "x", "which arrays have their rows far apart", ("x", "out")),
        ParameterInfo("stride", "int64", "how a row is reached: by a product in 64 bits, or row by row", ("int64", "pointer")),
        _block(128), _NUM_WARPS,
    )),
    KernelInfo("reported_ratio", "out = x / (1 + y²) in programs that assert what they rely on and print what they find", (
        ParameterInfo("n", 600, "elements", least=1), _dtype("fp32", ("fp32", "fp64")),
        ParameterInfo("reports", "both", "what a program does beside its work", REPORTS),
        _block(256), _NUM_WARPS, _inputs("normal", "uniform", "ints"),
    )),
    KernelInfo("stencil", "the seven-point Laplacian of a volume with zeros around it", (
        ParameterInfo("depth", 5, "layers", least=1), ParameterInfo("rows", 19, "rows", least=1),
        ParameterInfo("columns", 35, "columns", least=1), _dtype("fp32"),
        ParameterInfo("memory_order", "depth_rows_columns", "the axes of x, the outermost in memory first", VOLUME_ORDERS),
        _block(8, "block_rows", "rows of one program"), _block(16, "block_columns", "columns of one program"),
        ParameterInfo("programs", 4, "programs that share the layers", least=1), _NUM_WARPS, _stages(2), _inputs(*ROWS),
    )),
    KernelInfo("ragged_sums", "out[row] = the sum of a number of elements that is read from memory, and the number of trips", (
        ParameterInfo("rows", 12, "rows", least=1), ParameterInfo("columns", 300, "elements of a row at most"),
        _dtype("fp32", ("fp32", "bf16", "fp16")), ParameterInfo("loop", "for", "which loop does it", LOOPS),
        _block(64, doc="elements of a tile"), _NUM_WARPS, _stages(3), _inputs("normal", "uniform", "ints", "rare"),
    )),
    KernelInfo("sparse_matvec", "out = a @ x for a sparse matrix in rows (CSR)", (
        ParameterInfo("rows", 20, "rows", least=1), ParameterInfo("columns", 150, "columns", least=1),
        _dtype("fp32", ("fp32", "bf16", "fp16")), _block(32, doc="elements of a tile"), _NUM_WARPS, _stages(3), _inputs(*ROWS),
    )),
    KernelInfo("integer_mix", "quotients, remainders, high products, shifts and a hash with run-time loops", (
        _SIZE, ParameterInfo("dtype", "int32", "element type", INTEGERS),
        ParameterInfo("divisor", 7, "a scalar that divides as well", least=1),
        ParameterInfo("rounds", 3, "trips of the hash's run-time `for` loop"),
        _block(512), _NUM_WARPS, _inputs("uniform", "ints", "specials"),
    )),
    KernelInfo("softmax", "out = softmax(x) along rows", (
        ParameterInfo("rows", 24, "rows"), ParameterInfo("columns", 781, "columns", least=1), _dtype("fp16"),
        ParameterInfo("padded", False, "the rows of x lie further apart than their length"),
        _block(4096, doc="columns of one tile; longer rows go tile by tile"),
        ParameterInfo("programs", 16, "programs that share the rows", least=1), _NUM_WARPS, _stages(2), _inputs(*ROWS),
    )),
    KernelInfo("layernorm", "out = (x - mean) · rstd · weight + bias along rows, and mean and rstd", (
        ParameterInfo("rows", 20, "rows", least=1), ParameterInfo("columns", 700, "columns", least=1), _dtype("fp16"), _EPS,
        _block(1024, doc="columns of one tile; longer rows go tile by tile"), _NUM_WARPS, _inputs(*ROWS),
    )),
    KernelInfo("layernorm_backward", "gradients of layernorm: dx, and dweight and dbias summed over each program's rows", (
        ParameterInfo("rows", 21, "rows", least=1), ParameterInfo("columns", 300, "columns", least=1), _dtype("fp16"),
        ParameterInfo("rows_per_program", 4, "rows of one program", least=1), _NUM_WARPS, _inputs(*ROWS),
    )),
    KernelInfo("rmsnorm", "out = x · rsqrt(mean(x²) + eps) · weight along rows, and the reciprocal root", (
        ParameterInfo("rows", 24, "rows", least=1), ParameterInfo("columns", 900, "columns", least=1), _dtype("bf16"), _EPS,
        _block(4096, doc="columns of one tile; longer rows go tile by tile"), _NUM_WARPS, _inputs(*ROWS),
    )),
    KernelInfo("matmul", "out = activation(a @ b + bias), any memory order of each", (
        *_extents(150, 144, 112), _dtype("fp16"),
        ParameterInfo("accumulator", "fp32", "element type of the sums of fp16 products", ("fp32", "fp16")), _PRECISION, _RESULT,
        ParameterInfo("bias", False, "a bias for each column of out"),
        ParameterInfo("activation", "none", "the function of each sum", ("none", "relu", "gelu", "silu")),
        _layout("a_layout", "a"), _layout("b_layout", "b"), _layout("out_layout", "out"),
        *_blocks(64, 64, 32), _GROUP_M, _NUM_WARPS, _stages(3), _inputs(*ROWS),
    )),
    KernelInfo("batched_matmul", "out[i] = a[i] @ b[i]", (
        ParameterInfo("batch", 3, "products", least=1), *_extents(70, 80, 96), _dtype("fp16"), _PRECISION, _RESULT,
        _layout("a_layout", "each a[i]"), _layout("b_layout", "each b[i]"),
        ParameterInfo("shared_b", False, "one b for the whole batch"),
        *_blocks(64, 64, 32), _NUM_WARPS, _stages(3), _inputs(*ROWS),
    )),
    KernelInfo("block_pointer_matmul", "out = a @ b through block pointers", (
        *_extents(70, 80, 96), _dtype("fp16"), _PRECISION, _RESULT,
        _layout("a_layout", "a"), _layout("b_layout", "b"), _layout("out_layout", "out"),
        *_blocks(64, 64, 32), _NUM_WARPS, _stages(3), _inputs(*ROWS),
    )),
    KernelInfo("descriptor_matmul", "out = a @ b through tensor descriptors", (
        *_extents(70, 80, 96), _dtype("fp16"), _PRECISION, _RESULT,
        _row_layout("a_layout", "a"), _row_layout("b_layout", "b"),
        ParameterInfo("block_m", 64, "rows of one program", (16, 32, 64, 128)),
        ParameterInfo("block_n", 64, "columns of one program", (16, 32, 64, 128)),
        ParameterInfo("block_k", 32, "terms of one step", (16, 32, 64)), _NUM_WARPS, _stages(3), _inputs(*ROWS),
    )),
    KernelInfo("grouped_matmul", "rows in groups of different sizes, each group times its own matrix", (
        ParameterInfo("rows", 180, "rows of all groups", least=1), ParameterInfo("groups", 5, "groups; some may be empty", least=1),
        ParameterInfo("n", 96, "columns of out", least=1), ParameterInfo("k", 64, "columns of a", least=1),
        _dtype("fp16", ("fp32", "bf16", "fp16")), _PRECISION, _layout("b_layout", "each group's matrix"),
        ParameterInfo("programs", 8, "programs that share the blocks", least=1),
        *_blocks(32, 64, 32), _NUM_WARPS, _stages(3), _inputs(*ROWS),
    )),
    KernelInfo("moe_topk", "each token's best experts, their softmax weights, and how often each block of tokens chose each", (
        ParameterInfo("tokens", 20, "tokens", least=1), ParameterInfo("experts", 12, "experts", least=1),
        ParameterInfo("top_k", 3, "experts of a token, not above experts", least=1), _dtype("fp32", ("fp32", "bf16", "fp16")),
        ParameterInfo("softmax", "chosen", "over the chosen experts, or over all", ("chosen", "all")),
        _block(16, "block_tokens", "tokens of one program"), _UP_TO_8_WARPS, _inputs(*FINITE),
    )),
    KernelInfo("moe_scatter", "the place of each token's choice in the order of experts, the choice at each place, offsets", (
        *_ROUTED, _block(32, doc="choices of one program"), _block(16, "block_counts", "blocks whose counts are read at once"),
        _UP_TO_8_WARPS,
    )),
    KernelInfo("moe_matmul", "each token's row times the matrices of its experts, gathered and scattered back", (
        *_ROUTED, ParameterInfo("rows", "tokens", "what a has a row for", ("tokens", "choices")),
        ParameterInfo("n", 40, "columns of out", least=1), ParameterInfo("k", 48, "columns of a", least=1),
        ParameterInfo("weighted", True, "products are multiplied by the weights of the choices"),
        _dtype("fp16", ("fp32", "bf16", "fp16")), _PRECISION, _layout("b_layout", "each expert's matrix"),
        *_blocks(16, 32, 32), _UP_TO_8_WARPS, _stages(3), _inputs(*ROWS),
    )),
    KernelInfo("int8_matmul", "out = (a @ b) · row_scale · column_scale for int8 operands", (
        *_extents(100, 96, 128), ParameterInfo("result", "fp16", "element type of out", ("fp32", "bf16", "fp16")),
        _layout("a_layout", "a"), _layout("b_layout", "b"),
        *_blocks(64, 64, 64), _NUM_WARPS, _stages(3), _inputs("uniform", "ints", "specials"),
    )),
    KernelInfo("block_scaled_matmul", "out = a @ bᵀ for operands in formats with scales, rows along k", (
        ParameterInfo("m", 100, "rows of a and out", least=1), ParameterInfo("n", 96, "rows of b, columns of out", least=1),
        ParameterInfo("k", 224, "columns of a and b, a multiple of the group", least=1),
        ParameterInfo("a_format", "e5m2", "format of a", SCALED_FORMATS[:5]),
        ParameterInfo("b_format", "e2m1", "format of b", SCALED_FORMATS[:5]),
        ParameterInfo("scales", "near", "how scales are drawn; e4m3 is their type in NVFP4, all else is e8m0", SCALES),
        ParameterInfo("group", 32, "elements of one scale", (32, 16)),
        ParameterInfo("result", "fp32", "element type of out", ("fp32", "bf16", "fp16")),
        *_blocks(64, 64, 64), _GROUP_M, _NUM_WARPS, _stages(2), _inputs(*ROWS),
    )),
    KernelInfo("attention", "softmax(q @ kᵀ · scale) @ v by heads, causal or not, and its log-sum-exp", (
        ParameterInfo("batch", 1, "sequences", least=1), ParameterInfo("heads", 2, "heads of queries", least=1),
        ParameterInfo("kv_heads", 1, "heads of keys and values, each for as many heads of queries", least=1),
        ParameterInfo("queries", 150, "queries", least=1), ParameterInfo("keys", 150, "keys", least=1),
        ParameterInfo("head_size", 64, "elements of a head", tuple(range(16, 129, 8))),
        ParameterInfo("causal", True, "a query sees no later key"), _dtype("fp16", ("fp32", "bf16", "fp16")), _PRECISION,
        ParameterInfo("layout", "heads_first", "which lies further out in memory", ("heads_first", "positions_first")),
        _block(64, "block_m", "queries of one program"), _block(32, "block_n", "keys of one tile"),
        _NUM_WARPS, _stages(2), _inputs(*ROWS),
    )),
    KernelInfo("fp8_attention", "softmax(q @ kᵀ · scales) @ v of 8-bit floats with a scale for each head, and its log-sum-exp", (
        ParameterInfo("batch", 1, "sequences", least=1), ParameterInfo("heads", 2, "heads of queries", least=1),
        ParameterInfo("kv_heads", 1, "heads of keys and values, each for as many heads of queries", least=1),
        ParameterInfo("queries", 150, "queries", least=1), ParameterInfo("keys", 160, "keys", least=1),
        ParameterInfo("head_size", 64, "elements of a head", tuple(range(16, 129, 8))),
        ParameterInfo("causal", True, "a query sees no later key"), _dtype("fp8e5", ("fp8e4nv", "fp8e5")),
        ParameterInfo("result", "fp16", "element type of out", ("fp16", "bf16", "fp32")),
        _block(64, "block_m", "queries of one program"), _block(64, "block_n", "keys of one tile"),
        _NUM_WARPS, _stages(2), _inputs(*ROWS),
    )),
    KernelInfo("windowed_attention", "causal attention with a sliding window, sinks and soft-capped scores, and its log-sum-exp", (
        *_HEADS,
        ParameterInfo("window", 24, "keys that a query sees, itself the last; 0 for all before it"),
        ParameterInfo("soft_cap", 0.0, "scores are soft_cap · tanh(score / soft_cap); 0 for scores as they are"),
        ParameterInfo("sinks", True, "each head's softmax has one more logit, without a value"), _dtype("fp16", ("bf16", "fp16")),
        _block(16, "block_m", "queries of one program"), _block(16, "block_n", "keys of one tile"),
        _UP_TO_8_WARPS, _stages(2), _inputs(*ROWS),
    )),
    KernelInfo("attention_backward", "gradients of attention by q, k and v, causal or not", (
        *_HEADS, ParameterInfo("causal", True, "a query sees no later key"), _dtype("fp16", ("bf16", "fp16")),
        _block(16, "block_m", "queries of one tile"), _block(16, "block_n", "keys of one tile"),
        _UP_TO_8_WARPS, _stages(2), _inputs(*FINITE),
    )),
    KernelInfo("linear_attention", "causal linear attention with a decay for each head, in chunks with a carried state", (
        ParameterInfo("heads", 2, "heads of all sequences", least=1), ParameterInfo("length", 40, "steps of time", least=1),
        ParameterInfo("key_size", 16, "elements of a key", (16, 32, 64, 128)),
        ParameterInfo("value_size", 24, "elements of a value", least=1), _dtype("fp16", ("bf16", "fp16")),
        _block(16, "chunk", "steps of a chunk"), _block(16, "block_v", "elements of values of one program"),
        _UP_TO_8_WARPS, _stages(2), _inputs(*FINITE),
    )),
    KernelInfo("paged_decode", "attention of one query a sequence over keys in pages, shared by programs; parts and lse", (
        *_CACHED, ParameterInfo("kv_heads", 2, "heads of keys and values", least=1),
        ParameterInfo("group", 3, "heads of queries that share a head of keys", least=1),
        ParameterInfo("head_size", 32, "elements of a head", (16, 32, 64, 128)),
        _dtype("fp16", ("bf16", "fp16")), _block(16, "block_n", "keys of one tile"), _UP_TO_8_WARPS, _stages(2), _inputs(*FINITE),
    )),
    KernelInfo("mla_decode", "attention of one query a sequence over latents in pages, which are keys and values; parts and lse", (
        *_CACHED, ParameterInfo("heads", 5, "heads of queries, which all share the latents", least=1),
        ParameterInfo("latent", 32, "elements of a latent", (16, 32, 64, 128, 256, 512)),
        ParameterInfo("rotary", 16, "elements with rotary positions, which only scores see", (16, 32, 64)),
        _dtype("fp16", ("bf16", "fp16")), _block(16, "block_n", "keys of one tile"), _UP_TO_8_WARPS, _stages(2), _inputs(*FINITE),
    )),
    KernelInfo("merge_splits", "parts of attention over different keys, joined by their log-sum-exp", (
        ParameterInfo("splits", 3, "parts", least=1), ParameterInfo("rows", 11, "rows of a part", least=1),
        ParameterInfo("head_size", 40, "elements of a row", least=1), _dtype("fp16", ("fp32", "bf16", "fp16")),
        _UP_TO_8_WARPS, _inputs(*FINITE),
    )),
    KernelInfo("cross_entropy", "loss and log-sum-exp of logits by label, with smoothing; ignored labels give 0", (
        ParameterInfo("rows", 30, "rows", least=1), ParameterInfo("classes", 1000, "logits of a row", least=1), _dtype("fp32"),
        _dtype("int64", ("int32", "int64"), "label_dtype", "element type of the labels"),
        ParameterInfo("ignore_index", -100, "the label that gives no loss", least=-(2**31)),
        ParameterInfo("smoothing", 0.0, "what part of the loss every class has alike"),
        _block(2048, doc="logits of one tile; longer rows go tile by tile"), _NUM_WARPS, _inputs(*ROWS),
    )),
    KernelInfo("cross_entropy_backward", "the gradient of cross_entropy by logits, from its log-sum-exp", (
        ParameterInfo("rows", 6, "rows", least=1), ParameterInfo("classes", 200, "logits of a row", least=1),
        _dtype("fp16", ("fp32", "bf16", "fp16")),
        ParameterInfo("ignore_index", -100, "the label that gives no loss", least=-(2**31)),
        ParameterInfo("smoothing", 0.1, "what part of the loss every class has alike"),
        _block(128, doc="logits of one program"), _UP_TO_8_WARPS, _inputs(*FINITE),
    )),
    KernelInfo("dropout", "out = x / (1 - p) where a random number of seed and place is above p, else 0", (
        ParameterInfo("n", 700, "elements"), ParameterInfo("p", 0.3, "what part is dropped"),
        _dtype("fp16", ("fp32", "bf16", "fp16")),
        ParameterInfo("block", 256, "elements of the tile of one program, a power of two", tuple(2**k for k in range(2, 15))),
        _UP_TO_8_WARPS, _inputs(*FINITE),
    )),
    KernelInfo("sample_logits", "a random token of each row of logits, among the top_k and top_p of its softmax", (
        ParameterInfo("rows", 4, "rows", least=1), ParameterInfo("vocabulary", 100, "logits of a row", least=1),
        ParameterInfo("top_k", 20, "tokens that are kept, with all that equal the last of them; above vocabulary for all", least=1),
        ParameterInfo("top_p", 0.9, "the part of their mass that the likeliest of them must have"),
        ParameterInfo("temperature", 0.7, "what logits are divided by"), _dtype("fp32", ("fp32", "bf16", "fp16")),
        _UP_TO_8_WARPS, _inputs("normal", "ints", "uniform", "low"),
    )),
    KernelInfo("transpose", "out = x transposed", (
        ParameterInfo("rows", 100, "rows"), ParameterInfo("columns", 140, "columns"), _dtype("fp16", ALL_DTYPES),
        _block(64, "block_rows", "rows of one program"), _block(64, "block_columns", "columns of one program"),
        _NUM_WARPS, _inputs(*INPUTS),
    )),
    KernelInfo("column_sum", "out[column] = the sum over all rows", (
        ParameterInfo("rows", 200, "rows", least=1), ParameterInfo("columns", 150, "columns"), _dtype("fp16", FLOATS + INTEGERS),
        _block(32, "block_rows", "rows of one tile"), _block(64, "block_columns", "columns of one program"),
        _NUM_WARPS, _inputs(*ROWS),
    )),
    KernelInfo("welford", "mean and variance of rows in one pass, by a reduction of triples", (
        ParameterInfo("rows", 18, "rows"), ParameterInfo("columns", 500, "columns", least=1), _dtype("fp32"),
        _block(4, "block_rows", "rows of one program"), _block(256, "block_columns", "columns of one tile"),
        _NUM_WARPS, _inputs(*FINITE),
    )),
    KernelInfo("matvec", "out = a @ x", (
        ParameterInfo("m", 100, "rows of a", least=1), ParameterInfo("k", 300, "columns of a", least=1), _dtype("fp16"),
        _layout("a_layout", "a"), _block(16, "block_m", "rows of one program"), _block(128, "block_k", "columns of one tile"),
        _NUM_WARPS, _inputs(*ROWS),
    )),
    KernelInfo("argmax", "the largest or least value of each row and its first index", (
        ParameterInfo("rows", 30, "rows"), ParameterInfo("columns", 400, "columns", least=1), _dtype("fp32", FLOATS + INTEGERS),
        ParameterInfo("operation", "argmax", "which value is looked for", ("argmax", "argmin")),
        _block(8, "block_rows", "rows of one program"), _block(256, "block_columns", "columns of one tile"),
        _NUM_WARPS, _inputs("ints", "normal", "uniform", "low", "edges"),
    )),
    KernelInfo("reduce_tile", "one reduction of one tile, any kind and axis", (
        ParameterInfo("operation", "sum", "the combining function", REDUCTIONS), _dtype("fp32", FLOATS + INTEGERS),
        ParameterInfo("axis", "2", "the axis that goes", ("0", "1", "2", "all")),
        ParameterInfo("keep_dims", False, "the axis stays, of extent 1"),
        _block(2, "layers", "extent of axis 0"), _block(16, "rows", "extent of axis 1"), _block(64, "columns", "extent of axis 2"),
        _NUM_WARPS, _inputs(*ROWS, "edges"),
    )),
    KernelInfo("scan_tile", "one scan of one tile, any kind, axis and direction", (
        ParameterInfo("operation", "sum", "the combining function", SCANS), _dtype("fp32", FLOATS + INTEGERS),
        ParameterInfo("axis", "2", "the axis along which elements are combined", ("0", "1", "2")),
        ParameterInfo("reverse", False, "from the end of the axis on"),
        _block(2, "layers", "extent of axis 0"), _block(16, "rows", "extent of axis 1"), _block(64, "columns", "extent of axis 2"),
        _NUM_WARPS, _inputs(*ROWS, "edges"),
    )),
    KernelInfo("selective_scan", "a state space model's recurrence along time, in chunks with a carried state", (
        ParameterInfo("batch", 2, "sequences", least=1), ParameterInfo("channels", 3, "channels, a program each", least=1),
        ParameterInfo("states", 16, "states of a channel, a power of two", tuple(2**k for k in range(9))),
        ParameterInfo("length", 150, "steps of time"), _dtype("fp32"), _block(64, doc="steps of a chunk"), _NUM_WARPS,
        _inputs(*ROWS),
    )),
    KernelInfo("dot_tile", "one product of tiles plus an accumulator, any types and shape", (
        _dtype("fp16", DOT_OPERANDS, "a_dtype", "element type of a"), _dtype("fp16", DOT_OPERANDS, "b_dtype", "element type of b"),
        ParameterInfo("accumulator", "fp32", "element type of float sums; fp64 and integers have their own", ("fp32", "fp16")),
        ParameterInfo(
            "input_precision", "tf32", "how fp32 operands are multiplied", ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"),
        ),
        ParameterInfo("batch", 0, "products of a three-dimensional dot, a power of two; 0 for a plain one", (0, 1, 2, 4, 8)),
        _block(32, "m", "rows of a"), _block(32, "n", "columns of b"), _block(32, "k", "columns of a"),
        _NUM_WARPS, _inputs(*ROWS),
    )),
    KernelInfo("dot_scaled_tile", "one product of tiles in formats with scales, any formats, scales and shape", (
        ParameterInfo("a_format", "e5m2", "format of a", SCALED_FORMATS),
        ParameterInfo("b_format", "e2m1", "format of b", SCALED_FORMATS),
        ParameterInfo("scaled", "both", "which operands have scales", ("both", "a", "b", "none")),
        ParameterInfo("scales", "near", "how scales are drawn; e4m3 is their type in NVFP4, all else is e8m0", SCALES),
        ParameterInfo("group", 32, "elements of one scale", (32, 16)),
        ParameterInfo("packing", "k", "along which dim the two elements of a byte of e2m1 are neighbours", ("k", "outer")),
        ParameterInfo("batch", 0, "products of three-dimensional operands, a power of two; 0 for a plain one", (0, 1, 2, 4, 8)),
        _block(32, "m", "rows of a"), _block(32, "n", "columns of b"), _block(64, "k", "columns of a"),
        _NUM_WARPS, _inputs(*ROWS),
    )),
    KernelInfo("rearrange", "one operation that only moves elements of a tile", (
        ParameterInfo("operation", "trans", "which one", REARRANGEMENTS), _dtype("fp32", FLOATS + NARROW_FLOATS + INTEGERS),
        _block(16, "rows", "rows of the tile, at least 2"), _block(64, "columns", "columns of the tile, at least 2"),
        _NUM_WARPS, _inputs(*INPUTS),
    )),
    KernelInfo("random_numbers", "random numbers of a seed and of counters", (
        ParameterInfo("kind", "bits", "uint32 for each counter, words of its own width, or fp32", RANDOM_KINDS),
        _dtype("int32", WORDS, "seed", "element type of the seed"),
        _dtype("int32", WORDS, "offset", "element type of the counters"),
        ParameterInfo("n", 700, "counters", least=1), ParameterInfo("rounds", 10, "rounds of Philox"),
        _block(256), _NUM_WARPS, _inputs("uniform", "ints", "specials"),
    )),
    KernelInfo("gather_tile", "elements of a tile, picked along one axis by a tile of indices", (
        ParameterInfo("axis", "1", "along which axis", ("0", "1")), _dtype("fp32", FLOATS + NARROW_FLOATS + INTEGERS),
        _dtype("int32", INTEGERS, "index", "element type of the indices"),
        ParameterInfo("spread", "inside", "indices within the axis, or any, which count modulo its extent", ("inside", "any")),
        _block(8, "rows", "rows of the tile"), _block(64, "columns", "columns of the tile"),
        _block(32, "count", "elements picked along the axis"), _NUM_WARPS, _inputs(*INPUTS),
    )),
    KernelInfo("sort_tile", "each row of a tile sorted, merged of two sorted halves, or its largest elements", (
        ParameterInfo("operation", "sort", "which one", ("sort", "merge", "topk")),
        ParameterInfo("descending", False, "the largest come first"),
        _dtype("fp32", FLOATS + INTEGERS), _block(4, "rows", "rows of the tile"), _block(64, "columns", "columns of the tile"),
        _block(8, "k", "elements of a row that topk gives, not above columns"), _NUM_WARPS, _inputs(*FINITE),
    )),
    KernelInfo("histogram", "out[x[i]] += 1, by atomic additions", (
        _SIZE, ParameterInfo("bins", 64, "counters", least=1),
        _dtype("int32", (*WORDS, "fp32", "fp64"), doc="element type of the counters"),
        ParameterInfo("spread", "even", "how values fall: over all bins and beyond, in few, in one", ("even", "skewed", "one")),
        _ORDER, _block(512), _NUM_WARPS,
    )),
    KernelInfo("atomic_mix", "one atomic of one kind on each element of x, at cells that elements may share", (
        ParameterInfo("operation", "add", "which one", ATOMICS), _dtype("int32", (*WORDS, "int16", "uint16", *FLOATS)),
        ParameterInfo("n", 700, "elements", least=1),
        ParameterInfo("share", 1, "elements that share an address; alone they keep old values", least=1),
        ParameterInfo("order", "acq_rel", "the order", ("relaxed", "acquire", "release", "acq_rel")),
        ParameterInfo("scope", "gpu", "whom the order is for", ("cta", "gpu", "sys")),
        ParameterInfo("mask", "tail", "which elements take part", ("none", "tail", "alternating", "single", "never", "data")),
        ParameterInfo("scalar", False, "one element a program, through a scalar pointer"),
        _block(128), _NUM_WARPS, _inputs(*FINITE),
    )),
    KernelInfo("split_k_matmul", "out += a @ b, by programs that share the terms and add their parts in memory", (
        *_extents(70, 80, 200), _dtype("fp16", ("fp32", "bf16", "fp16")), _PRECISION,
        _dtype("fp32", ("fp32", "bf16", "fp16"), "result", "element type of out"),
        ParameterInfo("splits", 4, "programs that share a sum", least=1), _ORDER,
        _layout("a_layout", "a"), _layout("b_layout", "b"), *_blocks(32, 32, 32), _NUM_WARPS, _stages(2), _inputs(*ROWS),
    )),
    KernelInfo("locked_accumulate", "sums of rows in groups, each group's under a lock", (
        ParameterInfo("rows", 24, "rows, one a program", least=1), ParameterInfo("columns", 100, "columns", least=1),
        ParameterInfo("groups", 3, "sums, each with a lock", least=1), _dtype("fp32", (*FLOATS, *INTEGERS)),
        _HAND_OVER, _NUM_WARPS, _inputs("ints", "uniform"),
    )),
    KernelInfo("grid_argmax", "the largest element of a whole array and its first index, by one atomic maximum", (
        ParameterInfo("n", 5000, "elements", least=1), _dtype("fp32", ("fp32", "int32")), _block(512), _NUM_WARPS, _inputs(*FINITE),
    )),
    KernelInfo("chained_sum", "sums of blocks up to each, handed from program to program", (
        ParameterInfo("n", 3000, "elements", least=1), _dtype("int32", (*WORDS, "fp32", "fp64")), _HAND_OVER,
        ParameterInfo("wait", "loop", "a loop that adds 0 to the flag, or `tl.atomic_poll` of it, with a time or none",
                      ("loop", "poll", "timed")),
        _block(256), _NUM_WARPS, _inputs("ints", "uniform", "normal"),
    )),
)

KERNELS: dict[str, KernelInfo] = {info.name: info for info in _TABLE}
