"""What is wrong with a node's launches ends with an error that names the rank and the line: peers, collectives, signals, room."""

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld

TARGETS = ["reference", "nvidia-sm80", "amd-cdna3"]


@tilefw.jit
def store_to(x, peer):
    tl.store(tld.at(x, peer), 1)


@tilefw.jit
def store_to_none(x):
    tl.store(tld.at(x, -1), 1)


@tilefw.jit
def meet_once(x, words):
    tl.store(x, tld.rank())
    tld.barrier(words)


@tilefw.jit
def meet_as_often(x, words, times):
    for _ in range(times):
        tld.barrier(words)


@tilefw.jit
def meet_without_words(x):
    if tld.rank() == 0:
        tld.barrier()


@tilefw.jit
def leave_or_meet(x, words):
    if tld.rank() == 1:
        return
    tld.barrier(words)


@tilefw.jit
def give_up_or_meet(x, words):
    if tld.rank() == 1:
        tl.device_assert(tl.load(x) == 5, "x is 5")
    tld.barrier(words)


@tilefw.jit
def add_up(words, value):
    tld.signal(words, 0, value, "add")


def raised(node, launch):
    with pytest.raises(tilefw.CheckError) as caught:
        launch(node)
    error = caught.value
    assert error.place is not None and error.place.text and error.help and error.note
    return error


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("peer", [4, 9, -1, -3])
def test_a_rank_that_is_none_is_told_by_its_number_where_it_is_asked_for(target, peer):
    node = tilefw.node(target, 4)
    x = node.zeros((4,), "int32", name="x")
    error = raised(node, lambda node: node.launch(store_to, (1,), x, [0, 1, peer, 3]))
    assert error.code == "TFW0875" and "tld.at(x, peer)" in error.place.text
    assert f"rank 2, store_to: bounds: rank {peer} is asked for, and is none of the node's: it has 4, from 0 to 3" in error.message
    assert "the launches on ranks 0, 1, 3 were ended for it" in error.note


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("peer", [1 << 32, -(1 << 40) + 1])
def test_a_rank_of_64_bits_is_none_where_32_do_not_hold_it(target, peer):
    node = tilefw.node(target, 2)
    x = node.zeros((4,), "int32", name="x")
    error = raised(node, lambda node: node.launch(store_to, (1,), x, peer))
    assert error.code == "TFW0875" and not x[0].any() and not x[1].any()


def test_a_negative_rank_is_refused_where_it_is_written():
    node = tilefw.node("reference", 2)
    with pytest.raises(tilefw.CompileError, match="TFW0875") as caught:
        node.launch(store_to_none, (1,), node.zeros((1,), "int32"))
    assert caught.value.place is not None and "in the launch of rank 0" in (caught.value.note or "")


@pytest.mark.parametrize("target", TARGETS)
def test_a_peer_of_another_domain_is_not_reached(target):
    node = tilefw.node(target, 4, domain_size=2)
    x = node.zeros((4,), "int32", name="x")
    node.launch(store_to, (1,), x, [1, 0, 3, 2])
    assert [part[0] for part in x] == [1, 1, 1, 1]
    error = raised(node, lambda node: node.launch(store_to, (1,), x, [1, 0, 3, 1]))
    assert error.code == "TFW0876"
    assert "rank 3, store_to: bounds: rank 3 does not reach element 0 of x on rank 1 (heap + 0x0)" in error.message
    with pytest.raises(tilefw.LaunchError, match="no heap bases in common"):
        _ = node.heap_bases


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", [leave_or_meet, give_up_or_meet])
def test_a_rank_that_exits_or_gives_up_ends_those_that_wait_for_it(target, kernel):
    node = tilefw.node(target, 3)
    x, words = node.zeros((1,), "int32", name="x"), node.zeros((2,), "int32", name="words")
    error = raised(node, lambda node: node.launch(kernel, (1,), x, words, debug=True))
    if kernel is give_up_or_meet:
        assert error.message.startswith("rank 1, give_up_or_meet: trap") and "the launches on ranks 0, 2 were ended" in error.note
    else:
        assert error.code == "TFW0870" and "rank 1: leave_or_meet has ended" in error.note
        assert "rank 2: program (0, 0, 0) of leave_or_meet waits at" in error.note
        assert "for element 0 of words on rank 2" in error.note


