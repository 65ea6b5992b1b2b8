"""Times on links that follow by hand from latency and rate: what a target's machine code sends and waits for between two ranks."""

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.distributed.node_time import node_time


@tilefw.jit
def send(x_ptr, out_ptr, n, block: tl.constexpr):
    if tld.rank() == 0:
        for begin in range(0, n, block):
            offsets = begin + tl.arange(0, block)
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


def check_a_put(target: str, latency: float, rate: float) -> None:
    """A put of 128 KiB takes its bytes at `rate` (bytes per microsecond), `latency` (microseconds), and its acknowledgement."""
    n = 32768
    node = tilefw.node(target, 2, trace=True)
    x, out = node.array(np.arange(n, dtype=np.float32)), node.zeros(n)
    node.launch(send, (1,), x, out, n, block=4096)
    time = node_time(node)
    assert np.array_equal(out[1], x[0]) and time.ranks[0].nbytes == 4 * n and time.ranks[1].nbytes == 0
    link = 4 * n / rate + latency
    others = time.seconds * 1e6 - time.parts["compute"] * 1e6 - time.parts["launch"] * 1e6
    assert time.parts["signals"] == pytest.approx(latency * 1e-6)  # the last bytes are acknowledged
    assert others <= link + latency + 1e-6 and time.seconds * 1e6 >= link + latency


def check_a_signalled_put(target: str, latency: float, rate: float) -> None:
    """A wait ends after the data, their acknowledgement and the signal, whose word takes 32 bytes of a link."""
    node = tilefw.node(target, 2, trace=True)
    x, out, y = node.array(np.arange(256, dtype=np.float32)), node.zeros(256), node.zeros(256)
    node.launch(send_and_signal, (1,), x, out, node.zeros(1, "int32"), y, 256)
    time = node_time(node)
    assert np.array_equal(y[1], x[0])
    ends_with_sender = time.path[-1].step.rank == 0  # whose signal is acknowledged when the receiver has long gone on
    said = (4 if ends_with_sender else 3) * latency + 1024 / rate + 32 / rate
    assert (time.parts["transfers"] + time.parts["signals"]) * 1e6 == pytest.approx(said, rel=0.02)
    assert time.ranks[1].seconds * 1e6 > time.parts["launch"] * 1e6 + 3 * latency
    assert sum(time.parts.values()) == pytest.approx(time.seconds)
