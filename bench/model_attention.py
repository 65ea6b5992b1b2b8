"""Outlines of attention: forward, blocks of queries go over the keys; backward, blocks of keys go over the queries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from model_rows import KERNEL_US, Predicted, Row
from published_points import CannotModelError

from tilefw.api.timing import ChipFigures
from tilefw.timing.outline import Outline, Work, at_clock, outlined_time

# Instructions of a lane beside those of matrix units, of a score: what ptxas makes of Triton 3.9's attention, 128 queries by 64
# keys (`bench/results.md` and `bench/hopper.md`, column "SASS loop"): 8 to 9.5 with heads of 64, 14 to 15.4 with heads of 128.
_BY_SCORE, _BY_SCORE_OF_64 = 3.0, 6.0
_SUMS_OF_FP32 = ("FlashAttention-3", "TLX")
_EARLY_SIDE = 128  # of the blocks of triton.ops.attention's backward pass
_BACKWARD_BY_SCORE = 2.0  # times those: scores again, and as many for their gradient (assumption)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Of one program: rows of queries, rows of keys, waves, stages; `apart`: waves of their own copy, so that the others compute
    in turn."""

    queries: int
    keys: int
    waves: int
    stages: int
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Attention:
    """One call: `batch` with heads of queries and of keys, lengths, the size of a head."""

    batch: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    size: int
    causal: bool
    kind: str
    nbytes: int

    @property
    def operations(self) -> float:
        return 4.0 * self.batch * self.heads * self.queries * self.keys * self.size * (0.5 if self.causal else 1.0)


_AMPERE = (Blocks(128, 64, 4, 3), Blocks(128, 64, 8, 3), Blocks(64, 64, 4, 3), Blocks(128, 128, 8, 2), Blocks(128, 32, 4, 3))
_HOPPER = (Blocks(128, 128, 8, 3), Blocks(128, 64, 8, 3), Blocks(128, 64, 4, 3))
_APART = (Blocks(128, 128, 8, 2, apart=True), Blocks(128, 176, 8, 2, apart=True), Blocks(192, 128, 12, 2, apart=True))
# facebookexperimental/triton, third_party/tlx/tutorials: hopper_fa_ws*.py, blackwell_fa_ws*.py.
_TLX_HOPPER, _TLX_BLACKWELL = Blocks(128, 128, 8, 2, apart=True), Blocks(256, 128, 8, 3, apart=True)
_ASSEMBLED = (Blocks(256, 64, 8, 2, apart=True), Blocks(128, 64, 4, 2, apart=True), Blocks(128, 128, 8, 2, apart=True))
_MATRIX_CORES = (Blocks(128, 64, 4, 2), Blocks(256, 64, 8, 2), Blocks(128, 128, 4, 2), Blocks(64, 64, 4, 2))


def predicted_attention(row: Row) -> Predicted:
    """The time of a row of attention. Raises CannotModelError."""
    chip = row.figures()
    if row.clock():
        chip = at_clock(chip, row.clock() or 0)
    call = _call(row)
    graph = any(word in row.config for word in ("CUDA graph", "sm 1350"))
    launch = chip["launch"] if graph else chip["event_launch"]
    backward = row.kind.endswith("bwd")
    early = backward and (row.source == "trfa" or "2023" in row.implementation)
    by_block, gradient = "seq_par=True" in row.shape, call.nbytes if row.source == "trfa" else 4
    if early:
        outlines = [_early_backward(chip, call, gradient, by_block=by_block)]
    else:
        two_passes = "Triton tutorial 06" in row.implementation  # _attn_bwd_dkdv, then _attn_bwd_dq
        blocks, added = _blocks(row, chip, call), 0.0 if two_passes else 2.0 if "accumulation a16" in row.config else 4.0
        outlines = [_backward(chip, call, one, added) if backward else _forward(chip, call, one) for one in blocks]
    best = min((outlined_time(chip, outline, launch) for outline in outlines), key=lambda time: time.seconds)
    apart = backward and ("dq accumulation" in row.config or any(word in row.implementation for word in _SUMS_OF_FP32))
    seconds = best.seconds + (_beside(row, chip, call) if apart else 0.0)
    if early:
        seconds += _beside_early(chip, call, gradient, by_block=by_block)
    counted = call.operations * (2.5 if backward else 1.0)
    if row.source == "trfa" and not call.causal:
        counted /= 2  # the source counts half of it: its page says so
    return Predicted(seconds, counted, limit=best.limit)


