"""Races between ranks: order is what releases, acquires and their scopes say, and both sides are told."""

from __future__ import annotations

import numpy as np
import pytest
from test_weak_memory import BLOCK, N, signalling, waiting

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.api.errors import CheckError
from tilefw.kernels.distributed.index import COLLECTIVES

TARGETS = ("nvidia-sm80", "amd-cdna3")
CODES = {"reference": "TFW0444", "nvidia-sm80": "TFW0804", "amd-cdna3": "TFW0804"}
FORMS = [(name, form) for name, one in COLLECTIVES.items() for form in one.forms]
BROKEN = [
    (("release", "gpu"), ("acquire", "sys")), (("relaxed", "sys"), ("acquire", "sys")),
    (("release", "sys"), ("acquire", "gpu")), (("release", "sys"), ("relaxed", "sys")),
]


def signal(target: str, release: tuple[str, str], acquire: tuple[str, str], checks: str = "all") -> np.ndarray:
    """One rank puts and signals, another one waits and reads: what it has read."""
    node = tilefw.node(target, 2)
    x, buffer, result = node.full((N,), 7, "int32"), node.zeros((N,), "int32", name="buffer"), node.zeros((N,), "int32")
    flags = node.zeros((1,), "int32", name="flags")
    with tilefw.target(target, checks=checks):
        node.run([
            (0, signalling, (1,), (x, buffer, flags, N, 0, 1, node.heap_bases, BLOCK, *release)),
            (1, waiting, (1,), (buffer, flags, result, N, BLOCK, *acquire)),
        ])
    return result[1]


