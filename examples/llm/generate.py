"""A model of Llama's kind with random weights generates text of numbers: paged cache, prefill, decode, sampling, several requests.

    tilefw run examples/llm/generate.py --target cpu-native
    tilefw run examples/llm/generate.py --target nvidia-sm80 -- --layers 1 --new 2

15.7 million parameters in fp32. Every kernel is one of the library, but for the one that stores keys and values in their pages.
Prompts and new tokens go the same way: each token is a row, and attends to as many keys of its sequence as lie before it.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.kernels.embedding import embedding
from tilefw.kernels.matmul import matmul
from tilefw.kernels.merge_splits import merge_splits
from tilefw.kernels.paged_decode import paged_decode
from tilefw.kernels.rmsnorm import rmsnorm
from tilefw.kernels.rope import rope
from tilefw.kernels.sample_logits import sample_logits
from tilefw.kernels.swiglu import swiglu
from tilefw.kernels.vector_add import vector_add

PAGE = 16  # tokens of a page of the cache
EPSILON = 1e-6
THETA = 10000.0


@dataclass(frozen=True)
class LlamaShape:
    """The numbers that make a model; heads have 64 features."""

    layers: int = 8
    width: int = 384
    heads: int = 6
    kv_heads: int = 2
    hidden: int = 1024
    vocabulary: int = 4096
    head_size: int = 64


@tilefw.jit
def store_in_pages(k_ptr, v_ptr, k_cache_ptr, v_cache_ptr, slots_ptr, columns, BLOCK: tl.constexpr):
    """Keys and values of each new token go to the token's slot."""
    token = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    place = tl.load(slots_ptr + token).to(tl.int64) * columns + column
    tl.store(k_cache_ptr + place, tl.load(k_ptr + token * columns + column, mask=inside), mask=inside)
    tl.store(v_cache_ptr + place, tl.load(v_ptr + token * columns + column, mask=inside), mask=inside)


def random_weights(shape: LlamaShape, seed: int = 0) -> dict[str, np.ndarray]:
    """Matrices with the inputs as rows, as they are multiplied from the right; gate and up are side by side."""
    rng = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> np.ndarray:
        return (rng.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)

    def scale() -> np.ndarray:
        return (1 + 0.1 * rng.standard_normal(shape.width)).astype(np.float32)

    queries, keys = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
    made = {"tokens": rng.standard_normal((shape.vocabulary, shape.width)).astype(np.float32), "norm": scale()}
    made["head"] = matrix(shape.width, shape.vocabulary)
    for layer in range(shape.layers):
        made |= {
            f"{layer}.attention_norm": scale(), f"{layer}.q": matrix(shape.width, queries), f"{layer}.k": matrix(shape.width, keys),
            f"{layer}.v": matrix(shape.width, keys), f"{layer}.o": matrix(queries, shape.width), f"{layer}.mlp_norm": scale(),
            f"{layer}.gate_up": matrix(shape.width, 2 * shape.hidden), f"{layer}.down": matrix(shape.hidden, shape.width),
        }
    return made


