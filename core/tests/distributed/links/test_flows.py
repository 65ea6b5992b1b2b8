"""Transfers share ports fairly: no port carries more than its rate, all bytes arrive, and order is kept."""

import random
from itertools import pairwise

import pytest

from tilefw.api.errors import CodeError
from tilefw.distributed.links.flows import Network


def random_network(seed):
    chance, network = random.Random(seed), Network()
    ports = [network.port(f"p{number}", chance.uniform(1, 10)) for number in range(6)]
    agents = [network.agent(f"a{number}") for number in range(5)]
    for _ in range(60):
        after = chance.sample(network.transfers, min(2, len(network.transfers)))
        ways = tuple(chance.sample(ports, chance.choice((1, 2, 3))))
        size, latency, limit = chance.choice((0, 5, 20)), chance.choice((0, 0.5)), chance.choice((3, 1e9))
        network.transfer(chance.choice(agents), ways, size, latency, after=after, limit=limit)
    return network


@pytest.mark.parametrize("seed", range(20))
def test_no_port_carries_more_than_its_rate(seed):
    network = random_network(seed)
    end = network.run()
    carried = network.bytes_through()
    assert all(amount <= port.rate * end * (1 + 1e-6) for amount, port in zip(carried, network.ports, strict=True))
    for one in network.transfers:
        least = min(one.limit, *(network.ports[port].rate for port in one.ports))
        assert one.sent - one.begin >= one.size / least * (1 - 1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_a_transfer_begins_when_what_it_waits_for_has_arrived_and_agents_do_one_thing_at_a_time(seed):
    network = random_network(seed)
    network.run()
    for one in network.transfers:
        assert all(later.begin >= one.sent + one.latency - 1e-6 for later in one.on_arrived)
    for agent in range(len(network.agents)):
        mine = [one for one in network.transfers if one.agent == agent]
        assert all(later.begin >= one.sent - 1e-9 for one, later in pairwise(mine))


def test_two_flows_share_a_port_and_a_third_takes_what_they_leave_elsewhere():
    network = Network()
    shared, wide = network.port("shared", 10), network.port("wide", 12)
    sizes = {"a": ((shared,), 50), "b": ((shared, wide), 50), "c": ((wide,), 70)}
    flows = {name: network.transfer(network.agent(name), ports, size) for name, (ports, size) in sizes.items()}
    assert network.run() == pytest.approx(10)
    assert [flows[name].sent for name in "abc"] == pytest.approx([10, 10, 10])  # 5, 5 and 7 bytes per microsecond


def test_a_flow_goes_faster_when_another_has_ended():
    network = Network()
    port = network.port("p", 10)
    short = network.transfer(network.agent("a"), (port,), 10)
    long = network.transfer(network.agent("b"), (port,), 40)
    network.run()
    assert (short.sent, long.sent) == pytest.approx((2, 5))


def test_rates_and_bytes_that_cannot_be_are_refused():
    network = Network()
    with pytest.raises(CodeError, match="rate of port dead"):
        network.port("dead", 0)
    with pytest.raises(CodeError, match="lost of 5 bytes"):
        network.transfer(network.agent("a"), (), 5, name="lost")
    for size, latency, limit in ((5, 0.0, 0.0), (-1, 0.0, 1.0), (5, -1.0, 1.0), (float("nan"), 0.0, 1.0)):
        with pytest.raises(CodeError, match="never arrives"):
            network.transfer(network.agent("a"), (), size, latency, limit=limit)


def test_a_network_is_played_once():
    network = Network()
    network.transfer(network.agent("a"), (network.port("p", 2.0),), 6.0)
    assert network.run() == 3.0
    with pytest.raises(CodeError, match="have been played"):
        network.run()
