"""`tl.inline_asm_elementwise` with PTX: packed elements, several results, letters, shared registers, memory; what is refused."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_ptxas_accepts import ptxas

import tilefw
import tilefw.language as tl
from tilefw.api import CompileError, UnsupportedError

TARGET = "nvidia-sm80"


@tilefw.jit
def packed(a_ptr, b_ptr, c_ptr, d_ptr, N: tl.constexpr, PACK: tl.constexpr, TEXT: tl.constexpr, CONSTRAINTS: tl.constexpr):
    at = tl.arange(0, N)
    a, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
    c, d = tl.inline_asm_elementwise(TEXT, CONSTRAINTS, [a, b], dtype=(tl.int32, tl.float32), is_pure=True, pack=PACK)
    tl.store(c_ptr + at, c)
    tl.store(d_ptr + at, d)


@tilefw.jit
def one(x_ptr, out_ptr, N: tl.constexpr, TEXT: tl.constexpr, CONSTRAINTS: tl.constexpr, PACK: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    y = tl.inline_asm_elementwise(TEXT, CONSTRAINTS, [x], dtype=out_ptr.dtype.element_ty, is_pure=True, pack=PACK)
    tl.store(out_ptr + at, y)


@tilefw.jit
def broadcast(x_ptr, out_ptr, n, N: tl.constexpr):
    rows, columns = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + rows)
    y = tl.inline_asm_elementwise("mad.lo.s32 $0, $1, $3, $2;", "=r,r,r,r", [x, columns, n], tl.int32, True, 1)
    z = tl.inline_asm_elementwise("add.s32 $0, $1, 1;", "=r,0", [n], tl.int32, True, 1)
    tl.store(out_ptr + rows * N + columns, y + z)


@tilefw.jit
def through_memory(x_ptr, y_ptr, N: tl.constexpr):
    before = tl.load(y_ptr + tl.arange(0, N))
    tl.inline_asm_elementwise(
        "ld.global.b8 $0, [$1]; shl.b32 $0, $0, 3; st.global.b8 [$2], $0;", "=r,l,l",
        [x_ptr + tl.arange(0, N), y_ptr + tl.arange(0, N)], dtype=tl.int8, is_pure=False, pack=1,
    )
    after = tl.load(y_ptr + tl.arange(0, N))
    tl.store(x_ptr + tl.arange(0, N), after - before)


UNPACKED = """
{
    // Unpack `a`.
    .reg .b8 tmp<4>;
    mov.b32 {tmp0, tmp1, tmp2, tmp3}, $8;
    cvt.u32.u8 $0, tmp0;
    cvt.u32.u8 $1, tmp1;
    cvt.u32.u8 $2, tmp2;
    cvt.u32.u8 $3, tmp3;
}
cvt.rn.f32.s32 $4, $0;
cvt.rn.f32.s32 $5, $1;
cvt.rn.f32.s32 $6, $2;
cvt.rn.f32.s32 $7, $3;
max.f32 $4, $4, $9;
max.f32 $5, $5, $10;
max.f32 $6, $6, $11;
max.f32 $7, $7, $12;
"""


def run(kernel: Any, *args: Any, **keywords: Any) -> Any:
    return kernel[(1,)](*args, **keywords, target=TARGET)


@pytest.mark.parametrize("n", [512, 128])  # 128: a lane has one element, and the other three are filled up
def test_packed_elements_and_several_results(n: int) -> None:
    a, b = np.arange(n).astype(np.uint8), np.linspace(-9, 300, n).astype(np.float32)
    c, d = np.zeros(n, np.int32), np.zeros(n, np.float32)
    run(packed, a, b, c, d, N=n, PACK=4, TEXT=UNPACKED, CONSTRAINTS="=r,=r,=r,=r,=r,=r,=r,=r,r,r,r,r,r")
    np.testing.assert_array_equal(c, a)
    np.testing.assert_array_equal(d, np.maximum(a.astype(np.float32), b))


@pytest.mark.parametrize(
    ("dtype", "out", "text", "constraints", "pack", "expected"),
    [
        (np.uint8, np.uint8, "and.b32 $0, $1, 0x1F1F1F1F; shl.b32 $0, $0, 3;", "=r,r", 4, lambda x: x << 3),
        (np.uint8, np.uint8, "shl.b32 $0, $1, 1;", "=r,r", 1, lambda x: x << 1),
        (np.float32, np.float32, "mov.f32 $0, $1;", "=r, r", 1, lambda x: x),
        (np.float32, np.float32, "add.f32 $0, $1, 0f3F800000;", "=f,f,~{memory}", 1, lambda x: x + 1),
        (np.float64, np.float64, "neg.f64 $0, $1;", "=d,d", 1, lambda x: -x),
        (np.int64, np.int64, "not.b64 ${0}, ${1};", "=&l,l", 1, lambda x: ~x),
        (np.float16, np.float16, "neg.f16x2 $0, $1;", "=r,r", 2, lambda x: -x),
        (np.float16, np.float16, "neg.f16 $0, $1;", "=h,h", 1, lambda x: -x),
        (np.int16, np.int32, "cvt.s32.s16 $0, $1;", "=r,h", 1, lambda x: x.astype(np.int32)),
        (np.int32, np.int32, "add.s32 $0, $0, 5;", "=r,0", 1, lambda x: x + 5),
    ],
)
def test_every_letter(dtype: Any, out: Any, text: str, constraints: str, pack: int, expected: Any) -> None:
    x, y = np.arange(256).astype(dtype), np.zeros(256, out)
    run(one, x, y, N=256, TEXT=text, CONSTRAINTS=constraints, PACK=pack)
    np.testing.assert_array_equal(y, expected(x))


def test_operands_are_broadcast_and_scalars_stay_scalars() -> None:
    x, out = np.arange(16, dtype=np.int32), np.zeros((16, 16), np.int32)
    run(broadcast, x, out, 7, N=16)
    np.testing.assert_array_equal(out, x[:, None] * 7 + np.arange(16)[None, :] + 8)


def test_what_the_text_stores_is_seen_behind_it() -> None:
    x, y = np.arange(512).astype(np.uint8), np.arange(512).astype(np.uint8)[::-1].copy()
    old, before = x.copy(), y.copy()
    run(through_memory, x, y, N=512)
    np.testing.assert_array_equal(y, old << 3)
    np.testing.assert_array_equal(x, (old << 3) - before)


@pytest.mark.parametrize(
    ("text", "constraints", "message"),
    [
        ("v_add_u32 $0, $1, 3", "=v,v", "PTX has no registers for the constraint 'v'"),
        ("v_add_u32_e32 $0, 3, $1", "=r,r", "is no PTX that nvidia-sm80 takes"),
        ("shl.b32 $0, $1;", "=r,r", "is no PTX that nvidia-sm80 takes"),
        ("shl.b32 $0, $2, 3;", "=r,r", r"names a register beyond \$1"),
        ("mov.b64 $0, $1;", "=l,r", "the constraint 'l' takes values of 64 bits, not of 32"),
        ("mov.b16 $0, $1;", "=h,r", "a value of 32 bits does not fit a register of the constraint 'h'"),
        ("wgmma.fence.sync.aligned; mov.b32 $0, $1;", "=r,r", "is no PTX that nvidia-sm80 takes"),
    ],
)
def test_text_that_the_chip_does_not_take_is_refused(text: str, constraints: str, message: str) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        run(one, np.zeros(32, np.int32), np.zeros(32, np.int32), N=32, TEXT=text, CONSTRAINTS=constraints, PACK=1)
    assert caught.value.code == "TFW0619" and caught.value.place is not None


def test_the_reference_runs_none() -> None:
    with pytest.raises(UnsupportedError, match="the reference reads no machine's assembly language"):
        x = np.zeros(32, np.int32)
        one[(1,)](x, x.copy(), N=32, TEXT="mov.b32 $0, $1;", CONSTRAINTS="=r,r", PACK=1, target="reference")


def test_nvidias_assembler_takes_the_text(tmp_path: Path) -> None:
    assembler = ptxas()
    if assembler is None:
        pytest.skip("ptxas 12.9 is not installed")
    signature = {"a_ptr": "*u8", "b_ptr": "*fp32", "c_ptr": "*i32", "d_ptr": "*fp32"}
    known = {"N": 512, "PACK": 4, "TEXT": UNPACKED, "CONSTRAINTS": "=r,=r,=r,=r,=r,=r,=r,=r,r,r,r,r,r"}
    (tmp_path / "packed.ptx").write_text(tilefw.compile(packed, TARGET, signature, known).text)
    found = subprocess.run(
        [shutil.which(assembler) or assembler, "-arch=sm_80", tmp_path / "packed.ptx", "-o", tmp_path / "packed.cubin"],
        capture_output=True, text=True, check=False,
    )
    assert found.returncode == 0, found.stderr