def _beside(row: Row, chip: ChipFigures, call: Attention) -> float:
    """Seconds of the kernels beside that of the gradients, as aiter's csrc/cpp_itfs/mha_bwd.cu and flash-attention's
    hopper/flash_bwd_launch_template.h have them: one before reads results and their gradients, and clears sums of fp32 in the
    latter, as PyTorch does for TLX (python/tutorials/test_tlx_bwd_from_fused_attention.py); one behind brings sums of queries'
    gradients from fp32 to their type, or on gfx950 those of 16 bits in order."""
    if any(word in row.implementation for word in _SUMS_OF_FP32):
        behind = 4.0 + 4.0 + call.nbytes
    else:
        behind = 4.0 + call.nbytes if "a32" in row.config else 2.0 * call.nbytes if row.chip.startswith("MI355X") else 0.0
    moved = call.batch * call.heads * call.queries * call.size * (2.0 * call.nbytes + behind)
    return (1 + bool(behind)) * KERNEL_US * 1e-6 + moved / (chip["memory_rate"] * 1e9)


def _beside_early(chip: ChipFigures, call: Attention, gradient: float, *, by_block: bool) -> float:
    """Seconds of what triton.ops.attention launches beside: a kernel that reads results and their gradients, zeros for the queries'
    gradient, and where each block of keys has its own copy of it, the sum of the copies."""
    copies = ceil(call.keys / _EARLY_SIDE) if by_block else 1
    arrays = 2.0 * call.nbytes + copies * gradient + ((copies + 1) * gradient if by_block else 0.0)
    moved = call.batch * call.heads * call.queries * call.size * arrays
    return (2 + by_block) * KERNEL_US * 1e-6 + moved / (chip["memory_rate"] * 1e9)


def _call(row: Row) -> Attention:
    n = row.numbers
    heads = n.get("HQ", n.get("H"))
    queries = n.get("S", n.get("Sq"))
    if heads is None or queries is None or "D" not in n or "B" not in n:
        raise CannotModelError("the source does not state all of batch, heads, length and head size")
    causal = "causal=True" in row.shape or "causal=1" in row.shape
    kind = "tf32" if row.dtype == "float32" else "f8" if "fp8" in row.dtype else "f16"
    return Attention(
        int(n["B"]),
        int(heads),
        int(n.get("HK", heads)),
        int(queries),
        int(n.get("Sk", queries)),
        int(n["D"]),
        causal,
        kind,
        4 if kind == "tf32" else 1 if kind == "f8" else 2,
    )


def _blocks(row: Row, chip: ChipFigures, call: Attention) -> tuple[Blocks, ...]:
    if chip["lanes"] == 64:
        return _ASSEMBLED if "asm" in row.implementation or "HipKittens" in row.implementation else _MATRIX_CORES
    if chip["f16_rate"] <= 1024:
        return _AMPERE
    if "TLX" in row.implementation and row.kind.endswith("fwd"):
        blocks = _TLX_BLACKWELL if chip["f16_rate"] > 2048 else _TLX_HOPPER
        # The first of them has consumers that nobody keeps from doing the same at the same time.
        return (replace(blocks, apart="TLX warp-specialised" not in row.implementation),)
    if "FlashAttention-3" in row.implementation and call.size == 128:
        # Dao-AILab/flash-attention, hopper/tile_size.h and flash_bwd_launch_template.h
        return (_APART[0 if call.causal or row.kind.endswith("bwd") else 1],)
    return _APART if any(word in row.implementation for word in ("TLX", "FlashAttention-3", "fa3")) else _HOPPER


def _by_score(call: Attention, blocks: Blocks) -> float:
    """Instructions of a lane for each score. What is done for each element of the result is shared by the keys of a block."""
    return _BY_SCORE + _BY_SCORE_OF_64 * call.size / max(64, blocks.keys)


