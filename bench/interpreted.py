"""The peer's side of simulation, in a process of its own: a kernel of the corpus under TRITON_INTERPRET=1, one thread.

python interpreted.py NAME ROUNDS        prints the seconds of each round, one a line
"""

from __future__ import annotations

import importlib
import os
import sys
import time


def main(name: str, rounds: int) -> None:
    os.environ["TRITON_INTERPRET"] = "1"  # read when the kernels' module is imported
    import numpy as np
    import torch
    import triton
    import workloads
    from oracles.case import Number, Output

    torch.set_num_threads(1)
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
    for _ in range(rounds):
        start = time.perf_counter()
        kernel[case.grid](**arguments, **constexprs)
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
