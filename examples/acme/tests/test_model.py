"""A layer of a language model runs on this chip launch by launch, each within the bounds; nothing of it knows the chip."""

from __future__ import annotations

import numpy as np

from tilefw.graph.builder import ModuleBuilder
from tilefw.graph.certificate import certified
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.emit.model import kernel_graph
from tilefw.graph.session import Session

WORDS, WIDTH, HEADS, INNER = 8, 8, 2, 8


def _layer():
    """The layer of Llama: norm, queries, keys and values by one product, turned pairs, masked softmax, gated feed-forward."""
    b, rng = ModuleBuilder(), np.random.default_rng(0)

    def weight(*shape):
        return b.constant((rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32), "fp32")

    def norm(x):
        mean = b.map("divf", b.reduce("addf", b.map("mulf", x, x), [1], keep=True), float(WIDTH))
        return b.map("mulf", b.map("divf", x, b.map("sqrt_rn", b.map("addf", mean, 1e-5))), weight(WIDTH))

    def heads(x):
        return b.transpose(b.reshape(x, (WORDS, HEADS, WIDTH // HEADS)), [1, 0, 2])

    def turned(x):
        half = WIDTH // HEADS // 2
        angles = np.arange(WORDS)[:, None] / 10 ** np.arange(half)
        cosine, sine = (b.constant(np.tile(f(angles), 2).astype(np.float32), "fp32") for f in (np.cos, np.sin))
        left, right = (b.slice(x, [0, 0, start], [HEADS, WORDS, half]) for start in (0, half))
        return b.map("addf", b.map("mulf", x, cosine), b.map("mulf", b.concat([b.map("negf", right), left], 2), sine))

    x = b.input("x", "fp32", (WORDS, WIDTH))
    normed = norm(x)
    q, k, v = (heads(b.matmul(normed, weight(WIDTH, WIDTH))) for _ in range(3))
    scores = b.map("mulf", b.matmul(turned(q), b.transpose(turned(k), [0, 2, 1])), (WIDTH // HEADS) ** -0.5)
    seen = b.map("ges", b.iota((HEADS, WORDS, WORDS), 1), b.iota((HEADS, WORDS, WORDS), 2))
    scores = b.map("select", seen, scores, b.full(float("-inf"), scores))
    weights = b.map("exp", b.map("subf", scores, b.reduce("maxf", scores, [2], keep=True)))
    mixed = b.matmul(b.map("divf", weights, b.reduce("addf", weights, [2], keep=True)), v)
    mixed = b.reshape(b.transpose(mixed, [1, 0, 2]), (WORDS, WIDTH))
    x = b.map("addf", b.matmul(mixed, weight(WIDTH, WIDTH)), x)
    normed = norm(x)
    gate, up = (b.matmul(normed, weight(WIDTH, INNER)) for _ in range(2))
    gated = b.map("mulf", b.map("divf", gate, b.map("addf", b.map("exp", b.map("negf", gate)), 1.0)), up)
    b.output("y", b.map("addf", b.matmul(gated, weight(INNER, WIDTH)), x))
    return b.module()


def test_a_layer_of_llama_runs_in_few_launches_each_within_its_bounds():
    x = np.random.default_rng(1).standard_normal((WORDS, WIDTH)).astype(np.float32)
    with Session(compile_graph(kernel_graph(_layer()), "acme-x1")) as session:
        certificate = certified(session, {"x": x})
    assert certificate.ok, [(launch.label, launch.comparisons) for launch in certificate.launches if not launch.ok]
    assert len(certificate.launches) <= 8 and np.isfinite(certificate.outputs["y"]).all()
