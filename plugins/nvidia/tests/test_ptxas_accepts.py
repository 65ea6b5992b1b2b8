"""NVIDIA's assembler accepts every listing of the kernel library for each chip, and spills no register.

The oracle is run here, not through the backend: what the backend says of its own output is not evidence. Chips after the oldest
have its listings but for their first lines and what they do with 8-bit floats: they take all of those, and every sixth of the rest.
An ordinary run takes each kernel's first combination, the oldest chip's of each operation, kind and format, and every third of
the others on each chip; the rest is a campaign.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from chips_here import CHIPS, OLDEST

import tilefw
from oracles.sampled import campaign
from tilefw.kernels import elementwise_table, index, spec
from tilefw.kernels.spec import Buffer, Launch
from tilefw.runtime.arguments.kernel_parameter import signature_name
from tilefw.runtime.jit import JITFunction
from tilefw.testing import programs
from tilefw_nvidia.chips import Chip

Combination = tuple[str, dict[str, object]]
ATOMICS = {
    "add": ("int32", "uint32", "int64", "uint64", "fp16", "bf16", "fp32", "fp64"),
    **dict.fromkeys(("max", "min"), ("int32", "uint32", "int64", "uint64", "fp32", "fp64")),
    **dict.fromkeys(("and", "or", "xor"), ("int32", "int64")), "xchg": ("int32", "int64", "fp32", "fp64"),
    "cas": ("int16", "int32", "int64", "fp16", "bf16", "fp32", "fp64"),
}


def ptxas() -> str | None:
    """ptxas 12.9 from NVIDIA's wheel, or the one that Triton ships; any other version is not an oracle for this."""
    wheel = find_spec("nvidia.cuda_nvcc") if find_spec("nvidia") else None
    folders = [Path(place) / "bin" for place in (wheel.submodule_search_locations or ())] if wheel else []
    triton = find_spec("triton")
    if triton and triton.origin:
        folders.append(Path(triton.origin).parent / "backends" / "nvidia" / "bin")
    for folder in folders:
        found = shutil.which("ptxas", path=str(folder))
        if found and "release 12.9" in subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout:
            return found
    return None


def combinations() -> Iterator[Combination]:
    """Kernel, element type, shape and options: every dtype of every kernel, ragged and aligned shapes, 1 to 8 warps."""
    for name in index.FLOATS + index.INTEGERS:
        yield "vector_add", {"dtype": name, "n": 4096, "block": 1024}
    for warps, block, n in ((1, 32, 31), (2, 512, 5000), (8, 4096, 8192), (4, 64, 1)):
        yield "vector_add", {"num_warps": warps, "block": block, "n": n}
    for name in index.FLOATS:
        for approximation in ("erf", "tanh"):
            yield "gelu_bias_residual", {"dtype": name, "approximation": approximation}
        yield "swiglu", {"dtype": name}
        yield "swiglu", {"dtype": name, "columns": 1024, "block": 1024, "num_warps": 8}
        for interleaved in (False, True):
            yield "rope", {"dtype": name, "interleaved": interleaved}
    yield "rope", {"rotary_size": 32, "heads": 1, "num_warps": 1}
    yield from _casts()
    for source in ("fp32", "bf16", "fp16"):
        for result in ("int8", "fp8e4nv", "fp8e5"):
            yield "quantize", {"dtype": source, "result": result}
    for name, positions in (("fp16", "int64"), ("fp32", "int32"), ("int8", "uint32"), ("fp64", "int64"), ("bf16", "int32")):
        yield "embedding", {"dtype": name, "index_dtype": positions}
    for layout in ("contiguous", "transposed", "padded", "every_third_column", "reversed", "repeated_row"):
        yield "strided_copy", {"source_layout": layout}
    for name in ("int8", "fp16", "fp64", "fp8e4nv", "fp4e2m1", "int4"):
        yield "strided_copy", {"dtype": name, "result_layout": "transposed"}
    for name in index.INTEGERS:
        yield "integer_mix", {"dtype": name}
    yield "integer_mix", {"dtype": "int64", "divisor": 1, "num_warps": 8, "block": 1024}
    yield from _rows()
    yield from _products()
    yield from _attentions()
    yield from _new_models()
    yield from _atomics()
    yield from _control_and_memory()
    yield from _single_operations()


def _casts() -> Iterator[Combination]:
    """From and to each element type by way of fp32 and int32, and the roundings."""
    for name in index.ALL_DTYPES:
        yield "cast", {"source": "fp32", "result": name}
        yield "cast", {"source": name, "result": "fp32"}
    for name in index.INTEGERS:
        yield "cast", {"source": name, "result": "int16"}
        yield "cast", {"source": "fp64", "result": name}
    for name in ("fp16", "bf16", "fp8e5"):
        yield "cast", {"source": "fp32", "result": name, "rounding": "rtz"}


