"""What each program of a litmus test does. All take the same arguments, and all words and tiles are those of the rank `home`.

`x` and `y` are tiles of data, `flag` and `turn` words, and `out` has a row for what each program `me` saw. RELEASE and ACQUIRE are
the orders of what publishes and of what waits, each with its scope.
"""

from __future__ import annotations

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld


@tilefw.jit
def await_value(word, value: tl.constexpr, home, ACQUIRE: tl.constexpr, TO: tl.constexpr):
    while tld.atomic_cas(word, value, value, home, sem=ACQUIRE, scope=TO) != value:
        pass


@tilefw.jit
def take_turn(turn, home, RELEASE: tl.constexpr, FROM: tl.constexpr):
    """What stands between the two accesses of a program that both publishes and sees: one word, counted by all."""
    tld.atomic_add(turn, 1, home, sem="relaxed" if RELEASE == "relaxed" else "acq_rel", scope=FROM)


@tilefw.jit
def publish(
    x, y, flag, turn, out, home, me, N: tl.constexpr, RELEASE: tl.constexpr, FROM: tl.constexpr, ACQUIRE: tl.constexpr,
    TO: tl.constexpr,
):
    tile = tl.arange(0, N)
    tld.store(x + tile, tl.full((N,), 1, tl.int32), home)
    tld.atomic_xchg(flag, 1, home, sem=RELEASE, scope=FROM)


@tilefw.jit
def read(
    x, y, flag, turn, out, home, me, N: tl.constexpr, RELEASE: tl.constexpr, FROM: tl.constexpr, ACQUIRE: tl.constexpr,
    TO: tl.constexpr,
):
    tile = tl.arange(0, N)
    await_value(flag, 1, home, ACQUIRE, TO)
    tl.store(out + me * N + tile, tld.load(x + tile, home))


@tilefw.jit
def publish_by_fence(
    x, y, flag, turn, out, home, me, N: tl.constexpr, RELEASE: tl.constexpr, FROM: tl.constexpr, ACQUIRE: tl.constexpr,
    TO: tl.constexpr,
):
    tile = tl.arange(0, N)
    tld.store(x + tile, tl.full((N,), 1, tl.int32), home)
    if RELEASE == "release":
        tld.fence("release", FROM)
    tld.atomic_xchg(flag, 1, home, sem="relaxed", scope="system")


@tilefw.jit
def read_by_fence(
    x, y, flag, turn, out, home, me, N: tl.constexpr, RELEASE: tl.constexpr, FROM: tl.constexpr, ACQUIRE: tl.constexpr,
    TO: tl.constexpr,
):
    tile = tl.arange(0, N)
    await_value(flag, 1, home, "relaxed", "system")
    if ACQUIRE == "acquire":
        tld.fence("acquire", TO)
    tl.store(out + me * N + tile, tld.load(x + tile, home))


@tilefw.jit
def put(
    x, y, flag, turn, out, home, me, N: tl.constexpr, RELEASE: tl.constexpr, FROM: tl.constexpr, ACQUIRE: tl.constexpr,
    TO: tl.constexpr,
):
    tile = tl.arange(0, N)
    tl.store(y + tile, tl.full((N,), 1, tl.int32))
    tld.put(y + tile, x + tile, home)
    tld.signal(flag, home, sem=RELEASE, scope=FROM)


@tilefw.jit
def wait(
    x, y, flag, turn, out, home, me, N: tl.constexpr, RELEASE: tl.constexpr, FROM: tl.constexpr, ACQUIRE: tl.constexpr,
    TO: tl.constexpr,
):
    """On `home` itself: a wait is for a word of one's own."""
    tile = tl.arange(0, N)
    tld.wait(flag, sem=ACQUIRE, scope=TO)
    tl.store(out + me * N + tile, tl.load(x + tile))


@tilefw.jit
def count_on(
    x, y, flag, turn, out, home, me, N: tl.constexpr, RELEASE: tl.constexpr, FROM: tl.constexpr, ACQUIRE: tl.constexpr,
    TO: tl.constexpr,
):
    """Relaxed: a release goes on through the read-modify-writes of others."""
    while tld.atomic_cas(flag, 1, 2, home, sem="relaxed", scope="system") != 1:
        pass


