"""The time of launches on a node: puts, answers, signals and waits over links take what arithmetic by hand says."""

import pytest
from toy_system import toy

from tilefw.api.errors import KernelError
from tilefw.distributed.links.fabric import mesh
from tilefw.distributed.links.flows import Network
from tilefw.distributed.links.overlap import TiledWork, overlapped
from tilefw.distributed.links.ring import RingProtocol, ring_collective
from tilefw.distributed.links.system import System
from tilefw.distributed.node_time import NodeTime, RankLaunchTime, check_system
from tilefw.distributed.node_time.communication import CommunicationEvent, RankAddresses
from tilefw.distributed.node_time.critical_path import critical_path, parts
from tilefw.distributed.node_time.polls import without_failed_polls
from tilefw.distributed.node_time.rank_execution import WorkgroupExecution
from tilefw.distributed.node_time.replay import Replay
from tilefw.distributed.node_time.timeline import node_timeline
from tilefw.timing.streams import BarrierUse, WaveAccess, WaveStream

CLOCK = 1e9  # a thousand cycles a microsecond
LATENCY, RATE = 0.5, 100e3  # of the toy's links, in microseconds and bytes per microsecond
WORD = 32  # bytes that a signal takes


def put(cycle, peer, nbytes):
    return CommunicationEvent(0, 0, {}, {peer: nbytes}, cycle=cycle)


def signal(cycle, peer, word, moment):
    return CommunicationEvent(0, 0, {}, {peer: WORD}, (word,), moment, True, releases=True, cycle=cycle)


def wait(cycle, word, moment, failed=0):
    return CommunicationEvent(0, 0, {}, {}, (word,), moment, sees=True, failed=failed, cycle=cycle)


def workgroup(cycles, *events, number=0, after=None):
    return WorkgroupExecution(number, events, cycles, after)


def played(ranks, launches, launch_us=0.0):
    """The time of a run, and its parts; `launches` are (rank, workgroups)."""
    replay = Replay(toy(), ranks, CLOCK, 0)
    for rank, workgroups in launches:
        replay.add(rank, launch_us, workgroups)
    time = replay.play()
    return time, parts(critical_path(replay.network.transfers, replay.steps))


def test_a_put_takes_the_latency_and_its_bytes_and_its_end_an_acknowledgement():
    time, found = played(2, [(0, [workgroup(2000, put(1000, 1, 200_000))]), (1, [workgroup(100)])], launch_us=3)
    assert time == pytest.approx(3 + 1 + 200_000 / RATE + LATENCY + LATENCY)
    assert found == pytest.approx({"launch": 3, "compute": 1, "transfers": 2.5, "signals": LATENCY})


def test_what_the_fabric_spreads_leaves_once_and_what_it_combines_comes_once():
    nbytes, peers = 200_000, {1: 200_000, 2: 200_000, 3: 200_000}
    for given, latency in ((({}, peers), 2 * LATENCY), ((peers, {}), 2 * LATENCY)):
        spread = CommunicationEvent(0, 0, *given, cycle=1000, multicast=True)
        time, _ = played(4, [(0, [workgroup(1000, spread)])])
        assert time == pytest.approx(1 + nbytes / toy()["switch_rate"] + latency)
        each = CommunicationEvent(0, 0, *given, cycle=1000)
        assert played(4, [(0, [workgroup(1000, each)])])[0] == pytest.approx(1 + 3 * nbytes / RATE + latency)


def test_the_timeline_has_a_row_for_each_workgroup_and_each_way_of_every_rank():
    sender = workgroup(1000, put(1000, 1, 100_000), signal(1000, 1, 0xF0, 1))
    replay = Replay(toy(), 2, CLOCK, 0)
    begun, ended = replay.add(0, 2, [sender])
    replay.add(1, 2, [workgroup(500, wait(200, 0xF0, 2))])
    time = replay.play()
    found = parts(critical_path(replay.network.transfers, replay.steps))
    launch = RankLaunchTime(0, "send", *(1e-6 * at for at in (begun.begin, begun.sent, ended.sent)), communicates=True)
    seconds = {part: taken * 1e-6 for part, taken in found.items()}
    line = node_timeline(NodeTime("toy", time * 1e-6, time * 1e3, seconds, (), (launch,), (), replay))
    assert line.cycles == round(time * 1000)
    rows = {(row.group, row.name): [(span.kind, span.begin, span.length) for span in row.spans] for row in line.rows}
    data = ("transfers", 3000, 1000)
    assert rows["rank 0", "rank 0 program 0 to 1"][0] == data
    seen, acknowledged = (round(1000 * (2 + 1 + 1 + ways * LATENCY + WORD / RATE)) for ways in (3, 4))
    assert rows["rank 0", "rank 0 launches"] == [("launch", 0, 2000), ("transfers", 2000, acknowledged - 2000)]
    assert rows["rank 1", "rank 1 program 0"] == [("compute", 2000, 200), ("wait", 2200, seen - 2200), ("compute", seen, 300)]