def _rows() -> Iterator[Combination]:
    """Reductions along rows and across them: every type, one warp and many, one tile a row and several."""
    for name in index.FLOATS:
        for kernel in ("softmax", "layernorm", "layernorm_backward", "rmsnorm", "cross_entropy", "welford", "matvec"):
            yield kernel, {"dtype": name}
    for warps in (1, 2, 8):
        yield "softmax", {"columns": 1024, "num_warps": warps}
        yield "layernorm", {"columns": 1024, "num_warps": warps, "dtype": "fp32"}
        yield "argmax", {"num_warps": warps, "columns": 256}
    for columns in (100, 512, 2048):
        for kernel in ("layernorm", "rmsnorm", "layernorm_backward"):
            yield kernel, {"columns": columns, "dtype": "bf16"}
    for order in ("columns", "padded"):
        yield "matvec", {"a_layout": order}
    yield "softmax", {"columns": 3000, "block": 1024, "dtype": "fp32"}
    yield "rmsnorm", {"columns": 3000, "block": 1024}
    yield "cross_entropy", {"classes": 5000, "smoothing": 0.1, "label_dtype": "int32"}
    for name in ("fp64", "bf16", "int8", "uint16", "int32", "int64"):
        yield "column_sum", {"dtype": name}
        yield "argmax", {"dtype": name, "operation": "argmin"}
        yield "transpose", {"dtype": name}


def _products() -> Iterator[Combination]:
    """Products: operand types, memory orders, stages, block shapes and epilogues."""
    for name in index.FLOATS:
        yield "matmul", {"dtype": name, "block_m": 32, "block_n": 32} if name == "fp64" else {"dtype": name}
    for name in ("fp32", "bf16", "fp16"):
        yield "batched_matmul", {"dtype": name}
        yield "grouped_matmul", {"dtype": name}
    for precision in ("tf32x3", "ieee"):
        yield "matmul", {"dtype": "fp32", "input_precision": precision, "block_m": 32, "block_n": 32}
    for a, b in (("rows", "columns"), ("columns", "rows"), ("columns", "columns"), ("padded", "padded")):
        yield "matmul", {"a_layout": a, "b_layout": b, "m": 128, "n": 128, "k": 128}
        yield "int8_matmul", {"a_layout": a, "b_layout": b}
    for stages in (1, 2, 4, 5):
        yield "matmul", {"m": 128, "n": 128, "k": 128, "num_stages": stages}
    for m, n, k, warps in ((128, 128, 32, 4), (128, 128, 64, 8), (64, 64, 32, 4), (16, 32, 16, 1), (128, 64, 32, 2)):
        yield "matmul", {"m": 256, "n": 256, "k": 256, "block_m": m, "block_n": n, "block_k": k, "num_warps": warps}
    for activation in ("relu", "gelu", "silu"):
        yield "matmul", {"bias": True, "activation": activation}
    yield "matmul", {"accumulator": "fp16"}
    for name in ("e4m3", "e2m1"):
        yield "block_scaled_matmul", {"a_format": name, "b_format": name}
    yield "batched_matmul", {"shared_b": True, "b_layout": "columns"}


def _attentions() -> Iterator[Combination]:
    """Chained products: head sizes, types, masks, and heads that share keys."""
    for size, causal in ((16, False), (40, True), (64, True), (128, False)):
        yield "attention", {"head_size": size, "causal": causal}
    for queries, keys in ((1, 128), (128, 128), (100, 333)):
        yield "attention", {"queries": queries, "keys": keys}
    yield "attention", {"dtype": "bf16", "heads": 4, "kv_heads": 2, "layout": "positions_first"}
    yield "attention", {"dtype": "fp32", "head_size": 32, "block_m": 32}
    yield "attention", {"block_m": 128, "block_n": 64, "num_warps": 8, "num_stages": 3}
    for size, warps in ((32, 4), (64, 4), (128, 8)):
        yield "fp8_attention", {"head_size": size, "num_warps": warps}


