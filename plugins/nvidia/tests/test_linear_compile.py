"""A compile's work is linear in the instructions that it emits: the last thousand of them take no more than the first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tilefw.api.backend import CompileOptions
from tilefw.kernels.reference import typed
from tilefw.kernels.spec import load
from tilefw.runtime.compilation import compiler, kernel_source, options
from tilefw.runtime.jit import specialize
from tilefw.runtime.plugins.loader import Target, find_target
from tilefw.testing.work import lines_run

# Kernels on one warp, whose threads hold all of a tile, with the parameter that grows and where it begins.
FAMILIES = [
    ("vector_add", "block", 2048, {}),
    ("softmax", "columns", 1024, {}),
    ("welford", "block_rows", 4, {"block_columns": 128, "columns": 128}),
    ("reduce_tile", "layers", 2, {"operation": "argmax", "rows": 16, "columns": 128, "axis": "2"}),
    ("reduce_tile", "layers", 2, {"operation": "argmax", "rows": 32, "columns": 64, "axis": "0"}),
    ("transpose", "block_rows", 32, {"block_columns": 32}),
    ("matmul", "block_m", 32, {"dtype": "fp16", "block_n": 64, "block_k": 32}),
    ("matmul", "block_m", 16, {"dtype": "fp32", "input_precision": "ieee", "block_n": 32, "block_k": 16}),
    ("attention", "block_m", 16, {"dtype": "fp16", "head_size": 32, "block_n": 32}),
]


def request(name: str, parameters: dict[str, Any], target: Target) -> tuple[kernel_source.ModuleSource, CompileOptions]:
    spec = load(name)
    launch = spec.prepare(spec.resolve({**parameters, "num_warps": 1}), np.random.default_rng(0))
    bound = {**{n: typed(v) for n, v in launch.arguments.items()}, **launch.constexprs}
    signature, constexprs, _ = specialize(spec.kernel, {p.name: bound[p.name] for p in spec.kernel.params})
    source = kernel_source.from_jit(spec.kernel, signature, constexprs)
    return replace(source, key=None), options.resolve(launch.keywords, target.info)  # without a key nothing is cached


def work(name: str, parameters: dict[str, Any]) -> tuple[int, int]:
    """Lines of Python that the compile runs, and the instructions of the PTX."""
    target = find_target("nvidia-sm80")
    source, wanted = request(name, parameters, target)

    def compile() -> compiler.CompiledArtifact:
        return compiler.compile_source(source, target, wanted)

    instructions = compile().artifact.text.count(";\n")
    return lines_run(compile), instructions


@pytest.mark.parametrize(("name", "grows", "first", "fixed"), FAMILIES, ids=lambda value: value if isinstance(value, str) else "")
def test_more_instructions_take_no_more_work_each(name, grows, first, fixed):
    sizes = (first, 2 * first, 4 * first)
    (least, few), (some, more), (most, many) = (work(name, {**fixed, grows: size}) for size in sizes)
    before, after = (some - least) / (more - few), (most - some) / (many - more)
    assert many - more > 1.3 * (more - few), "else nothing grew"
    assert after < 1.3 * before, f"{before:.0f} lines an instruction from {few} to {more}, {after:.0f} from {more} to {many}"
