"""`triton.compile`: a kernel by its types, and its launch by Triton's convention."""

from __future__ import annotations

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.errors import UsageError
from tilefw.triton.chip import GPUTarget
from tilefw.triton.compiling import ASTSource, compile, make_backend, target_of


@tilefw.jit
def larger(a, b):
    if (a + tl.zeros((1,), tl.int1)).dtype.is_floating():  # a tile of one element, to ask for its type
        return tl.where(a > b, a, b)
    return a


@tilefw.jit
def peak(x_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=float("-inf"))
    tl.store(out_ptr, tl.reduce(x, 0, larger) * scale)


TYPES = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "scale": "fp32", "BLOCK": "constexpr"}


def test_a_kernel_is_compiled_by_its_types_and_runs_with_all_of_its_arguments() -> None:
    source = ASTSource(peak, TYPES, {"BLOCK": 64}, {(0,): [["tt.divisibility", 16]], (2,): [["tt.divisibility", 16]]})
    assert source.types == {"x_ptr": "*fp32:16", "out_ptr": "*fp32:1", "n": "i32:16", "scale": "fp32"}
    with tilefw.target("reference"):
        made = compile(source, options={"num_warps": 2})
        x, out, seen = np.arange(48, dtype=np.float32), np.zeros(1, np.float32), []
        made.run(1, 1, 1, 0, made.function, made.packed_metadata, "told", seen.append, seen.append, x, out, 48, 0.5, 64)
    assert out[0] == 23.5 and seen == ["told", "told"]
    assert made.src is source and int(made.hash, 16) and source.hash() == ASTSource(peak, TYPES, {(4,): 64}, source.attrs).hash()


def test_triton_s_words_for_a_chip_lead_to_its_target() -> None:
    with tilefw.target("reference"):
        assert target_of(None) == target_of(GPUTarget("cpu", 0, 1)) == target_of(GPUTarget("cuda", 80, 32)) == "reference"
        with pytest.raises(UsageError, match="no installed target is Triton's 'acme:1'"):
            target_of(GPUTarget("acme", 1, 32))
        backend = make_backend(GPUTarget("cuda", 80, 32))
        assert backend.hash().endswith("-reference") and backend.parse_options({"num_warps": 4}).num_warps == 4