def _new_models() -> Iterator[Combination]:
    """Mixtures of experts, attention of every kind, sampling: each as it is, and one where another type shapes its products."""
    yield from ((name, {}) for name in (
        "moe_topk", "moe_scatter", "moe_matmul", "windowed_attention", "attention_backward", "linear_attention", "paged_decode",
        "mla_decode", "merge_splits", "cross_entropy_backward", "dropout", "sample_logits",
    ))
    yield "windowed_attention", {"soft_cap": 20.0, "head_size": 64, "block_m": 64, "num_warps": 4, "dtype": "bf16"}
    yield "attention_backward", {"head_size": 64, "block_m": 32, "block_n": 32, "num_warps": 4, "causal": False}


def _atomics() -> Iterator[Combination]:
    """Every kind of each of its element types; orders and scopes, with the old values and without; what loops are made for."""
    for operation, names in ATOMICS.items():
        for name in names:
            yield "atomic_mix", {"operation": operation, "dtype": name, "mask": "none" if operation == "cas" else "tail"}
    for order in ("relaxed", "acquire", "release", "acq_rel"):
        for scope in ("cta", "gpu", "sys"):
            yield "atomic_mix", {"order": order, "scope": scope, "block": 128, "num_warps": 4}
        yield "atomic_mix", {"order": order, "share": 4, "dtype": "bf16", "mask": "alternating"}
    for name in ("int32", "fp16", "fp64"):
        yield "atomic_mix", {"scalar": True, "dtype": name}
    yield from ((name, {}) for name in ("histogram", "split_k_matmul", "locked_accumulate", "grid_argmax", "chained_sum"))
    yield "chained_sum", {"wait": "poll"}
    yield "chained_sum", {"wait": "timed"}


def _control_and_memory() -> Iterator[Combination]:
    """Masks of every kind, arguments that share memory, volumes, offsets of 64 bits, trip counts from memory."""
    for mask in index.MASKS:
        yield "masks", {"mask": mask, "dtype": "fp16"}
    for other in ("zero", "scalar", "tile"):
        yield "masks", {"mask": "triangle", "other": other, "dtype": "int8"}
    for views in index.VIEWS:
        yield "shared_buffers", {"views": views}
    for far, stride in (("x", "int64"), ("x", "pointer"), ("out", "int64"), ("out", "pointer")):
        yield "far_rows", {"far": far, "stride": stride, "reach": 3}
    for reports in index.REPORTS:
        yield "reported_ratio", {"reports": reports}
    for name, order in (("fp64", "rows_columns_depth"), ("fp32", "depth_rows_columns"), ("bf16", "columns_rows_depth")):
        yield "stencil", {"dtype": name, "memory_order": order}
    for loop in index.LOOPS:
        yield "ragged_sums", {"loop": loop}
    yield "sparse_matvec", {}
    yield "sparse_matvec", {"dtype": "bf16", "num_stages": 5, "num_warps": 1}


def _single_operations() -> Iterator[Combination]:
    """Each elementwise operation, each reduction, each move, dots of every type."""
    for operation, row in elementwise_table.OPERATIONS.items():
        yield "elementwise", {"operation": operation, "dtype": next(t for t in ("fp32", "int32", *row.types) if t in row.types)}
    for operation in index.REDUCTIONS:
        yield "reduce_tile", {"operation": operation, "dtype": "int32", "columns": 32}
        yield "reduce_tile", {"operation": operation, "dtype": "int8", "axis": "1", "columns": 32}
    for operation in ("sum", "product", "latest", "recurrence"):
        yield "scan_tile", {"operation": operation}
        yield "scan_tile", {"operation": operation, "dtype": "fp16", "axis": "1", "reverse": True, "num_warps": 8}
    yield "selective_scan", {}
    for operation in index.REARRANGEMENTS:
        yield "rearrange", {"operation": operation, "dtype": "fp16"}
    for name in index.DOT_OPERANDS:
        yield "dot_tile", {"a_dtype": name, "b_dtype": name}
    for name in index.SCALED_FORMATS:
        yield "dot_scaled_tile", {"a_format": name, "b_format": "e4m3", "m": 16, "n": 16}
    for kind in ("bits", "words", "uniform", "normal"):
        yield "random_numbers", {"kind": kind}
    for operation in ("sort", "merge", "topk"):
        yield "sort_tile", {"operation": operation}
    for axis in ("0", "1"):
        yield "gather_tile", {"axis": axis}
    for name in ("block_pointer_matmul", "descriptor_matmul", "descriptor_rows"):
        yield name, {}
    yield "dot_tile", {"batch": 4, "m": 16, "n": 16, "k": 16}
    yield "dot_tile", {"a_dtype": "fp8e5", "b_dtype": "fp8e4nv", "accumulator": "fp16"}


COMBINATIONS = list(combinations())
EIGHT_BITS = ("fp8", "e4m3", "e5m2")


