"""Kernels with one inefficiency each where a constant asks for it: what bench/planted_causes.py has the profile find."""

import tilefw
import tilefw.language as tl


@tilefw.jit
def strided(x_ptr, y_ptr, STRIDE: tl.constexpr, STORE_STRIDE: tl.constexpr, BLOCK: tl.constexpr, TURNS: tl.constexpr):
    at = tl.program_id(0) * BLOCK * TURNS + tl.arange(0, BLOCK)
    for turn in range(TURNS):
        x = tl.load(x_ptr + (at + turn * BLOCK) * STRIDE)
        tl.store(y_ptr + (at + turn * BLOCK) * STORE_STRIDE, x + 1.0)


@tilefw.jit
def fields(x_ptr, y_ptr, FIELDS: tl.constexpr, APART: tl.constexpr, BLOCK: tl.constexpr):
    """Two fields of a record: records of so many FIELDS one after the other, or arrays of fields that are APART."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x_ptr + at * FIELDS)
    b = tl.load(x_ptr + at * FIELDS + APART)
    tl.store(y_ptr + at, a * b)


@tilefw.jit
def scattered(x_ptr, y_ptr, FACTOR: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at * FACTOR % SIZE) * 2.0)


@tilefw.jit
def picked(x_ptr, y_ptr, FACTOR: tl.constexpr, BLOCK: tl.constexpr, TURNS: tl.constexpr):
    """Elements of a tile in an order that lanes find by themselves, in shared memory."""
    place = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + place)
    for turn in range(TURNS):
        x = tl.gather(x, (place * FACTOR + place * FACTOR // BLOCK + turn) % BLOCK, 0) + 1.0
    tl.store(y_ptr + tl.program_id(0) * BLOCK + place, x)


@tilefw.jit
def many_sums(x_ptr, y_ptr, SUMS: tl.constexpr, BLOCK: tl.constexpr, TURNS: tl.constexpr):
    """So many tiles of sums, all alive in each turn of the loop."""
    place = tl.arange(0, BLOCK)[None, :] + tl.arange(0, SUMS)[:, None] * BLOCK
    total = tl.load(x_ptr + place)
    for turn in range(TURNS):
        total = total * 1.5 + tl.load(x_ptr + (turn + tl.program_id(0)) % 64 + tl.arange(0, BLOCK)[None, :])
    tl.store(y_ptr + tl.program_id(0) * BLOCK * SUMS + place, total)


@tilefw.jit
def streamed(x_ptr, y_ptr, LIVE: tl.constexpr, BLOCK: tl.constexpr, TURNS: tl.constexpr, STAGES: tl.constexpr):
    """A sum of blocks one after the other, beside LIVE rows that wait in registers for its end."""
    place = tl.arange(0, BLOCK)
    first = tl.program_id(0) * BLOCK * TURNS
    kept = tl.load(x_ptr + place[None, :] + tl.arange(0, LIVE)[:, None] * BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for turn in tl.range(0, TURNS, num_stages=STAGES):
        total += tl.load(x_ptr + first + turn * BLOCK + place)
    tl.store(y_ptr + tl.program_id(0) * BLOCK + place, total + tl.sum(kept * total[None, :], axis=0))


@tilefw.jit
def waited(x_ptr, y_ptr, AHEAD: tl.constexpr, BLOCK: tl.constexpr, TURNS: tl.constexpr):
    """A sum whose turns load AHEAD blocks together before they need the first of them."""
    place = tl.program_id(0) * BLOCK * TURNS + tl.arange(0, BLOCK)[None, :] + tl.arange(0, AHEAD)[:, None] * BLOCK
    total = tl.zeros((AHEAD, BLOCK), tl.float32)
    for turn in tl.range(0, TURNS // AHEAD, num_stages=1):
        total += tl.load(x_ptr + place + turn * (AHEAD * BLOCK))
    tl.store(y_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.sum(total, axis=0))


@tilefw.jit
def added(x_ptr, y_ptr, SPREAD: tl.constexpr, BINS: tl.constexpr, BLOCK: tl.constexpr, TURNS: tl.constexpr):
    """Atomic sums: each element into a place of its own of a program (SPREAD 1), or all programs' into so many BINS."""
    place = tl.arange(0, BLOCK)
    for turn in range(TURNS):
        x = tl.load(x_ptr + (tl.program_id(0) * TURNS + turn) * BLOCK + place)
        tl.atomic_add(y_ptr + tl.program_id(0) * BLOCK * SPREAD + place % BINS, x)


@tilefw.jit
def counted(x_ptr, y_ptr, SPREAD: tl.constexpr, TURNS: tl.constexpr):
    """A counter that each program raises turn by turn: one of its own, or one of all."""
    for _ in range(TURNS):
        tl.atomic_add(y_ptr + tl.program_id(0) * SPREAD * 8, 1.0)


