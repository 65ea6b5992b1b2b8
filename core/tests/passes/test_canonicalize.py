"""Canonicalisation leaves nothing that it could simplify, in one walk."""

from __future__ import annotations

import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.errors import InternalError
from tilefw.frontend import build_module
from tilefw.passes import canonicalize
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.context import context
from tilefw.tile.nested_ops import nested_ops


@tilefw.jit
def polynomial(x_ptr, n, BLOCK: tl.constexpr):
    at = x_ptr + tl.arange(0, BLOCK) + (tl.zeros((BLOCK,), tl.int32) + n) * 4
    x = tl.load(at)
    total = x * 0.5 + 1.5
    for _ in tl.static_range(8):
        total = total * x + 2.5 / (x + 3.5)
    tl.store(at, total)


def test_one_walk_leaves_nothing_to_simplify() -> None:
    module = build_module(polynomial, {"x_ptr": "*fp32:16", "n": "i32"}, {"BLOCK": 64})
    before = str(module)
    canonicalize.CanonicalizePass().apply(context(), module)
    assert str(module) != before
    assert [op.name for op in nested_ops(module) if canonicalize._simplify(op)] == []


@tilefw.jit
def transposed(x_ptr):
    rows, columns = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    tl.store(x_ptr + columns * 16 + rows, tl.trans(tl.load(x_ptr + rows * 16 + columns)))


def test_an_op_that_is_merged_to_its_equal_is_an_error_and_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    module = build_module(transposed, {"x_ptr": "*fp32:16"}, {})
    monkeypatch.setattr(ops.TransOp, "merged", lambda op: op.clone())
    with pytest.raises(InternalError, match=r"does not end: tile\.trans at .*test_canonicalize\.py:\d+ is changed again"):
        canonicalize.CanonicalizePass().apply(context(), module)
