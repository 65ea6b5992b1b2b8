"""LLVM 22 takes the listing of every library kernel and of random programs for each chip, makes the same code of it, and reads the
same instructions back.

The oracle is run here, not through the backend: what the backend says of its own output is not evidence. The oldest chip takes all
combinations; later ones, whose listings are of the same kind, those of products and small formats, where their own instructions
are, and every sixth of the rest. An ordinary run takes each kernel as it is, on the oldest chip each operation, kind
and format, and every fourth of the others on each chip, and of the random programs every second; the rest is a campaign.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from served import CHIPS

from oracles.sampled import campaign
from tilefw.api import Artifact
from tilefw.api.errors import UsageError
from tilefw.kernels import elementwise_table, index, spec
from tilefw.kernels.reference import typed
from tilefw.runtime.compilation import compiler, kernel_source, options
from tilefw.runtime.jit import specialize
from tilefw.runtime.plugins import loader
from tilefw.testing import programs
from tilefw_amd.chips import Chip
from tilefw_amd.code_object import elf

_TOOLS = ("llvm-mc-22", "ld.lld-22", "llvm-objdump-22")
TOO_MUCH = (32,)  # warps: a workgroup of this chip has at most 16 waves
MATMULS = (
    {"block_m": 128, "block_n": 128, "block_k": 32, "num_warps": 4},
    {"block_m": 128, "block_n": 128, "block_k": 64, "num_warps": 8},
    {"block_m": 16, "block_n": 32, "block_k": 16, "num_warps": 1}, {"bias": True, "activation": "gelu"},
)
ATTENTIONS = ({"head_size": 128}, {"causal": True, "block_m": 128, "num_warps": 8}, {"queries": 100, "keys": 333})

Combination = tuple[str, Mapping[str, object]]
ATOMICS = {
    "add": ("int32", "uint32", "int64", "uint64", "fp16", "bf16", "fp32", "fp64"),
    **dict.fromkeys(("max", "min"), ("int32", "uint32", "int64", "uint64", "fp32", "fp64")),
    **dict.fromkeys(("and", "or", "xor"), ("int32", "int64")), "xchg": ("int32", "int64", "fp32", "fp64"),
    "cas": ("int16", "int32", "int64", "fp16", "bf16", "fp32", "fp64"),
}


# Parameters whose choices other combinations have: element types that are only moved are all in `strided_copy`, and kernels of new
# models are products, softmaxes and scans, whose types, warps and stages the others go through.
_NEW_MODELS = (
    "moe_topk", "moe_scatter", "moe_matmul", "windowed_attention", "attention_backward", "linear_attention", "paged_decode",
    "mla_decode", "merge_splits", "cross_entropy_backward", "dropout", "sample_logits",
)
_SHAPING = {"dtype", "num_warps", "num_stages", "input_precision", "b_layout", "spread", "rows"}
ELSEWHERE = {
    **dict.fromkeys(_NEW_MODELS, _SHAPING),
    "masks": {"dtype"}, "transpose": {"dtype"}, "atomic_mix": {"dtype", "operation"}, "dot_tile": {"a_dtype", "b_dtype"},
    "elementwise": {"operation"}, "reduce_tile": {"operation"}, "scan_tile": {"operation"},
}
_OF_BITS = ("xor", "or", "and")


def combinations() -> Iterator[Combination]:
    """Each kernel as it is, and with each choice of each parameter but inputs and sizes; products, attention in further tiles."""
    for info in index.KERNELS.values():
        yield info.name, {}
        for parameter in info.parameters:
            if _is_chosen(parameter) and parameter.name not in ELSEWHERE.get(info.name, ()):
                yield from ((info.name, {parameter.name: c}) for c in parameter.choices if c not in (parameter.default, *TOO_MUCH))
    yield from (("matmul", {"m": 256, "n": 256, "k": 256, **more}) for more in MATMULS)
    yield from (("attention", more) for more in ATTENTIONS)
    for operation, names in ATOMICS.items():
        yield from (("atomic_mix", {"operation": operation, "dtype": n, "mask": "none"}) for n in names)
    for operation, row in elementwise_table.OPERATIONS.items():
        yield "elementwise", {"operation": operation, "dtype": next(t for t in ("fp32", "int32", *row.types) if t in row.types)}
    for kernel, operations in (("reduce_tile", index.REDUCTIONS), ("scan_tile", index.SCANS)):
        yield from ((kernel, {"operation": o, "dtype": "int32" if o in _OF_BITS else "fp32"}) for o in operations if o != "sum")
    yield from (("dot_tile", {"a_dtype": n, "b_dtype": n}) for n in index.DOT_OPERANDS if n != "fp16")


def _is_chosen(parameter: index.ParameterInfo) -> bool:
    """Whether it is one of a few kinds, and not a size or how arrays are drawn."""
    size = isinstance(parameter.default, int) and not parameter.name.startswith("num_")
    return parameter.name != "inputs" and (not size or isinstance(parameter.default, bool))


def compiled(chip: Chip, name: str, parameters: Mapping[str, object]) -> Artifact | None:
    """The kernel, compiled as its launch would be; None where the library itself has no such combination."""
    chosen = spec.load(name)
    try:
        launch = chosen.prepare(chosen.resolve(parameters), np.random.default_rng(0))
    except UsageError:
        return None
    given = {**{key: typed(value) for key, value in launch.arguments.items()}, **launch.constexprs}
    signature, constexprs, _ = specialize(chosen.kernel, {p.name: given[p.name] for p in chosen.kernel.params})
    target = loader.find_target(chip.target)
    request = options.resolve(launch.keywords, target.info, facts=("under_2_gib", "disjoint"))
    source = kernel_source.from_jit(chosen.kernel, signature, constexprs)
    return compiler.compile_source(source, target, request, assemble=True).artifact


@pytest.fixture(scope="module")
def llvm() -> dict[str, str]:
    found = {tool: shutil.which(tool) for tool in _TOOLS}
    if None in found.values():
        pytest.skip(f"LLVM 22 ({', '.join(_TOOLS)}) is not installed")
    return {tool: str(path) for tool, path in found.items()}


def _run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


def _loaded(data: bytes) -> dict[str, bytes]:
    """What stands in memory, by section; the tables of symbols have their own test (`code_object/test_like_lld.py`)."""
    return {s.name: s.data for s in elf.Elf(data, "").sections if s.name in (".text", ".rodata", ".note")}


def _listed(text: str) -> list[str]:
    """The instructions of a listing; of a branch only what it is, as its target is a label here and a distance there."""
    lines = [line.strip() for line in text.partition("\t.amdgpu_metadata")[0].splitlines() if line.startswith("\t")]
    return [_without_target(line) for line in lines if not line.startswith(".")]


def _read_back(printed: str) -> list[str]:
    """The instructions that llvm-objdump prints, without those behind the end that guard what is fetched ahead."""
    lines = [line.partition("//")[0].strip() for line in printed.splitlines() if line.startswith("\t")]
    while lines and lines[-1] == "s_nop 0":
        lines.pop()
    return [_without_target(line) for line in lines]


def _without_target(line: str) -> str:
    return line.partition(" ")[0] if line.startswith(("s_branch", "s_cbranch")) else line


COMBINATIONS = list(combinations())
OWN = ("matmul", "attention", "dot", "fp8", "e4m3", "e5m2", "e2m1", "e2m3", "e3m2", "bf16")
"""What names the combinations in which chips after the oldest have most instructions of their own."""


def of_chip(chip: Chip) -> Iterator[Combination]:
    """The combinations that a chip's listings are made of."""
    for number, (name, parameters) in enumerate(COMBINATIONS):
        named = " ".join([name, *map(str, parameters.values())])
        if chip is CHIPS[0] or number % 6 == CHIPS.index(chip) or any(kind in named for kind in OWN):
            yield name, parameters


