"""The library launches whose machine code is measured: every kernel, and those that the goals name at many sizes and options.

The lists are made by rule, not by result: whoever adds a size adds it for all options beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from library import Work

from tilefw.kernels import operands
from tilefw.kernels.index import KERNELS
from tilefw.kernels.spec import Launch

Block = tuple[int, int, int]
MATMUL_BLOCKS: tuple[Block, ...] = ((128, 128, 32), (128, 128, 64), (64, 64, 32))
ATTENTION_BLOCKS = ((64, 64), (128, 64), (128, 32))
FP8 = "fp8e4nv"
ROW_KERNELS = ("layernorm", "layernorm_backward", "rmsnorm")


def matmul(block: Block, warps: int, stages: int = 3, ragged: bool = False, **more: Any) -> Work:
    """Two blocks by two and eight steps; `ragged`: eight more rows and terms, so that no row of a is aligned to 16 elements."""
    m, n, k = block
    over = 8 if ragged else 0
    options = {"block_m": m, "block_n": n, "block_k": k, "num_warps": warps, "num_stages": stages, **more}
    shown = [f"{m}x{n}x{k}", f"{warps} warps", f"{stages} stages", *(f"{key} {value}" for key, value in more.items())]
    name = ", ".join([*shown, "ragged"] if ragged else shown)
    return Work("matmul", {"m": 2 * m + over, "n": 2 * n, "k": 8 * k + over, **options}, label=f"matmul {name}")


def in_cluster(work: Work, workgroups: int) -> Work:
    """The same with programs that so many workgroups make."""
    return replace(work, workgroups=workgroups, label=f"{work.label}, {workgroups} workgroups")


def descriptor_matmul(block: Block, warps: int, stages: int) -> Work:
    """The same of arrays that tensor descriptors tell of."""
    m, n, k = block
    options = {"block_m": m, "block_n": n, "block_k": k, "num_warps": warps, "num_stages": stages}
    label = f"descriptor_matmul {m}x{n}x{k}, {warps} warps, {stages} stages"
    return Work("descriptor_matmul", {"m": 2 * m, "n": 2 * n, "k": 8 * k, **options}, label=label)


def attention(
    head: int, block: tuple[int, int], warps: int, causal: bool, queries: int = 256, keys: int = 512, kernel: str = "attention"
) -> Work:
    m, n = block
    options = {"head_size": head, "causal": causal, "block_m": m, "block_n": n, "num_warps": warps}
    label = f"{kernel} head {head}, {m}x{n}, {warps} warps{', causal' if causal else ''}"
    return Work(kernel, {"heads": 1, "queries": queries, "keys": keys, **options}, label=label)


def scaled_matmul(block: Block, formats: tuple[str, str], warps: int, stages: int = 2) -> Work:
    """Two blocks by two and four steps of elements in formats with scales."""
    m, n, k = block
    (a, b), label = formats, f"{m}x{n}x{k}, {warps} warps, {stages} stages, {' by '.join(formats)}"
    options = {"a_format": a, "b_format": b, "block_m": m, "block_n": n, "block_k": k, "num_warps": warps, "num_stages": stages}
    return Work("block_scaled_matmul", {"m": 2 * m, "n": 2 * n, "k": 4 * k, **options}, label=f"block_scaled_matmul {label}")


def matmuls() -> Iterator[Work]:
    for block, stages in product(MATMUL_BLOCKS, (1, 2, 3, 4)):
        yield matmul(block, 4, stages)
    for block in MATMUL_BLOCKS:
        yield matmul(block, 8)
        yield matmul(block, 4, ragged=True)
        yield matmul(block, 8, dtype="fp32")
    for more in ({"dtype": "bf16"}, {"accumulator": "fp16"}, {"a_layout": "columns"}, {"b_layout": "columns"}):
        yield matmul((128, 128, 32), 4, **more)
    yield matmul((64, 64, 32), 4, dtype="fp32", input_precision="ieee")


def attentions(kernel: str = "attention") -> Iterator[Work]:
    for head, block in product((32, 64, 128), ATTENTION_BLOCKS):
        yield attention(head, block, 4, causal=False, kernel=kernel)
    for block in ATTENTION_BLOCKS:
        yield attention(64, block, 8, causal=False, kernel=kernel)
    for head in (32, 64, 128):
        yield attention(head, (128, 64), 4, causal=True, kernel=kernel)


def rows() -> Iterator[Work]:
    for columns in (256, 512, 1024, 2048, 4096, 8192):
        yield Work("softmax", {"columns": columns, "dtype": "fp16"})
    for kernel, dtype in product(("softmax", *ROW_KERNELS), ("fp32", "bf16", "fp16")):
        yield Work(kernel, {"columns": 1000, "dtype": dtype})
    for kernel in ROW_KERNELS:
        yield Work(kernel, {"columns": 1024, "dtype": "fp32"})


def every_kernel() -> Iterator[Work]:
    """Each kernel of the library with its own defaults, which are small and ragged."""
    for name in KERNELS:
        yield Work(name, {}, label=f"{name}, defaults")


def amd_matmuls() -> Iterator[Work]:
    """Tiles up to 256x256, and few stages, as loads go through registers there."""
    for block, stages in product(((256, 256, 64), *MATMUL_BLOCKS), (1, 2, 3)):
        yield matmul(block, 8 if block[0] == 256 else 4, stages)
    for block in ((256, 256, 64), (256, 256, 32), (128, 128, 128)):
        yield matmul(block, 4, 2)
    for block in MATMUL_BLOCKS:
        yield matmul(block, 8, 2)
        yield matmul(block, 4, 2, ragged=True)
        yield matmul(block, 4, 2, dtype="bf16")
    for more in ({"accumulator": "fp16"}, {"a_layout": "columns"}, {"b_layout": "columns"}, {"dtype": "fp32"}):
        yield matmul((128, 128, 32), 4, 2, **more)
    yield matmul((64, 64, 32), 4, 2, dtype="fp32", input_precision="ieee")
    yield matmul((64, 64, 32), 4, 2, dtype="fp64")


@dataclass(frozen=True)
class Fp8Matmul(Work):
    """The library's product on operands of an 8-bit float, whose sums stay fp32: the kernel's own parameters name wider types."""

    def launch(self) -> Launch:
        found, rng = super().launch(), np.random.default_rng(self.seed)
        a, b = (operands.matrix(rng, "normal", found.buffer(name).array.shape, FP8, "rows") for name in ("a_ptr", "b_ptr"))
        return replace(found, arguments={**found.arguments, "a_ptr": a, "b_ptr": b})


def fp8_matmuls() -> Iterator[Work]:
    for block, warps in (((256, 256, 64), 8), ((128, 128, 64), 4), ((128, 128, 32), 4)):
        of = matmul(block, warps, 2, result="fp32")
        yield Fp8Matmul(of.name, of.parameters, label=of.label.replace("result fp32", FP8))


def scaled_matmuls() -> Iterator[Work]:
    """MXFP4, MXFP8 and both, where they have instructions of their own."""
    for formats in (("e2m1", "e2m1"), ("e4m3", "e4m3"), ("e4m3", "e2m1")):
        yield scaled_matmul((256, 256, 64), formats, 8)
        yield scaled_matmul((128, 128, 64), formats, 4)
        yield scaled_matmul((128, 128, 128), formats, 4)
        yield scaled_matmul((64, 64, 256), formats, 4)
    yield scaled_matmul((256, 256, 256), ("e2m1", "e2m1"), 8)


def amd_works() -> tuple[Work, ...]:
    return (*amd_matmuls(), *attentions(), *rows(), *every_kernel())


def all_works() -> tuple[Work, ...]:
    return (*matmuls(), *attentions(), *attentions("fp8_attention"), *rows(), *every_kernel())
