"""Kernels that move data or share it: transposes, gathers, atomics, locks."""


import triton
import triton.language as tl


@triton.jit
def transpose(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    x = tl.load(
        x_ptr + row[:, None] * columns + column[None, :], mask=(row[:, None] < rows) & (column[None, :] < columns), other=0.0
    )
    tl.store(out_ptr + column[:, None] * rows + row[None, :], tl.trans(x), mask=(column[:, None] < columns) & (row[None, :] < rows))


@triton.jit
def weave(x_ptr, y_ptr, out_ptr, sums_ptr, n, BLOCK: tl.constexpr):
    """join, split and interleave: pairs out of two streams, and the even and odd halves summed."""
    at = tl.arange(0, BLOCK)
    base = tl.program_id(0) * BLOCK
    inside = base + at < n
    x = tl.load(x_ptr + base + at, mask=inside, other=0.0)
    y = tl.load(y_ptr + base + at, mask=inside, other=0.0)
    wide = 2 * base + tl.arange(0, 2 * BLOCK)
    tl.store(out_ptr + wide, tl.interleave(x, y), mask=wide < 2 * n)
    even, odd = tl.split(tl.join(x, y).reshape(BLOCK, 2))
    tl.store(sums_ptr + base + at, even - 2.0 * odd, mask=inside)


@triton.jit
def gather_rows(x_ptr, index_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, PICKED: tl.constexpr):
    row = tl.arange(0, ROWS)[:, None]
    x = tl.load(x_ptr + row * COLUMNS + tl.arange(0, COLUMNS)[None, :])
    at = row * PICKED + tl.arange(0, PICKED)[None, :]
    tl.store(out_ptr + at, tl.gather(x, tl.load(index_ptr + at), axis=1))


@triton.jit
def embedding(table_ptr, index_ptr, out_ptr, n, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    index = tl.load(index_ptr + row, mask=row < n, other=0)
    inside = (row[:, None] < n) & (column[None, :] < width)
    x = tl.load(table_ptr + index[:, None] * width + column[None, :], mask=inside, other=0.0)
    tl.store(out_ptr + row[:, None] * width + column[None, :], x, mask=inside)


@triton.jit
def atomic_histogram(x_ptr, counts_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """Counts in shared memory by `tl.histogram`, added to the total by atomics."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0)
    counts = tl.histogram(x, BINS, mask=at < n)
    tl.atomic_add(counts_ptr + tl.arange(0, BINS), counts)


@triton.jit
def scatter_counts(x_ptr, counts_ptr, n, BLOCK: tl.constexpr):
    """One atomic add an element, many of them on one address."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0)
    tl.atomic_add(counts_ptr + x, 1, mask=at < n, sem="relaxed")


@triton.jit
def atomic_mix(x_ptr, slots_ptr, old_ptr, float_ptr, n, BLOCK: tl.constexpr):
    """max, min, and, or, xor on one word each; an add whose old value is used; a float add; an exchange."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=0)
    zero = tl.zeros((BLOCK,), tl.int32)
    tl.atomic_max(slots_ptr + zero, x, mask=inside)
    tl.atomic_min(slots_ptr + zero + 1, x, mask=inside)
    tl.atomic_and(slots_ptr + zero + 2, x | 0x10, mask=inside)
    tl.atomic_or(slots_ptr + zero + 3, x, mask=inside)
    tl.atomic_xor(slots_ptr + zero + 4, x, mask=inside)
    before = tl.atomic_add(slots_ptr + 8 + at, 5, mask=inside)
    tl.store(old_ptr + at, before, mask=inside)
    tl.atomic_add(float_ptr + zero, 1.0, mask=inside)
    tl.atomic_xchg(float_ptr + 4 + at, x.to(tl.float32), mask=inside)


@triton.jit
def ticket(slots_ptr, order_ptr):
    """Every program takes a number by a scalar add, and the first of all claims a word by compare-and-swap."""
    mine = tl.atomic_add(slots_ptr, 1)
    tl.store(order_ptr + mine, tl.program_id(0))
    tl.atomic_cas(slots_ptr + 1, 0, mine + 7)
    tl.atomic_max(slots_ptr + 2, tl.program_id(0))


@triton.jit
def locked_sum(x_ptr, lock_ptr, total_ptr, BLOCK: tl.constexpr):
    """A spin lock by compare-and-swap around a plain read and write of a total."""
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    mine = tl.sum(x, axis=0)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    total = tl.load(total_ptr)
    tl.debug_barrier()  # every thread has loaded the total before one of them stores it
    tl.store(total_ptr, total + mine)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def split_k(a_ptr, b_ptr, c_ptr, M, N, K, TILE: tl.constexpr, TILE_K: tl.constexpr):
    """A product of whole numbers with K split over the grid, joined by float atomics (exact: the sums are whole)."""
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    column = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inner = tl.program_id(2) * TILE_K + tl.arange(0, TILE_K)
    a = tl.load(a_ptr + row[:, None] * K + inner[None, :], mask=inner[None, :] < K, other=0.0)
    b = tl.load(b_ptr + inner[:, None] * N + column[None, :], mask=inner[:, None] < K, other=0.0)
    tl.atomic_add(c_ptr + row[:, None] * N + column[None, :], tl.dot(a, b))
