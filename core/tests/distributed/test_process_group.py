"""Ranks in processes of their own: launches at once, memory of all, findings told to all, and an end for all when one ends."""

from __future__ import annotations

import multiprocessing
import select
import socket
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import group_programs as programs
import numpy as np
import pytest

import tilefw
from tilefw.distributed.node_time import node_time
from tilefw.distributed.process_group.environment import Membership
from tilefw.kernels.distributed.all_reduce import all_reduce

FORK = multiprocessing.get_context("fork")  # the test's own process has loaded and compiled everything
_PLACES = Path("/proc/net/unix")


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """What every process would load again before its first launch, and compile: most of the time of these tests."""
    for target in ("reference", "nvidia-sm80"):
        node = tilefw.node(target, 2)
        own = programs.arrays_of_messages(node)
        node.run([programs.message(node, rank, *own) for rank in node.ranks])


def _member(
    rank: int, ranks: int, place: str, target: str, seconds: float, grouped: bool, program: Any, args: Any, answer: Any,
    words: dict[str, Any] | None = None,
) -> None:
    if not grouped:
        answer.send(program(rank, ranks, *args))
        return
    try:
        settings = {"rank": rank, "world_size": ranks, "init_method": place, "timeout": seconds, **(words or {})}
        with tilefw.init_process_group(target, **settings) as node:
            answer.send(program(node, *args))
    except tilefw.KernelError as error:
        answer.send(f"{error.code} {error}")


def start(
    program: Callable[..., Any], *args: Any, ranks: int = 2, target: str = "reference", seconds: float = 60, place: str = "",
    starts: int | None = None, worlds: dict[int, int] | None = None, grouped: bool = True, **words: Any,
) -> list[Any]:
    """What the program gives back on each rank; None of one that has ended without a word. Of those ranks `starts` are started. The
    program is given the node, or where it is not `grouped` the rank and how many there are."""
    place = place or f"tcp://test-{uuid.uuid4()}:1"
    members = []
    for rank in range(ranks if starts is None else starts):
        mine, theirs = FORK.Pipe(duplex=False)
        world = (worlds or {}).get(rank, ranks)
        process = FORK.Process(target=_member, args=(rank, world, place, target, seconds, grouped, program, args, theirs, words))
        process.start()
        theirs.close()
        members.append((process, mine))
    said = []
    for process, mine in members:
        try:
            said.append(mine.recv() if mine.poll(120) else "silent")
        except EOFError:
            said.append(None)
        process.kill() if said[-1] == "silent" else None
    for process, _ in members:
        process.join(10)
        process.kill()
    return said


def test_kernels_of_the_library_run_in_every_process_as_in_one() -> None:
    assert [equal for equal, _ in start(programs.reduce, ranks=3)] == [True] * 3


@pytest.mark.parametrize("target", ["reference", "nvidia-sm80"])
def test_processes_launch_different_kernels_and_see_each_others_memory(target: str) -> None:
    assert start(programs.pass_messages, target=target) == [(True, True)] * 2


def test_a_rank_that_waits_elsewhere_lets_another_one_launch() -> None:
    assert start(programs.launch_alone) == [(3, 0)] * 2


def test_a_rank_that_launches_more_often_is_waited_for() -> None:
    assert start(programs.launch_twice_or_once) == [(12, ""), (12, "pid (0, 0, 0) idx () x: 1.000000\n")]


def test_what_a_kernel_printed_before_it_failed_is_written_by_its_rank() -> None:
    assert start(programs.print_and_fail) == [("TFW0441", "pid (0, 0, 0) idx () x: 0.000000\n"), ("TFW0441", "")]


def test_findings_are_those_of_every_rank_and_the_group_goes_on() -> None:
    said = start(programs.read_nothing)
    for first, second, third in said:
        assert "rank 1, load_kernel" in first and "node_kernels.py:" in first and "x" in first
        assert "volatile_consumer" in second
        assert third == "nothing"


def test_a_deadlock_says_who_waits_on_all_ranks() -> None:
    for said in start(programs.wait_for_nobody):
        assert said.startswith("TFW0870")
        for rank in range(2):
            assert "waits at" in said and f"element 0 of flags on rank {rank}" in said


def test_races_between_processes_are_told() -> None:
    for said in start(programs.race):
        assert said.startswith("TFW0444") and "races" in said and "rank 1" in said and "rank 0" in said


