"""Writes llama_layer.graph: a Llama layer in fp32 that four devices share, each with one of four heads and a quarter of the rest.

Weights of what goes in are divided by columns, those of what comes out by rows (Shoeybi et al., "Megatron-LM", 2019), so that a
layer adds up twice: behind attention and behind the feed-forward part.
"""

import sys
from pathlib import Path

import numpy as np

from tilefw.graph.builder import ModuleBuilder

RANKS, ROWS, WIDTH, HEADS, HIDDEN = 4, 16, 64, 4, 128
SIZE = WIDTH // HEADS  # of a head
OWN = HEADS // RANKS  # heads of a rank
rng = np.random.default_rng(0)
b = ModuleBuilder()


def weight(rows: int, columns: int, axis: int):
    """A rank's part of a seeded weight."""
    array = (rng.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)
    return b.part(b.constant(array, "fp32"), axis, RANKS)


def norm(x):
    """x over its root mean square."""
    mean = b.map("divf", b.reduce("addf", b.map("mulf", x, x), [1], keep=True), float(WIDTH))
    return b.map("mulf", x, b.map("rsqrt", b.map("addf", mean, 1e-5)))


def heads(x):
    """A rank's heads, the first dim."""
    return b.transpose(b.reshape(x, (ROWS, OWN, SIZE)), [1, 0, 2])


def rotated(x):
    """x with pairs of elements turned by angles of their positions."""
    half = SIZE // 2
    angles = np.outer(np.arange(ROWS), 10000.0 ** (-np.arange(half) / half))
    cosine, sine = (b.constant(f(angles).astype(np.float32), "fp32") for f in (np.cos, np.sin))
    low, high = (b.slice(x, [0, 0, start], [OWN, ROWS, half]) for start in (0, half))
    turned = b.map("subf", b.map("mulf", low, cosine), b.map("mulf", high, sine))
    other = b.map("addf", b.map("mulf", high, cosine), b.map("mulf", low, sine))
    return b.concat([turned, other], 2)


def attention(x):
    """Causal attention of the rank's heads; a rank's term of the sum over all heads."""
    q, k, v = (heads(b.matmul(x, weight(WIDTH, WIDTH, 1))) for _ in range(3))
    scores = b.map("mulf", b.einsum(rotated(q), rotated(k), "hmd,hnd->hmn"), SIZE**-0.5)
    later = np.triu(np.ones((ROWS, ROWS), bool), 1)
    masked = b.map("select", b.broadcast(b.constant(later, "int1"), (OWN, ROWS, ROWS)), b.full(-np.inf, scores), scores)
    held = b.map("exp", b.map("subf", masked, b.reduce("maxf", masked, [2], keep=True)))
    weights = b.map("divf", held, b.reduce("addf", held, [2], keep=True))
    found = b.reshape(b.transpose(b.matmul(weights, v), [1, 0, 2]), (ROWS, OWN * SIZE))
    return b.matmul(found, weight(WIDTH, WIDTH, 0))


def feed_forward(x):
    """silu(x · gate) · (x · up) · down, a rank's term of it."""
    gate, up = b.matmul(x, weight(WIDTH, HIDDEN, 1)), b.matmul(x, weight(WIDTH, HIDDEN, 1))
    silu = b.map("divf", gate, b.map("addf", b.map("exp", b.map("negf", gate)), 1.0))
    return b.matmul(b.map("mulf", silu, up), weight(HIDDEN, WIDTH, 0))


def main(path: str) -> None:
    x = b.input("x", "fp32", (ROWS, WIDTH))
    for name, part in (("attention", attention), ("feed-forward", feed_forward)):
        with b.node(name):
            term = part(norm(x))
        with b.node(f"sum of {name}"):
            total = b.collective("all_reduce", term, RANKS)
        with b.node(f"residual of {name}"):
            x = b.map("addf", x, total)
    b.output("y", x)
    Path(path).write_text(str(b.module()))


if __name__ == "__main__":
    main(*sys.argv[1:2] or ["llama_layer.graph"])
