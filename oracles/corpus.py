"""The corpus: every case with Triton's code for a chip, compiled at test time and kept in a folder outside the repository.

    triton = corpus.Corpus(chips.SM80)
    for item in triton.load():        # or triton.load(["softmax", "matmul_f16"])
        item.name, item.code, item.entry, item.launch, item.inputs, item.expected, item.check(outputs)

Compiling needs `pip install triton==3.9.0` (no torch, no GPU). Where Triton is not importable, code that an earlier run left in
the folder is used; the folder is keyed by Triton's version and its files by all that shapes them.
`python -m oracles.corpus nvidia-sm80` fills it, from the root of the repository.
"""

from __future__ import annotations

import base64
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

from oracles import chips
from oracles.case import Argument, Case, Mismatch, Problem, mismatches
from oracles.chips import Chip

TRITON_VERSION = "3.9.0"
GROUPS = ("pointwise", "reduction", "matrix", "warpgroup", "movement", "control", "descriptors")
HIDDEN_POINTERS = 2  # Triton appends pointers to global and profiling scratch; both are null here


class TritonAbsentError(RuntimeError):
    """A case has not been compiled yet and Triton is not here to do it."""


Box = tuple[tuple[int, ...], int]
"""What the host makes a descriptor of: the shape of a box, outermost dimension first, and the bits of its swizzle."""


@dataclass(frozen=True)
class Launch:
    """How an entry is launched. `hidden` is the number of trailing null pointers; the first of them is to so many bytes of
    `scratch` a workgroup where there are any. `boxes` are those of its descriptors, in order."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared: int
    hidden: int = HIDDEN_POINTERS
    scratch: int = 0
    boxes: tuple[Box, ...] = ()


@dataclass(frozen=True)
class Item:
    """A case with its code for a chip and one set of launch data; `code` is what runs (text or bytes), `text` its assembly."""

    name: str
    code: str | bytes
    text: str
    entry: str
    launch: Launch
    case: Case
    problem: Problem
    chip: Chip

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


@dataclass(frozen=True)
class Compiled:
    """Triton's code of a case. `shared` is in bytes."""

    code: str | bytes
    text: str
    entry: str
    shared: int
    num_warps: int
    scratch: int = 0
    boxes: tuple[Box, ...] = ()


def all_cases() -> list[Case]:
    """Every case of every chip, in order; needs NumPy alone."""
    return [case for group in GROUPS for case in importlib.import_module(f"oracles.cases.{group}").CASES]


class Corpus:
    """The cases of one chip with Triton's code."""

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        self._read = functools.cache(_read)

    def cases(self) -> list[Case]:
        """Every case that Triton compiles for the chip, in order; needs NumPy alone."""
        return [case for case in all_cases() if case.chips is None or self.chip in case.chips]

    def case(self, name: str) -> Case:
        return next(case for case in self.cases() if case.name == name)

    def load(self, names: Iterable[str] | None = None, seed: int = 0) -> Iterator[Item]:
        """The named cases (all, when None) with code and launch data from `seed`; raises TritonAbsentError."""
        wanted = None if names is None else set(names)
        for case in self.cases():
            if wanted is None or case.name in wanted:
                yield self.item(case, seed)

    def item(self, case: Case, seed: int = 0, variant: int = 0) -> Item:
        """The case's code with launch data from `seed`: its own launch (variant 0), or its `variant`-th other one."""
        made = self._compiled(case)
        chosen = case if variant == 0 else case.variants[variant - 1]
        block = (self.chip.lanes * made.num_warps, 1, 1)
        along, *others = (*chosen.grid, 1, 1)[:3]
        grid = (along * case.num_ctas, *others)
        boxes = tuple((tuple(shape), bits) for shape, bits in made.boxes)
        launch = Launch(grid, block, made.shared, scratch=made.scratch, boxes=boxes)
        problem = chosen.problem(np.random.default_rng(seed))
        return Item(case.name, made.code, made.text, made.entry, launch, case, problem, self.chip)

    def available(self) -> str | None:
        """None when every case can be loaded, else why not."""
        if _triton_here():
            return None
        missing = [case.name for case in self.cases() if not self._path(case).exists()]
        return f"triton=={TRITON_VERSION} is not installed and {len(missing)} cases were not compiled before" if missing else None

    def _path(self, case: Case) -> Path:
        group = case.kernel.partition(".")[0]
        source = (Path(__file__).parent / "kernels" / f"{group}.py").read_text()
        parts = [
            TRITON_VERSION, self.chip, source, case.kernel, dict(case.signature), dict(case.constexprs), case.num_warps,
            case.num_stages, case.num_ctas,
        ]
        digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
        return folder() / f"{self.chip.target}-{case.name}-{digest}.json"

    def _compiled(self, case: Case) -> Compiled:
        path = self._path(case)
        if not path.exists():
            stored = _compile(case, self.chip)
            temporary = path.with_suffix(f".{os.getpid()}")
            temporary.write_text(json.dumps(stored))
            temporary.replace(path)
        return self._read(path)


@functools.cache
def folder() -> Path:
    """Where compiled code is kept: $TILEFW_TRITON_CORPUS, or a folder of this user below the temporary one."""
    named = os.environ.get("TILEFW_TRITON_CORPUS")
    path = Path(named) if named else Path(tempfile.gettempdir()) / f"tilefw-triton-{TRITON_VERSION}-{os.getuid()}"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def _triton_here() -> bool:
    return importlib.util.find_spec("triton") is not None


def _read(path: Path) -> Compiled:
    stored = json.loads(path.read_text())
    binary = stored.pop("binary")
    text = stored["text"]
    return Compiled(code=text if binary is None else base64.b64decode(binary), **stored)


def _compile(case: Case, chip: Chip) -> dict[str, object]:
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
        target=GPUTarget(*chip.triton),
        options={"num_warps": case.num_warps, "num_stages": case.num_stages, "num_ctas": case.num_ctas},
    )
    code = made.asm[chip.form]
    return {
        "binary": base64.b64encode(code).decode() if isinstance(code, bytes) else None,
        "text": made.asm[chip.text],
        "entry": made.metadata.name,
        "shared": made.metadata.shared,
        "num_warps": made.metadata.num_warps,
        "scratch": made.metadata.global_scratch_size,
        "boxes": [(one["block_size"], one["swizzle"]) for one in getattr(made.metadata, "tensordesc_meta", None) or ()],
    }


if __name__ == "__main__":
    [named, *wanted] = sys.argv[1:]
    for loaded in Corpus(next(chip for chip in chips.CHIPS if chip.target == named)).load(wanted or None):
        print(f"{loaded.name:28} {loaded.text.count(chr(10)):6} lines, {loaded.launch.dynamic_shared:6} bytes shared")
    print(folder())
