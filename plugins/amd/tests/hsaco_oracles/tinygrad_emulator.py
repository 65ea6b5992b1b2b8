"""Runs one launch on tinygrad's emulator, in a process of its own: `python tinygrad_emulator.py LAUNCH.npz OUT.npz`.

tinygrad's checkout is on the path (PYTHONPATH). Its emulator reads code and data where this process holds them. LAUNCH.npz has
`launch` (JSON: see `test_tinygrad`), `image` and the buffers by name; OUT.npz gets the buffers as they are afterwards.
"""

from __future__ import annotations

import json
import sys

import numpy as np

_READ_AHEAD = 64  # bytes that the emulator's decoder looks at behind an instruction


def main(given: str, out: str) -> None:
    from test.mockgpu.amd.emu import run_asm  # the checkout's

    with np.load(given) as stored:
        arrays = {name: stored[name] for name in stored.files}
    launch = json.loads(str(arrays.pop("launch")))
    image = np.concatenate([arrays.pop("image"), np.zeros(_READ_AHEAD, np.uint8)])
    kernarg = np.frombuffer(bytearray.fromhex(launch["kernarg"]), np.uint8).copy()
    for name, offset in launch["pointers"].items():
        kernarg[offset : offset + 8] = np.frombuffer(arrays[name].ctypes.data.to_bytes(8, "little"), np.uint8)
    words = kernarg.view(np.uint32)
    address = kernarg.ctypes.data
    user = [address & 0xFFFFFFFF, address >> 32, *(int(words[i]) for i in launch["preloaded"])]
    run_asm(
        image.ctypes.data + launch["entry"], launch["size"], *launch["grid"], *launch["block"], address, launch["rsrc2"],
        launch["scratch"], "cdna", user,
    )
    np.savez(out, **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
