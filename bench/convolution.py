"""Kernels of a quantised convolutional network, in the tile language: convolution, largest of a window, mean of an image.

Images are int8 [rows, columns, channels], as high as wide. A convolution is a product of matrices whose left one is never made:
row `pixel`, column `k` of it is the input at position and channel k of the pixel's window, an address like any other (im2col by
addressing), or zero beyond the border. Sums are int32; a scale and a bias for each output channel, the residual and ReLU follow in
float32, and the cast to int8 saturates.
"""

from __future__ import annotations

import tilefw
import tilefw.language as tl
from tilefw.language.extra import libdevice


@tilefw.jit
def convolution(
    x_ptr, weight_ptr, scale_ptr, bias_ptr, residual_ptr, out_ptr, residual_scale,
    SIZE: tl.constexpr, CHANNELS: tl.constexpr, OUT: tl.constexpr, WINDOW: tl.constexpr, STRIDE: tl.constexpr, RELU: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """out[pixel, n] = relu(Σ_k x[window of pixel, k] · weight[k, n] · scale[n] + bias[n] + residual[pixel, n] · residual_scale)."""
    width: tl.constexpr = (SIZE + STRIDE - 1) // STRIDE
    depth: tl.constexpr = WINDOW * WINDOW * CHANNELS
    pixel = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    row = pixel // width * STRIDE - WINDOW // 2
    column = pixel % width * STRIDE - WINDOW // 2
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for start in range(0, depth, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        r = row[:, None] + (k // (WINDOW * CHANNELS))[None, :]
        c = column[:, None] + (k // CHANNELS % WINDOW)[None, :]
        inside = (r >= 0) & (r < SIZE) & (c >= 0) & (c < SIZE) & (pixel < width * width)[:, None] & (k < depth)[None, :]
        x = tl.load(x_ptr + (r * SIZE + c) * CHANNELS + (k % CHANNELS)[None, :], mask=inside, other=0)
        weight = tl.load(weight_ptr + k[:, None] * OUT + n[None, :], mask=(k < depth)[:, None] & (n < OUT)[None, :], other=0)
        acc = tl.dot(x, weight, acc)
    live = (pixel < width * width)[:, None] & (n < OUT)[None, :]
    where = pixel[:, None] * OUT + n[None, :]
    scale = tl.load(scale_ptr + n, mask=n < OUT, other=0.0)
    bias = tl.load(bias_ptr + n, mask=n < OUT, other=0.0)
    result = acc.to(tl.float32) * scale[None, :] + bias[None, :]
    if residual_ptr is not None:
        result += tl.load(residual_ptr + where, mask=live, other=0).to(tl.float32) * residual_scale
    if RELU:
        result = tl.maximum(result, 0.0)
    tl.store(out_ptr + where, libdevice.rint(result).to(tl.int8), mask=live)


@tilefw.jit
def window_max(
    x_ptr, out_ptr, SIZE: tl.constexpr, CHANNELS: tl.constexpr, WINDOW: tl.constexpr, STRIDE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    """out[pixel, n] = the largest of x in the pixel's window, which beyond the border has nothing."""
    width: tl.constexpr = (SIZE + STRIDE - 1) // STRIDE
    pixel = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    row = pixel // width * STRIDE - WINDOW // 2
    column = pixel % width * STRIDE - WINDOW // 2
    result = tl.full((BLOCK_M, BLOCK_N), -128, dtype=tl.int8)
    for position in tl.static_range(WINDOW * WINDOW):
        r = row + position // WINDOW
        c = column + position % WINDOW
        inside = (r >= 0) & (r < SIZE) & (c >= 0) & (c < SIZE) & (pixel < width * width)
        mask = inside[:, None] & (n < CHANNELS)[None, :]
        x = tl.load(x_ptr + ((r * SIZE + c) * CHANNELS)[:, None] + n[None, :], mask=mask, other=-128)
        result = tl.maximum(result, x)
    live = (pixel < width * width)[:, None] & (n < CHANNELS)[None, :]
    tl.store(out_ptr + pixel[:, None] * CHANNELS + n[None, :], result, mask=live)


@tilefw.jit
def mean(x_ptr, out_ptr, scale, PIXELS: tl.constexpr, CHANNELS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """out[n] = Σ_pixel x[pixel, n] · scale; BLOCK_M is not less than PIXELS."""
    pixel = tl.arange(0, BLOCK_M)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    live = (pixel < PIXELS)[:, None] & (n < CHANNELS)[None, :]
    x = tl.load(x_ptr + pixel[:, None] * CHANNELS + n[None, :], mask=live, other=0).to(tl.int32)
    total = tl.sum(x, axis=0).to(tl.float32) * scale
    tl.store(out_ptr + n, libdevice.rint(total).to(tl.int8), mask=n < CHANNELS)