def test_an_ordinary_run_takes_each_operation_kind_and_format_on_the_oldest_chip() -> None:
    """A row that the library has no launch of would be skipped: it is none of an operation."""
    rows = list(of_chip(CHIPS[0]))
    taken = [row for row, marks in zip(rows, campaign(rows, 4, by_kind=True), strict=True) if not marks and _is_served(*row)]
    assert {p.get("operation") for name, p in taken if name == "elementwise"} >= set(elementwise_table.OPERATIONS)
    assert {p.get("operation", "sum") for name, p in taken if name == "reduce_tile"} == set(index.REDUCTIONS)
    assert {p.get("operation", "sum") for name, p in taken if name == "scan_tile"} == set(index.SCANS)
    assert {p.get("a_dtype", "fp16") for name, p in taken if name == "dot_tile"} == set(index.DOT_OPERANDS)
    assert {p.get("a_format", "e5m2") for name, p in taken if name == "dot_scaled_tile"} == set(index.SCALED_FORMATS)
    atomics = {(p.get("operation"), p.get("dtype")) for name, p in taken if name == "atomic_mix"}
    assert atomics >= {(operation, name) for operation, names in ATOMICS.items() for name in names}


def _is_served(name: str, parameters: Mapping[str, object]) -> bool:
    if name not in ("reduce_tile", "scan_tile", "dot_tile"):
        return True
    chosen = spec.load(name)
    try:
        return bool(chosen.prepare(chosen.resolve(parameters), np.random.default_rng(0)))
    except UsageError:
        return False


