"""What kernels that do not fit into their registers cost the compiler: processor seconds of it and of register assignment in it,
memory, and how much is spilled.

    python bench/spilling.py PYTHON [PYTHON …] [--rounds 3] [--out FILE.md]

Each PYTHON has an installation of tilefw with the AMD plugin and `examples/rook`; several are of several versions. A row is
compiled in a fresh process of each, in turn, which has compiled a small kernel before; times are of the fastest round.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BACKWARD = {"out_ptr": "*fp32", "grad_ptr": "*fp32", "in_ptr": "*fp32", "m": "i32", "n": "i32"}


@dataclass(frozen=True, slots=True)
class Row:
    """A kernel of this file, or of the library where `parameters` are its own; `constants` for the former."""

    shown: str
    kernel: str
    target: str
    constants: dict[str, Any] | None = None
    parameters: dict[str, Any] | None = None


ROWS = (
    Row("softmax backward, 64x256 at once", "backward", "amd-cdna3", {"BLOCK_M": 64, "BLOCK_N": 256, "WHOLE": True}),
    Row("softmax backward, 64x256 in a loop", "backward", "amd-cdna3", {"BLOCK_M": 64, "BLOCK_N": 256, "WHOLE": False}),
    Row("softmax backward, 128x256 at once", "backward", "amd-cdna3", {"BLOCK_M": 128, "BLOCK_N": 256, "WHOLE": True}),
    Row(
        "attention, heads of 80, 32 queries", "attention", "rook-r1",
        parameters={"heads": 1, "queries": 32, "keys": 50, "head_size": 80, "causal": False, "block_m": 32},
    ),
    Row("matmul, 64x64x32", "matmul", "rook-r1", parameters={"block_m": 64, "block_n": 64, "block_k": 32}),
)


def main(argv: Sequence[str]) -> int:
    if argv[:1] == ["--work"]:
        print(json.dumps(_measured(ROWS[int(argv[1])])))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="+", metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args(argv)
    lines = [
        "| | installation | seconds | of them register assignment | largest resident set | spilled registers | instructions |",
        "|---|---|---|---|---|---|---|",
    ]
    for index, row in enumerate(ROWS):
        found = [[_in_process(python, index) for python in asked.pythons] for _ in range(asked.rounds)]
        for number, rounds in enumerate(zip(*found, strict=True), 1):
            best = min(rounds, key=lambda each: each["seconds"])
            lines.append(
                f"| {row.shown}, {row.target} | {number} | {best['seconds']:.2f} | {best['assignment']:.2f} | "
                f"{best['megabytes']:.0f} MB | {best['spills']} | {best['instructions']} |"
            )
    text = "\n".join(lines)
    print(text)
    if asked.out is not None:
        asked.out.write_text(text + "\n", "utf-8")
    return 0


def _in_process(python: str, index: int) -> dict[str, Any]:
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = {**os.environ, **single, "TILEFW_CACHE": "0"}
    ran = subprocess.run([python, __file__, "--work", str(index)], capture_output=True, text=True, check=False, env=environment)
    if ran.returncode:
        raise SystemExit(f"{python} could not compile row {index}:\n{ran.stderr}")
    return json.loads(ran.stdout.splitlines()[-1])


def _measured(row: Row) -> dict[str, Any]:
    """Compiles a row in the installation that runs this."""
    from tilefw.machine.assign_registers import AssignRegisters

    assignment: list[float] = []
    assigned: list[Any] = []
    run = AssignRegisters.run

    def timed(self: AssignRegisters, function: Any) -> None:
        start = time.process_time()
        run(self, function)
        assignment.append(time.process_time() - start)
        assigned.append(function)

    AssignRegisters.run = timed
    _compiled(Row("", "vector_add", row.target, parameters={}))
    assignment.clear()
    assigned.clear()
    start = time.process_time()
    artifact = _compiled(row)
    return {
        "seconds": time.process_time() - start, "assignment": sum(assignment),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6, "spills": artifact.resources.spills,
        "instructions": sum(len(block.insts) for function in assigned for block in function.blocks),
    }


def _compiled(row: Row) -> Any:
    import tilefw

    if row.constants is None:
        from code_digest import _library

        return _library(row.kernel, {name: str(value) for name, value in (row.parameters or {}).items()}, row.target)
    return tilefw.compile(_backward(), target=row.target, signature=BACKWARD, constexprs=row.constants, num_warps=4)


def _backward() -> Any:
    """The gradient of a softmax by its result and the gradient of that, as training code has it, for rows that fit into a tile or
    not."""
    import tilefw
    from tilefw import language as tl

    @tilefw.jit
    def backward(
        out_ptr, grad_ptr, in_ptr, m, n,
        BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, WHOLE: tl.constexpr,  # noqa: N803  (compile-time parameters are capitals)
    ):
        row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
        column = tl.arange(0, BLOCK_N)
        at = row[:, None] * n + column
        inside = (row[:, None] < m) & (column < n)
        if WHOLE:
            out = tl.load(out_ptr + at, mask=inside)
            grad = tl.load(grad_ptr + at, mask=inside)
            total = tl.sum(out * grad, 1)
            tl.store(in_ptr + at, out * (grad - total[:, None]), mask=inside)
        else:
            products = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
            for first in range(0, n, BLOCK_N):
                inside = (row[:, None] < m) & (first + column < n)
                products += tl.load(out_ptr + at, mask=inside) * tl.load(grad_ptr + at, mask=inside)
                at += BLOCK_N
            total = tl.sum(products, 1)
            at = row[:, None] * n + column
            for first in range(0, n, BLOCK_N):
                inside = (row[:, None] < m) & (first + column < n)
                out = tl.load(out_ptr + at, mask=inside)
                grad = tl.load(grad_ptr + at, mask=inside)
                tl.store(in_ptr + at, out * (grad - total[:, None]), mask=inside)
                at += BLOCK_N

    return backward


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
