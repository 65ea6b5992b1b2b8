"""A simulated node: kernels in plain Triton reach other ranks' heaps, wait for each other, and are told what they do wrong."""

from itertools import pairwise

import node_kernels as kernels
import numpy as np
import pytest

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.api.sim import SimulatorDevice

TARGETS = ["reference", "nvidia-sm80", "amd-cdna3"]
N = 500


def filled(node, name="x"):
    return node.array([np.arange(N, dtype=np.float32) + 1000 * rank for rank in node.ranks], name=name)


def neighbours(node):
    return [(rank + 1) % node.num_ranks for rank in node.ranks]


@pytest.mark.parametrize("target", TARGETS)
def test_loads_and_stores_reach_the_heap_of_another_rank(target):
    node = tilefw.node(target, 4)
    x, got, put = filled(node), node.empty((N,), name="got"), node.empty((N,), name="put")
    common = (N, node.rank_numbers, neighbours(node), node.heap_bases)
    node.launch(kernels.load_kernel, (2,), x, got, *common, BLOCK=256)
    node.launch(kernels.store_kernel, (2,), x, put, *common, BLOCK=256, seed=5)
    for rank, other in zip(node.ranks, neighbours(node), strict=True):
        assert np.array_equal(got[rank], x[other])
        assert np.array_equal(put[other], x[rank])


@pytest.mark.parametrize("target", TARGETS)
def test_atomics_reach_every_rank(target):
    node = tilefw.node(target, 2)
    sums, last = node.zeros((N,), "int32"), node.zeros((N,), "int32")
    node.launch(kernels.add_kernel, (2,), sums, N, node.rank_numbers, node.heap_bases, RANKS=2, BLOCK=256)
    node.launch(kernels.exchange_kernel, (2,), last, N, node.rank_numbers, node.heap_bases, RANKS=2, BLOCK=256)
    for rank in node.ranks:
        assert (sums[rank] == 2).all()
        assert (last[rank] == 2 - rank).all()


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("target", TARGETS)
def test_a_consumer_waits_for_the_producer_of_another_rank(target, seed):
    node = tilefw.node(target, 2)
    x, buffer, result = filled(node), node.empty((N,), name="buffer"), node.empty((N,), name="result")
    flags = node.zeros((2,), "int32", name="flags")
    waits = (1, kernels.consumer, (2,), (buffer, flags, result, N, 256))
    sends = (0, kernels.producer, (2,), (x, buffer, flags, N, 0, 1, node.heap_bases, 256))
    node.run([waits, sends], seed=seed)
    assert np.array_equal(result[1], 2 * x[0])
    assert (flags[1] == 0).all()


@pytest.mark.parametrize("target, ranks, seed", [
    ("reference", 2, 0), ("reference", 4, 7), ("nvidia-sm80", 4, 0), ("nvidia-sm80", 8, 7), ("amd-cdna3", 2, 7),
    ("amd-cdna3", 8, 0),
])
def test_all_ranks_meet_and_add_up(target, ranks, seed):
    node = tilefw.node(target, ranks)
    x, total, flags = filled(node), node.empty((N,), name="total"), node.zeros((ranks,), "int32", name="flags")
    me, bases = node.rank_numbers, node.heap_bases
    node.launch(kernels.one_shot_all_reduce, (1,), x, total, flags, N, me, bases, RANKS=ranks, BLOCK=256, seed=seed)
    for rank in node.ranks:
        assert np.array_equal(total[rank], np.sum(list(x), axis=0))


@pytest.mark.parametrize("target, seed", [("reference", 0), ("reference", 3), ("nvidia-sm80", 0), ("amd-cdna3", 0)])
def test_a_deadlock_says_who_waits_for_which_word(target, seed):
    """The producer tells its own rank, and the consumer waits for its own flag: nobody ever sets it."""
    node = tilefw.node(target, 2)
    x, buffer, result = filled(node), node.zeros((N,), name="buffer"), node.zeros((N,), name="result")
    flags = node.zeros((2,), "int32")  # it is called as the kernels' parameter
    wrong = (0, kernels.producer, (2,), (x, buffer, flags, N, 0, 0, node.heap_bases, 256))
    waits = (1, kernels.consumer, (2,), (buffer, flags, result, N, 256))
    with pytest.raises(tilefw.CheckError) as raised:
        node.run([wrong, waits], seed=seed)
    assert raised.value.code == "TFW0870"
    for program in range(2):
        assert f"rank 1: program ({program}, 0, 0) of consumer waits at" in raised.value.note
        assert f"for element {program} of flags on rank 1 (heap +" in raised.value.note
    assert raised.value.note.count("the word holds 0") == 2
    assert (buffer[0] == 0).all()  # nothing was copied back


