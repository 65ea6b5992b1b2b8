"""The peer's side of simulation, in a process of its own: a workload's kernel under TRITON_INTERPRET=1, one thread.

python interpreted.py NAME ROUNDS        prints the processor's seconds of each round, one a line
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable


def main(name: str, rounds: int) -> None:
    os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is decorated
    import torch
    import workloads

    torch.set_num_threads(1)
    launch = _library(name) if name in workloads.LIBRARY else _corpus(name)
    for _ in range(rounds):
        start = time.process_time()
        launch()
        print(time.process_time() - start, flush=True)


def _corpus(name: str) -> Callable[[], object]:
    import numpy as np
    import torch
    import triton
    import workloads

    from oracles.case import Number, Output

    case = workloads.case(name)
    module, _, function = case.kernel.partition(".")
    kernel = getattr(importlib.import_module(f"oracles.kernels.{module}"), function)
    problem = case.problem(np.random.default_rng(0))
    arguments = {}
    for parameter, argument in problem.arguments.items():
        if isinstance(argument, Number):
            arguments[parameter] = argument.value
        else:
            array = np.zeros(argument.shape, argument.dtype) if isinstance(argument, Output) else argument.array.copy()
            arguments[parameter] = torch.from_numpy(array)
    constexprs = {k: triton.language.dtype(v) if k == "ACCUMULATOR" else v for k, v in case.constexprs.items()}
    return lambda: kernel[case.grid](**arguments, **constexprs)


def _library(name: str) -> Callable[[], object]:
    import torch
    import workloads
    from library import in_triton, in_triton_value

    from tilefw.kernels.spec import Buffer

    work, _ = workloads.LIBRARY[name]
    launch = work.launch()
    arguments = {k: torch.from_numpy(v.array) if isinstance(v, Buffer) else v for k, v in launch.arguments.items()}
    constexprs = {k: in_triton_value(v, {}) for k, v in launch.constexprs.items()}
    kernel = in_triton(work.spec.kernel, {})
    return lambda: kernel[launch.grid](**arguments, **constexprs)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