class PagedLlama:
    """A model with the cache of all its sequences."""

    def __init__(self, shape: LlamaShape, weights: dict[str, np.ndarray], sequences: int, longest: int) -> None:
        self.shape, self.weights = shape, weights
        per_sequence = -(-longest // PAGE)
        order = np.random.default_rng(0).permutation(sequences * per_sequence)  # pages lie anywhere
        self.pages = order.reshape(sequences, per_sequence).astype(np.int32)
        slots = (order.size * PAGE, shape.kv_heads, shape.head_size)
        self.caches = [(np.zeros(slots, np.float32), np.zeros(slots, np.float32)) for _ in range(shape.layers)]
        self.lengths = np.zeros(sequences, np.int64)

    def logits(self, sequences: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """The scores of what comes after each of these tokens, which are appended to their sequences in this order."""
        positions = np.empty(len(tokens), np.int64)
        for row, sequence in enumerate(sequences):
            positions[row] = self.lengths[sequence]
            self.lengths[sequence] += 1
        pages = self.pages[sequences]
        slots = (pages[np.arange(len(tokens)), positions // PAGE] * PAGE + positions % PAGE).astype(np.int32)
        angles = positions[:, None] * THETA ** (-np.arange(0, self.shape.head_size, 2) / self.shape.head_size)
        turns = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        x = self._embedded(tokens.astype(np.int32))
        for layer in range(self.shape.layers):
            x = self._attended(layer, x, pages, slots, (positions + 1).astype(np.int32), turns)
            x = self._fed_forward(layer, x)
        return self._product(self._normed(x, "norm"), "head")

    def _embedded(self, tokens: np.ndarray) -> np.ndarray:
        out = np.empty((len(tokens), self.shape.width), np.float32)
        embedding[-(-len(tokens) // 4), -(-self.shape.width // 128)](
            tokens, self.weights["tokens"], out, len(tokens), self.shape.width, 0, HAS_PADDING=False, BLOCK_TOKENS=4,
            BLOCK_COLUMNS=128,
        )
        return out

    def _attended(self, layer, x, pages, slots, lengths, turns) -> np.ndarray:
        shape, rows = self.shape, len(x)
        normed = self._normed(x, f"{layer}.attention_norm")
        q, k, v = (self._product(normed, f"{layer}.{name}") for name in "qkv")
        q, k = self._turned(q, shape.heads, turns), self._turned(k, shape.kv_heads, turns)
        keys, values = self.caches[layer]
        columns = shape.kv_heads * shape.head_size
        store_in_pages[rows,](k, v, keys, values, slots, columns, BLOCK=tilefw.next_power_of_2(columns))
        parts, lse = np.empty((1, rows, shape.heads, shape.head_size), np.float32), np.empty((1, rows, shape.heads), np.float32)
        paged_decode[rows, shape.kv_heads, 1](
            q, keys, values, pages, lengths, parts, lse, rows, shape.kv_heads, pages.shape[1], shape.head_size**-0.5,
            GROUP=shape.heads // shape.kv_heads, PAGE=PAGE, SPLITS=1, BLOCK_H=16, BLOCK_N=32, BLOCK_D=shape.head_size,
        )
        out, whole = np.empty((rows, shape.heads * shape.head_size), np.float32), np.empty(rows * shape.heads, np.float32)
        merge_splits[rows * shape.heads,](
            parts, lse, out, whole, rows * shape.heads, shape.head_size, 1, BLOCK_S=1, BLOCK_D=shape.head_size
        )
        return self._sum(x, self._product(out, f"{layer}.o"))

    def _fed_forward(self, layer: int, x: np.ndarray) -> np.ndarray:
        packed = self._product(self._normed(x, f"{layer}.mlp_norm"), f"{layer}.gate_up")
        out = np.empty((len(x), self.shape.hidden), np.float32)
        swiglu[len(x),](packed, out, self.shape.hidden, 2 * self.shape.hidden, self.shape.hidden, COMPUTE=tl.float32, BLOCK=1024)
        return self._sum(x, self._product(out, f"{layer}.down"))

    def _turned(self, x: np.ndarray, heads: int, turns: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        out, size = np.empty_like(x), self.shape.head_size
        rope[len(x), 1](
            x, *turns, out, heads, size, size // 2, INTERLEAVED=False, COMPUTE=tl.float32,
            BLOCK_HEADS=tilefw.next_power_of_2(heads), BLOCK_PAIRS=size // 2, BLOCK_REST=0,
        )
        return out

    def _normed(self, x: np.ndarray, weight: str) -> np.ndarray:
        out, rstd = np.empty_like(x), np.empty(len(x), np.float32)
        rmsnorm[len(x),](
            x, self.weights[weight], out, rstd, self.shape.width, self.shape.width, EPSILON, COMPUTE=tl.float32, ONE_TILE=True,
            BLOCK=tilefw.next_power_of_2(self.shape.width),
        )
        return out

    def _product(self, a: np.ndarray, weight: str) -> np.ndarray:
        b = self.weights[weight]
        (m, k), n = a.shape, b.shape[1]
        out = np.empty((m, n), np.float32)
        height, width, step = max(16, min(64, tilefw.next_power_of_2(m))), 64, 64
        matmul[-(-m // height) * -(-n // width),](
            a, b, None, out, m, n, k, k, 1, n, 1, n, 1, ACTIVATION="none", ACCUMULATOR=tl.float32, COMPUTE=tl.float32,
            INPUT_PRECISION="ieee", EVEN_K=k % step == 0, BLOCK_M=height, BLOCK_N=width, BLOCK_K=step, GROUP_M=4,
        )
        return out

    def _sum(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        out = np.empty_like(x)
        vector_add[-(-x.size // 1024),](x, y, out, x.size, BLOCK=1024)
        return out


def chosen(logits: np.ndarray, temperature: float, top_k: int, seed: int) -> np.ndarray:
    """A token for each row: the best where the temperature is 0, else one of the best `top_k` by chance."""
    if temperature == 0:
        return logits.argmax(axis=1)
    tokens, kept = np.empty(len(logits), np.int32), np.empty(len(logits), np.int32)
    size = logits.shape[1]
    sample_logits[len(logits),](
        logits, tokens, kept, size, temperature, top_k, 1.0, seed, NUCLEUS=False, BLOCK=tilefw.next_power_of_2(size)
    )
    return tokens.astype(np.int64)


def generate(
    model: PagedLlama, prompts: list[np.ndarray], new: int, temperature: float = 0.0, top_k: int = 40
) -> tuple[np.ndarray, tuple[float, float]]:
    """`new` tokens behind each prompt; seconds of the prefill and of all decode steps."""
    begun = time.perf_counter()
    sequences = np.concatenate([np.full(len(prompt), number) for number, prompt in enumerate(prompts)])
    logits = model.logits(sequences, np.concatenate(prompts))
    ends = np.cumsum([len(prompt) for prompt in prompts]) - 1
    tokens = [chosen(logits[ends], temperature, top_k, 0)]
    prefilled = time.perf_counter()
    every = np.arange(len(prompts))
    for step in range(1, new):
        tokens.append(chosen(model.logits(every, tokens[-1]), temperature, top_k, step))
    return np.stack(tokens, axis=1), (prefilled - begun, time.perf_counter() - prefilled)


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return number


def main(argv: list[str]) -> int:
    parse = argparse.ArgumentParser(prog="generate.py")
    parse.add_argument("--layers", type=_at_least_one, default=LlamaShape.layers)
    parse.add_argument("--requests", type=_at_least_one, default=4)
    parse.add_argument("--new", type=_at_least_one, default=16, help="tokens to generate for each request")
    parse.add_argument("--temperature", type=float, default=0.0, help="0 takes the best token")
    args = parse.parse_args(argv)
    shape = LlamaShape(layers=args.layers)
    rng = np.random.default_rng(1)
    prompts = [rng.integers(0, shape.vocabulary, 3 + 2 * number) for number in range(args.requests)]
    weights = random_weights(shape)
    longest = max(len(prompt) for prompt in prompts) + max(2, args.new)
    generate(PagedLlama(shape, weights, args.requests, longest), prompts, 2)  # compiles
    tokens, (prefill, decode) = generate(
        PagedLlama(shape, weights, args.requests, longest), prompts, args.new, args.temperature
    )
    for prompt, row in zip(prompts, tokens, strict=True):
        print(" ".join(map(str, prompt)), "->", " ".join(map(str, row)))
    count = sum(len(prompt) for prompt in prompts)
    print(f"{sum(w.size for w in weights.values()) / 1e6:.1f} M parameters; prefill {count / prefill:,.0f} tokens a second", end="")
    print(f", decode {args.requests * (args.new - 1) / max(decode, 1e-9):,.0f}" if args.new > 1 else "")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
