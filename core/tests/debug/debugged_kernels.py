"""Kernels that the tests of the debugger stop in; the tests name their lines by their text."""

from __future__ import annotations

import tilefw
import tilefw.language as tl


@tilefw.jit
def doubled(value, factor):
    wider = value * factor
    return wider


@tilefw.jit
def stopping(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    breakpoint()
    y = doubled(x, 2)
    tl.store(out_ptr + offsets, y, mask=offsets < n)


@tilefw.jit
def _larger(a, i, b, j):
    more = (a > b) | ((a == b) & (i < j))
    return tl.where(more, a, b), tl.where(more, i, j)


@tilefw.jit
def mixture(x_ptr, y_ptr, count_ptr, out_ptr, n, LIMIT: tl.constexpr, BLOCK: tl.constexpr):
    """Loops of both kinds, branches, tuples, masks, combine functions, atomics, numbers that become scalars."""
    offsets = tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    total, rounds = 0.0, 0
    for i in range(n - 1, -1, -2):
        if i % 3 == 1 and rounds < LIMIT:
            total += tl.sum(x, 0) * i
        elif not (i > 2 or rounds == 0):
            total = total - 1
        rounds += 1
    for k in tl.static_range(2):
        total = total / (k + 2)
    while rounds > 0:
        rounds -= 3
    best, place = tl.reduce((x, offsets), 0, _larger)
    scanned = tl.associative_scan(x, 0, _larger_of_two)
    pair = (best, place) if LIMIT > 0 else (place, best)
    y = tl.load(y_ptr + offsets[:, None] * BLOCK + offsets[None, :]).to(tl.float16)
    product = tl.dot(y, tl.trans(y))
    tl.atomic_add(count_ptr + offsets % 2, pair[1] + rounds, mask=inside)
    middle = x if 0 < n < 100 else -x
    result = doubled(middle, total) + scanned + tl.sum(product, axis=1) + pair[0]
    tl.store(out_ptr + offsets, result, mask=inside)


@tilefw.jit
def _larger_of_two(a, b):
    return tl.maximum(a, b)


@tilefw.jit
def waiting(flag_ptr):
    if tl.program_id(0) == 0:
        while tl.atomic_cas(flag_ptr, 1, 1) != 1:
            pass
    else:
        tl.atomic_xchg(flag_ptr, 1)


@tilefw.jit
def beyond(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets * 2))


@tilefw.jit
def unset(x_ptr, n):
    if n > 3:
        y = 1
    tl.store(x_ptr, y)


@tilefw.jit
def assembly(x_ptr):
    x = tl.load(x_ptr)
    tl.store(x_ptr, tl.inline_asm_elementwise("mov $0, $1;", "=r,r", [x], dtype=tl.int32, is_pure=True, pack=1))


@tilefw.jit
def numbered(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.static_print("block", BLOCK)
    print("offsets", offsets)
    tl.device_print("half", offsets // 2)
    assert tl.program_id(0) < 3, "too many"
    tl.store(x_ptr + tl.program_id(0), 7)


@tilefw.jit
def breaking(x_ptr, n):
    for _ in range(n):
        break


@tilefw.jit
def listed(out_ptr, n, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """Comprehensions over what a condition chooses, whose variable is no name of the function."""
    offsets = tl.arange(0, BLOCK)
    total = offsets * 0
    for k in tl.static_range(2):
        parts = [offsets * item + k for item in ((1, 2, 3) if WIDE and k == 0 else (4, 5)) if item != 2 or not WIDE]
        total += parts[0] + parts[1] * n
    tl.store(out_ptr + offsets, total)


@tilefw.jit
def unset_in_a_list(x_ptr, n):
    if n > 3:
        y = 1
    found = [y + item for item in (0, 1)]
    tl.store(x_ptr, found[0])


@tilefw.jit
def variable_of_a_list(x_ptr):
    found = [item + 1 for item in (0, 1)]
    tl.store(x_ptr, found[0] + item)  # type: ignore[name-defined]  # noqa: F821


@tilefw.jit
def padded(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    block = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (BLOCK,), (0,))
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.load(block, boundary_check=(0,), padding_option="nan"))


@tilefw.jit
def of_any_number(*values):
    return values


@tilefw.jit
def of_any_name(**values):
    return values


@tilefw.jit
def calling_with_many(x_ptr):
    tl.store(x_ptr, of_any_number(1, 2)[1])


@tilefw.jit
def calling_by_any_name(x_ptr):
    tl.store(x_ptr, of_any_name(x=1))


@tilefw.jit
def badly_formatted(x_ptr, BLOCK: tl.constexpr):
    tl.static_print(f"{BLOCK!r:>4} {BLOCK:zz}")


@tilefw.autotune(configs=[tilefw.Config({"BLOCK": 4}), tilefw.Config({"BLOCK": 8})], key=["n"])
@tilefw.jit
def tuned(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, offsets, mask=offsets < n)


@tilefw.jit
def never_negative(x, SIGNED: tl.constexpr):
    if not SIGNED:
        assert False, "no signs"  # noqa: B011
    if tl.load(x) < 0:
        assert False, "negative"  # noqa: B011
    tl.store(x, 7)