@pytest.mark.parametrize(("launches", "told"), [
    (lambda x, words: [(0, meet_once, (1,), (x, words))], "no launch was made on ranks 1, 2"),
    (
        lambda x, words: [(rank, meet_once, (1,), (x, words)) for rank in (0, 1)] + [(2, meet_as_often, (1,), (x, words, 2))],
        "the ranks launch different kernels: meet_once on ranks 0, 1, meet_as_often on rank 2",
    ),
    (
        lambda x, words: [(rank, meet_as_often, (1,), (x, words, 4 - rank // 2)) for rank in range(3)],
        "`times` of meet_as_often differs: 4 on ranks 0, 1, 3 on rank 2",
    ),
    (
        lambda x, words: [(rank, meet_as_often, (1 + rank // 2,), (x, words, 3)) for rank in range(3)],
        "the grids of meet_as_often differ: (1, 1, 1) on ranks 0, 1, (2, 1, 1) on rank 2",
    ),
])
def test_a_deadlock_says_in_what_the_ranks_launches_differ(launches, told):
    node = tilefw.node("reference", 3)
    x, words = node.zeros((1,), "int32"), node.zeros((2,), "int32", name="words")
    error = raised(node, lambda node: node.run(launches(x, words)))
    assert error.code == "TFW0870" and told in error.note


@pytest.mark.parametrize("target", TARGETS)
def test_programs_of_one_rank_that_share_the_nodes_own_barrier_race_on_its_words(target):
    node = tilefw.node(target, 2)
    error = raised(node, lambda node: node.launch(meet_without_words, (2,), node.zeros((1,), "int32"), checks="all", seed=1))
    assert error.code in ("TFW0444", "TFW0804")
    assert "the address is element 1 of words of the node's barrier on rank 0 (heap - 0x3f8)" in error.note


@pytest.mark.parametrize("target", TARGETS)
def test_barriers_count_on_beyond_the_largest_number(target):
    node = tilefw.node(target, 2)
    x, words = node.zeros((1,), "int32"), node.array(np.array([2**31 - 2, 2**30 - 1], np.int32))
    for _ in range(2):
        node.launch(meet_as_often, (1,), x, words, 3, seed=1)
    assert [part.tolist() for part in words] == [[2**31 - 2 + 12 - 2**32, 2**30 + 5]] * 2


@pytest.mark.parametrize("target", TARGETS)
def test_a_signal_that_wraps_stops_a_debug_build(target):
    node = tilefw.node(target, 2)
    words = node.full((1,), 2**31 - 10, "int32")
    node.launch(add_up, (1,), words, [4, -7], debug=True)
    error = raised(node, lambda node: node.launch(add_up, (1,), words, [7, 7], debug=True, seed=3))
    assert error.code == "TFW0812" and "tld.signal(words" in error.place.text
    words[0][:] = -(2**31)
    assert raised(node, lambda node: node.launch(add_up, (1,), words, -1, debug=True)).code == "TFW0812"


@pytest.mark.parametrize("line", ["tld.signal(words, 0, 2**31)", "tld.wait(words, value=-2**31 - 1)"])
def test_a_value_that_its_word_cannot_hold_is_refused(line):
    def wrong(words):
        pass

    wrong.__globals__.update(tld=tld)
    node = tilefw.node("reference", 2)
    with pytest.raises(tilefw.CompileError, match="is no value of a signal's word of int32") as caught:
        node.launch(tilefw.jit(wrong, source=f"def wrong(words):\n    {line}\n"), (1,), node.zeros((1,), "int32"))
    assert caught.value.code == "TFW0208" and caught.value.place is not None


@pytest.mark.parametrize("target", TARGETS)
def test_cooperative_launches_have_room_for_all_their_programs(target):
    node = tilefw.node(target, 2, resident=4)
    x, words = node.zeros((1,), "int32"), node.zeros((2,), "int64")
    node.launch(meet_once, (1,), x, words, launch_cooperative_grid=True)
    with pytest.raises(tilefw.LaunchError, match="rank 1: the 5 programs of store_to cannot be on the device at once: it holds 4"):
        node.launch(store_to, [(1,), (5,)], x, 0, launch_cooperative_grid=True)
    keywords = {"launch_cooperative_grid": True}
    with pytest.raises(tilefw.LaunchError, match="holds 1 of them beside the others") as caught:
        node.run([(0, store_to, (3,), (x, 0), keywords), (0, store_to, (2,), (x, 0), keywords)])
    assert caught.value.code == "TFW0877" and caught.value.place is not None and caught.value.place.text == "def store_to(x, peer):"


@tilefw.jit
def wait_by_plain_loads(flag, out):
    if tld.rank() == 0:
        while tl.load(flag) == 0:
            tl.store(out, 1)


@pytest.mark.parametrize("target", ["reference", "nvidia-sm80", "amd-cdna3"])
def test_a_wait_by_plain_loads_is_told_what_to_wait_by(target):
    node = tilefw.node(target, 2)
    with pytest.raises(tilefw.CheckError, match="rank 0, wait_by_plain_loads") as error:
        node.launch(wait_by_plain_loads, (1,), *(node.zeros((1,), "int32") for _ in range(2)), budget=10**4)
    assert "by plain loads is no poll: wait by tld.wait" in str(error.value)
