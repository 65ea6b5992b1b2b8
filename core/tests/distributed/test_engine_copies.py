"""Copies between ranks that the host starts: in order with launches, of what a rank has, in the time that links take."""

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.distributed.links import plugin_system
from tilefw.distributed.node_time import node_time


@tilefw.jit
def add_rank(x, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) + tld.rank() + 1, mask=at < n)


def gathered(node, x, out, n):
    for source in node.ranks:
        out[source][source * n : (source + 1) * n] = x[source]
        for peer in node.ranks:
            if peer != source:
                node.copy(x[source], out[peer][source * n : (source + 1) * n])


def test_copies_are_in_order_with_the_launches_around_them():
    node, n = tilefw.node("reference", 3), 40
    x, out = node.zeros((n,), "int32"), node.zeros((3 * n,), "int32")
    node.launch(add_rank, (1,), x, n, BLOCK=64)
    gathered(node, x, out, n)
    node.launch(add_rank, (1,), out, 3 * n, BLOCK=128)
    for rank in node.ranks:
        assert (out[rank] == np.repeat([1, 2, 3], n) + rank + 1).all()


def test_what_nobody_has_written_stays_so_where_it_is_copied_to():
    node = tilefw.node("reference", 2)
    x, out = node.empty((32,), "int32", name="x"), node.zeros((32,), "int32")
    node.copy(x[0], out[1])
    with pytest.raises(tilefw.CheckError, match="nothing has written"):
        node.launch(add_rank, (1,), [node.zeros((32,), "int32")[0], out[1]], 32, BLOCK=32)


def test_what_is_written_beside_unwritten_elements_comes_as_it_is():
    node = tilefw.node("reference", 2)
    x, out = node.empty((8,), "int32"), node.zeros((9,), "int32")
    x[0][4:] = out[1][:] = 7
    node.copy(x[0][1:], out[1][2:])  # where groups of eight bytes are others than where they come from
    assert (out[1][[0, 1, 5, 6, 7, 8]] == 7).all()


def test_a_copy_waits_for_the_one_whose_bytes_it_hands_on_and_for_no_other():
    system, nbytes = plugin_system("nvidia:a100_sxm"), 4 << 20

    def taken(*parts):
        node = tilefw.node("nvidia-sm80", 3, trace=True)
        x = node.zeros((2, 1 << 20), "int32")
        for source, destination in parts:
            node.copy(x[source[0]][source[1]], x[destination[0]][destination[1]])
        return node_time(node, system).seconds

    alone, way = taken(((0, 0), (1, 0))), 1e-6 * nbytes / system["port_rate"]
    assert taken(((0, 0), (1, 0)), ((1, 1), (2, 0))) == pytest.approx(alone, rel=0.01)
    assert taken(((0, 0), (1, 0)), ((1, 0), (2, 0))) > alone + way


def test_the_time_is_the_start_and_the_way_over_the_link_behind_the_launches():
    node, system = tilefw.node("nvidia-sm80", 2, trace=True), plugin_system("nvidia:a100_sxm")
    x, nbytes = node.zeros((1 << 20,), "int32"), 4 << 20
    node.copy(x[0], x[1])
    alone = node_time(node, system)
    assert alone.parts["transfers"] == pytest.approx(1e-6 * (nbytes / system["port_rate"] + system["link_latency"]), rel=0.01)
    node.copy(x[0], x[1])
    assert node_time(node, system).seconds == pytest.approx(alone.seconds + 1e-6 * nbytes / system["port_rate"], rel=0.01)
    node.launch(add_rank, (1,), x, 64, BLOCK=64)
    launched = node_time(node, system)
    assert launched.seconds > alone.seconds + 1e-6 * nbytes / system["port_rate"] and launched.parts["compute"] > 0


@pytest.mark.parametrize(("parts", "code"), [
    (lambda x: (x[0], x[0]), "TFW0883"), (lambda x: (x[0][:4], x[1]), "TFW0883"), (lambda x: (x[0][::2], x[1][:4]), "TFW0883"),
    (lambda x: (np.zeros(8), x[1]), "TFW0883"), (lambda x: (x[0], x[2]), "TFW0876"),
])
def test_what_is_no_copy_between_ranks_is_refused(parts, code):
    node = tilefw.node("reference", 4, domain_size=2)
    with pytest.raises(tilefw.LaunchError) as caught:
        node.copy(*parts(node.zeros((8,), "float64")))
    assert caught.value.code == code and not node.copies
