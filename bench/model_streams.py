"""Outlines of kernels that stream arrays, element by element, norms, rotations, losses, sums, counted from their public sources."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import ceil
from typing import NamedTuple

from model_rows import HOST_TIMED, KERNEL_US, Predicted, Row
from published_points import CannotModelError

from tilefw.api.timing import ChipFigures
from tilefw.timing.outline import Outline, Work, at_clock, outlined_time

_BY_ELEMENT = 12  # instructions of a norm's backward pass: two loads, two conversions, seven of arithmetic, a store
# Liger's benchmarks of Megatron's layers and losses: the element types of its scripts at the stated version.
_LIGER_SIZES = (("megatron", 2), ("kl_div", 4), ("jsd", 4), ("tvd", 4), ("cross_entropy", 4))


def streamed(chip: ChipFigures, read: float, write: float, *, lanes: int, elements: int, size: int, warm: bool) -> Outline:
    """A launch of `elements` whose workgroups of `lanes` lanes hold one tile each, as wide as 16 bytes a lane and access."""
    tile = lanes * max(1, 16 // size)
    workgroups = max(1, ceil(elements / tile))
    share = (read + write) / workgroups
    waves = max(1, lanes // int(chip["lanes"]))
    last = chip["mall_bytes"] if "mall_bytes" in chip.figures else chip["l2_bytes"]
    resident = int(chip["waves"] // waves)
    kept = warm and read + write <= last
    moved = 0.0 if kept else read + write
    part = read / (read + write)
    return Outline(
        workgroups,
        waves,
        resident,
        1,
        Work(vector=4.0 * tile, read=share * part),
        last=Work(write=share * (1 - part)),
        ahead=0.0,
        memory=moved,
        middle=moved,
        cached=kept,
    )


def predicted_stream(row: Row) -> Predicted:
    """The time of a row that streams. Raises CannotModelError."""
    chip = row.figures()
    if "HOST-BOUND?" in row.config:
        raise CannotModelError(HOST_TIMED)
    if row.clock():
        chip = at_clock(chip, row.clock() or 0)
    made = next((count for word, count in _COUNTS.items() if _named(row, word)), None)
    if made is None:
        raise CannotModelError("what the kernel reads and writes is not known from a public source")
    counts = made(row)
    graph = "graph" in row.config.lower()
    launch = chip["launch"] if graph else chip["event_launch"]
    if "llama4_rope" in row.implementation:
        outline = _rope_by_head(row, chip, counts)
    else:
        outline = streamed(chip, counts.read, counts.write, lanes=128, elements=counts.elements, size=_size(row), warm=graph)
    time = outlined_time(chip, outline, launch)
    beside = (counts.kernels - 1) * KERNEL_US * 1e-6 + _rows_in_turn(row, chip)
    return Predicted(time.seconds + beside, nbytes=counts.counted, limit=time.limit)


def _rows_in_turn(row: Row, chip: ChipFigures) -> float:
    """Seconds in which Liger's norms move nothing backward: since 0.3 one program a processor takes row after row, loads, sums over
    the row and stores, none of which is issued early (rms_norm.py, layer_norm.py, fused_add_rms_norm.py)."""
    norms = ("layer_norm: Liger", "fused_add_rms_norm: liger", "megatron_rms_norm: Liger")
    if not row.kind.endswith("norm bwd") or not row.implementation.startswith(norms):
        return 0.0
    columns = row.numbers.get("N", row.numbers.get("H", 0))
    rows = ceil(_elements(row) / columns / chip["processors"])
    waits = chip["memory_latency"] + 2 * (chip["shared_latency"] + chip["barrier"])
    return rows * (waits + _BY_ELEMENT * columns / chip["issue_rate"]) / (chip["clock"] * 1e6)


def _named(row: Row, word: str) -> bool:
    kind, _, implementation = word.partition(":")
    return row.kind.startswith(kind) and implementation in row.implementation


def _size(row: Row) -> int:
    if not row.dtype.startswith("see"):
        return row.size
    return next((size for word, size in _LIGER_SIZES if word in row.implementation), 4)


class Counts(NamedTuple):
    """Elements, bytes read, bytes written, bytes that the source counts, kernels that follow each other."""

    elements: int
    read: float
    write: float
    counted: float
    kernels: int = 1


def _plain(reads: float, writes: float, kernels: int = 1) -> Callable[[Row], Counts]:
    """So many arrays of the shape read and written, which the source counts."""

    def counts(row: Row) -> Counts:
        elements = _elements(row)
        read, write = reads * elements * _size(row), writes * elements * _size(row)
        return Counts(elements, read, write, read + write, kernels)

    return counts


def _elements(row: Row) -> int:
    n = row.numbers
    if "x" in row.shape and row.shape.split("x")[0].isdigit():
        first, _, rest = row.shape.partition("x")
        return int(first) * int(rest.split()[0].strip(","))
    for names in (
        ("M", "N"),
        ("H", "M"),
        ("B", "S", "D"),
        ("H", "S", "B"),
        ("B", "H", "S", "D"),
        ("ffn_local", "S", "B"),
        ("V", "B", "T"),
        ("V", "S", "B"),
        ("BT", "vocab_size"),
        ("C", "M", "H"),
        ("N",),
    ):
        if set(names) <= n.keys():
            product = 1
            for name in names:
                product *= int(n[name])
            return product
    power = re.search(r"(\d+)\^(\d+)", row.shape)
    if power:
        return int(power[1]) ** int(power[2])
    raise CannotModelError("the shape does not say how many elements there are")


def _embedding(row: Row) -> Counts:
    """A row of the table for each token; a table that the L2 holds is read once."""
    n = row.numbers
    tokens, columns = int(n["B"] * n["T"]), int(n["D"])
    table, result = n["V"] * columns * row.size, float(tokens * columns * row.size)
    return Counts(tokens * columns, min(table, result) + tokens * 8, result, 2 * result)


def _rope(row: Row) -> Counts:
    """Queries and keys in place, by cosines and sines of each place."""
    n = row.numbers
    if "tokens" in row.shape:
        words = row.shape.split()
        elements = int(words[0]) * int(words[3]) * 64
        return Counts(elements, elements * 2.0, elements * 2.0, elements * 4.0)
    if "B" in n:
        elements = int(n["B"] * n["H"] * n["S"] * n["D"])
        return Counts(elements, elements * 2.0, elements * 2.0, elements * 4.0)
    places, hidden = int(n.get("seq_len", n.get("T", 0))), int(n.get("hidden_size", n.get("H", 0)))
    share = (n["num_q_heads"] + n["num_kv_heads"]) / n["num_q_heads"]
    elements = int(places * hidden * share)
    return Counts(elements, elements * 2.0, elements * 2.0, elements * 4.0)


def _rope_by_head(row: Row, chip: ChipFigures, counts: Counts) -> Outline:
    """Liger's llama4_rope.py: a program of four waves for each place and head of queries, which reads the place's cosines and sines
    as fp32, and stores real and imaginary parts apart, so that a store fills half of what it touches."""
    n = row.numbers
    hidden, heads = int(n.get("hidden_size", n.get("H", 0))), int(n["num_q_heads"])
    programs = max(1, int(n.get("seq_len", n.get("T", 0)))) * heads
    part, waves = counts.read / programs, 4
    return Outline(
        programs,
        waves,
        int(chip["waves"] // waves),
        1,
        Work(vector=16.0 * waves * chip["lanes"], read=part + hidden / heads * 4.0),
        last=Work(write=part, filled=0.5),
        ahead=0.0,
        memory=counts.read + counts.write,
        middle=counts.read + counts.write,
    )


# Arrays of the shape that a kernel reads and writes, by kind and implementation (its beginning and a part), the first that fits.
_COUNTS: Mapping[str, Callable[[Row], Counts]] = {
    "elementwise add:": _plain(2, 1),
    "copy:": _plain(1, 1),
    "elementwise fwd:relu_squared": _plain(1, 1),
    "elementwise bwd:relu_squared": _plain(2, 1),
    "rmsnorm fwd:liger_fused_add": _plain(2, 2),
    # Liger's benchmark_fused_add_rms_norm.py: the sum, the norm, and once more the weight, each a kernel of its own.
    "rmsnorm fwd:fused_add_rms_norm: liger_rms_norm": _plain(4, 3, 3),
    "rmsnorm fwd:fused_add_rms_norm: torch": _plain(6, 4, 6),  # eager: sum, square, mean, scale, weight
    "rmsnorm fwd:rms_norm: huggingface": _plain(11, 8),  # eager: to fp32, square, mean, scale, back, weight
    "rmsnorm bwd:rms_norm: huggingface": _plain(22, 14),
    "rmsnorm fwd:": _plain(1, 1),
    # Liger's Megatron benchmarks run forward, sum and backward in what they call backward: the norm, the sum of its result, a
    # gradient of ones that is brought to memory, zeros for the result's place, the gradient.
    "rmsnorm bwd:megatron_rms_norm: Liger": _plain(4, 4, 6),
    "rmsnorm bwd:megatron": _plain(6, 3, 6),
    # Inferred from rows that are not held out. Liger before 0.3: the weight's gradient is an array of fp32 rows, cleared,
    # written, and summed by PyTorch.
    "rmsnorm bwd:rms_norm: Liger": _plain(4, 5),
    # The rest of AddLigerRMSNorm backward: weight, its gradient's product and sum, norm with cleared result; the gradient of both
    # inputs is one array, copied for the one and added to what the other has: autograd clears the benchmark's first input alone.
    "rmsnorm bwd:fused_add_rms_norm: liger_rms_norm": _plain(9, 6, 8),
    "rmsnorm bwd:fused_add_rms_norm: liger_fused": _plain(6, 4, 6),  # zeros for the second result's gradient, norm, copy, sum
    "rmsnorm bwd:fused_add_rms_norm: torch": _plain(15, 9, 12),
    "rmsnorm bwd:": _plain(2, 1),
    "layernorm fwd:HipKittens": _plain(2, 2),
    "layernorm fwd:torch.compile": _plain(2, 2),
    "layernorm fwd:torch eager": _plain(7, 5),  # dropout with its mask, sum, norm
    "layernorm fwd:": _plain(1, 1),
    "layernorm bwd:layer_norm: huggingface": _plain(4, 1, 2),  # PyTorch: the input's gradient, and those of weight and bias
    "layernorm bwd:": _plain(2, 1),
    "groupnorm fwd:": _plain(2, 1),
    "groupnorm bwd:": _plain(4, 1),
    "cross entropy fwd:megatron": _plain(2, 1),
    "cross entropy fwd:": _plain(2, 1),  # the gradient takes the place of the logits: read twice, written once
    "swiglu fwd:megatron_swiglu: torch": _plain(3, 2, 2),
    "swiglu fwd:": _plain(2, 1),
    "swiglu bwd:megatron_swiglu: torch": _plain(10, 7, 8),
    "swiglu bwd:megatron": _plain(6, 4, 5),  # forward, sum, ones, backward
    "swiglu bwd:": _plain(3, 2),
    "reduction loss fwd:tvd": _plain(3, 2),  # the gradient is divided by the number of rows afterwards
    "reduction loss fwd:jsd": _plain(2, 2),
    "reduction loss fwd:kl_div": _plain(2, 0, 2),
    "reduction loss fwd:": _plain(2, 1),
    # Inferred from rows that are not held out. Through the softmax that makes the loss's input, and into the gradient of that
    # input, which is kept: product, PyTorch's softmax backward, which reads both of its arrays twice, sum.
    "reduction loss bwd:tvd": _plain(7, 3),
    # As that, through log_softmax, whose backward reads the gradient twice; and divided by the number of rows.
    "reduction loss bwd:kl_div": _plain(8, 5, 5),
    "reduction loss bwd:": _plain(2, 1),
    "reduction:fast.cu": _plain(1, 0),
    "reduction:CUB": _plain(1, 0),
    "embedding": _embedding,
    "rope": _rope,
}
