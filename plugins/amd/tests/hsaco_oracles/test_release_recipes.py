"""Iris's table of release recipes (docs/conceptual/triggered-sdma.md, measured on 8 MI300X and 8 MI350X) row by row in gfx942 code.

A kernel writes a tile and opens a gate; the device's copy engine polls the gate, copies the tile to a peer and tells it so. Here a
program of the same device stands for the engine. What Iris counts is stale data at the peer; a wrong row is reported too. Of the
plain store Iris saw no stale data, as the gate stayed in the cache until the kernel's end; here it may get out earlier, and races.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from oracles.node_subject import RecordedNode
from tilefw.api import CheckError
from tilefw.runtime.plugins.loader import find_target

GFX942, N, EPOCHS = "amd-cdna3", 256, 5


@dataclass(frozen=True)
class Recipe:
    """How the gate is opened, whether behind a counter of contributors, and whether the waves meet before it; what comes of it."""

    gate: str
    scope: str = "sys"
    counted: bool = True
    barrier: bool = True
    stale: float = 0.0  # the least share of epochs in which the peer has old data

    @property
    def right(self) -> bool:
        return not self.stale


TABLE = {
    "wait, barrier and release of the system": Recipe("release"),
    "wait, barrier and release of the device": Recipe("release", "gpu"),
    "release without the barrier": Recipe("release", counted=False, barrier=False, stale=0.8),
    "store of the gate that writes through": Recipe("write_through", stale=0.8),
    "plain store of the gate": Recipe("plain", stale=0.8),
}


@tilefw.jit
def publish(x, counter, ready, N: tl.constexpr, GATE: tl.constexpr, SCOPE: tl.constexpr, COUNTED: tl.constexpr):
    tl.store(x + tl.arange(0, N), tl.full((N,), 1, tl.int32))
    tl.debug_barrier()
    if GATE == "plain":
        tl.store(ready, 1)
    elif GATE == "write_through":
        tl.store(ready, 1, cache_modifier=".wt")
    else:
        before = 0
        if COUNTED:
            before = tl.atomic_add(counter, 1, sem="acq_rel", scope=SCOPE)
        if before == 0:
            tl.atomic_xchg(ready, 1, sem="release", scope=SCOPE)


@tilefw.jit
def copy_to_peer(x, ready, landed, arrived, N: tl.constexpr):
    while tl.atomic_cas(ready, 1, 1, sem="acquire", scope="gpu") != 1:
        pass
    tile = tl.arange(0, N)
    tld.put(x + tile, landed + tile, 1)
    tld.signal(arrived, 1)


@tilefw.jit
def receive(landed, arrived, out, N: tl.constexpr):
    tld.wait(arrived)
    tl.store(out + tl.arange(0, N), tl.load(landed + tl.arange(0, N)))


def _epoch(target: str, recipe: Recipe, seed: int, checks: str, code: dict[str, Any]) -> tuple[np.ndarray, RecordedNode]:
    """What the peer has of the tile, and the node."""
    node = RecordedNode(target, 2, code)
    x, landed, out = (node.zeros((N,), "int32", name=name) for name in ("tile", "landed", "out"))
    counter, ready, arrived = (node.zeros((1,), "int32", name=name) for name in ("counter", "ready", "arrived"))
    given = {"GATE": recipe.gate, "SCOPE": recipe.scope, "COUNTED": recipe.counted}
    keywords = {"N": N, "checks": checks}
    node.run([
        (0, publish, (1,), (x, counter, ready), keywords | given),
        (0, copy_to_peer, (1,), (x, ready, landed, arrived), keywords), (1, receive, (1,), (landed, arrived, out), keywords),
    ], seed=seed)
    return out[1], node


def _code(recipe: Recipe) -> dict[str, Any]:
    """The code that is run in the place of the compiled one: `publish` without its barriers, where the recipe has none."""
    if recipe.barrier:
        return {}
    _, node = _epoch(GFX942, recipe, 0, "none", {})
    own = next(artifact for text, artifact in node.artifacts.items() if "publish" in text)
    text = "".join(line for line in own.text.splitlines(keepends=True) if line.split(";")[0].strip() != "s_barrier")
    assert text != own.text
    return {own.text: replace(own, text=text, binary=find_target(GFX942).backend.parse(text, "publish").binary)}


@pytest.mark.parametrize("name", TABLE)
def test_the_peer_has_old_data_where_iris_saw_some(name: str) -> None:
    recipe = TABLE[name]
    code = _code(recipe)
    stale = sum(bool((_epoch(GFX942, recipe, seed, "weak_memory", code)[0] != 1).any()) for seed in range(1, EPOCHS + 1))
    assert stale == 0 if recipe.right else stale >= recipe.stale * EPOCHS, stale


@pytest.mark.parametrize("name", TABLE)
def test_what_is_wrong_is_reported_and_nothing_else(name: str) -> None:
    """By the check of races, under every order; the reference has no waves, so that a release there has its barrier."""
    recipe = TABLE[name]
    for target in (GFX942, "reference") if recipe.barrier else (GFX942,):
        code = _code(recipe)
        for seed in range(2):
            if recipe.right:
                assert (_epoch(target, recipe, seed, "all", code)[0] == 1).all()
                continue
            with pytest.raises(CheckError, match="race"):
                _epoch(target, recipe, seed, "all", code)