@tilefw.jit
def beyond(result, flags, n, BLOCK: tl.constexpr):
    tl.store(result + tl.arange(0, BLOCK), 1.0)


@pytest.mark.parametrize("target", TARGETS)
def test_a_rank_that_faults_ends_the_others_and_is_named(target):
    node = tilefw.node(target, 2)
    result, flags = node.zeros((N,), name="result"), node.zeros((2,), "int32", name="flags")
    waits = (0, kernels.consumer, (1,), (result, flags, result, N, 256))
    with pytest.raises(tilefw.CheckError, match=r"rank 1, beyond: bounds:") as raised:
        node.run([waits, (1, beyond, (1,), (result, flags, N, 512))])
    assert "behind the end of result on rank 1" in str(raised.value)
    assert "the launches on ranks 0 were ended for it" in raised.value.note


@pytest.mark.parametrize("target", TARGETS)
def test_what_no_rank_has_written_is_uninitialised(target):
    node = tilefw.node(target, 2)
    never, result = node.empty((N,), name="never"), node.zeros((N,), name="result")
    with pytest.raises(tilefw.CheckError, match=r"rank 0, load_kernel: initialisation:"):
        node.launch(
            kernels.load_kernel, (2,), never, result, N, node.rank_numbers, neighbours(node), node.heap_bases, BLOCK=256
        )


@tilefw.jit
def behind_the_next(flags, LAST: tl.constexpr):
    program = tl.program_id(0)
    if program < LAST:
        while tl.atomic_cas(flags + program + 1, 1, 1, sem="acquire") == 0:
            pass
    tl.atomic_xchg(flags + program, 1, sem="release")


@pytest.mark.parametrize("target", TARGETS)
def test_programs_that_wait_for_more_than_the_device_holds_are_told(target):
    """Each waits for the one behind it: four at once can, with room for three the last never begins."""
    for resident, sort in ((4, None), (3, tilefw.CheckError)):
        node = tilefw.node(target, 1, resident=resident)
        flags = node.zeros((4,), "int32", name="flags")
        if sort is None:
            node.launch(behind_the_next, (4,), flags, LAST=3)
            assert (flags[0] == 1).all()
            continue
        with pytest.raises(sort, match="TFW0870") as raised:
            node.launch(behind_the_next, (4,), flags, LAST=3)
        assert "for element 3 of flags on rank 0" in raised.value.note
        assert "other programs of this launch have not begun: the device holds no more at once" in raised.value.note


@pytest.mark.parametrize("target", ["nvidia-sm80", "amd-cdna3"])
def test_launches_of_one_rank_share_the_room_of_its_device(target):
    """A consumer that fills the device keeps its own producer out; where both fit, they meet."""
    for resident in (4, 2):
        node = tilefw.node(target, 2, resident=resident)
        x, buffer, result = filled(node), node.zeros((N,), name="buffer"), node.zeros((N,), name="result")
        flags = node.zeros((2,), "int32", name="flags")
        waits = (0, kernels.consumer, (2,), (buffer, flags, result, N, 256))
        sends = (0, kernels.producer, (2,), (x, buffer, flags, N, 0, 0, node.heap_bases, 256))
        if resident == 4:
            node.run([waits, sends])
            assert np.array_equal(result[0], 2 * x[0])
            continue
        with pytest.raises(tilefw.CheckError) as raised:
            node.run([waits, sends])
        assert "rank 0: producer waits for room on its device" in raised.value.note


