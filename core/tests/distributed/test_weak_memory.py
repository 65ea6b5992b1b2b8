"""Ranks in weak memory: what one puts and signals is what another sees if order and scope say so, else it may be stale."""

from __future__ import annotations

import node_kernels as kernels
import numpy as np
import pytest

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.kernels.distributed.index import COLLECTIVES

N, BLOCK = 200, 256
TARGETS = ("nvidia-sm80", "amd-cdna3")
FORMS = [(name, form) for name, one in COLLECTIVES.items() for form in one.forms]
# An ordinary run takes every third form, on one target in turn, and one seed: the others are run with other checks besides.
RUNS = [
    pytest.param(
        *form, target, seed, marks=() if number % 3 == 0 and (number + place) % 2 == 0 and seed == 1 else pytest.mark.campaign
    )
    for number, form in enumerate(FORMS) for place, target in enumerate(TARGETS) for seed in range(1, 11)
]


@tilefw.jit
def signalling(source, buffer, flags, n, me, other, heap_bases, BLOCK: tl.constexpr, SEM: tl.constexpr, SCOPE: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(source + offsets, mask=offsets < n)
    tl.store(kernels.translate(buffer + offsets, me, other, heap_bases), x, mask=offsets < n)
    tl.debug_barrier()
    tl.atomic_xchg(kernels.translate(flags, me, other, heap_bases), 1, sem=SEM, scope=SCOPE)


@tilefw.jit
def waiting(buffer, flags, result, n, BLOCK: tl.constexpr, SEM: tl.constexpr, SCOPE: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    while tl.atomic_cas(flags, 1, 0, sem=SEM, scope=SCOPE) != 1:
        pass
    tl.store(result + offsets, tl.load(buffer + offsets, mask=offsets < n), mask=offsets < n)


def outcomes(target: str, release: tuple[str, str], acquire: tuple[str, str]) -> set[bool]:
    """Whether the consumer saw what was put, under some seeds."""
    seen = set()
    for seed in range(1, 6):
        node = tilefw.node(target, 2)
        x, buffer, result = node.full((N,), 7, "int32"), node.zeros((N,), "int32"), node.zeros((N,), "int32")
        flags = node.zeros((1,), "int32")
        with tilefw.target(target, checks="weak_memory"):
            node.run(
                [
                    (0, signalling, (1,), (x, buffer, flags, N, 0, 1, node.heap_bases, BLOCK, *release)),
                    (1, waiting, (1,), (buffer, flags, result, N, BLOCK, *acquire)),
                ],
                seed=seed,
            )
        seen.add(bool(np.array_equal(result[1], x[0])))
    return seen


@pytest.mark.parametrize("target", TARGETS)
def test_a_put_is_seen_behind_a_signal_of_system_scope_and_may_be_stale_behind_others(target):
    assert outcomes(target, ("release", "sys"), ("acquire", "sys")) == {True}
    assert False in outcomes(target, ("release", "gpu"), ("acquire", "sys"))
    assert False in outcomes(target, ("relaxed", "sys"), ("acquire", "sys"))
    assert False in outcomes(target, ("release", "sys"), ("acquire", "gpu"))
    assert False in outcomes(target, ("release", "sys"), ("relaxed", "sys"))


def test_each_rank_counts_the_stale_reads_that_it_made():
    node = tilefw.node(TARGETS[0], 2)
    x, buffer, flags = node.full((N,), 7, "int32"), node.zeros((N,), "int32"), node.zeros((1,), "int32")
    with tilefw.target(TARGETS[0], checks="weak_memory"):
        ran = node.run(
            [
                (0, signalling, (1,), (x, buffer, flags, N, 0, 1, node.heap_bases, BLOCK, "relaxed", "sys")),
                (1, waiting, (1,), (buffer, flags, x, N, BLOCK, "acquire", "sys")),
            ],
            seed=1,
        )
    putting, taking = (report.counters.get("stale_reads", 0) for report in ran.reports)
    assert taking > 0 and putting == 0


@pytest.mark.parametrize(("name", "form", "target", "seed"), RUNS)
def test_the_library_s_collectives_are_right_in_weak_memory(name, form, target, seed):
    one, node = COLLECTIVES[name], tilefw.node(target, 2)
    arguments = one.draw(np.random.default_rng(seed), 2, one.small, one.dtypes[0])
    found = one.run(node, *[node.array(list(argument)) for argument in arguments], form, seed=seed, checks="weak_memory")
    assert one.wrong(found, arguments) == []


@tilefw.jit
def put_behind(x_ptr, out_ptr, place, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    if tld.rank() == 0:
        tld.put(x_ptr + at, out_ptr + place.to(tl.int64) + at, 1, mask=at < n)


@pytest.mark.parametrize("target", TARGETS)
def test_offsets_that_reach_a_peer_are_not_taken_for_those_of_a_small_array(target):
    """Both arrays are small, and no offset of 32 bits leads from one to the peer's copy of it."""
    node = tilefw.node(target, 2)
    x, out = node.full((40,), 7, "int32"), node.zeros((90,), "int32")
    node.launch(put_behind, (1,), x, out, 50, 40, BLOCK=64, checks="all")
    assert (out[1][50:] == 7).all() and not out[1][:50].any() and not out[0].any()
