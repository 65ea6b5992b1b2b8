"""Small kernels compiled by tilefw and by Triton from this one text.

Loaded once for each, with a module `dialect` in place that gives `jit` and `tl`.
"""
# ruff: noqa: N803  (compile-time parameters are capitals in Triton's language)

from dialect import jit, tl


@jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    total = tl.load(x_ptr + offsets, mask=inside) + tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, total, mask=inside)


@jit
def gelu_bias_residual(x_ptr, bias_ptr, residual_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    x = tl.load(x_ptr + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    x += tl.load(bias_ptr + column, mask=inside, other=0.0).to(tl.float32)
    gate = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    residual = tl.load(residual_ptr + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * columns + column, (residual + gate).to(tl.float16), mask=inside)


@jit
def swiglu(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    gate = tl.load(gate_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + offsets, (gate / (1.0 + tl.exp(-gate)) * up).to(tl.bfloat16), mask=inside)


@jit
def rope(x_ptr, cosine_ptr, sine_ptr, out_ptr, heads, HALF: tl.constexpr):
    position = tl.program_id(0)
    head = tl.program_id(1)
    lane = tl.arange(0, HALF)
    cosine = tl.load(cosine_ptr + position * HALF + lane)
    sine = tl.load(sine_ptr + position * HALF + lane)
    base = (position * heads + head) * (2 * HALF)
    first = tl.load(x_ptr + base + lane).to(tl.float32)
    second = tl.load(x_ptr + base + HALF + lane).to(tl.float32)
    tl.store(out_ptr + base + lane, (first * cosine - second * sine).to(tl.float16))
    tl.store(out_ptr + base + HALF + lane, (second * cosine + first * sine).to(tl.float16))


@jit
def integer_mix(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=1)
    y = tl.load(y_ptr + offsets, mask=inside, other=1)
    mixed = (x // y) ^ (x % y) ^ (x << 3) ^ (x >> 5)
    for _ in range(4):
        mixed = mixed * 31 + x
    tl.store(out_ptr + offsets, mixed & ~y, mask=inside)


# Signature with Triton's hints, and compile-time parameters.
COMPILES = {
    "vector_add": ({"x_ptr": "*fp32:16", "y_ptr": "*fp32:16", "out_ptr": "*fp32:16", "n": "i32"}, {"BLOCK": 1024}),
    "gelu_bias_residual": (
        {"x_ptr": "*fp16:16", "bias_ptr": "*fp16:16", "residual_ptr": "*fp16:16", "out_ptr": "*fp16:16", "columns": "i32:16"},
        {"BLOCK": 1024},
    ),
    "swiglu": ({"gate_ptr": "*bf16:16", "up_ptr": "*bf16:16", "out_ptr": "*bf16:16", "n": "i32:16"}, {"BLOCK": 1024}),
    "rope": (
        {"x_ptr": "*fp16:16", "cosine_ptr": "*fp32:16", "sine_ptr": "*fp32:16", "out_ptr": "*fp16:16", "heads": "i32"},
        {"HALF": 64},
    ),
    "integer_mix": ({"x_ptr": "*i32:16", "y_ptr": "*i32:16", "out_ptr": "*i32:16", "n": "i32"}, {"BLOCK": 512}),
}