def test_computation_hides_a_put():
    time, found = played(2, [(0, [workgroup(9000, put(1000, 1, 200_000))]), (1, [workgroup(100)])])
    assert time == pytest.approx(9) and found["compute"] == pytest.approx(9)


def test_a_wait_ends_when_the_signal_behind_the_data_arrives():
    sender = workgroup(1000, put(1000, 1, 100_000), signal(1000, 1, 0xF0, 1))
    time, found = played(2, [(0, [sender]), (1, [workgroup(500, wait(200, 0xF0, 2))])])
    signalled = 1 + 1 + 2 * LATENCY + WORD / RATE + LATENCY  # computed, put, acknowledged, signalled
    assert time == pytest.approx(max(signalled + 0.3, signalled + LATENCY))
    assert found["signals"] == pytest.approx(3 * LATENCY + WORD / RATE)


def test_a_wait_that_comes_late_waits_for_nothing():
    sender = workgroup(0, signal(0, 1, 0xF0, 1))
    time, found = played(2, [(0, [sender]), (1, [workgroup(9000, wait(8000, 0xF0, 2))])])
    assert time == pytest.approx(9) and found["signals"] == 0


def test_an_answer_is_waited_for_there_and_back():
    far = (2 * LATENCY + 4096 / RATE) * 1000
    asks = CommunicationEvent(0, 0, {1: 4096}, {}, remote_latency=far, cycle=1000)
    time, _ = played(2, [(0, [workgroup(3000 + far, asks)]), (1, [workgroup(0)])])
    assert time == pytest.approx(3 + far / 1000)


def test_two_ranks_that_send_to_one_share_its_port():
    time, _ = played(3, [(rank, [workgroup(0, put(0, 2, 100_000))]) for rank in (0, 1)] + [(2, [workgroup(0)])])
    assert time == pytest.approx(2 * 100_000 / RATE + 2 * LATENCY)


def test_a_device_of_a_mesh_passes_no_more_than_its_port():
    network = Network()
    fabric = mesh(network, 3, 100, 120)
    for peer in (1, 2):
        network.transfer(network.agent("way"), fabric.path(0, peer), 120)
    assert network.run() == pytest.approx(240 / 120)
    assert len(fabric.path(0, 1)) == 3


