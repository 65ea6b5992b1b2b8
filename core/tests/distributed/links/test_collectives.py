"""Collectives move what their algorithms move, take no less than their bounds, and longer for more."""

import pytest
from toy_system import toy, toy_text

from tilefw.api.errors import CodeError
from tilefw.distributed.links import OPERATIONS, all_reduce_over_nodes, collective, direct_all_reduce
from tilefw.timing.chip_file import read_chip_file

MIB = 1 << 20
SENDS = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}


@pytest.mark.parametrize("operation", SENDS)
@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_a_ring_sends_its_share_by_every_port_and_takes_no_less_than_the_bound(operation, ranks):
    size = 64 * MIB
    played = collective(toy(), operation, ranks, size, "ring")
    bound = SENDS[operation] * (ranks - 1) / ranks * size
    assert played.network.bytes_through() == pytest.approx([bound] * 2 * ranks)
    assert bound / 80e3 <= played.microseconds - played.launch <= 1.6 * bound / 80e3  # a copy of half a step comes last


@pytest.mark.parametrize("ranks", [3, 8])
def test_the_switch_takes_an_array_and_a_part_by_every_port(ranks):
    played = collective(toy(), "all_reduce", ranks, 8 * MIB, "in-switch")
    carried = [amount for amount in played.network.bytes_through() if amount]
    assert carried == pytest.approx([8 * MIB * (1 + 1 / ranks)] * ranks)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_more_bytes_take_no_less_time_by_one_algorithm(operation):
    algorithm = "" if operation == "all_to_all" else "ring"
    times: dict[str, list[float]] = {}
    for power in range(9, 29):
        played = collective(toy(), operation, 4, 1 << power, algorithm)
        times.setdefault(played.choice.protocol, []).append(played.microseconds)
    assert all(found == sorted(found) and len(set(found)) == len(found) for found in times.values())


def test_protocols_change_with_size_in_the_order_of_their_latencies():
    chosen = [collective(toy(), "reduce_scatter", 8, 1 << power).choice.protocol for power in range(10, 30)]
    assert list(dict.fromkeys(chosen)) == ["ll", "ll128", "simple"]
    assert sorted(chosen, key=["ll", "ll128", "simple"].index) == chosen


def test_one_shot_wins_for_few_bytes_and_two_shots_for_many():
    system = toy()
    first, last = (
        [direct_all_reduce(system, shots, 8, size, "shots").microseconds for shots in ("one_shot", "two_shot")]
        for size in (1024, MIB)
    )
    assert first[0] < first[1] and last[0] > last[1]
    assert last[1] - 5 <= 2 * 7 / 8 * MIB / 60e3 * 1.01  # two shots move what a ring moves


@pytest.mark.parametrize("count", [2, 8, 100])
def test_cards_between_nodes_carry_on_average_what_a_ring_does(count):
    played = all_reduce_over_nodes(toy(), count, 16 * MIB)
    carried = zip(played.network.bytes_through(), played.network.ports, strict=True)
    cards = [amount for amount, port in carried if port.name.endswith("out")]
    assert sum(cards) / count == pytest.approx(2 * (count - 1) / count * 16 * MIB)
    assert played.microseconds >= max(cards) / 40e3


def test_what_is_not_there_is_named_with_the_nearest():
    with pytest.raises(CodeError, match="did you mean 'all_reduce'"):
        collective(toy(), "allreduce", 4, 1024)
    with pytest.raises(CodeError, match="17 ranks"):
        collective(toy(), "all_reduce", 17, 1024)
    with pytest.raises(CodeError, match="0 bytes"):
        collective(toy(), "all_reduce", 4, 0)
    with pytest.raises(CodeError, match="bytes"):
        collective(toy(), "all_reduce", 4, 1 << 50)
    with pytest.raises(CodeError, match="over 1 nodes"):
        all_reduce_over_nodes(toy(), 1, 1024)
    with pytest.raises(CodeError, match="no all_to_all by 'ring'"):
        collective(toy(), "all_to_all", 4, 1024, "ring")
    with pytest.raises(CodeError, match="no all_gather by 'in-switch'"):
        collective(toy(), "all_gather", 4, 1024, "in-switch")


@pytest.mark.parametrize(("mapping", "said"), [
    ('{value: -3, unit: GB/s, kind: manual, source: "s"}', "finite and not negative"),
    ('{value: fast, unit: GB/s, kind: manual, source: "s"}', "not a number"),
    ('{unit: GB/s, kind: manual, source: "s"}', "has no value"),
    ("{value: 5, unit: GB/s, kind: manual}", "has no source"),
])
def test_a_file_with_a_number_that_cannot_be_names_the_line(mapping, said):
    text = toy_text(port_rate=mapping)
    with pytest.raises(CodeError, match=said) as caught:
        read_chip_file(text, "toy.yaml", "system")
    assert caught.value.place is not None and caught.value.place.line == 4