def test_ranks_that_do_not_do_the_same_are_told_so() -> None:
    for shape, meeting, seed, arguments, value, right, unwritten, extent in start(programs.differ):
        assert shape.startswith("TFW0872") and "rank 1 allocates float32[9], rank 0 allocates float32[8]" in shape
        assert meeting.startswith("TFW0882") and "rank 1 is at a barrier, rank 0 is at all_gather_object" in meeting
        assert seed.startswith("TFW0882") and "0 on rank 0, 1 on rank 1" in seed
        assert "value" in arguments and arguments != "nothing"
        assert value.startswith("TFW0882") and "a function cannot be given to other processes" in value
        assert right == "nothing"
        assert "rank 1 allocates float32[8], rank 0 allocates unwritten float32[8]" in unwritten
        assert extent.startswith("TFW0872") and "-8" in extent


@pytest.mark.parametrize(("how", "word"), [
    ("raises", "ValueError: no more"),
    ("killed", "its process is no more"), ("exits", "its process is no more"), ("leaves", "it has left the group"),
])
def test_a_rank_that_ends_ends_the_others_which_name_it(how: str, word: str) -> None:
    for said, again, seconds in start(programs.leave, how, ranks=3)[:2]:
        assert said.startswith("TFW0881") and "rank 2" in said and word in said
        assert again.startswith("TFW0881") and seconds < 60


def test_a_rank_that_never_comes_ends_the_others() -> None:
    for said, *_ in start(programs.leave, "never", ranks=3, seconds=0.5)[:2]:
        assert said.startswith("TFW0881") and "rank 2 did not come" in said


def test_a_rank_that_is_killed_ends_launches_that_run() -> None:
    said, killed = start(programs.killed_while_launches_run)
    assert killed is None and said[0].startswith("TFW0881") and "rank 1" in said[0] and said[1] < 60
    assert said[2] == [], "they are not simulated any more"


def test_the_place_of_an_array_is_given_out_again_when_all_ranks_have_freed_it() -> None:
    for rank, (twice, used, places, values, unread) in enumerate(start(programs.free)):
        assert twice.startswith("TFW0872" if rank == 0 else "") and used.startswith("TFW0874" if rank else "nothing")
        other, second, third, kept = places
        assert 0 < other < second and third == 0 and kept > second
        assert values == [0] * 8 and "kept" in unread and not unread.startswith("nothing")


def test_a_heap_is_full_until_the_last_rank_has_freed() -> None:
    for before, behind in start(programs.fill, heap_bytes=2000):
        assert before.startswith("TFW0872") and "full" in before and behind == "nothing"


def test_times_are_told_where_the_group_is_simulated_and_are_those_of_one_process() -> None:
    node = tilefw.node("nvidia-sm80", 2, trace=True)
    all_reduce(node, node.array(np.ones(1000, np.float32)), "two_shot")
    seconds, refused = start(programs.time_launches, target="nvidia-sm80", trace=True)
    assert seconds == node_time(node).seconds
    assert refused.startswith("TFW0668") and "rank 0" in refused


def test_a_rank_that_was_killed_may_come_again_as_a_new_process_while_its_group_is_still_there() -> None:
    place = f"tcp://test-{uuid.uuid4()}:1"
    mine, theirs = FORK.Pipe(duplex=False)

    processes = [
        FORK.Process(target=programs.gather_in_groups, args=(0, place, 2, theirs)),
        FORK.Process(target=programs.be_killed, args=(1, place)),
        FORK.Process(target=programs.gather_in_groups, args=(1, place, 1, theirs)),
    ]
    for process in processes[:2]:
        process.start()
    processes[1].join(60)
    processes[2].start()
    said = sorted(mine.recv() if mine.poll(60) else (9, "silent") for _ in range(2))
    for process in processes:
        process.join(10)
        process.kill()
    assert said == [(0, [0, 1]), (1, [0, 1])]


def test_a_group_leaves_no_descriptors() -> None:
    place = f"tcp://test-{uuid.uuid4()}:1"
    assert start(programs.descriptors_left, place, grouped=False) == [0, 0]