@tilefw.jit
def worked(x_ptr, y_ptr, BLOCK: tl.constexpr, TURNS: tl.constexpr):
    """Arithmetic alone."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    for _ in range(TURNS):
        x = x * 1.5 + 0.25
        x = x * x + x
    tl.store(y_ptr + at, x)


@tilefw.jit
def reread(x_ptr, y_ptr, SPAN: tl.constexpr, BLOCK: tl.constexpr, TURNS: tl.constexpr):
    """A program's own region of SPAN blocks, over and over: as many loads whatever the SPAN."""
    place = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for turn in range(TURNS):
        total += tl.load(x_ptr + (tl.program_id(0) * SPAN + turn % SPAN) * BLOCK + place)
    tl.store(y_ptr + tl.program_id(0) * BLOCK + place, total)


@tilefw.jit
def converted(x_ptr, y_ptr, TYPE: tl.constexpr, BLOCK: tl.constexpr, TURNS: tl.constexpr):
    """A recurrence that goes through a type and back in each turn."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    for _ in range(TURNS):
        x = x.to(TYPE).to(tl.float32) * 1.5 + 0.25
    tl.store(y_ptr + at, x)


@tilefw.jit
def turned(x_ptr, y_ptr, TURN: tl.constexpr, SIDE: tl.constexpr, TURNS: tl.constexpr):
    """A tile that is transposed in each turn and added to itself, or only added."""
    at = tl.arange(0, SIDE)[:, None] * SIDE + tl.arange(0, SIDE)[None, :]
    x = tl.load(x_ptr + tl.program_id(0) * SIDE * SIDE + at)
    for _ in range(TURNS):
        if TURN:
            x = x + tl.trans(x)
        else:
            x = x + x * 0.5
    tl.store(y_ptr + tl.program_id(0) * SIDE * SIDE + at, x)


@tilefw.jit
def reordered(x_ptr, y_ptr, AXES: tl.constexpr, BLOCK: tl.constexpr, TURNS: tl.constexpr):
    """Sums along one axis, or along both in turn, spread over the tile again."""
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK * BLOCK + at)
    for _ in range(TURNS):
        if AXES:
            x = tl.reshape(tl.trans(tl.reshape(x, (BLOCK // 2, BLOCK * 2))), (BLOCK, BLOCK)) * 0.5
        else:
            x = x * 0.5 + 1.0
    tl.store(y_ptr + tl.program_id(0) * BLOCK * BLOCK + at, x)


@tilefw.jit
def met(x_ptr, y_ptr, MEET: tl.constexpr, BLOCK: tl.constexpr, TURNS: tl.constexpr):
    """Arithmetic with a barrier in each turn that nothing needs."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    for _ in range(TURNS):
        x = x * 1.5 + 0.25
        if MEET:
            tl.debug_barrier()
    tl.store(y_ptr + at, x)


@tilefw.jit
def normalised(x_ptr, y_ptr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr, TURNS: tl.constexpr):
    """Arithmetic on rows of so many COLUMNS in blocks that hold them, and perhaps many more."""
    place = tl.arange(0, BLOCK)
    for turn in range(TURNS):
        row = tl.program_id(0) * TURNS + turn
        x = tl.load(x_ptr + row * COLUMNS + place, mask=place < COLUMNS, other=0.0)
        for _ in range(16):
            x = x * 0.5 + 1.0
        tl.store(y_ptr + row * COLUMNS + place, x, mask=place < COLUMNS)


@tilefw.jit
def slow(x_ptr, y_ptr, HOW: tl.constexpr, BLOCK: tl.constexpr, TURNS: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    for _ in range(TURNS):
        if HOW == 0:
            x = x * 1.5 + 0.25
        elif HOW == 1:
            x = 1.0 / (x + 1.5)
        elif HOW == 2:
            x = tl.exp(x * 0.5)
        else:
            x = tl.sqrt(x * x + 1.0)
    tl.store(y_ptr + at, x)


@tilefw.jit
def product(
    a_ptr, b_ptr, c_ptr, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, BLOCK_K: tl.constexpr, WIDE: tl.constexpr,
    STAGES: tl.constexpr, MEET: tl.constexpr,
):
    """A product of fp16 with WIDE programs along the rows; the operands of all programs are of one size."""
    row, column = tl.program_id(0) // WIDE, tl.program_id(0) % WIDE
    m, n, k = row * M + tl.arange(0, M), column * N + tl.arange(0, N), tl.arange(0, BLOCK_K)
    total = tl.zeros((M, N), tl.float32)
    for step in tl.range(0, K, BLOCK_K, num_stages=STAGES):
        a = tl.load(a_ptr + m[:, None] * K + (step + k)[None, :])
        b = tl.load(b_ptr + (step + k)[:, None] * (WIDE * N) + n[None, :])
        total = tl.dot(a, b, total)
        if MEET:
            tl.debug_barrier()
    tl.store(c_ptr + m[:, None] * (WIDE * N) + n[None, :], total)
