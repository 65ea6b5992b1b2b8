"""The example of a language model generates the tokens of the same model in NumPy, whatever shares a batch, and samples by seed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import tilefw

PATH = Path(__file__).parents[3] / "examples/llm/generate.py"
PROMPTS = [np.array([5, 300, 7]), np.array([1, 2, 3, 4, 511] * 4)]  # the second fills more than a page


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("llm_example", PATH)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules["llm_example"] = made
    spec.loader.exec_module(made)
    yield made
    del sys.modules["llm_example"]


@pytest.fixture(scope="module")
def model(example):
    shape = example.LlamaShape(layers=2, width=128, heads=4, kv_heads=2, hidden=256, vocabulary=512)
    return shape, example.random_weights(shape)


def test_greedy_tokens_are_numpys_in_float64(example, model):
    shape, weights = model
    with tilefw.target("cpu-native"):
        found, _ = example.generate(example.PagedLlama(shape, weights, 2, 24), PROMPTS, 4)
        alone, _ = example.generate(example.PagedLlama(shape, weights, 1, 24), PROMPTS[1:], 4)
    assert np.array_equal(found[1:], alone)
    assert found.tolist() == [_greedy(example, shape, weights, prompt, 4) for prompt in PROMPTS]


def test_a_sample_is_of_the_best_tokens_and_the_same_for_a_seed(example):
    logits = np.random.default_rng(0).standard_normal((3, 512)).astype(np.float32)
    with tilefw.target("cpu-native"):
        samples = np.array([example.chosen(logits, 1.0, 5, seed) for seed in (*range(20), 0)])
    best = np.argsort(-logits, axis=1)[:, :5]
    assert all(token in best[row] for sample in samples for row, token in enumerate(sample))
    assert np.array_equal(samples[0], samples[-1]) and len(np.unique(samples[:, 0])) > 2


def _greedy(example, shape, weights, prompt, new):
    tokens = list(prompt)
    for _ in range(new):
        tokens.append(int(_logits(example, shape, weights, np.array(tokens)).argmax()))
    return tokens[len(prompt) :]


def _logits(example, shape, weights, tokens):
    """Of the last token, by the whole sequence anew."""
    w = {name: array.astype(np.float64) for name, array in weights.items()}
    count, size, group = len(tokens), shape.head_size, shape.heads // shape.kv_heads
    angles = np.arange(count)[:, None] * example.THETA ** (-np.arange(0, size, 2) / size)
    cosine, sine = np.cos(angles)[:, None], np.sin(angles)[:, None]

    def normed(x, scale):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + example.EPSILON) * scale

    def turned(x):
        low, high = np.split(x, 2, axis=-1)
        return np.concatenate([low * cosine - high * sine, high * cosine + low * sine], axis=-1)

    x = w["tokens"][tokens]
    for layer in range(shape.layers):
        h = normed(x, w[f"{layer}.attention_norm"])
        q, k, v = ((h @ w[f"{layer}.{name}"]).reshape(count, -1, size) for name in "qkv")
        q, k, v = turned(q), turned(k).repeat(group, axis=1), v.repeat(group, axis=1)
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(size)
        scores = np.where(np.tri(count, dtype=bool), scores, -np.inf)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = np.einsum("hqk,khd->qhd", shares / shares.sum(-1, keepdims=True), v)
        x = x + mixed.reshape(count, -1) @ w[f"{layer}.o"]
        gate, up = np.split(normed(x, w[f"{layer}.mlp_norm"]) @ w[f"{layer}.gate_up"], 2, axis=-1)
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w[f"{layer}.down"]
    return normed(x[-1], w["norm"]) @ w["head"]
