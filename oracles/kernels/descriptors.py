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


@triton.jit
def host_doubled(x, out, TILE_M: tl.constexpr, TILE_N: tl.constexpr):
    """out = 2 x by descriptors that the host has made."""
    row = tl.program_id(0) * TILE_M
    column = tl.program_id(1) * TILE_N
    out.store([row, column], x.load([row, column]) * 2)


@triton.jit
def host_product(a, b, c, K, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    """C = A B by descriptors that the host has made."""
    row = tl.program_id(0) * TILE_M
    column = tl.program_id(1) * TILE_N
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for k in range(0, K, TILE_K):
        total = tl.dot(a.load([row, k]), b.load([k, column]), total)
    c.store([row, column], total.to(tl.float16))


@triton.jit
def line_maxima(x_ptr, out_ptr, N, TILE: tl.constexpr, MAXIMUM: tl.constexpr):
    """Of all programs' tiles the largest elements, or their bits exclusive-ored, by descriptors of one dimension."""
    x = tl.make_tensor_descriptor(x_ptr, [N], [1], [TILE])
    out = tl.make_tensor_descriptor(out_ptr, [TILE], [1], [TILE])
    tile = x.load([tl.program_id(0) * TILE])
    if MAXIMUM:
        out.atomic_max([0], tile)
    else:
        out.atomic_xor([0], tile)


@triton.jit
def product_by_columns(
    a_ptr, b_ptr, c_ptr, M, N, K, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, IMPRECISE: tl.constexpr
):
    """C = A B, B with its columns one after the other; sums of so many products before they are added in full precision."""
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [TILE_M, TILE_K])
    b = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [TILE_N, TILE_K])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [TILE_M, TILE_N])
    row = tl.program_id(0) * TILE_M
    column = tl.program_id(1) * TILE_N
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for k in range(0, K, TILE_K):
        total = tl.dot(a.load([row, k]), b.load([column, k]).T, total, max_num_imprecise_acc=IMPRECISE)
    c.store([row, column], total.to(tl.float16))


@triton.jit
def specialised(a_ptr, b_ptr, c_ptr, M, N, K, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    """C = A B, the warps of a program divided into those that copy and those that multiply."""
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [TILE_M, TILE_K])
    b = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [TILE_K, TILE_N])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [TILE_M, TILE_N])
    row = tl.program_id(0) * TILE_M
    column = tl.program_id(1) * TILE_N
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for k in tl.range(0, K, TILE_K, warp_specialize=True):
        total = tl.dot(a.load([row, k]), b.load([k, column]), total)
    c.store([row, column], total.to(tl.float16))


@triton.jit
def grouped(
    a_ptr, b_ptr, c_ptr, starts_ptr, groups, N, K, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
    PROGRAMS: tl.constexpr,
):
    """For each group of rows of A a product with a matrix of its own; the descriptors of a group are made as it begins."""
    tile = tl.program_id(0)
    before = 0
    across = tl.cdiv(N, TILE_N)
    for group in range(groups):
        first = tl.load(starts_ptr + group)
        rows = tl.load(starts_ptr + group + 1) - first
        tiles = tl.cdiv(rows, TILE_M) * across
        if tile < before + tiles:
            a = tl.make_tensor_descriptor(a_ptr + first.to(tl.int64) * K, [rows, K], [K, 1], [TILE_M, TILE_K])
            b = tl.make_tensor_descriptor(b_ptr + group.to(tl.int64) * K * N, [K, N], [N, 1], [TILE_K, TILE_N])
            c = tl.make_tensor_descriptor(c_ptr + first.to(tl.int64) * N, [rows, N], [N, 1], [TILE_M, TILE_N])
            while tile < before + tiles:
                row = (tile - before) // across * TILE_M
                column = (tile - before) % across * TILE_N
                total = tl.zeros((TILE_M, TILE_N), tl.float32)
                for k in range(0, K, TILE_K):
                    total = tl.dot(a.load([row, k]), b.load([k, column]), total)
                c.store([row, column], total.to(tl.float16))
                tile += PROGRAMS
        before += tiles


@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, length, scale, HEAD: tl.constexpr, TILE_Q: tl.constexpr, TILE_K: tl.constexpr,
):
    """softmax(Q K^T scale) V, one head a program along axis 1, keys and values by descriptors."""
    base = tl.program_id(1).to(tl.int64) * length * HEAD
    q = tl.make_tensor_descriptor(q_ptr + base, [length, HEAD], [HEAD, 1], [TILE_Q, HEAD])
    k = tl.make_tensor_descriptor(k_ptr + base, [length, HEAD], [HEAD, 1], [TILE_K, HEAD])
    v = tl.make_tensor_descriptor(v_ptr + base, [length, HEAD], [HEAD, 1], [TILE_K, HEAD])
    out = tl.make_tensor_descriptor(out_ptr + base, [length, HEAD], [HEAD, 1], [TILE_Q, HEAD])
    row = tl.program_id(0) * TILE_Q
    query = q.load([row, 0])
    top = tl.full((TILE_Q,), float("-inf"), tl.float32)
    mass = tl.zeros((TILE_Q,), tl.float32)
    total = tl.zeros((TILE_Q, HEAD), tl.float32)
    for start in range(0, length, TILE_K):
        score = tl.dot(query, k.load([start, 0]).T) * scale
        score = tl.where((start + tl.arange(0, TILE_K))[None, :] < length, score, float("-inf"))
        new_top = tl.maximum(top, tl.max(score, 1))
        weight = tl.exp(score - new_top[:, None])
        factor = tl.exp(top - new_top)
        mass = mass * factor + tl.sum(weight, 1)
        total = tl.dot(weight.to(query.dtype), v.load([start, 0]), total * factor[:, None])
        top = new_top
    out.store([row, 0], (total / mass[:, None]).to(query.dtype))


@triton.jit
def dependent_product(a_ptr, b_ptr, c_ptr, M, N, K, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    """C = A B behind the grid before; descriptors are made before the wait."""
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [TILE_M, TILE_K])
    b = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [TILE_K, TILE_N])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [TILE_M, TILE_N])
    row = tl.program_id(0) * TILE_M
    column = tl.program_id(1) * TILE_N
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    tl.extra.cuda.gdc_wait()
    for k in range(0, K, TILE_K):
        total = tl.dot(a.load([row, k]), b.load([k, column]), total)
    tl.extra.cuda.gdc_launch_dependents()
    c.store([row, column], total.to(tl.float16))
