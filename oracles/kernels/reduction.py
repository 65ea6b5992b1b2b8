"""Reductions, normalisations and scans in Triton's language."""


import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    x = tl.load(x_ptr + row * stride + column, mask=inside, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride + column, e / tl.sum(e, axis=0), mask=inside)


@triton.jit
def layer_norm(x_ptr, weight_ptr, bias_ptr, out_ptr, mean_ptr, columns, epsilon, BLOCK: tl.constexpr):
    """Two passes over the row in blocks: mean, then variance and the result."""
    row = tl.program_id(0)
    x_ptr += row * columns
    out_ptr += row * columns
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + column, mask=column < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + column, mask=column < columns, other=0.0).to(tl.float32)
        centred = tl.where(column < columns, x - mean, 0.0)
        squares += centred * centred
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / columns + epsilon)
    tl.store(mean_ptr + row, mean)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < columns
        weight = tl.load(weight_ptr + column, mask=inside)
        bias = tl.load(bias_ptr + column, mask=inside)
        x = tl.load(x_ptr + column, mask=inside, other=0.0).to(tl.float32)
        tl.store(out_ptr + column, ((x - mean) * scale * weight + bias).to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def rms_norm(x_ptr, weight_ptr, out_ptr, rows, columns, epsilon, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """A block of rows a program, reduced along the second axis."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < columns)
    x = tl.load(x_ptr + row * columns + column, mask=inside, other=0.0)
    scale = tl.rsqrt(tl.sum(x * x, axis=1) / columns + epsilon)
    weight = tl.load(weight_ptr + column, mask=column < columns, other=0.0)
    tl.store(out_ptr + row * columns + column, x * scale[:, None] * weight, mask=inside)


@triton.jit
def _chan_update(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    count = count_a + count_b
    share = tl.where(count == 0.0, 0.0, count_b / count)
    delta = mean_b - mean_a
    return mean_a + delta * share, m2_a + m2_b + delta * delta * count_a * share, count


@triton.jit
def welford(x_ptr, mean_ptr, variance_ptr, columns, BLOCK: tl.constexpr):
    """Mean and variance by a reduction with a custom combine over three values (Chan, Golub, LeVeque 1979)."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    x = tl.load(x_ptr + row * columns + column, mask=inside, other=0.0)
    mean, m2, count = tl.reduce((x, tl.zeros_like(x), inside.to(tl.float32)), 0, _chan_update)
    tl.store(mean_ptr + row, mean)
    tl.store(variance_ptr + row, m2 / count)


@triton.jit
def arg_extremes(x_ptr, max_ptr, min_ptr, value_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    x = tl.load(x_ptr + row * columns + column, mask=inside, other=-float("inf"))
    tl.store(max_ptr + row, tl.argmax(x, axis=0))
    value, where = tl.max(x, axis=0, return_indices=True)
    tl.store(value_ptr + row, value + where * 0.0)
    tl.store(min_ptr + row, tl.argmin(tl.where(inside, x, float("inf")), axis=0))


@triton.jit
def column_sums(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Partial sums of columns over a two-dimensional grid, joined by atomic adds of whole numbers."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    x = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=inside, other=0.0)
    tl.atomic_add(out_ptr + column, tl.sum(x, axis=0), mask=column < columns)


@triton.jit
def row_sums(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, columns, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        inside = (row[:, None] < rows) & (column[None, :] < columns)
        total += tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=inside, other=0.0)
    tl.store(out_ptr + row, tl.sum(total, axis=1), mask=row < rows)


@triton.jit
def cumulative_sum(x_ptr, out_ptr, rows, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, COLUMNS)[None, :]
    x = tl.load(x_ptr + row * COLUMNS + column, mask=row < rows, other=0)
    tl.store(out_ptr + row * COLUMNS + column, tl.cumsum(x, axis=1), mask=row < rows)


@triton.jit
def _affine(scale_a, shift_a, scale_b, shift_b):
    return scale_a * scale_b, shift_a * scale_b + shift_b


@triton.jit
def linear_recurrence(a_ptr, b_ptr, out_ptr, LENGTH: tl.constexpr):
    """h[t] = a[t] * h[t-1] + b[t] by an associative scan of affine maps, forward and in reverse."""
    row = tl.program_id(0)
    step = tl.arange(0, LENGTH)
    a = tl.load(a_ptr + row * LENGTH + step)
    b = tl.load(b_ptr + row * LENGTH + step)
    _, h = tl.associative_scan((a, b), 0, _affine)
    _, g = tl.associative_scan((a, b), 0, _affine, reverse=True)
    tl.store(out_ptr + row * LENGTH + step, h - g)


@triton.jit
def sort_rows(x_ptr, up_ptr, down_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(up_ptr + at, tl.sort(x, dim=1))
    tl.store(down_ptr + at, tl.sort(x, dim=1, descending=True))