def test_rank_0_that_is_killed_ends_the_others_and_leaves_nothing() -> None:
    place = f"tcp://test-{uuid.uuid4()}:1"
    address = Membership(0, 3, place.removeprefix("tcp://")).address.replace("\0", "@")
    first, *others = start(programs.first_is_killed, ranks=3, place=place)
    assert first is None and all(said.startswith("TFW0881") and "rank 0" in said for said in others)
    assert address not in _PLACES.read_text()


def test_a_child_of_a_rank_has_none_of_its_connections() -> None:
    for before, child in start(programs.fork, f"tcp://test-{uuid.uuid4()}:1", grouped=False):
        assert child == before


def test_groups_that_do_not_fit_are_told_to_who_comes() -> None:
    absent = start(programs.launch_alone, ranks=3, starts=2, seconds=1)
    assert all(said.startswith("TFW0880") and "rank 2 did not come within 1 s" in said for said in absent)
    for said in start(programs.launch_alone, worlds={1: 3}):
        assert said.startswith("TFW0880") and "rank 1 asks for another group than rank 0: num_ranks is 3, and 2 on rank 0" in said


def test_a_second_program_at_one_place_is_refused() -> None:
    place = f"tcp://test-{uuid.uuid4()}:1"
    with tilefw.init_process_group("reference", rank=0, world_size=1, init_method=place):
        for rank, message in enumerate(("another program's rank 0", "takes no rank 1")):
            with pytest.raises(tilefw.LaunchError, match=message) as caught:
                tilefw.init_process_group("reference", rank=rank, world_size=2, init_method=place)
            assert caught.value.code == "TFW0880"
    with tilefw.init_process_group("reference", rank=0, world_size=1, init_method=place) as again:
        assert again.zeros((3,))[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize(("said", "word"), [
    ({}, "RANK is not set"), ({"RANK": "one"}, "RANK is a whole number"), ({"RANK": "0"}, "WORLD_SIZE is not set"),
    ({"RANK": "2", "WORLD_SIZE": "2"}, "rank 2 is none of a group of 2"),
    ({"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "here"}, "MASTER_PORT is not set"),
    ({"RANK": "0", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}, "2 of 4 ranks are on this machine"),
])
def test_an_environment_that_names_no_rank_is_told(said: dict[str, str], word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(tilefw.KernelError, match=word) as caught:
        tilefw.init_process_group("reference")
    assert caught.value.code == "TFW0880"


@pytest.mark.parametrize(("given", "code"), [
    ({"init_method": Path("/tmp")}, "TFW0880"), ({"init_method": "file:///tmp/x"}, "TFW0880"),
    ({"timeout": float("inf")}, "TFW0902"), ({"timeout": 0}, "TFW0902"), ({"rank": 1.0}, "TFW0880"),
])
def test_arguments_that_say_no_group_are_told(given: dict[str, Any], code: str) -> None:
    with pytest.raises(tilefw.UsageError) as caught:
        tilefw.init_process_group("reference", **{"rank": 0, "world_size": 1, "init_method": "tcp://127.0.0.1:1", **given})
    assert caught.value.code == code


def test_a_program_has_groups_one_after_the_other() -> None:
    assert start(programs.again_and_again, f"tcp://test-{uuid.uuid4()}:1", ranks=3, grouped=False) == [[3, 6, 9, 12]] * 3


def test_a_rank_that_the_last_groups_place_has_not_heard_asks_again() -> None:
    """What closes while it knocks is the place of the program's last group, not its rank 0: the next group was not to come else."""
    place = f"tcp://test-{uuid.uuid4()}:1"
    mine, theirs = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_member, args=(1, 2, place, "reference", 60, True, programs.gather_ranks, (), theirs))
    process.start()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as last:
        last.bind(Membership(0, 2, place.removeprefix("tcp://")).address)
        last.listen()
        assert select.select([last], [], [], 60)[0]
    with tilefw.init_process_group("reference", rank=0, world_size=2, init_method=place, timeout=30) as node:
        assert programs.gather_ranks(node) == [0, 1]
    assert mine.recv() == [0, 1]
    process.join(10)


def test_ranks_of_pytorchs_own_group_are_those_of_the_node(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    several = "world_size is 3, and PyTorch's group has 2 ranks", "1 of 2 ranks are on this machine"
    assert start(programs.of_torch, str(tmp_path / "store"), grouped=False) == [(several, [0.0, 1.0]), (several, [1.0, 0.0])]