def test_what_is_asked_of_several_ranks_is_told_apart():
    addresses = RankAddresses(1, lambda address: None if address < 3200 else address // 3200 - 1, lambda peer, nbytes: 0)
    assert addresses.owners_of([3, 4]) == {1: 2} and addresses.owners_of([250, 260]) == {1: 2} and addresses.owners_of([]) == {}
    assert addresses.owners_of([5, 150, 151, 320]) == {1: 1, 0: 2, 2: 1}


def test_workgroups_take_places_and_launches_follow_one_another():
    places = [workgroup(1000), workgroup(2000, number=1, after=0)]
    assert played(2, [(0, places), (0, [workgroup(500)])], launch_us=1)[0] == pytest.approx(1 + 1 + 2 + 1 + 0.5)


def test_what_ranks_say_after_a_wait_was_over_does_not_hold_it_up():
    """The simulator let rank 0 signal twice before rank 1 looked: the wait of rank 1 needed the first signal alone."""
    early, late = signal(1000, 1, 0xF0, 1), signal(50_000, 1, 0xF0, 2)
    waits = [wait(0, 0xF0, 3), wait(1000, 0xF0, 4)]
    _, found = played(2, [(0, [workgroup(50_000, early, late)]), (1, [workgroup(2000, waits[0])])])
    assert found["compute"] == pytest.approx(50)
    replay = Replay(toy(), 2, CLOCK, 0)
    replay.add(0, 0, [workgroup(50_000, early, late)])
    replay.add(1, 0, [workgroup(2000, waits[0])])
    replay.play()
    assert max(one.sent for one, step in zip(replay.network.transfers, replay.steps, strict=True) if step.rank == 1) < 5


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_a_ring_of_puts_and_signals_is_the_ring_of_the_model_of_links(ranks):
    """Without computation, each step of the ring is a part of the bytes and three latencies: data, acknowledgement, signal."""
    size, steps = 8_000_000, 2 * (ranks - 1)
    moments = {}
    for step in range(steps):
        for rank in range(ranks):
            moments[rank, step] = len(moments) * 2 + 1
    executions = []
    for rank in range(ranks):
        events = []
        for step in range(steps):
            if step:
                events.append(wait(0, 1000 * rank + step - 1, moments[rank, step] - 1))
            following = (rank + 1) % ranks
            events += [put(0, following, size // ranks), signal(0, following, 1000 * following + step, moments[rank, step])]
        executions.append((rank, [workgroup(0, *events)]))
    time, _ = played(ranks, executions)
    network = Network()
    protocol = RingProtocol(RATE, 3 * LATENCY + WORD / RATE, size, 1, 0.0)
    ring_collective(network, toy().fabric(network, ranks), size, steps, protocol)
    assert time == pytest.approx(network.run(), rel=0.01)


def test_tiles_that_are_sent_as_they_are_done_hide_their_transfers():
    """Eight tiles of 10 us, each of which takes 10 us to its peer: in bulk one after the other, in one launch all but the last."""
    tiles, cycles, nbytes = 8, 10_000, 1_000_000
    idle = (1, [workgroup(0)])
    bulk, _ = played(2, [(0, [workgroup(tiles * cycles)]), (0, [workgroup(0, put(0, 1, tiles * nbytes))]), idle])
    puts = [put(cycles * (tile + 1), 1, nbytes) for tile in range(tiles)]
    fused, found = played(2, [(0, [workgroup(tiles * cycles, *puts)]), idle])
    assert bulk == pytest.approx(80 + 80 + 2 * LATENCY) and fused == pytest.approx(80 + 10 + 2 * LATENCY)
    assert found["compute"] == pytest.approx(80) and found["transfers"] == pytest.approx(10 + LATENCY)
    work = TiledWork(tiles, 10, nbytes, 1)
    assert overlapped(toy(), 2, work, "bulk_synchronous") > overlapped(toy(), 2, work, "producer_consumer")


def poll(moment, changed=False):
    return [WaveAccess("atomic", (7,), 0, 8, 8, words=(224,), moment=moment, changed=changed)]


def test_polls_that_fail_are_left_out_and_said_by_the_one_that_succeeds():
    wave = WaveStream(0, 0, [0, 1, 2, 1, 2, 1, 2, 3], {1: poll(4), 3: poll(6), 5: poll(9)})
    (left,) = without_failed_polls([wave], frozenset())
    assert left.instructions == [0, 1, 2, 3] and list(left.accesses) == [1]
    assert (left.accesses[1][0].moment, left.accesses[1][0].failed) == (9, 6)


def test_barriers_that_count_stay_where_they_are_between_polls_that_are_left_out():
    uses = {0: [BarrierUse(0, 64, 0)], 7: [BarrierUse(0, 64, 1)]}
    wave = WaveStream(0, 0, [0, 1, 2, 1, 2, 1, 2, 3], {1: poll(4), 3: poll(6), 5: poll(9)}, barriers=uses)
    (left,) = without_failed_polls([wave], frozenset())
    assert left.barriers == {0: uses[0], 3: uses[7]}


def test_waves_that_meet_in_a_loop_of_polls_lose_the_same_turns():
    asks = WaveStream(0, 0, [0, 1, 5, 1, 5, 1, 5, 6], {1: poll(1), 3: poll(2), 5: poll(3)})
    follows = WaveStream(0, 1, [0, 2, 5, 2, 5, 2, 5, 6], {})
    left = without_failed_polls([asks, follows], frozenset({5}))
    assert [wave.instructions for wave in left] == [[0, 1, 5, 6], [0, 2, 5, 6]]


def test_what_changes_words_is_no_failed_poll():
    wave = WaveStream(0, 0, [1, 2, 1, 2], {0: poll(1, changed=True), 2: poll(2, changed=True)})
    assert without_failed_polls([wave], frozenset())[0].instructions == [1, 2, 1, 2]


@pytest.mark.parametrize("ranks, without, code", [(17, "card_step", "TFW0668"), (16, "link_latency", "TFW0665")])
def test_a_system_that_tells_no_time_of_a_node_is_refused(ranks, without, code):
    with pytest.raises(KernelError) as caught:
        check_system(System(toy().figures.without(without)), ranks)
    assert caught.value.code == code
    check_system(toy(), 16)
