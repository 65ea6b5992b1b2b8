"""Kernels whose control flow is the point: calls, early returns, flags between programs, loops of compare-and-swap."""


import triton
import triton.language as tl


@triton.jit(noinline=True)
def _turn(x, y):
    result = x * 2 - y
    if x > y:
        result = y * 3 + x
    return result


@triton.jit(noinline=True)
def _turns(x, count):
    result = x
    for step in range(count):
        result = _turn(result, x + step)
    return result


@triton.jit(noinline=True)
def _scale_tile(x_ptr, scale, shift, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(x_ptr + at, tl.load(x_ptr + at, mask=inside, other=0) * scale + shift, mask=inside)


@triton.jit
def calls(seeds_ptr, x_ptr, n, count, BLOCK: tl.constexpr):
    """Functions that are called: one calls another in a loop, one reads and writes memory."""
    scale = _turns(tl.load(seeds_ptr + tl.program_id(0)), count)
    _scale_tile(x_ptr, scale, _turn(scale, count), n, BLOCK)


@triton.jit
def early_return(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """A three-dimensional grid of which some programs leave at once; the others loop as often as their number has bits."""
    program = tl.program_id(0) + tl.num_programs(0) * (tl.program_id(1) + tl.num_programs(1) * tl.program_id(2))
    if program % 3 == 1:
        return
    if program * BLOCK >= n:
        return
    at = program * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0)
    left = program
    while left > 0:
        x = x * 3 + left
        left = left // 2
        if left == 2:
            x += 100
    tl.store(out_ptr + at, x, mask=at < n)


@triton.jit
def system_atomics(x_ptr, slots_ptr, n, SLOTS: tl.constexpr, BLOCK: tl.constexpr):
    """Atomics of the system's scope; gfx942 has instructions for some, for the others LLVM writes loops of compare-and-swap."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=0)
    slot = at % SLOTS
    tl.atomic_max(slots_ptr + slot, x, mask=inside, sem="acq_rel", scope="sys")
    tl.atomic_or(slots_ptr + SLOTS + slot, x, mask=inside, sem="release", scope="sys")
    tl.atomic_add(slots_ptr + 2 * SLOTS + slot, x, mask=inside, sem="relaxed", scope="sys")


@triton.jit
def hand_over(x_ptr, flag_ptr, out_ptr, BLOCK: tl.constexpr):
    """The first program writes a block and raises a flag; the others wait for the flag and read the block."""
    at = tl.arange(0, BLOCK)
    if tl.program_id(0) == 0:
        tl.store(x_ptr + at, at * 3)
        tl.debug_barrier()
        tl.atomic_xchg(flag_ptr, 1, sem="release", scope="gpu")
    else:
        while tl.atomic_add(flag_ptr, 0, sem="acquire", scope="gpu") == 0:
            pass
        tl.debug_barrier()
        tl.store(out_ptr + (tl.program_id(0) - 1) * BLOCK + at, tl.load(x_ptr + at) + tl.program_id(0))


@triton.jit
def _restarting_sum(flag_a, sum_a, flag_b, sum_b):
    return flag_a | flag_b, tl.where(flag_b != 0, sum_b, sum_a + sum_b)


@triton.jit
def segmented_sums(x_ptr, flags_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Running sums down the columns that begin again at every flag."""
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    _, sums = tl.associative_scan((tl.load(flags_ptr + at), tl.load(x_ptr + at)), 0, _restarting_sum)
    tl.store(out_ptr + at, sums)


@triton.jit
def largest(x_ptr, top_ptr, flipped_ptr, COLUMNS: tl.constexpr, COUNT: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + row * COLUMNS + column)
    tl.store(top_ptr + row * COUNT + tl.arange(0, COUNT), tl.topk(x, COUNT))
    tl.store(flipped_ptr + row * COLUMNS + column, tl.flip(x, 0))
