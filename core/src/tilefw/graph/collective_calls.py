"""A collective of a model as a launch of the library's kernel on all ranks at once.

A sum is in one shot where tensors are small, which takes the fewest steps, and in two beyond that, which moves the fewest bytes:
from 512 KiB on for up to four ranks, from 256 KiB on for more, as vLLM's all-reduce chooses (csrc/custom_all_reduce.cuh).
"""

from __future__ import annotations

from math import prod
from typing import Any

from tilefw.api.dtypes import dtype as dtype_named
from tilefw.api.integers import ceil_div
from tilefw.graph.kernel_graph import GraphBuilder, KernelCall, ModelTensor, RankTransfer
from tilefw.kernels.distributed.all_gather import gather_by_push
from tilefw.kernels.distributed.all_reduce import reduce_in_one_shot, reduce_in_two_shots
from tilefw.kernels.distributed.all_to_all import exchange_parts
from tilefw.kernels.distributed.meeting import WORDS
from tilefw.kernels.distributed.reduce_scatter import scatter_sums

_FEW_RANKS, _ONE_SHOT_OF_FEW, _ONE_SHOT_OF_MANY = 4, 512 << 10, 256 << 10  # ranks, bytes, bytes
_BLOCK = 1024  # elements: 8 of each of 128 lanes
_PROGRAMS = 8  # at most: each meets those of its number on the other ranks, so all are to be on a device at once
_KERNELS = {"all_gather": gather_by_push, "reduce_scatter": scatter_sums, "all_to_all": exchange_parts}


def call_collective(made: GraphBuilder, label: str, kind: str, source: ModelTensor, result: ModelTensor) -> None:
    """Launch a collective behind the calls so far."""
    n = prod(source.shape)
    count = n // made.ranks if kind in ("reduce_scatter", "all_to_all") else n
    programs = max(1, min(_PROGRAMS, ceil_div(count, _BLOCK)))
    words = made.zeroed("meeting words", "int64", (WORDS.value * programs,))
    arguments = {"x_ptr": source, "out_ptr": result, "words_ptr": words, "n": count}
    transfer = RankTransfer(kind, source, result)
    kernel, grid = _kernel(kind, source, made.ranks), (programs, 1, 1)
    made.add(KernelCall(label, kernel, arguments, grid, {"BLOCK": _BLOCK}, transfer=transfer))


def _kernel(kind: str, source: ModelTensor, ranks: int) -> Any:
    if kind != "all_reduce":
        return _KERNELS[kind]
    most = _ONE_SHOT_OF_FEW if ranks <= _FEW_RANKS else _ONE_SHOT_OF_MANY
    nbytes = prod(source.shape) * dtype_named(source.dtype).storage_bits // 8
    return reduce_in_one_shot if nbytes < most else reduce_in_two_shots
