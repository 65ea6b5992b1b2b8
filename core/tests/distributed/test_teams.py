"""Teams: members have numbers in them, both translations agree, and barriers of different teams do not wait for each other."""

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld

TARGETS = ["reference", "nvidia-sm80", "amd-cdna3"]
RANKS = 6


@tilefw.jit
def describe(out, team):
    """For each rank of the node its number in the team, and for each number the rank."""
    tl.store(out, tld.rank(team))
    tl.store(out + 1, tld.num_ranks(team) + 100 * team.size)
    for number in range(-1, tld.num_ranks() + 1):
        tl.store(out + 3 + number, tld.world_rank(team, number))
        tl.store(out + 13 + number, tld.team_rank(team, number))


@tilefw.jit
def describe_strided(out, first, stride, size: tl.constexpr, inner: tl.constexpr):
    team = tld.team(first, stride, size)
    if inner:
        team = tld.team(1, 2, None, team)
    describe(out, team)


@tilefw.jit
def describe_listed(out, second):
    describe(out, tld.team_of((4, second, 1)))


def expected(node, ranks):
    whole = list(range(-1, node.num_ranks + 1))
    to_rank = [ranks[number] if 0 <= number < len(ranks) else -1 for number in whole]
    to_number = [ranks.index(rank) if rank in ranks else -1 for rank in whole]
    return [[*(ranks.index(me) if me in ranks else -1, 101 * len(ranks)), *to_rank, *[0] * 2, *to_number] for me in node.ranks]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("first", "stride", "size", "inner", "ranks"), [
    (1, 2, 3, False, [1, 3, 5]), (0, 1, None, False, [0, 1, 2, 3, 4, 5]), (5, -2, 2, False, [5, 3]), (1, 3, None, False, [1, 4]),
    (4, -1, None, False, [4, 3, 2, 1, 0]), (5, -1, None, True, [4, 2, 0]), (2, 1, 1, False, [2]),
])
def test_numbers_of_strided_teams(target, first, stride, size, inner, ranks):
    node = tilefw.node(target, RANKS)
    out = node.zeros((20,), "int32")
    node.launch(describe_strided, (1,), out, first, stride, size=size, inner=inner)
    assert [part.tolist() for part in out] == expected(node, ranks)


@pytest.mark.parametrize("target", TARGETS)
def test_numbers_of_listed_teams(target):
    node = tilefw.node(target, RANKS)
    out = node.zeros((20,), "int32")
    node.launch(describe_listed, (1,), out, 0)
    assert [part.tolist() for part in out] == expected(node, [4, 0, 1])


@tilefw.jit
def sum_of_team(x, out, words, team, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tld.barrier(words, team)
    total = tl.zeros([BLOCK], tl.int32)
    for number in range(tld.num_ranks(team)):
        total += tld.load(x + at, tld.world_rank(team, number))
    tl.store(out + at, total)
    tld.barrier_wait(words, tld.barrier_arrive(words, team))


@tilefw.jit
def halves_and_corners(x, out, words, BLOCK: tl.constexpr):
    """Even and odd ranks apart, where the odd ones meet as many times again; then ranks 0 and 5 alone."""
    parity = tld.rank() % 2
    team = tld.team(parity, 2)
    for _ in range(1 + parity):
        sum_of_team(x, out, words, team, BLOCK)
    corners = tld.team_of((5, 0))
    if tld.rank(corners) >= 0:
        sum_of_team(x, out, words + 2, corners, BLOCK)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_teams_meet_and_add_up_by_themselves(target, seed):
    node = tilefw.node(target, RANKS)
    x = node.array([np.arange(64, dtype=np.int32) + 100 * rank for rank in node.ranks])
    out, words = node.empty((64,), "int32", name="out"), node.zeros((4,), "int64", name="words")
    node.launch(halves_and_corners, (1,), x, out, words, BLOCK=64, seed=seed, checks="default,races")
    for rank in node.ranks:
        team = [0, 5] if rank in (0, 5) else range(rank % 2, RANKS, 2)
        assert np.array_equal(out[rank], sum(x[member] for member in team))


@tilefw.jit
def meet_of_others(words):
    tld.barrier(words, tld.team_of((0, 1)))


@pytest.mark.parametrize("target", TARGETS)
def test_a_rank_that_is_not_of_the_team_stops_a_debug_build(target):
    node = tilefw.node(target, 3)
    with pytest.raises(tilefw.CheckError, match="rank 2, meet_of_others: trap") as raised:
        node.launch(meet_of_others, (1,), node.zeros((2,), "int32"), debug=True)
    assert raised.value.place is not None and "tld.team_of((0, 1))" in raised.value.place.text


@tilefw.jit
def part_of_a_team(out, first, size):
    tl.store(out, tld.num_ranks(tld.team(first, 1, size, tld.team(1, 2, 3))))


@tilefw.jit
def part_beyond_its_team(out):
    tl.store(out, tld.num_ranks(tld.team(2, 1, 2, tld.team(1, 2, 3))))


@pytest.mark.parametrize(("first", "size"), [(1, 3), (-1, 2), (3, 1)])
def test_a_part_of_a_team_that_is_not_in_it_stops_a_debug_build(first, size):
    node = tilefw.node("reference", RANKS)
    out = node.zeros((1,), "int32")
    node.launch(part_of_a_team, (1,), out, 1, 2, debug=True)
    assert out[0][0] == 2
    with pytest.raises(tilefw.CheckError, match="a part of a team has members that the team has not"):
        node.launch(part_of_a_team, (1,), out, first, size, debug=True)


def test_a_part_of_constants_that_is_not_in_its_team_is_refused():
    node = tilefw.node("reference", RANKS)
    with pytest.raises(tilefw.CompileError, match="has member 3 of it, and the team has 3") as caught:
        node.launch(part_beyond_its_team, (1,), node.zeros((1,), "int32"))
    assert caught.value.code == "TFW0878"


@tilefw.jit
def meet_and_look(words, x_ptr, seen_ptr):
    tl.store(x_ptr, tld.rank() + 1)
    tld.barrier(words)
    tl.store(seen_ptr, tld.load(x_ptr, tld.num_ranks() - 1 - tld.rank()))


def test_more_ranks_than_are_signalled_at_once_meet():
    node = tilefw.node("nvidia-sm80", 34)  # of 32 at once
    words, x, seen = (node.zeros((extent,), kind) for extent, kind in ((2, "int64"), (1, "int32"), (1, "int32")))
    node.launch(meet_and_look, (1,), words, x, seen, num_warps=1, checks="default,races")
    assert [seen[rank].item() for rank in node.ranks] == [34 - rank for rank in node.ranks]
