"""Puts and gets that a program does not wait for: right behind `quiet` on every target, told where it is left out, late by seed."""

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.frontend import build_module
from tilefw.tile.text.module import parse, with_locations

TARGETS = ["reference", "nvidia-sm80", "amd-cdna3"]
N = 64


@tilefw.jit
def send(source, destination, flag, QUIET: tl.constexpr, REUSED: tl.constexpr, STRONG: tl.constexpr, BLOCK: tl.constexpr):
    """Rank 0 puts two tiles to rank 1, which waits for them."""
    at = tl.arange(0, BLOCK)
    if tld.rank() == 0:
        tld.put(source + at, destination + at, 1, wait=False)
        if QUIET:
            tld.quiet()
        if REUSED:
            tl.store(source + at, -1)
        tld.put_signal(source + BLOCK + at, destination + BLOCK + at, flag, 1, strong=STRONG)
    else:
        tld.wait(flag)
        tl.store(source + at, tl.load(destination + at))
        tl.store(source + BLOCK + at, tl.load(destination + BLOCK + at))


@tilefw.jit
def fetch(source, destination, QUIET: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tld.get(source + at, destination + at, 1 - tld.rank(), wait=False)
    if QUIET:
        tld.quiet()
    tl.store(destination + at, tl.load(destination + at) + 1)


def sent(target, seed=0, checks="default,races", *, quiet=False, reused=False, strong=False):
    """What rank 1 has of the first tile and of the second."""
    node = tilefw.node(target, 2)
    source = node.array([np.arange(2 * N, dtype=np.int32) + 1, np.zeros(2 * N, np.int32)], name="source")
    destination, flag = node.zeros((2 * N,), "int32", name="destination"), node.zeros((1,), "int32", name="flag")
    keywords = {"QUIET": quiet, "REUSED": reused, "STRONG": strong, "BLOCK": N}
    node.launch(send, (1,), source, destination, flag, seed=seed, checks=checks, **keywords)
    return source[1][:N], source[1][N:]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("way", [{"quiet": True}, {"strong": True}, {"quiet": True, "reused": True}])
def test_what_quiet_or_a_strong_signal_completes_is_there(target, way):
    for seed in range(4 if target == "reference" else 2):
        first, second = sent(target, seed, **way)
        assert first.tolist() == list(range(1, N + 1)) and second.tolist() == list(range(N + 1, 2 * N + 1))


def test_a_signal_does_not_publish_what_is_not_complete():
    with pytest.raises(tilefw.CheckError, match="races: load of an element of destination") as raised:
        sent("reference")
    assert "stored by an asynchronous access of program (0, 0, 0) of send on rank 0, not complete" in str(raised.value)


def test_a_seed_makes_a_put_later_than_a_signal_that_should_have_published_it():
    seen = [sent("reference", seed, "default") for seed in range(1, 9)]
    assert any(not first.any() for first, _ in seen) and any(first.all() for first, _ in seen)
    assert all(second.all() for _, second in seen)  # the signal's own tile is there


def test_a_source_that_is_changed_before_quiet_is_told():
    with pytest.raises(tilefw.CheckError, match="races: store to an element of source") as raised:
        sent("reference", reused=True, strong=True)
    assert "loaded by an asynchronous access of program (0, 0, 0)" in str(raised.value)


@pytest.mark.parametrize("target", TARGETS)
def test_a_get_is_there_behind_quiet(target):
    node = tilefw.node(target, 2)
    source, got = node.array([np.full(N, rank, np.int32) for rank in node.ranks]), node.zeros((N,), "int32", name="got")
    node.launch(fetch, (1,), source, got, QUIET=True, BLOCK=N, seed=3, checks="default,races")
    assert [part[0] for part in got] == [2, 1]
    if target == "reference":
        with pytest.raises(tilefw.CheckError, match="races: load of an element of got"):
            node.launch(fetch, (1,), source, got, QUIET=False, BLOCK=N, checks="default,races")


def test_the_hint_stands_in_tile_ir_and_is_read_again():
    module = build_module(fetch, {"source": "*i32", "destination": "*i32"}, {"QUIET": True, "BLOCK": N})
    text = with_locations(module)
    assert text.count(" asynchronous") == with_locations(parse(text, "text")).count(" asynchronous") == 2


@pytest.mark.parametrize("line", ["tld.put(p, p, 0, wait=p)", "tld.put_signal(p, p, p, 0, strong=1)"])
def test_whether_to_wait_is_known_when_a_kernel_is_compiled(line):
    def wrong(p):
        pass

    wrong.__globals__.update(tld=tld)
    with pytest.raises(tilefw.CompileError, match="is True or False") as caught:
        build_module(tilefw.jit(wrong, source=f"def wrong(p):\n    {line}\n"), {"p": "*i32"}, {})
    assert caught.value.code == "TFW0221"
