"""Library kernels on Triton's own interpreter, in a process of its own; prints each comparison with our reference.

python interpreted.py < requests        a JSON list of [kernel, parameters] in, a JSON list of failures out
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np


def main() -> None:
    os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is decorated
    failures: list[str] = []
    for name, parameters in json.load(sys.stdin):
        failures += [f"{name} {parameters}: {told}" for told in differences(name, parameters)]
    json.dump(failures, sys.stdout)


def differences(name: str, parameters: dict[str, Any]) -> list[str]:
    """What Triton's interpreter leaves elsewhere than our reference admits."""
    import torch

    from tilefw.api.device import DEFAULT_BUDGET
    from tilefw.kernels.instance import instance
    from tilefw.kernels.reference import Reference
    from tilefw.kernels.spec import Buffer, load
    from tilefw.testing.triton_text import translated

    spec = load(name)
    launch = spec.prepare(spec.resolve(parameters), np.random.default_rng(0))
    made = instance(spec, launch)
    reference = Reference(made.source.build(), launch.grid, made.passed, budget=DEFAULT_BUDGET)
    tensors = {k: torch.from_numpy(v.array.copy()) if isinstance(v, Buffer) else v for k, v in launch.arguments.items()}
    translated(spec.kernel)[launch.grid](**tensors, **{k: translated(v) for k, v in launch.constexprs.items()})
    found = {k: reference.compare_values(k, tensors[k].numpy()) for k in launch.outputs}
    return [f"{k}: {comparison}" for k, comparison in found.items() if not comparison.ok]


if __name__ == "__main__":
    main()