def _resident(chip: ChipFigures, call: Attention, blocks: Blocks, tiles: float, held: float) -> int:
    """Workgroups that fit a processor, by `tiles` bytes of shared memory and `held` registers of a lane."""
    lanes = int(chip["lanes"]) * blocks.waves
    most = 512 if chip["lanes"] == 64 else 255
    by_registers = chip["registers"] // (min(held / lanes + 60, most) * lanes)
    return int(max(1, min(by_registers, chip["shared_bytes"] // tiles, chip["waves"] // blocks.waves)))


def _forward(chip: ChipFigures, call: Attention, blocks: Blocks) -> Outline:
    rows, keys, size = blocks.queries, blocks.keys, call.size
    workgroups = ceil(call.queries / rows) * call.heads * call.batch
    scores = rows * keys
    steps = call.keys / keys * (0.5 if call.causal else 1.0) + (0.5 * rows / keys if call.causal else 0.0)
    moved = 2.0 * keys * size * call.nbytes
    # Warpgroups' units read keys and values of shared memory for 64 rows of queries; waves without them read all for their own,
    # those of kernels in assembly for two (assumption).
    warpgroups = chip["f16_rate"] > 1024 and chip["lanes"] == 32
    readers = rows / 64 if warpgroups else blocks.waves / (2 if blocks.apart else 1)
    step = Work(
        {call.kind: 2.0 * scores * size},
        vector=_by_score(call, blocks) * scores,
        special=float(scores),
        shared=moved * (1 + readers),
        read=moved,
    )
    whole = rows * size
    first, last = Work(read=whole * call.nbytes), Work(vector=2.0 * whole, write=whole * call.nbytes)
    stages = 1 if chip["lanes"] == 64 else blocks.stages
    held = whole + scores + (whole * call.nbytes / 4)
    resident = _resident(chip, call, blocks, stages * moved + whole * call.nbytes, held)
    memory = call.batch * size * call.nbytes * (2.0 * call.heads * call.queries + 2.0 * call.key_heads * call.keys)
    return Outline(
        workgroups,
        blocks.waves,
        resident,
        steps,
        step,
        first,
        last,
        ahead=max(1, blocks.stages - 1),
        memory=memory,
        middle=memory,
        through_shared=chip["lanes"] == 64 and not blocks.apart,
        apart=blocks.apart,
        fetched=not warpgroups and not blocks.apart,
        cached=True,
    )


def _backward(chip: ChipFigures, call: Attention, blocks: Blocks, gradient: float) -> Outline:
    """One block of keys over all queries: scores, their gradient, and the gradients of keys, values and queries, which are added
    up in memory; those of queries in elements of `gradient` bytes. Without such, a second pass makes them, which has scores and
    their gradient again, in as many steps."""
    rows, keys, size = 64, blocks.queries, call.size
    passes = 1 if gradient else 2
    workgroups = ceil(call.keys / keys) * call.heads * call.batch
    scores = rows * keys
    steps = call.queries / rows * (0.5 if call.causal else 1.0) + (0.5 * keys / rows if call.causal else 0.0)
    moved = 2.0 * rows * size * call.nbytes
    step = Work(
        {call.kind: (3.0 + 2.0 * passes) * scores * size},
        vector=passes * _BACKWARD_BY_SCORE * _by_score(call, blocks) * scores,
        special=float(passes * scores),
        shared=passes * moved * (1 + blocks.waves / 2) + 4.0 * scores * call.nbytes,
        read=passes * moved,
        write=rows * size * gradient,
    )
    whole = keys * size
    first, last = Work(read=2.0 * whole * call.nbytes), Work(vector=2.0 * whole, write=2.0 * whole * call.nbytes)
    resident = _resident(chip, call, blocks, 2 * moved + 2 * whole * call.nbytes, 2 * whole + 2 * scores)
    elements = call.batch * size * (call.heads * call.queries * 4.0 + call.key_heads * call.keys * 4.0)
    return Outline(
        workgroups,
        blocks.waves,
        resident,
        steps,
        step,
        first,
        last,
        1.0,
        memory=elements * call.nbytes,
        middle=elements * call.nbytes,
        # Waves meet in each step, which hands the scores' gradient from some to others.
        through_shared=chip["lanes"] == 64,
        cached=True,
    )


def _early_backward(chip: ChipFigures, call: Attention, gradient: float, *, by_block: bool) -> Outline:
    """Triton's first tutorial and triton.ops.attention: blocks of 128 by 128, loads waited for in each step; one program a head,
    which reads and writes the gradient of queries in each step, or one for each of its blocks of keys (`seq_par`), which writes a
    copy of its own."""
    side, size = _EARLY_SIDE, call.size
    blocks = ceil(call.keys / side)
    steps = blocks * ceil(call.queries / side) * (0.5 if call.causal else 1.0) + (0.5 * blocks if call.causal else 0.0)
    heads = call.batch * call.heads
    scores, moved, part = side * side, 2.0 * side * size * call.nbytes, side * size * gradient
    step = Work(
        {call.kind: 5.0 * scores * size},
        vector=_BACKWARD_BY_SCORE * scores * _by_score(call, Blocks(side, side, 8, 1)),
        special=float(scores),
        shared=5 * moved + 4.0 * scores * call.nbytes,
        read=moved + (0.0 if by_block else part),
        write=part,
    )
    memory = heads * call.queries * size * (6.0 * call.nbytes + (blocks if by_block else 2.0) * gradient)
    workgroups, steps = (heads * blocks, steps / blocks) if by_block else (heads, steps)
    return Outline(workgroups, 8, 1, steps, step, ahead=0.0, fetched=True, memory=memory, middle=memory, cached=True)
