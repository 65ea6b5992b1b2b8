"""The time of kernels that speak over links: what machine code sends and waits for, on the figures of the chip's system."""

import json

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.cli.main import main
from tilefw.distributed.node_time import node_time

LATENCY, RATE = 0.6, 300e3  # microseconds, bytes per microsecond: link_latency and the rate of a link


@tilefw.jit
def send(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    if tld.rank() == 0:
        for begin in range(0, n, BLOCK):
            offsets = begin + tl.arange(0, BLOCK)
            tld.store(out_ptr + offsets, tl.load(x_ptr + offsets), 1)


@tilefw.jit
def send_and_signal(x_ptr, out_ptr, flag_ptr, y_ptr, n: tl.constexpr):
    offsets = tl.arange(0, n)
    if tld.rank() == 0:
        tld.store(out_ptr + offsets, tl.load(x_ptr + offsets), 1)
        tld.signal(flag_ptr, 1)
    else:
        tld.wait(flag_ptr)
        tl.store(y_ptr + offsets, tl.load(out_ptr + offsets))


def test_a_put_over_one_link_takes_its_latency_and_bytes():
    n = 32768
    node = tilefw.node("nvidia-sm80", 2, trace=True)
    x, out = node.array(np.arange(n, dtype=np.float32)), node.zeros(n)
    node.launch(send, (1,), x, out, n, BLOCK=4096)
    time = node_time(node)
    assert np.array_equal(out[1], x[0]) and time.ranks[0].nbytes == 4 * n and time.ranks[1].nbytes == 0
    link = 4 * n / RATE + LATENCY
    others = time.seconds * 1e6 - time.parts["compute"] * 1e6 - time.parts["launch"] * 1e6
    assert time.parts["signals"] == pytest.approx(LATENCY * 1e-6)  # the last bytes are acknowledged
    assert others <= link + LATENCY + 1e-6 and time.seconds * 1e6 >= link + LATENCY


def test_a_wait_ends_after_the_data_their_acknowledgement_and_the_signal():
    node = tilefw.node("nvidia-sm80", 2, trace=True)
    x, out, y = node.array(np.arange(256, dtype=np.float32)), node.zeros(256), node.zeros(256)
    node.launch(send_and_signal, (1,), x, out, node.zeros(1, "int32"), y, 256)
    time = node_time(node)
    assert np.array_equal(y[1], x[0])
    ends_with_sender = time.path[-1].step.rank == 0  # whose signal is acknowledged when the receiver has long gone on
    said = (4 if ends_with_sender else 3) * LATENCY + 1024 / RATE + 32 / RATE
    assert (time.parts["transfers"] + time.parts["signals"]) * 1e6 == pytest.approx(said, rel=0.02)
    assert time.ranks[1].seconds * 1e6 > time.parts["launch"] * 1e6 + 3 * LATENCY
    assert sum(time.parts.values()) == pytest.approx(time.seconds)


def test_the_command_line_tells_the_time_where_it_is_asked_for(capsys):
    words = ["run", "all_gather", "--devices", "2", "--target", "nvidia-sm80", "--param", "n=64", "form=push"]
    verdict, told, timed = (main(words + more) or capsys.readouterr().out for more in ([], ["--time"], ["--json"]))
    assert " us on " not in verdict and " us on " in told
    (timed,) = json.loads(timed)["forms"]
    assert timed["ok"] and timed["seconds"] > 2 * LATENCY * 1e-6
    assert [one["rank"] for one in timed["ranks"]] == [0, 1] and timed["unknown"] is None


def test_a_system_of_fewer_devices_is_told_before_anything_runs(capsys, monkeypatch):
    monkeypatch.setattr("tilefw.node", lambda *given, **named: pytest.fail("it runs"))
    assert main(["run", "all_gather", "--devices", "9", "--target", "nvidia-sm80", "--system", "nvidia:a100_sxm"]) == 2
    assert "has 8 devices, and the node 9" in capsys.readouterr().err


def test_a_node_of_more_devices_than_its_chips_usual_system_has_a_verdict_and_no_time(capsys):
    words = ["run", "all_gather", "--devices", "9", "--target", "nvidia-sm80", "--param", "n=9", "form=push", "--time", "--json"]
    assert main(words) == 0
    (form,) = json.loads(capsys.readouterr().out)["forms"]
    assert form["ok"] and form["seconds"] is None and "has 8 devices, and the node 9" in form["unknown"]
