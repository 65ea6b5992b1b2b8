"""A plugin whose backend is the reference interpreter, but for what it does to a case: `num_warps` and `num_stages` say what."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

from tilefw.api import TargetInfo, hookimpl
from tilefw.tile.reference.backend import ReferenceBackend

TILEFW_API = (0, 1)


@hookimpl
def tilefw_targets():
    provides = frozenset({"lower", "emit", "simulate"})
    return [TargetInfo("unruly-x1", "unruly", "x1", "no good", "unruly:Unruly", provides, frozenset({"*"}))]


@hookimpl
def tilefw_conformance():
    return {"cases": ["unruly_data:cases"], "expectations": "unruly_data:conformance.yaml"}


def hang():
    Path(os.environ["UNRULY_MARK"] + ".hangs").touch()
    time.sleep(3600)


def fill():
    held = []
    while True:
        held.append(bytearray(os.urandom(1 << 10)) * (64 << 10))


def answer_garbage():
    for end in sorted(int(name) for name in os.listdir("/dev/fd")):
        if end <= 2:
            continue
        try:
            os.write(end, b'{"say": "done", "case": "somebody/else", "record": {}}\n')
        except OSError:
            continue


def killed_once():
    mark = Path(os.environ["UNRULY_MARK"])
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def print_much():
    print("\x00\xff garbage" * 100_000)
    os.write(2, os.urandom(1 << 16))


DEEDS = {
    1: lambda: None, 2: hang, 3: lambda: ctypes.string_at(0), 4: fill, 5: print_much, 6: lambda: os._exit(0),
    7: answer_garbage, 8: killed_once, 9: lambda: os.kill(os.getpid(), signal.SIGKILL), 10: lambda: sys.exit(3), 11: lambda: 1 / 0,
}


class Unruly(ReferenceBackend):
    def emit(self, module, options):
        if "softmax" in str(module):
            DEEDS[5 * (options.num_warps.bit_length() - 1) + options.num_stages]()
        return super().emit(module, options)