def of_chip(chip: Chip) -> Iterator[Combination]:
    """The combinations that a chip's listings are made of."""
    for number, (name, parameters) in enumerate(COMBINATIONS):
        named = " ".join([name, *map(str, parameters.values())])
        if chip is OLDEST or number % 6 == CHIPS.index(chip) or any(kind in named for kind in EIGHT_BITS):
            yield name, parameters


def signature_of(kernel: JITFunction, launch: Launch) -> tuple[dict[str, str], dict[str, object]]:
    """What a launch with these arguments specialises on: aligned pointers, numbers divisible by 16, ones and None folded."""
    specialised = {parameter.name for parameter in kernel.params if parameter.specialize}
    signature: dict[str, str] = {}
    constexprs: dict[str, object] = dict(launch.constexprs)
    for name, value in launch.arguments.items():
        if value is None:
            constexprs[name] = None
        elif isinstance(value, Buffer):
            signature[name] = f"*{signature_name(value.dtype)}:16"
        elif isinstance(value, float):
            signature[name] = "fp32"
        else:
            hint = ":1" if value == 1 else ":16" if value % 16 == 0 else ""
            signature[name] = "i32" + (hint if name in specialised else "")
    return signature, constexprs


def compiled(name: str, parameters: Mapping[str, object], chip: Chip) -> tilefw.Artifact:
    chosen = spec.load(name)
    launch = chosen.prepare(chosen.resolve(parameters), np.random.default_rng(0))
    signature, constexprs = signature_of(chosen.kernel, launch)
    return tilefw.compile(chosen.kernel, target=chip.target, signature=signature, constexprs=constexprs, **launch.keywords)


@pytest.fixture(scope="module")
def assembler() -> str:
    found = ptxas()
    if found is None:
        pytest.skip("ptxas 12.9 is not installed (pip install nvidia-cuda-nvcc-cu12==12.9.86)")
    return found


def test_the_matrix_is_as_wide_as_promised() -> None:
    assert len({(name, repr(sorted(parameters.items()))) for name, parameters in COMBINATIONS}) >= 440
    assert {name for name, _ in COMBINATIONS} == set(index.KERNELS)


def test_an_ordinary_run_takes_each_operation_kind_and_format_on_the_oldest_chip() -> None:
    rows = list(of_chip(OLDEST))
    taken = [row for row, marks in zip(rows, campaign(rows, 3, by_kind=True), strict=True) if not marks]
    assert {p["operation"] for name, p in taken if name == "elementwise"} == set(elementwise_table.OPERATIONS)
    assert {p["operation"] for name, p in taken if name == "reduce_tile"} == set(index.REDUCTIONS)
    assert {p.get("a_dtype") for name, p in taken if name == "dot_tile"} >= set(index.DOT_OPERANDS)
    assert {p["a_format"] for name, p in taken if name == "dot_scaled_tile"} == set(index.SCALED_FORMATS)
    atomics = {(p.get("operation"), p.get("dtype")) for name, p in taken if name == "atomic_mix"}
    assert atomics >= {(operation, name) for operation, names in ATOMICS.items() for name in names}


@pytest.mark.parametrize(("chip", "name", "parameters"), [
    pytest.param(chip, name, parameters, id=f"{chip}-{name}-" + "-".join(map(str, parameters.values())), marks=marks)
    for chip in CHIPS
    for (name, parameters), marks in zip(of_chip(chip), campaign(of_chip(chip), 3, by_kind=chip is OLDEST), strict=True)
])
def test_the_assembler_accepts_the_listing_without_spills(
    chip: Chip, name: str, parameters: dict[str, object], assembler: str, tmp_path: Path
) -> None:
    listing = tmp_path / "kernel.ptx"
    listing.write_text(compiled(name, parameters, chip).text)
    command = [assembler, "-v", f"-arch={chip.name}", "-o", str(tmp_path / "kernel.cubin"), str(listing)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    spills = [int(n) for n in re.findall(r"(\d+) bytes spill (?:stores|loads)", ran.stderr)]
    assert spills and not any(spills), ran.stderr


@pytest.mark.parametrize("index", range(0, 300, 50))
def test_the_assembler_accepts_random_programs(index: int, assembler: str, tmp_path: Path) -> None:
    """A few of those that `bench/assembled.py` gives to several assemblers, for the newest chip here."""
    chip = CHIPS[-1]
    listing = tmp_path / "program.ptx"
    listing.write_text(programs.compiled(programs.numbered(1, index), chip.target).text)
    command = [assembler, f"-arch={chip.name}", "-o", str(tmp_path / "program.cubin"), str(listing)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
