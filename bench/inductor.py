"""PyTorch's compiler with tilefw behind `triton`: what Inductor writes for functions of PyTorch compiles and gives their results.

    python bench/inductor.py                          # a process for each target; writes inductor.md
    python bench/inductor.py --target nvidia-sm80 WORD…   # functions whose names have all words, on one target; writes nothing

`inductor_functions.py` has the functions. Random ones are not compared: Inductor's numbers are not PyTorch's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import per_target
from per_target import Row

TARGETS = ("reference", "nvidia-sm80", "amd-cdna3")


def one_target(target: str, words: Sequence[str]) -> Iterator[Row]:
    """Every function on one target. Triton must not be imported before tilefw stands in its place."""
    os.environ["TILEFW_CACHE"] = "0"
    import tilefw
    import tilefw.triton
    from tilefw.triton.importing import leave_torch

    tilefw.triton.install()
    import torch

    leave_torch()  # its tensors are the host's here, and say so
    from torch._inductor import async_compile, config

    tilefw.set_target(target)
    config.cpu_backend, config.compile_threads, config.force_disable_caches = "triton", 1, True
    kernels: list[str] = []
    compile_one = async_compile.AsyncCompile.triton

    def counted(self: Any, kernel_name: str, source_code: str, device_str: str = "cuda") -> Any:
        kernels.append(kernel_name)
        return compile_one(self, kernel_name, source_code, device_str)

    async_compile.AsyncCompile.triton = counted
    import inductor_functions

    for name, function, args in inductor_functions.functions():
        if all(word in name for word in words):
            kernels.clear()
            torch._dynamo.reset()
            said = outcome(function, args, name in inductor_functions.RANDOM)
            yield {"function": name, "kernels": len(kernels), "said": said}


def outcome(function: Any, args: Sequence[Any], random: bool) -> str:
    """What is wrong with one function, nothing where all is right."""
    import torch

    try:
        found = torch.compile(function)(*[a.clone() for a in args])
    except Exception as error:
        text = str(error)
        return text[max(text.find("error["), 0) :].partition("\n")[0][:200]
    due = function(*[a.clone() for a in args])
    if random:
        return ""
    for one, wanted in zip(_several(found), _several(due), strict=True):
        # Inductor computes float16 and bfloat16 in float32, and PyTorch's own kernels have errors of their own.
        if not torch.allclose(one.double(), wanted.double(), rtol=2e-3, atol=1e-4, equal_nan=True):
            return "wrong"
    return ""


def _several(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def page(rows: dict[str, list[Row]]) -> str:
    lines = [
        "# PyTorch's compiler with tilefw behind `triton`", "",
        "Written by `bench/inductor.py`: Inductor of PyTorch 2.13 writes Triton kernels for tensors of the host",
        "(`config.cpu_backend = \"triton\"`), tilefw compiles them, the target's simulator runs them, and results are compared",
        "with PyTorch's own. A function without kernels is one that Inductor leaves to PyTorch.", "",
        "| target | functions | with kernels | kernels | right |", "| --- | --- | --- | --- | --- |",
    ]
    for target, found in rows.items():
        made = [row for row in found if row["kernels"]]
        right = sum(not row["said"] for row in made)
        lines.append(f"| {target} | {len(found)} | {len(made)} | {sum(row['kernels'] for row in made)} | {right} |")
    wrong = [f"- {target}, {row['function']}: {row['said']}" for target, found in rows.items() for row in found if row["said"]]
    lines += ["", "What is not right:", "", *wrong] if wrong else []
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(per_target.main(__file__, __doc__, TARGETS, one_target, lambda row: not row["said"], page))
