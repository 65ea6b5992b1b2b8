"""`tl.inline_asm_elementwise` with gfx9 text: packed elements, several results, masks, memory; what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api import CompileError

TARGET = "amd-cdna3"


@tilefw.jit
def one(x_ptr, out_ptr, N: tl.constexpr, TEXT: tl.constexpr, CONSTRAINTS: tl.constexpr, PACK: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    y = tl.inline_asm_elementwise(TEXT, CONSTRAINTS, [x], dtype=out_ptr.dtype.element_ty, is_pure=True, pack=PACK)
    tl.store(out_ptr + at, y)


@tilefw.jit
def both(a_ptr, b_ptr, c_ptr, d_ptr, n, N: tl.constexpr):
    at = tl.arange(0, N)
    a, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
    c, d = tl.inline_asm_elementwise(
        """
        v_sub_u32 $0, $2, $3   ; C = A - B
        v_sub_u32_e32 $1, $3, $2
        v_add_u32 $1, $4, $1
        """,
        "=&v,=&v,v,v,s", [a, b, n], dtype=(tl.int32, tl.int32), is_pure=True, pack=1,
    )
    tl.store(c_ptr + at, c)
    tl.store(d_ptr + at, d)


@tilefw.jit
def through_memory(x_ptr, y_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.inline_asm_elementwise(
        """
        global_load_dword $0, $1, off
        s_waitcnt vmcnt(0)
        v_lshlrev_b32 $0, 3, $0
        global_store_dword $2, $0, off offset:4
        """,
        "=&v,v,v", [x_ptr + at, y_ptr + at], dtype=tl.int32, is_pure=False, pack=1,
    )


def run(kernel: Any, *args: Any, **keywords: Any) -> Any:
    return kernel[(1,)](*args, **keywords, target=TARGET)


@pytest.mark.parametrize(
    ("dtype", "out", "text", "constraints", "pack", "expected"),
    [
        (np.int32, np.int32, "v_lshlrev_b32 $0, 3, $1", "=v,v", 1, lambda x: x << 3),
        (np.uint8, np.uint8, "v_and_b32 $0, 0x1f1f1f1f, $1\nv_lshlrev_b32 $0, 3, $0", "=v,v", 4, lambda x: x << 3),
        (np.float32, np.float32, "v_add_f32 ${0}, 1.0, ${1}", "=v,v", 1, lambda x: x + 1),
        (np.float64, np.float64, "v_add_f64 $0, $1, 0.5", "=v,v", 1, lambda x: x + 0.5),
        (np.float16, np.float16, "v_pk_add_f16 $0, $1, $1", "=v,v", 2, lambda x: x + x),
        (np.int32, np.int32, "v_add_u32 $0, $0, $0", "=v,0", 1, lambda x: x + x),
        (np.float32, np.float32, "v_cmp_gt_f32 vcc, 4.0, $1\nv_cndmask_b32 $0, $1, 4.0, vcc", "=v,v", 1, lambda x: x.clip(4)),
        (np.float32, np.float32, "v_mov_b32 $0, 2.0\nv_fmac_f32 $0, $1, $1", "=&v,v", 1, lambda x: x * x + 2),
    ],
)
def test_text_computes(dtype: Any, out: Any, text: str, constraints: str, pack: int, expected: Any) -> None:
    x, y = (np.arange(256) % 100).astype(dtype), np.zeros(256, out)
    run(one, x, y, N=256, TEXT=text, CONSTRAINTS=constraints, PACK=pack)
    np.testing.assert_array_equal(y, expected(x))


def test_several_results_and_a_scalar_operand() -> None:
    a, b = np.arange(256, dtype=np.int32), np.arange(256, dtype=np.int32)[::-1].copy()
    c, d = np.zeros(256, np.int32), np.zeros(256, np.int32)
    run(both, a, b, c, d, 77, N=256)
    np.testing.assert_array_equal(c, a - b)
    np.testing.assert_array_equal(d, b - a + 77)


def test_what_the_text_loads_and_stores() -> None:
    x, y = np.arange(256, dtype=np.int32), np.full(257, -1, np.int32)
    run(through_memory, x, y, N=256)
    np.testing.assert_array_equal(y, np.concatenate([[-1], x << 3]))


@pytest.mark.parametrize(
    ("text", "constraints", "message"),
    [
        ("shl.b32 $0, $1, 3;", "=v,v", "gfx942 does not take it"),
        ("v_mov_b32 $0, $1", "=r,r", "there are no registers for the constraint 'r' of a result"),
        ("v_mov_b32 $0, $2", "=v,v", r"a register beyond \$1"),
        ("v_mov_b32 $0, v7", "=v,v", "it names the register v7 itself"),
        ("v_add_f32 $0, -$1, $1", "=v,v", "has its sign changed"),
        ("s_cbranch_scc0 there\nthere:\nv_mov_b32 $0, $1", "=v,v", "goes elsewhere|reads or changes"),
        ("v_add_u32 $0, $1, $1", "=v,s", "is equal in all lanes, and this one is not"),
    ],
)
def test_text_that_is_not_served_is_refused(text: str, constraints: str, message: str) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        run(one, np.zeros(64, np.int32), np.zeros(64, np.int32), N=64, TEXT=text, CONSTRAINTS=constraints, PACK=1)
    assert caught.value.code == "TFW0619" and caught.value.place is not None