@tilefw.jit
def read_behind_two(
    x, y, flag, turn, out, home, me, N: tl.constexpr, RELEASE: tl.constexpr, FROM: tl.constexpr, ACQUIRE: tl.constexpr,
    TO: tl.constexpr,
):
    tile = tl.arange(0, N)
    await_value(flag, 2, home, ACQUIRE, TO)
    tl.store(out + me * N + tile, tld.load(x + tile, home))


@tilefw.jit
def pass_on(
    x, y, flag, turn, out, home, me, N: tl.constexpr, RELEASE: tl.constexpr, FROM: tl.constexpr, ACQUIRE: tl.constexpr,
    TO: tl.constexpr,
):
    await_value(flag, 1, home, ACQUIRE, TO)
    tld.atomic_xchg(turn, 1, home, sem="release", scope="system")


@tilefw.jit
def read_behind_turn(
    x, y, flag, turn, out, home, me, N: tl.constexpr, RELEASE: tl.constexpr, FROM: tl.constexpr, ACQUIRE: tl.constexpr,
    TO: tl.constexpr,
):
    tile = tl.arange(0, N)
    await_value(turn, 1, home, "acquire", "system")
    tl.store(out + me * N + tile, tld.load(x + tile, home))


@tilefw.jit
def open_gate_plainly(
    x, y, flag, turn, out, home, me, N: tl.constexpr, RELEASE: tl.constexpr, FROM: tl.constexpr, ACQUIRE: tl.constexpr,
    TO: tl.constexpr,
):
    tile = tl.arange(0, N)
    tld.store(x + tile, tl.full((N,), 1, tl.int32), home)
    tl.debug_barrier()
    tl.store(tld.at(flag, home), 1)


@tilefw.jit
def open_gate_write_through(
    x, y, flag, turn, out, home, me, N: tl.constexpr, RELEASE: tl.constexpr, FROM: tl.constexpr, ACQUIRE: tl.constexpr,
    TO: tl.constexpr,
):
    tile = tl.arange(0, N)
    tld.store(x + tile, tl.full((N,), 1, tl.int32), home)
    tl.debug_barrier()
    tl.store(tld.at(flag, home), 1, cache_modifier=".wt")


@tilefw.jit
def count_in(
    x, y, flag, turn, out, home, me, N: tl.constexpr, RELEASE: tl.constexpr, FROM: tl.constexpr, ACQUIRE: tl.constexpr,
    TO: tl.constexpr,
):
    """Iris's recipe: all stores, a barrier, a counter that acquires and releases, and the last one opens the gate."""
    tile = tl.arange(0, N)
    tld.store(x + tile, tl.full((N,), 1, tl.int32), home)
    tl.debug_barrier()
    if tld.atomic_add(turn, 1, home, sem="acq_rel" if RELEASE == "release" else "relaxed", scope=FROM) == 0:
        tld.atomic_xchg(flag, 1, home, sem=RELEASE, scope=FROM)


@tilefw.jit
def store_x_load_y(
    x, y, flag, turn, out, home, me, N: tl.constexpr, RELEASE: tl.constexpr, FROM: tl.constexpr, ACQUIRE: tl.constexpr,
    TO: tl.constexpr,
):
    tile = tl.arange(0, N)
    tld.store(x + tile, tl.full((N,), 1, tl.int32), home)
    take_turn(turn, home, RELEASE, FROM)
    tl.store(out + me * N + tile, tld.load(y + tile, home))


@tilefw.jit
def store_y_load_x(
    x, y, flag, turn, out, home, me, N: tl.constexpr, RELEASE: tl.constexpr, FROM: tl.constexpr, ACQUIRE: tl.constexpr,
    TO: tl.constexpr,
):
    tile = tl.arange(0, N)
    tld.store(y + tile, tl.full((N,), 1, tl.int32), home)
    take_turn(turn, home, RELEASE, FROM)
    tl.store(out + me * N + tile, tld.load(x + tile, home))


