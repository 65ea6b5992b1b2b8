"""Kernels in plain Triton that speak to other ranks through the bases of their heaps, as the library Iris writes them."""

import tilefw
import tilefw.language as tl


@tilefw.jit
def translate(pointer, from_rank, to_rank, heap_bases):
    """The same place of another rank's heap."""
    offset = tl.cast(pointer, tl.uint64) - tl.cast(tl.load(heap_bases + from_rank), tl.uint64)
    base = tl.cast(tl.load(heap_bases + to_rank), tl.pointer_type(tl.int8))
    return tl.cast(base + offset, pointer.dtype)


@tilefw.jit
def load_kernel(source, result, n, me, other, heap_bases, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(translate(source + offsets, me, other, heap_bases), mask=inside)
    tl.store(result + offsets, x, mask=inside)


@tilefw.jit
def store_kernel(source, result, n, me, other, heap_bases, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(source + offsets, mask=inside)
    tl.store(translate(result + offsets, me, other, heap_bases), x, mask=inside)


@tilefw.jit
def add_kernel(result, n, me, heap_bases, RANKS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for rank in range(RANKS):
        place = translate(result + offsets, me, rank, heap_bases)
        tl.atomic_add(place, 1, mask=offsets < n, sem="relaxed", scope="sys")


@tilefw.jit
def exchange_kernel(result, n, me, heap_bases, RANKS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = translate(result + offsets, me, (me + 1) % RANKS, heap_bases)
    tl.atomic_xchg(place, me + 1, mask=offsets < n, sem="relaxed", scope="sys")


@tilefw.jit
def producer(source, buffer, flags, n, me, consumer_rank, heap_bases, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    offsets = program * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(source + offsets, mask=inside)
    tl.store(translate(buffer + offsets, me, consumer_rank, heap_bases), x, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(translate(flags + program, me, consumer_rank, heap_bases), 1, sem="release", scope="sys")


@tilefw.jit
def consumer(buffer, flags, result, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    offsets = program * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    while tl.atomic_cas(flags + program, 1, 0, sem="acquire", scope="sys") == 0:
        pass
    tl.debug_barrier()
    tl.store(result + offsets, 2 * tl.load(buffer + offsets, mask=inside), mask=inside)


@tilefw.jit
def device_barrier(flags, me, heap_bases, RANKS: tl.constexpr):
    """Tell every rank, then wait until all have told me."""
    for rank in range(RANKS):
        tl.atomic_add(translate(flags + me, me, rank, heap_bases), 1, sem="release", scope="sys")
    for rank in range(RANKS):
        while tl.atomic_cas(flags + rank, 1, 0, sem="acquire", scope="sys") != 1:
            pass


@tilefw.jit
def one_shot_all_reduce(source, result, flags, n, me, heap_bases, RANKS: tl.constexpr, BLOCK: tl.constexpr):
    """One program a rank: all wait for each other, then each adds up what all have."""
    device_barrier(flags, me, heap_bases, RANKS)
    tl.debug_barrier()
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        inside = offsets < n
        total = tl.zeros([BLOCK], tl.float32)
        for rank in range(RANKS):
            total += tl.load(translate(source + offsets, me, rank, heap_bases), mask=inside, other=0.0)
        tl.store(result + offsets, total, mask=inside)


@tilefw.jit
def volatile_consumer(buffer, flags, result, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    offsets = program * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    while tl.load(flags + program, volatile=True) != 1:
        pass
    tl.debug_barrier()
    tl.store(result + offsets, tl.load(buffer + offsets, mask=inside), mask=inside)


@tilefw.jit
def bounded_barrier(flags, me, heap_bases, RANKS: tl.constexpr, MAX_SPINS: tl.constexpr):
    """A barrier that would rather fail than wait for ever."""
    for rank in range(RANKS):
        tl.atomic_add(translate(flags + me, me, rank, heap_bases), 1, sem="release", scope="sys")
    for rank in range(RANKS):
        spins = 0
        while (tl.atomic_cas(flags + rank, 1, 0, sem="acquire", scope="sys") != 1) & (spins < MAX_SPINS):
            spins += 1
        tl.device_assert(spins < MAX_SPINS, "a rank never came")


@tilefw.jit
def greatest(source, result, n, BLOCK: tl.constexpr):
    """Most of its atomics change nothing."""
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(source + offsets, mask=offsets < n, other=0)
        tl.atomic_max(result, tl.max(x), sem="relaxed", scope="sys")


@tilefw.jit
def add_to_first(x, value):
    tl.store(x, tl.load(x) + value)


@tilefw.jit
def spin(x, turns):
    """It takes long, and changes memory all the time."""
    for _ in range(turns):
        tl.atomic_add(x, 1, sem="relaxed", scope="sys")
