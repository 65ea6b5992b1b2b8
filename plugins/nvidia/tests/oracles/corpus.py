"""The corpus: every case with Triton's PTX for sm_80, compiled at test time and kept in a folder outside the repository.

    for item in corpus.load():        # or corpus.load(["softmax", "matmul_f16"])
        item.name, item.ptx, item.entry, item.launch, item.inputs, item.expected, item.check(outputs)

Compiling needs `pip install triton==3.9.0` (no torch, no GPU). Where Triton is not importable, PTX that an earlier run left in
the folder is used; the folder is keyed by Triton's version and its files by all that shapes them.
`python -m oracles.corpus` fills it (with plugins/nvidia/tests on PYTHONPATH).
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from oracles.case import Argument, Case, Mismatch, Problem, mismatches

TRITON_VERSION = "3.9.0"
TARGET = ("cuda", 80, 32)
GROUPS = ("pointwise", "reduction", "matrix", "movement")
HIDDEN_POINTERS = 2  # Triton appends pointers to global and profiling scratch; both are null here


class TritonAbsentError(RuntimeError):
    """A case has no PTX yet and Triton is not here to make it."""


@dataclass(frozen=True)
class Launch:
    """How an entry is launched. `hidden` is the number of trailing null pointers."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared: int
    hidden: int = HIDDEN_POINTERS


@dataclass(frozen=True)
class Item:
    """A case with its PTX and one set of launch data."""

    name: str
    ptx: str
    entry: str
    launch: Launch
    case: Case
    problem: Problem

    @property
    def inputs(self) -> Mapping[str, Argument]:
        """The arguments by name, in the entry's order, without the hidden ones."""
        return self.problem.arguments

    @property
    def expected(self) -> Mapping[str, object]:
        return self.problem.expected

    def check(self, outputs: Mapping[str, np.ndarray]) -> list[Mismatch]:
        """Where the buffers after the launch differ from what they must hold; empty when all is right."""
        return mismatches(self.problem, outputs)


def cases() -> list[Case]:
    """Every case, in order; needs NumPy alone."""
    return [case for group in GROUPS for case in importlib.import_module(f"oracles.cases.{group}").CASES]


def load(names: Iterable[str] | None = None, seed: int = 0) -> Iterator[Item]:
    """The named cases (all, when None) with PTX and launch data from `seed`; raises TritonAbsentError."""
    wanted = None if names is None else set(names)
    for case in cases():
        if wanted is None or case.name in wanted:
            yield item(case, seed)


def item(case: Case, seed: int = 0, variant: int = 0) -> Item:
    """The case's PTX with launch data from `seed`: its own launch (variant 0), or its `variant`-th other one."""
    ptx, facts = _compiled(case)
    chosen = case if variant == 0 else case.variants[variant - 1]
    launch = Launch((*chosen.grid, 1, 1)[:3], (32 * facts["num_warps"], 1, 1), facts["shared"])
    return Item(case.name, ptx, facts["entry"], launch, case, chosen.problem(np.random.default_rng(seed)))


@functools.cache
def folder() -> Path:
    """Where compiled PTX is kept: $TILEFW_TRITON_CORPUS, or a folder of this user below the temporary one."""
    named = os.environ.get("TILEFW_TRITON_CORPUS")
    path = Path(named) if named else Path(tempfile.gettempdir()) / f"tilefw-triton-{TRITON_VERSION}-{os.getuid()}"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def available() -> str | None:
    """None when every case can be loaded, else why not."""
    if _triton_here():
        return None
    missing = [case.name for case in cases() if not _path(case).exists()]
    return f"triton=={TRITON_VERSION} is not installed and {len(missing)} cases were not compiled before" if missing else None


def _triton_here() -> bool:
    return importlib.util.find_spec("triton") is not None


def _path(case: Case) -> Path:
    group = case.kernel.partition(".")[0]
    source = (Path(__file__).parent / "kernels" / f"{group}.py").read_text()
    parts = [
        TRITON_VERSION,
        TARGET,
        source,
        case.kernel,
        dict(case.signature),
        dict(case.constexprs),
        case.num_warps,
        case.num_stages,
    ]
    return folder() / f"{case.name}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}.json"


@functools.cache
def _read(path: Path) -> tuple[str, dict]:
    stored = json.loads(path.read_text())
    return stored["ptx"], stored


def _compiled(case: Case) -> tuple[str, dict]:
    path = _path(case)
    if not path.exists():
        stored = _compile(case)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(stored))
        temporary.replace(path)
    return _read(path)


def _compile(case: Case) -> dict:
    if not _triton_here():
        raise TritonAbsentError(f"{case.name}: install triton=={TRITON_VERSION} to compile it")
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # what 3.9 does by default, said aloud to silence its warning
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    if triton.__version__ != TRITON_VERSION:
        raise TritonAbsentError(f"triton {triton.__version__} is installed; the corpus is that of {TRITON_VERSION}")
    kernel = getattr(importlib.import_module(f"oracles.kernels.{case.kernel.partition('.')[0]}"), case.kernel.partition(".")[2])
    signature, hints = {}, {}
    for index, name in enumerate(kernel.arg_names):
        spelled, _, hint = case.signature.get(name, "constexpr").partition(":")
        signature[name] = spelled
        if hint:
            hints[(index,)] = [["tt.divisibility", int(hint)]]
    constexprs = {name: triton.language.dtype(value) if name == "ACCUMULATOR" else value for name, value in case.constexprs.items()}
    made = triton.compile(
        ASTSource(kernel, signature, constexprs, hints),
        target=GPUTarget(*TARGET),
        options={"num_warps": case.num_warps, "num_stages": case.num_stages},
    )
    return {
        "ptx": made.asm["ptx"],
        "entry": made.metadata.name,
        "shared": made.metadata.shared,
        "num_warps": made.metadata.num_warps,
    }


if __name__ == "__main__":
    for loaded in load(sys.argv[1:] or None):
        print(f"{loaded.name:28} {loaded.ptx.count(chr(10)):6} lines, {loaded.launch.dynamic_shared:6} bytes shared")
    print(folder())