@pytest.mark.parametrize(("chip", "name", "parameters"), [
    pytest.param(chip, name, parameters, id="-".join([str(chip), name, *(f"{k}={v}" for k, v in parameters.items())]), marks=marks)
    for chip in CHIPS
    for (name, parameters), marks in zip(of_chip(chip), campaign(of_chip(chip), 4, by_kind=chip is CHIPS[0]), strict=True)
])
def test_llvm_makes_the_same_code_and_reads_it_back(
    chip: Chip, name: str, parameters: Mapping[str, object], llvm: dict[str, str], tmp_path: Path
) -> None:
    artifact = compiled(chip, name, parameters)
    if artifact is None:
        pytest.skip("the library has no such combination")
    agree(chip, artifact, llvm, tmp_path)


@pytest.mark.parametrize("index", [pytest.param(i, marks=pytest.mark.campaign if i % 2 else ()) for i in range(20)])
@pytest.mark.parametrize("chip", CHIPS, ids=str)
def test_llvm_makes_the_same_code_of_a_random_program(chip: Chip, index: int, llvm: dict[str, str], tmp_path: Path) -> None:
    """Every row of the elementwise table, on every type: more instructions than the library's kernels have."""
    agree(chip, programs.compiled(programs.numbered(11, 7 * index), chip.target), llvm, tmp_path)


def agree(chip: Chip, artifact: Artifact, llvm: dict[str, str], folder: Path) -> None:
    """LLVM makes of the artifact's text what is in its bytes, and reads in its bytes what its text says."""
    assert artifact.binary is not None
    (folder / "ours.s").write_text(artifact.text)
    (folder / "ours.hsaco").write_bytes(artifact.binary)
    _run(folder, llvm["llvm-mc-22"], "-triple=amdgcn-amd-amdhsa", f"-mcpu={chip.name}", "-filetype=obj", "-o", "theirs.o", "ours.s")
    _run(folder, llvm["ld.lld-22"], "-shared", "-o", "theirs.hsaco", "theirs.o")
    assert _loaded(artifact.binary) == _loaded((folder / "theirs.hsaco").read_bytes())
    assert _read_back(_run(folder, llvm["llvm-objdump-22"], "-d", "ours.hsaco")) == _listed(artifact.text)
