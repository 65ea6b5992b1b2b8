"""The kernels that bench/sanitizer.py launches: the corpus of `oracles` and tilefw's library, in Triton's language.

Each is launched as a user does, by Triton's own `kernel[grid](…)` on PyTorch's tensors. Its result is judged from outside of
Triton: the corpus by NumPy with error bounds, the library by the reference interpreter's values and bounds, which NumPy's own
expression must meet as well.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from oracles.case import Argument, Case, InOut, Input, Number, Output, mismatches
from oracles.chips import CHIPS
from oracles.corpus import Corpus
from tilefw.api.device import DEFAULT_BUDGET
from tilefw.kernels import spec as library
from tilefw.kernels.index import KERNELS
from tilefw.kernels.instance import instance
from tilefw.kernels.reference import Reference
from tilefw.kernels.spec import Buffer
from tilefw.runtime.arguments.arrays import is_array

# What a library kernel of this name asks for that Triton 3.9 does not have, or has by another meaning.
NOT_TRITONS = {
    "locked_accumulate": "Triton orders no other wave's load before a relaxed atomic on the same place: a race, and found",
    "block_pointer_matmul": "block pointers are gone since Triton 3.9",
}
_STORED = {"bf16": "bfloat16", "fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2", "fp8e4b8": "float8_e4m3fnuz", "int1": "bool"}


@dataclass(frozen=True)
class Subject:
    """One launch: `judge` says after it what is wrong with the result, nothing where it is right."""

    name: str
    kernel: Any
    arguments: Mapping[str, Any]
    grid: tuple[int, ...]
    keywords: Mapping[str, Any]
    judge: Callable[[], str]

    def run(self) -> str:
        self.kernel[self.grid](**self.arguments, **self.keywords)
        return self.judge()


def subjects(target: str) -> Iterator[tuple[str, Callable[[], Subject]]]:
    """The name of every kernel, and what makes its launch. A kernel of the corpus is launched by its first case."""
    corpus = Corpus(next(chip for chip in CHIPS if chip.target == target))
    first: dict[str, Case] = {}
    for case in corpus.cases():
        first.setdefault(case.kernel, case)
    for kernel, case in first.items():
        yield f"corpus {kernel.rpartition('.')[2]}", lambda case=case: of_corpus(case)
    for name in KERNELS:
        if name not in NOT_TRITONS:
            yield f"library {name}", lambda name=name: of_library(name)


def of_corpus(case: Case, kernel: Any = None) -> Subject:
    """A case of the corpus, or another kernel with its launch."""
    problem = case.problem(np.random.default_rng(1))
    tensors = {name: _tensor_of(argument) for name, argument in problem.arguments.items()}
    group, _, function = case.kernel.partition(".")
    found = kernel or getattr(importlib.import_module(f"oracles.kernels.{group}"), function)

    def judge() -> str:
        left = {name: _array(tensors[name], problem.arguments[name]) for name in problem.expected}
        return "; ".join(map(str, mismatches(problem, left)))

    keywords = {**_triton_values(case.constexprs), "num_warps": case.num_warps, "num_stages": case.num_stages}
    return Subject(case.name, found, tensors, case.grid, keywords, judge)


def of_library(name: str, parameters: Mapping[str, Any] | None = None) -> Subject:
    """A kernel of tilefw's library with its default parameters, which are small and ragged."""
    from library import in_triton

    chosen = library.load(name)
    given = chosen.resolve(parameters or {})
    launch = chosen.prepare(given, np.random.default_rng(1))
    made = instance(chosen, launch)
    with np.errstate(all="ignore"):
        expression = chosen.expected(given, launch)
    reference = Reference(made.source.build(), launch.grid, made.passed, budget=DEFAULT_BUDGET)
    arguments = {key: tensor(value) if isinstance(value, Buffer) else value for key, value in launch.arguments.items()}

    def judge() -> str:
        compared = {key: reference.compare(key) for key in launch.outputs}
        compared |= {f"{key} (NumPy)": reference.compare_values(key, expression[key]) for key in launch.outputs}
        return "; ".join(f"{key}: {one}" for key, one in compared.items() if one.wrong)

    keywords = {**_triton_values(launch.constexprs), **launch.keywords}
    return Subject(name, in_triton(chosen.kernel, {}), arguments, launch.grid, keywords, judge)


def _triton_values(constexprs: Mapping[str, Any]) -> dict[str, Any]:
    """Compile-time values as Triton spells them; the corpus names types by words."""
    import triton.language
    from library import in_triton_value

    return {
        name: triton.language.dtype(value) if name == "ACCUMULATOR" and isinstance(value, str) else in_triton_value(value, {})
        for name, value in constexprs.items()
    }


def tensor(buffer: Buffer) -> Any:
    """A tensor on the buffer's own memory."""
    import torch

    name = _STORED.get(buffer.dtype)
    words = buffer.array if name is None else buffer.array.view(f"i{buffer.array.itemsize}")
    made = torch.from_numpy(words)
    return made if name is None else made.view(getattr(torch, name))


def _tensor_of(argument: Argument) -> Any:
    """A tensor of its own, of which the elements that nobody wrote are those that `torch.empty` left."""
    import torch

    if isinstance(argument, Number):
        return argument.value
    shape = argument.shape if isinstance(argument, Output) else argument.array.shape
    kind = _dtype(argument)
    made = torch.empty(shape, dtype=getattr(torch, kind.name), device="cuda")
    assert is_array(made)
    if isinstance(argument, Output):
        return made
    written = argument.written if isinstance(argument, Input) else None
    held, given = _raw(made), np.ascontiguousarray(argument.array).view(f"u{kind.itemsize}")
    np.copyto(held, given, where=True if written is None else written)
    return made


def _array(made: Any, argument: Argument) -> np.ndarray:
    assert isinstance(argument, Output | InOut)
    return _raw(made).view(_dtype(argument))


def _dtype(argument: Input | InOut | Output) -> np.dtype:
    found: Any = argument.dtype if isinstance(argument, Output) else argument.array.dtype
    return np.dtype(found)


def _raw(made: Any) -> np.ndarray:
    """The tensor's elements as unsigned words, on its memory."""
    import torch

    words = made.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[made.element_size()])
    return words.numpy().view(f"u{made.element_size()}")
