"""The kernels of `ranking.py`: forty problems of the library, each with the values of what a search chooses.

Spaces are those that `tilefw tune` would search, cut so that all their members can be timed in detail: ten at least, more where a
launch is cheap to time. `HELD_OUT` are others, drawn by a rule, that nobody looks at who works on the estimates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any
from zlib import crc32

_W, _W8 = (1, 2, 4, 8), (2, 4, 8)
_LINE = {"block": (256, 512, 1024, 2048, 4096), "num_warps": _W}
_ROWS = {"block": (512, 1024, 2048, 4096), "num_warps": _W}
_TILE = {"block_rows": (8, 16, 32, 64), "block_columns": (32, 64, 128), "num_warps": (2, 4)}
_ROWS_AND_COLUMNS = {"block_rows": (1, 2, 4), "block_columns": (256, 512), "num_warps": _W8}
_COLUMN_SUMS = {"block_rows": (8, 16, 32), "block_columns": (32, 64), "num_warps": _W8}
_LARGE_DOT = {
    "block_m": (32, 64, 128), "block_n": (32, 64, 128), "block_k": (32, 64), "num_warps": (4, 8), "num_stages": (2, 3),
}
_DOT = {"block_m": (32, 64), "block_n": (32, 64, 128), "block_k": (32, 64), "num_warps": (4, 8), "num_stages": (3,)}
_ATTENTION = {"block_m": (32, 64, 128), "block_n": (32, 64), "num_warps": (4, 8), "num_stages": (2,)}


@dataclass(frozen=True, slots=True)
class Problem:
    """A kernel of the library with what of its parameters stays, and the values to choose among."""

    kernel: str
    given: Mapping[str, Any]
    over: Mapping[str, tuple[Any, ...]]

    @property
    def name(self) -> str:
        return " ".join((self.kernel, *(f"{name}={value}" for name, value in self.given.items())))

    @property
    def configurations(self) -> list[dict[str, Any]]:
        return [dict(zip(self.over, values, strict=True)) for values in product(*self.over.values())]


def _p(kernel: str, over: Mapping[str, tuple[Any, ...]], **given: Any) -> Problem:
    return Problem(kernel, given, over)


PROBLEMS: tuple[Problem, ...] = (
    _p("vector_add", _LINE, n=98432),
    _p("vector_add", _LINE, n=1048576, dtype="fp16"),
    _p("elementwise", _LINE, n=262144, operation="exp"),
    _p("elementwise", _LINE, n=524288, operation="erf", dtype="fp16"),
    _p("gelu_bias_residual", _LINE, rows=256, columns=1024),
    _p("swiglu", _LINE, rows=256, columns=1024),
    _p("cast", _LINE, n=524288),
    _p("quantize", _ROWS, rows=512, columns=2048),
    _p("integer_mix", _LINE, n=131072),
    _p("dropout", _LINE, n=262144),
    _p("rope", {"block_heads": (1, 2, 4, 8), "num_warps": _W}, tokens=512, heads=16, head_size=128, rotary_size=128),
    _p("embedding", {"block_tokens": (4, 8, 16), "block_columns": (64, 128, 256), "num_warps": (2, 4)},
       tokens=1024, vocabulary=4096, columns=512),
    _p("strided_copy", _TILE, rows=512, columns=512),
    _p("transpose", _TILE, rows=512, columns=1024),
    _p("transpose", _TILE, rows=512, columns=512, dtype="fp32"),
    _p("stencil", {"block_rows": (4, 8, 16), "block_columns": (32, 64), "num_warps": (2, 4)}, depth=8, rows=128, columns=128),
    _p("softmax", {**_ROWS, "programs": (304,)}, rows=608, columns=781),
    _p("softmax", {**_ROWS, "programs": (256,)}, rows=256, columns=4096),
    _p("layernorm", _ROWS, rows=512, columns=1024),
    _p("layernorm", _ROWS, rows=128, columns=4096, dtype="fp32"),
    _p("rmsnorm", _ROWS, rows=512, columns=2048),
    _p("rmsnorm", _ROWS, rows=128, columns=8192),
    _p("cross_entropy", _ROWS, rows=256, classes=4096),
    _p("cross_entropy_backward", {"block": (256, 512, 1024, 2048), "num_warps": _W}, rows=64, classes=4096),
    _p("layernorm_backward", {"rows_per_program": (1, 2, 4), "num_warps": _W}, rows=256, columns=1024),
    _p("welford", _ROWS_AND_COLUMNS, rows=512, columns=1024),
    _p("argmax", _ROWS_AND_COLUMNS, rows=512, columns=1024),
    _p("column_sum", _COLUMN_SUMS, rows=512, columns=4096),
    _p("matvec", {"block_m": (1, 4, 16), "block_k": (128, 256, 512), "num_warps": (2, 4)}, m=2048, k=1024),
    _p("histogram", _LINE, n=131072),
    _p("matmul", _LARGE_DOT, m=1024, n=1024, k=512),
    _p("matmul", _LARGE_DOT, m=512, n=512, k=1024, b_layout="columns"),
    _p("matmul", _DOT, m=512, n=512, k=256, dtype="fp32"),
    _p("batched_matmul", _DOT, batch=8, m=256, n=256, k=256),
    _p("block_pointer_matmul", _DOT, m=768, n=768, k=256, dtype="bf16"),
    _p("int8_matmul", _DOT, m=512, n=1024, k=256),
    _p("grouped_matmul", {**_DOT, "num_stages": (2,), "programs": (304,)}, rows=1024, n=512, k=256),
    _p("split_k_matmul", {"block_m": (32, 64), "block_n": (32, 64), "block_k": (32, 64), "num_warps": (4,), "splits": (2, 4, 8)},
       m=256, n=256, k=2048),
    _p("attention", _ATTENTION, heads=8, kv_heads=8, queries=512, keys=512, causal=False),
    _p("attention", _ATTENTION, heads=4, kv_heads=4, queries=512, keys=512, head_size=128, causal=False),
)

_OTHERS: tuple[Problem, ...] = (
    _p("gelu_bias_residual", _LINE, rows=128, columns=4096, dtype="fp32", approximation="tanh"),
    _p("swiglu", _LINE, rows=128, columns=4096, dtype="fp16"),
    _p("elementwise", _LINE, n=262144, operation="sin"),
    _p("random_numbers", _LINE, n=131072),
    _p("cast", _LINE, n=524288, source="bf16", result="fp32"),
    _p("quantize", _ROWS, rows=256, columns=4096, result="fp8e5"),
    _p("rope", {"block_heads": (1, 2, 4, 8), "num_warps": _W}, tokens=256, heads=32, head_size=64, interleaved=True),
    _p("embedding", {"block_tokens": (4, 8, 16), "block_columns": (64, 128, 256), "num_warps": (2, 4)},
       tokens=512, vocabulary=4096, columns=1024, dtype="fp32"),
    _p("transpose", _TILE, rows=768, columns=512, dtype="bf16"),
    _p("strided_copy", _TILE, rows=512, columns=512, dtype="fp16", source_layout="padded"),
    _p("softmax", {**_ROWS, "programs": (216,)}, rows=432, columns=1800),
    _p("layernorm", _ROWS, rows=1024, columns=768),
    _p("rmsnorm", _ROWS, rows=256, columns=4096, dtype="fp32"),
    _p("cross_entropy", _ROWS, rows=128, classes=8192),
    _p("welford", _ROWS_AND_COLUMNS, rows=256, columns=4096),
    _p("argmax", _ROWS_AND_COLUMNS, rows=256, columns=2048),
    _p("column_sum", _COLUMN_SUMS, rows=1024, columns=2048),
    _p("matvec", {"block_m": (1, 4, 16), "block_k": (128, 256, 512), "num_warps": (2, 4)}, m=1024, k=2048, dtype="fp32"),
    _p("ragged_sums", {"block": (64, 128, 256, 512), "num_warps": _W}, rows=512, columns=2048),
    _p("sparse_matvec", {"block": (32, 64, 128, 256), "num_warps": _W}, rows=1024, columns=1024),
    _p("selective_scan", {"block": (64, 128, 256, 512), "num_warps": _W}, batch=8, channels=32, length=512),
    _p("moe_topk", {"block_tokens": (4, 8, 16, 32), "num_warps": _W}, tokens=1024, experts=64),
    _p("matmul", _DOT, m=768, n=512, k=512, dtype="bf16"),
    _p("matmul", _DOT, m=512, n=768, k=512, a_layout="columns"),
    _p("batched_matmul", _DOT, batch=4, m=256, n=512, k=256, dtype="bf16"),
    _p("descriptor_matmul", _DOT, m=512, n=512, k=512),
    _p("int8_matmul", _DOT, m=1024, n=256, k=512),
    _p("linear_attention", {"chunk": (16, 32, 64), "block_v": (16, 32, 64), "num_warps": (2, 4)},
       heads=32, length=512, key_size=64, value_size=64),
    _p("paged_decode", {"block_n": (16, 32, 64), "num_warps": _W}, sequences=32, keys=512, page=64, splits=4, kv_heads=2, group=4,
       head_size=64),
    _p("windowed_attention", {"block_m": (16, 32, 64), "block_n": (16, 32), "num_warps": (2, 4)},
       heads=8, kv_heads=8, queries=256, keys=256, head_size=64, window=64),
)
HELD_OUT: tuple[Problem, ...] = tuple(problem for problem in _OTHERS if crc32(problem.name.encode()) % 2)
"""Problems that show how estimates do on kernels that they were not written with in view."""
