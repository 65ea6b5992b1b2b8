"""Kernels on tensor descriptors and on grids that depend on each other, in Triton's language: what copy engines serve."""


import triton
import triton.language as tl


@triton.jit
def doubled(x_ptr, out_ptr, M, N, TILE_M: tl.constexpr, TILE_N: tl.constexpr):
    """out = 2 x, a tile a program, by descriptors."""
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [TILE_M, TILE_N])
    out = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [TILE_M, TILE_N])
    row = tl.program_id(0) * TILE_M
    column = tl.program_id(1) * TILE_N
    out.store([row, column], x.load([row, column]) * 2)


@triton.jit
def planes(x_ptr, out_ptr, A, B, C, TILE: tl.constexpr):
    """The same with three dimensions."""
    x = tl.make_tensor_descriptor(x_ptr, [A, B, C], [B * C, C, 1], [1, TILE, TILE])
    out = tl.make_tensor_descriptor(out_ptr, [A, B, C], [B * C, C, 1], [1, TILE, TILE])
    plane = tl.program_id(0)
    row = tl.program_id(1) * TILE
    for column in range(0, C, TILE):
        out.store([plane, row, column], x.load([plane, row, column]) * 2)


@triton.jit
def added(x_ptr, sum_ptr, M, N, TILE_M: tl.constexpr, TILE_N: tl.constexpr):
    """sum += x for every row of programs."""
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [TILE_M, TILE_N])
    total = tl.make_tensor_descriptor(sum_ptr, [TILE_M, N], [N, 1], [TILE_M, TILE_N])
    column = tl.program_id(1) * TILE_N
    total.atomic_add([0, column], x.load([tl.program_id(0) * TILE_M, column]))


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    """C = A B, one program a tile of C."""
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [TILE_M, TILE_K])
    b = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [TILE_K, TILE_N])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [TILE_M, TILE_N])
    row = tl.program_id(0) * TILE_M
    column = tl.program_id(1) * TILE_N
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for k in range(0, K, TILE_K):
        total = tl.dot(a.load([row, k]), b.load([k, column]), total)
    c.store([row, column], total.to(tl.float16))


@triton.jit
def persistent(
    a_ptr, b_ptr, c_ptr, M, N, K, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, PROGRAMS: tl.constexpr
):
    """C = A B, several tiles of C a program."""
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [TILE_M, TILE_K])
    b = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [TILE_K, TILE_N])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [TILE_M, TILE_N])
    across = tl.cdiv(N, TILE_N)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, TILE_M) * across, PROGRAMS, flatten=True):
        row = tile // across * TILE_M
        column = tile % across * TILE_N
        total = tl.zeros((TILE_M, TILE_N), tl.float32)
        for k in range(0, K, TILE_K):
            total = tl.dot(a.load([row, k]), b.load([k, column]), total)
        c.store([row, column], total.to(tl.float16))


@triton.jit
def dependent(x_ptr, out_ptr, n, TILE: tl.constexpr):
    """out = 2 x behind the grid before, telling the grid behind to begin."""
    tl.extra.cuda.gdc_wait()
    at = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + at, at < n)
    tl.extra.cuda.gdc_launch_dependents()
    tl.store(out_ptr + at, x * 2, at < n)
