"""PTX for sm_90a in a few lines, run with every check: kernels on barriers that count, copy engines and clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from isa.machine import launch
from tilefw.api import ALL_CHECKS, Finding
from tilefw_nvidia.chips import named

CHIP = named("sm_90a")
_HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k({parameters})
{directives}
{{
.reg .b16 %h<20>; .reg .b32 %r<40>; .reg .b64 %d<40>; .reg .f32 %f<20>; .reg .pred %p<20>;
.shared .align 1024 .b8 tile[{shared}];
.shared .align 8 .b64 bar[4];
mov.u32 %r0, %tid.x;
setp.eq.u32 %p0, %r0, 0;
mov.u32 %r1, tile;
mov.u32 %r2, bar;
{loads}
{body}
ret;
}}
"""


def kernel(body: str, arguments: int, shared: int = 4096, directives: str = "") -> str:
    """Entry k: pointers in %d0 and on, %r0 the thread, %p0 whether it is the first, %r1 and %r2 shared memory and four barriers."""
    parameters = ", ".join(f".param .u64 .ptr .global a{i}" for i in range(arguments))
    loads = "\n".join(f"ld.param.u64 %d{i}, [a{i}];" for i in range(arguments))
    return _HEAD.format(parameters=parameters, loads=loads, body=body, shared=shared, directives=directives)


def run(
    body: str, arrays: Sequence[np.ndarray], grid: int = 1, block: int = 32, shared: int = 4096, directives: str = "",
    **options: Any,
) -> tuple[list[np.ndarray], tuple[Finding, ...]]:
    """The arrays after a launch with all checks, and its findings."""
    buffers, findings = launch(
        kernel(body, len(arrays), shared, directives), arrays, grid, block, CHIP, checks=ALL_CHECKS, **options
    )
    return [np.frombuffer(b, a.dtype).reshape(a.shape) for b, a in zip(buffers, arrays, strict=True)], findings


def codes(findings: Sequence[Finding]) -> set[str]:
    return {finding.code for finding in findings}
