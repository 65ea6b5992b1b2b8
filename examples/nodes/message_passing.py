"""Two kernels on two devices: one sends tiles and flags, the other waits for the flags. Plain Triton, as Iris writes it."""

import sys

import numpy as np

import tilefw
import tilefw.language as tl


@tilefw.jit
def translate(pointer, from_rank, to_rank, heap_bases):
    """The same place of another rank's heap."""
    offset = pointer.to(tl.uint64) - tl.load(heap_bases + from_rank).to(tl.uint64)
    base = tl.load(heap_bases + to_rank).to(tl.pointer_type(tl.int8))
    return (base + offset).to(pointer.dtype)


@tilefw.jit
def producer(source, buffer, flags, n, heap_bases, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    offsets = program * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(source + offsets, mask=inside)
    tl.store(translate(buffer + offsets, 0, 1, heap_bases), x, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(translate(flags + program, 0, 1, heap_bases), 1, sem="release", scope="sys")


@tilefw.jit
def consumer(buffer, flags, result, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    offsets = program * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    while tl.atomic_cas(flags + program, 1, 0, sem="acquire", scope="sys") == 0:
        pass
    tl.debug_barrier()
    tl.store(result + offsets, tl.load(buffer + offsets, mask=inside), mask=inside)


def main(target="reference", flagged="1"):
    """`flagged` 0: the consumer waits for flags that nobody sets."""
    node = tilefw.node(target, 2)
    n, block = 4000, 1024
    x = node.array([np.arange(n, dtype=np.float32), np.zeros(n, np.float32)], name="x")
    buffer, result = node.empty((n,), name="buffer"), node.empty((n,), name="result")
    flags, other = node.zeros((4,), "int32", name="flags"), node.zeros((4,), "int32", name="other")
    told = flags if flagged == "1" else other
    node.run([
        (0, producer, (4,), (x, buffer, told, n, node.heap_bases, block)),
        (1, consumer, (4,), (buffer, flags, result, n, block)),
    ], seed=1)
    assert np.array_equal(result[1], x[0])
    print(f"{target}: rank 1 has what rank 0 sent")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except tilefw.CheckError as error:
        sys.exit(str(error))
