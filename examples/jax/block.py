"""A transformer block on a target, and as the file block.stablehlo: `python block.py TARGET [gradient]`.

With `gradient` its gradient runs there too, and a training step is made of it.
"""

import sys
from pathlib import Path

import jax
import numpy as np
import tilefw_jax
from jax import lax
from jax import numpy as jnp

TOKENS, WIDTH, HEADS = 4, 8, 2
SHAPES = {
    "q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH), "v": (WIDTH, WIDTH), "out": (WIDTH, WIDTH), "up": (WIDTH, 16), "down": (16, WIDTH),
    "first": (WIDTH,), "second": (WIDTH,),
}


def norm(x, scale):
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * scale


def block(p, x):
    def heads(y):
        return y.reshape(TOKENS, HEADS, WIDTH // HEADS).transpose(1, 0, 2)

    h = norm(x, p["first"])
    q, k, v = heads(h @ p["q"]), heads(h @ p["k"]), heads(h @ p["v"])
    scores = jnp.einsum("hqd,hkd->hqk", q, k) / np.sqrt(WIDTH // HEADS)
    scores = jnp.where(jnp.tril(jnp.ones((TOKENS, TOKENS), bool)), scores, -jnp.inf)
    mixed = jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores), v).transpose(1, 0, 2).reshape(TOKENS, WIDTH)
    x = x + mixed @ p["out"]
    return x + jax.nn.gelu(norm(x, p["second"]) @ p["up"]) @ p["down"]


def loss(p, x):
    return (block(p, x) ** 2).mean()


def largest_error(found, due):
    return max(float(jnp.abs(a - b).max()) for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(due), strict=True))


def main(target, gradient):
    seeded = np.random.default_rng(0)
    p = {name: jnp.asarray(seeded.standard_normal(shape) * 0.3, jnp.float32) for name, shape in SHAPES.items()}
    x = jnp.asarray(seeded.standard_normal((TOKENS, WIDTH)), jnp.float32)
    Path("block.stablehlo").write_bytes(jax.export.export(jax.jit(block))(p, x).mlir_module_serialized)
    found, due = tilefw_jax.jit(block, target=target)(p, x), block(p, x)
    print(f"block on {target}: {found.shape} of fp32, largest error {largest_error(found, due):.1e}")
    if not gradient:
        return
    slopes, due = tilefw_jax.jit(jax.grad(loss), target=target)(p, x), jax.grad(loss)(p, x)
    print(f"gradient on {target}: {len(slopes)} arrays, largest error {largest_error(slopes, due):.1e}")
    step = jax.tree.map(lambda weight, slope: weight - 0.1 * slope, p, slopes)
    print(f"step on {target}: loss {loss(p, x):.4f} to {loss(step, x):.4f}")


if __name__ == "__main__":
    main(sys.argv[1], "gradient" in sys.argv)