def test_races_between_ranks_are_found_by_the_reference():
    """A flag that nobody releases orders nothing."""
    node = tilefw.node("reference", 2)
    x, result = filled(node), node.zeros((N,), name="result")
    with pytest.raises(tilefw.CheckError, match="races: ") as raised:
        node.run([
            (0, kernels.store_kernel, (2,), (x, result, N, 0, 1, node.heap_bases, 256), {"checks": "default,races"}),
            (1, kernels.load_kernel, (2,), (result, x, N, 1, 1, node.heap_bases, 256), {"checks": "default,races"}),
        ])
    assert "program (0, 0, 0) of store_kernel on rank 0" in str(raised.value) or "on rank 1" in str(raised.value)


def test_symmetric_arrays_have_one_shape_and_fit_the_heap():
    node = tilefw.node("reference", 2, heap_bytes=8192)
    with pytest.raises(tilefw.LaunchError, match="rank 1 has float64"):
        node.array([np.zeros(3), np.zeros(4)])
    node.zeros((1000,))
    for elements in (1000, 1 << 40):  # the larger one is refused before memory is asked for
        with pytest.raises(tilefw.LaunchError, match="the symmetric heaps are full"):
            node.zeros(elements)


def test_what_is_no_launch_or_no_rank_is_named():
    node = tilefw.node("reference", 2)
    with pytest.raises(tilefw.LaunchError, match="is no launch of a rank"):
        node.run([(0, kernels.add_to_first)])
    with pytest.raises(tilefw.LaunchError, match="rank 2 is none of the 2"):
        node.run([(2, kernels.add_to_first, (1,), [])])
    with pytest.raises(tilefw.LaunchError, match="rank 2 is none of the 2"):
        node.broadcast(node.zeros(4), 2)


def test_every_array_is_at_one_offset_of_all_heaps_and_bases_differ():
    node = tilefw.node("reference", 8)
    assert len(set(node.heap_bases.tolist())) == 8
    arrays = [node.zeros((n,), "int8") for n in (1, 1000, 3000)]
    assert all(a.offset + a.nbytes < b.offset for a, b in pairwise(arrays))
    assert node.context(3).tolist() == [3, 8, *node.heap_bases]


def test_a_target_that_cannot_is_refused_by_what_it_lacks():
    with pytest.raises(tilefw.UnsupportedError, match="does not run several launches at once") as raised:
        tilefw.node("cpu", 2)
    assert "launch_jointly" in raised.value.note


def test_collectives_of_the_host_are_what_their_names_say():
    node = tilefw.node("reference", 2)
    x = node.array([np.array([1, 2, 3, 4], np.int32), np.array([10, 20, 30, 40], np.int32)])
    assert [part.tolist() for part in node.all_reduce(x)] == [[11, 22, 33, 44]] * 2
    assert [part.tolist() for part in node.all_reduce(x, "max")] == [[10, 20, 30, 40]] * 2
    assert [part.tolist() for part in node.all_gather(x)] == [[1, 2, 3, 4, 10, 20, 30, 40]] * 2
    assert [part.tolist() for part in node.reduce_scatter(x)] == [[11, 22], [33, 44]]
    assert [part.tolist() for part in node.all_to_all(x)] == [[1, 2, 10, 20], [3, 4, 30, 40]]
    assert [part.tolist() for part in node.broadcast(x, 1)] == [[10, 20, 30, 40]] * 2
    with pytest.raises(tilefw.LaunchError, match="no 2 equal parts"):
        node.all_to_all(node.zeros((3,)))


def test_a_check_that_is_not_made_of_launches_at_once_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(SimulatorDevice, "joint_checks", SimulatorDevice.checks - {"races"})
    node = tilefw.node("nvidia-sm80", 2)
    flags = node.zeros((2,), "int32")
    with pytest.raises(tilefw.UsageError, match="the check `races` is not made of launches at once"):
        node.launch(kernels.exchange_kernel, (1,), flags, 2, 0, node.heap_bases, RANKS=2, BLOCK=16, checks="default,races")


@pytest.mark.parametrize("target", ["reference", "nvidia-sm80"])
@pytest.mark.parametrize("checks", ["undefined_elements", "default,program", "bounds,uninitialised_host"])
def test_checks_of_programs_are_refused(target, checks):
    node = tilefw.node(target, 2)
    flags = node.zeros((2,), "int32")
    with pytest.raises(tilefw.UsageError, match="is not made of launches at once"):
        node.launch(kernels.exchange_kernel, (1,), flags, 2, 0, node.heap_bases, RANKS=2, BLOCK=16, checks=checks)