@pytest.mark.parametrize("checks", ["all", "all,weak_memory"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_put_behind_a_signal_of_system_scope_is_no_race(target, checks):
    assert (signal(target, ("release", "sys"), ("acquire", "sys"), checks) == 7).all()


@pytest.mark.parametrize(("release", "acquire"), BROKEN)
@pytest.mark.parametrize("target", CODES)
def test_every_weaker_order_or_scope_is_a_race_that_names_both_ranks(target, release, acquire):
    with pytest.raises(CheckError) as error:
        signal(target, release, acquire)
    found = [finding for finding in error.value.findings if finding.code == CODES[target]]
    assert found
    told = " ".join(f"{finding.message} {finding.other}" for finding in found)
    if target == "reference":
        assert error.value.message.startswith("rank 1, waiting") and "program (0, 0, 0) of signalling on rank 0" in told
    else:
        assert "of rank 1" in told and "by rank 0, program (0, 0, 0)" in told
        assert "test_weak_memory.py:" in told or "node_kernels.py:" in told


@tilefw.jit
def count(words, OF_ALL: tl.constexpr, SCOPE: tl.constexpr):
    tl.atomic_add(tld.at(words, 0 if OF_ALL else tld.rank()), 1, sem="relaxed", scope=SCOPE)


@pytest.mark.parametrize("target", CODES)
def test_atomics_of_two_ranks_need_the_scope_of_the_system_and_those_of_one_do_not(target):
    node = tilefw.node(target, 2)
    words = node.zeros((1,), "int32", name="words")
    node.launch(count, (4,), words, OF_ALL=False, SCOPE="gpu", checks="all")
    node.launch(count, (4,), words, OF_ALL=True, SCOPE="sys", checks="all")
    assert [part[0] for part in words] == [12, 4]
    with pytest.raises(CheckError, match=r"rank 1, count: races: .*words of rank 0") as error:
        node.launch(count, (1,), words, OF_ALL=True, SCOPE="gpu", checks="all")
    assert error.value.code == CODES[target]


@pytest.mark.parametrize(("name", "form"), FORMS[::3])  # those that test_collectives runs on the reference
def test_right_collectives_are_no_races(name, form):
    """On one of the targets each, in turn; the campaign in bench/ takes all of them on more ranks."""
    one, target = COLLECTIVES[name], TARGETS[FORMS.index((name, form)) % 2]
    node = tilefw.node(target, 2)
    arguments = one.draw(np.random.default_rng(1), 2, one.small, one.dtypes[0])
    found = one.run(node, *[node.array(list(argument)) for argument in arguments], form, seed=1, checks="all,weak_memory")
    assert one.wrong(found, arguments) == []
    assert "races" in node.results[-1].checks


@tilefw.jit
def send_by_fences(x, flag, out, RELEASE: tl.constexpr, ACQUIRE: tl.constexpr):
    if tld.rank() == 0:
        tl.store(tld.at(x, 1), 7)
        tld.fence("release", RELEASE)
        tld.signal(flag, 1, sem="relaxed")
    else:
        tld.wait(flag, sem="relaxed")
        tld.fence("acquire", ACQUIRE)
        tl.store(out, tl.load(x))


@pytest.mark.parametrize("target", CODES)
def test_fences_between_two_ranks_need_the_scope_of_the_system(target):
    def sent(**scopes):
        node = tilefw.node(target, 2)
        x, flag, out = (node.zeros((1,), "int32", name=name) for name in ("x", "flag", "out"))
        node.launch(send_by_fences, (1,), x, flag, out, checks="default,races", **scopes)
        return out[1][0]

    assert sent(RELEASE="system", ACQUIRE="system") == 7
    for scopes in ({"RELEASE": "device", "ACQUIRE": "system"}, {"RELEASE": "system", "ACQUIRE": "device"}):
        with pytest.raises(CheckError, match="rank 1, send_by_fences: races: ") as error:
            sent(**scopes)
        assert error.value.code == CODES[target]


@tilefw.jit
def send_within(x, flag, out, SCOPE: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(x, 7 + tld.rank())
        tld.fence("release", SCOPE)
        tl.atomic_xchg(flag, 1, sem="relaxed", scope=SCOPE)
    else:
        tld.wait(flag, scope=SCOPE)
        tl.store(out, tl.load(x))


@pytest.mark.parametrize("target", CODES)
@pytest.mark.parametrize("scope", ["device", "system"])
def test_programs_of_one_rank_are_ordered_by_the_scope_of_its_device(target, scope):
    node = tilefw.node(target, 2)
    x, flag, out = (node.zeros((1,), "int32") for _ in range(3))
    node.launch(send_within, (2,), x, flag, out, SCOPE=scope, checks="default,races")
    assert [part[0] for part in out] == [7, 8]


@tilefw.jit
def count_in_parts(words, WIDE: tl.constexpr):
    word = tld.at(words, 0)
    if WIDE | (tld.rank() == 0):
        tl.atomic_add(tl.cast(word, tl.pointer_type(tl.int64)), 1, sem="relaxed", scope="sys")
    else:
        tl.atomic_add(word, 1, sem="relaxed", scope="sys")


@pytest.mark.parametrize("target", TARGETS)
def test_atomics_of_different_widths_on_one_word_are_a_race(target):
    """They are strong to each other only where they overlap completely (PTX ISA, "Morally strong operations")."""
    node = tilefw.node(target, 2)
    words = node.zeros((2,), "int32", name="words")
    node.launch(count_in_parts, (2,), words, WIDE=True, checks="default,races")
    assert words[0].tolist() == [4, 0]
    with pytest.raises(CheckError, match="races: race on words of rank 0") as error:
        node.launch(count_in_parts, (2,), words, WIDE=False, checks="default,races")
    assert "both must be of one width" in str(error.value)


@tilefw.jit
def send_twice(x, sent, taken, out, WAITS: tl.constexpr):
    """Rank 1 takes a number, and then the next one from the same place."""
    for turn in range(2):
        if tld.rank() == 0:
            if WAITS:
                tld.wait(taken, value=turn)
            tl.store(tld.at(x, 1), 7 + turn)
            tld.signal(sent, 1, turn + 1)
        else:
            tld.wait(sent, comparison=">", value=turn)
            tl.store(out + turn, tl.load(x))
            tld.signal(taken, 0, turn + 1)


@pytest.mark.parametrize("target", TARGETS)
def test_some_seed_has_a_step_of_another_rank_between_any_two_of_a_short_kernel(target):
    """Who sends again before the first number was taken races where the other one looks in between."""

    def ends(seed: int, waits: bool) -> str:
        node = tilefw.node(target, 2)
        arrays = [node.zeros((2,), "int32", name=name) for name in ("x", "sent", "taken", "out")]
        try:
            node.launch(send_twice, (1,), *arrays, WAITS=waits, seed=seed, checks="default,races")
        except CheckError as error:
            return error.code
        return "right"

    assert {ends(seed, True) for seed in range(4)} == {"right"}
    assert any(ends(seed, False) == "TFW0804" for seed in range(1, 21))


@tilefw.jit
def put_one(x):
    tl.store(tld.at(x, 1), 7)


@tilefw.jit
def read_by_the_last(x, out, PROGRAMS: tl.constexpr):
    if tl.program_id(0) == PROGRAMS - 1:
        tl.store(out, tl.load(x))


@pytest.mark.parametrize("target", TARGETS)
def test_the_end_of_a_launch_orders_nobody(target):
    """The program of rank 1 that reads begins some turns after the launch of rank 0 has ended: earlier ones fill its device."""
    node, programs = tilefw.node(target, 2), 130
    x, out = (node.zeros((1,), "int32", name=name) for name in ("x", "out"))
    with (
        tilefw.target(target, checks="default,races"),
        pytest.raises(CheckError, match="races: race on x of rank 1: nothing orders this load of rank 1"),
    ):
        node.run([(0, put_one, (1,), (x,)), (1, read_by_the_last, (programs,), (x, out, programs))])


@tilefw.jit
def multiply(a, b, out, flag, K, BLOCK: tl.constexpr, RELEASE: tl.constexpr):
    lines, terms = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, K, BLOCK):
        right = tl.load(b + lines[None, :] * K + first + terms[:, None])
        total += tl.dot(tl.load(a + lines[:, None] * K + first + terms[None, :]), right)
    tl.store(out + lines[:, None] * BLOCK + terms[None, :], total.to(tl.float16))
    if RELEASE is not None:
        tl.debug_barrier()
        tld.signal(flag, 1, sem=RELEASE)


@tilefw.jit
def use(x, flag, out, WRITES: tl.constexpr, ACQUIRE: tl.constexpr):
    if ACQUIRE is not None:
        tld.wait(flag, sem=ACQUIRE)
    if WRITES:
        tl.store(tld.at(x, 0), 1.0)
    else:
        tl.store(out, tl.load(tld.at(x, 0)))


def race_with_an_engine(of: str, release: str | None, acquire: str | None, checks: str = "default,races") -> str:
    """Rank 0 multiplies, rank 1 writes a factor or reads the product: the instruction that it races with."""
    node = tilefw.node("nvidia-sm90a", 2)
    a, b = (node.array(np.ones((64, 192), np.float16)) for _ in range(2))
    out, flag, result = node.zeros((64, 64), "float16"), node.zeros((1,), "int32"), node.zeros((1,), "float16")
    try:
        with tilefw.target("nvidia-sm90a", checks=checks):
            node.run([
                (0, multiply, (1,), (a, b, out, flag, 192, 64, release)),
                (1, use, (1,), (a if of == "a" else out, flag, result, of == "a", acquire)),
            ])
    except CheckError as error:
        assert "of rank 1" in error.message
        return error.findings[0].other or ""
    return ""


@pytest.mark.parametrize("checks", ["default,races", "default,races,weak_memory"])
def test_what_an_engine_has_read_is_released_by_who_waited_for_it(checks):
    assert race_with_an_engine("a", "release", "acquire", checks) == ""
    for broken in (("relaxed", "acquire"), ("release", "relaxed")):
        assert "complete_tx" in race_with_an_engine("a", *broken, checks)


def test_what_an_engine_stores_races_with_who_reads_it_at_once():
    assert "cp.async.bulk.tensor.2d.global" in race_with_an_engine("out", None, None)