@tilefw.jit
def load_x_store_y(
    x, y, flag, turn, out, home, me, N: tl.constexpr, RELEASE: tl.constexpr, FROM: tl.constexpr, ACQUIRE: tl.constexpr,
    TO: tl.constexpr,
):
    tile = tl.arange(0, N)
    tl.store(out + me * N + tile, tld.load(x + tile, home))
    take_turn(turn, home, RELEASE, FROM)
    tld.store(y + tile, tl.full((N,), 1, tl.int32), home)


@tilefw.jit
def load_y_store_x(
    x, y, flag, turn, out, home, me, N: tl.constexpr, RELEASE: tl.constexpr, FROM: tl.constexpr, ACQUIRE: tl.constexpr,
    TO: tl.constexpr,
):
    tile = tl.arange(0, N)
    tl.store(out + me * N + tile, tld.load(y + tile, home))
    take_turn(turn, home, RELEASE, FROM)
    tld.store(x + tile, tl.full((N,), 1, tl.int32), home)


@tilefw.jit
def store_x_store_y(
    x, y, flag, turn, out, home, me, N: tl.constexpr, RELEASE: tl.constexpr, FROM: tl.constexpr, ACQUIRE: tl.constexpr,
    TO: tl.constexpr,
):
    tile = tl.arange(0, N)
    tld.store(x + tile, tl.full((N,), 1, tl.int32), home)
    take_turn(turn, home, RELEASE, FROM)
    tld.store(y + tile, tl.full((N,), 2, tl.int32), home)


@tilefw.jit
def store_y_store_x(
    x, y, flag, turn, out, home, me, N: tl.constexpr, RELEASE: tl.constexpr, FROM: tl.constexpr, ACQUIRE: tl.constexpr,
    TO: tl.constexpr,
):
    tile = tl.arange(0, N)
    tld.store(y + tile, tl.full((N,), 1, tl.int32), home)
    take_turn(turn, home, RELEASE, FROM)
    tld.store(x + tile, tl.full((N,), 2, tl.int32), home)


@tilefw.jit
def write_x(
    x, y, flag, turn, out, home, me, N: tl.constexpr, RELEASE: tl.constexpr, FROM: tl.constexpr, ACQUIRE: tl.constexpr,
    TO: tl.constexpr,
):
    tile = tl.arange(0, N)
    tld.atomic_xchg(x + tile, tl.full((N,), 1, tl.int32), home, sem="relaxed")


@tilefw.jit
def write_y(
    x, y, flag, turn, out, home, me, N: tl.constexpr, RELEASE: tl.constexpr, FROM: tl.constexpr, ACQUIRE: tl.constexpr,
    TO: tl.constexpr,
):
    tile = tl.arange(0, N)
    tld.atomic_xchg(y + tile, tl.full((N,), 1, tl.int32), home, sem="relaxed")


@tilefw.jit
def read_x_read_y(
    x, y, flag, turn, out, home, me, N: tl.constexpr, RELEASE: tl.constexpr, FROM: tl.constexpr, ACQUIRE: tl.constexpr,
    TO: tl.constexpr,
):
    tile = tl.arange(0, N)
    tl.store(out + me * N + tile, tld.atomic_add(x + tile, tl.zeros((N,), tl.int32), home, sem="relaxed"))
    take_turn(turn, home, RELEASE, FROM)
    tl.store(out + (me + 2) * N + tile, tld.load(y + tile, home))


@tilefw.jit
def read_y_read_x(
    x, y, flag, turn, out, home, me, N: tl.constexpr, RELEASE: tl.constexpr, FROM: tl.constexpr, ACQUIRE: tl.constexpr,
    TO: tl.constexpr,
):
    tile = tl.arange(0, N)
    tl.store(out + me * N + tile, tld.atomic_add(y + tile, tl.zeros((N,), tl.int32), home, sem="relaxed"))
    take_turn(turn, home, RELEASE, FROM)
    tl.store(out + (me + 2) * N + tile, tld.load(x + tile, home))