def test_kernels_of_the_language_for_many_devices_find_their_rank():
    @tilefw.jit
    def which(result):
        tl.store(result, tld.rank() * 10 + tld.num_ranks())

    node = tilefw.node("reference", 3)
    result = node.empty((4,), "int32")
    node.launch(which, (1,), result)
    assert [part[0] for part in result] == [3, 13, 23]
    with pytest.raises(tilefw.LaunchError, match="TFW0871"):
        which[(1,)](np.zeros(4, np.int32))


@pytest.mark.parametrize("target", TARGETS)
def test_volatile_loads_wait_and_stand_in_deadlocks_as_atomics_do(target):
    node = tilefw.node(target, 2)
    x, buffer, result = filled(node), node.zeros((N,), name="buffer"), node.zeros((N,), name="result")
    flags = node.zeros((2,), "int32", name="flags")
    waits = (1, kernels.volatile_consumer, (2,), (buffer, flags, result, N, 256))
    for told in (1, 0):
        sends = (0, kernels.producer, (2,), (x, buffer, flags, N, 0, told, node.heap_bases, 256))
        if told == 1:
            node.run([waits, sends], seed=2)
            assert np.array_equal(result[1], x[0])
            flags[1][:] = 0
            continue
        with pytest.raises(tilefw.CheckError, match="TFW0870") as raised:
            node.run([waits, sends], seed=2)
        assert "rank 1: program (1, 0, 0) of volatile_consumer waits at" in raised.value.note
        assert "for element 1 of flags on rank 1" in raised.value.note


@pytest.mark.parametrize("target", TARGETS)
def test_a_barrier_that_counts_its_spins_meets_again_and_again(target):
    node = tilefw.node(target, 4)
    flags = node.zeros((4,), "int32", name="flags")
    for seed in range(3):
        node.launch(
            kernels.bounded_barrier, (1,), flags, node.rank_numbers, node.heap_bases, RANKS=4, MAX_SPINS=1000000, seed=seed
        )
        assert all((one == 0).all() for one in flags)


@pytest.mark.parametrize("target, blocks", [("reference", 100), ("nvidia-sm80", 600), ("amd-cdna3", 600)])
def test_atomics_of_a_loop_that_change_nothing_are_no_deadlock(target, blocks):
    node = tilefw.node(target, 2)
    x, result = node.full((32 * blocks,), 3, "int32"), node.full((1,), 7, "int32")
    node.launch(kernels.greatest, (1,), x, result, 32 * blocks, BLOCK=32)
    assert [one[0] for one in result] == [7, 7]


@pytest.mark.parametrize("target", ["reference", "nvidia-sm80"])
def test_a_buffer_that_shows_a_part_of_a_symmetric_array_is_that_array(target):
    node = tilefw.node(target, 2)
    x = node.zeros((8,), "int32")
    node.launch(kernels.add_to_first, (1,), [memoryview(one[4:]) for one in x], 5)
    assert [one.tolist() for one in x] == [[0, 0, 0, 0, 5, 0, 0, 0]] * 2


@pytest.mark.parametrize("moves", ["at", "distance"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_pointer_keeps_the_bits_of_the_way_to_a_peer_where_small_arrays_need_fewer(target, moves):

    @tilefw.jit
    def exchanged(x, result, n, heap_bases, MOVES: tl.constexpr, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        mine, peer = result + tld.rank() * n + at, 1 - tld.rank()
        value = tl.load(x + at, mask=at < n)
        tl.store(mine, value, mask=at < n)
        if MOVES == "at":
            tld.store(mine, value, peer, mask=at < n)
        else:
            distance = (tl.load(heap_bases + peer) - tl.load(heap_bases + tld.rank())) // 4
            tl.store(mine + distance, value, mask=at < n)

    node = tilefw.node(target, 2)
    x, result = filled(node), node.empty((2 * N,), name="result")
    node.launch(exchanged, (1,), x, result, N, node.heap_bases, MOVES=moves, BLOCK=512, checks="default")
    assert all(np.array_equal(part, np.concatenate(list(x))) for part in result)
