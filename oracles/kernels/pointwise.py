"""Elementwise kernels in Triton's language: one output element for each input element, or a fixed handful."""


import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    y = tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, x + y, mask=inside)


@triton.jit
def gelu_erf(x_ptr, bias_ptr, residual_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    """out = residual + gelu(x + bias), one program a row."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    x = tl.load(x_ptr + row * columns + column, mask=inside, other=0.0)
    x += tl.load(bias_ptr + column, mask=inside, other=0.0)
    gate = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    residual = tl.load(residual_ptr + row * columns + column, mask=inside, other=0.0)
    tl.store(out_ptr + row * columns + column, residual + gate, mask=inside)


@triton.jit
def gelu_tanh(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    tl.store(out_ptr + offsets, (0.5 * x * (1.0 + libdevice.tanh(inner))).to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def swiglu_bf16(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    gate = tl.load(gate_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + offsets, (gate * tl.sigmoid(gate) * up).to(tl.bfloat16), mask=inside)


@triton.jit
def bf16_arithmetic(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Arithmetic that stays in bf16: add, multiply, maximum, minimum, negate."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    y = tl.load(y_ptr + offsets, mask=inside, other=0.0)
    tl.store(out_ptr + offsets, tl.maximum(x * y, -x) + tl.minimum(x, y), mask=inside)


@triton.jit
def libdevice_chain(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    tl.store(out_ptr + offsets, libdevice.sin(x) + libdevice.cos(x) * libdevice.log1p(tl.abs(x)), mask=inside)


@triton.jit
def roots(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """sqrt, rsqrt, log, exp2, floor and ceil of positive numbers."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=1.0)
    y = tl.sqrt(x) + tl.rsqrt(x) * tl.log(x) + tl.exp2(-x) + tl.floor(x) - tl.ceil(x) * 0.5
    tl.store(out_ptr + offsets, tl.where(x > 4.0, y, -y), mask=inside)


@triton.jit
def casts(x_ptr, half_ptr, bfloat_ptr, fp8_ptr, int_ptr, byte_ptr, back_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    narrow = x.to(tl.float8e5)
    tl.store(half_ptr + offsets, x.to(tl.float16), mask=inside)
    tl.store(bfloat_ptr + offsets, x.to(tl.bfloat16), mask=inside)
    tl.store(fp8_ptr + offsets, narrow, mask=inside)
    tl.store(int_ptr + offsets, x.to(tl.int32), mask=inside)
    tl.store(byte_ptr + offsets, x.to(tl.int32).to(tl.int8), mask=inside)
    tl.store(back_ptr + offsets, narrow.to(tl.float32), mask=inside)


@triton.jit
def dropout(x_ptr, out_ptr, n, seed, keep, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    kept = tl.rand(seed, offsets) < keep
    tl.store(out_ptr + offsets, tl.where(kept, x / keep, 0.0), mask=inside)


@triton.jit
def inline_assembly(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """A funnel shift and a byte permutation that the language has no name for."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0)
    y = tl.load(y_ptr + offsets, mask=inside, other=0)
    rotated = tl.inline_asm_elementwise("shf.l.wrap.b32 $0, $1, $1, 7;", "=r,r", [x], dtype=tl.int32, is_pure=True, pack=1)
    mixed = tl.inline_asm_elementwise(
        "{ .reg .b32 low; prmt.b32 low, $1, $2, 0x5410; xor.b32 $0, low, $1; }",
        "=r,r,r",
        [rotated, y],
        dtype=tl.int32,
        is_pure=True,
        pack=1,
    )
    tl.store(out_ptr + offsets, mixed, mask=inside)


@triton.jit
def integer_mix(x_ptr, y_ptr, out_ptr, wide_ptr, n, BLOCK: tl.constexpr):
    """Division, remainder, shifts, high multiply, bit logic; signed and unsigned, 32 and 64 bits."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=1)
    y = tl.load(y_ptr + offsets, mask=inside, other=1)
    ux = x.to(tl.uint32, bitcast=True)
    uy = y.to(tl.uint32, bitcast=True)
    high = tl.umulhi(ux, uy).to(tl.int32, bitcast=True)
    mixed = (x // y) ^ (x % y) ^ (x << 3) ^ (x >> 5) ^ (ux >> 7).to(tl.int32, bitcast=True)
    mixed += (ux // uy).to(tl.int32, bitcast=True) - (ux % 13).to(tl.int32, bitcast=True)
    tl.store(out_ptr + offsets, (mixed & ~y) | high, mask=inside)
    wide = x.to(tl.int64) * y.to(tl.int64)
    tl.store(wide_ptr + offsets, wide // (y.to(tl.int64) * 3) - (wide >> 9), mask=inside)


@triton.jit
def collatz_steps(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """How many Collatz steps bring every number of the block to 1: a `while` on a reduced condition."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=1)
    steps = tl.zeros((BLOCK,), tl.int32)
    while tl.max(x, axis=0) > 1:
        running = x > 1
        x = tl.where(running, tl.where(x % 2 == 0, x // 2, 3 * x + 1), x)
        steps += running.to(tl.int32)
    tl.store(out_ptr + offsets, steps, mask=inside)


@triton.jit
def polynomial(x_ptr, out_ptr, n, DEGREE: tl.constexpr, BLOCK: tl.constexpr):
    """Horner's rule over a static loop, then a dynamic `range` that squares the result."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    y = tl.zeros((BLOCK,), tl.float32)
    for degree in tl.static_range(DEGREE):
        y = y * x + 1.0 / (degree + 1)
    for _ in range(0, n % 3 + 1):
        y = y * y
    tl.store(out_ptr + offsets, y, mask=inside)


@triton.jit
def quantise_rows(x_ptr, scale_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    """x / scale by rows, rounded to the type of `out`: an integer by way of floor, a float by its own rounding."""
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=0.0) / tl.load(scale_ptr + row)
    if out_ptr.dtype.element_ty == tl.int8:
        x = tl.floor(tl.minimum(tl.maximum(x, -128.0), 127.0) + 0.5)
    tl.store(out_ptr + row * columns + offsets, x.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def doubled_in_place(x_ptr, BLOCK: tl.constexpr):
    """With fewer elements than threads, waves repeat the load of others and discard it."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets) * 2)
