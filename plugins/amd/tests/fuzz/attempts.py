"""One damaged file through what reads it, and what came of it in a word."""

from __future__ import annotations

import random
from collections.abc import Callable

import assembled
from served import TARGET, assemble, disassemble, read

from tilefw.api import BufferView, LaunchOptions, Scalar
from tilefw.api.artifact import Artifact, Entry
from tilefw.api.errors import CodeError
from tilefw_amd.backend import AmdBackend

BACKEND = AmdBackend(TARGET)
BUDGET = 50_000  # instructions over all lanes: some hundreds of a wave
BUFFER_BYTES = 4096


def whole(data: bytes) -> str:
    """Read, disassembled and launched."""
    read(data, "damaged.hsaco")
    try:
        disassemble(data, "damaged.hsaco")
    except CodeError as error:
        assert error.code == "TFW0724"  # what no text says may run nevertheless
    return launched(BACKEND.parse(data, "damaged.hsaco"))


def launched(artifact: Artifact) -> str:
    """The first entry in one workgroup, with small buffers and numbers as arguments."""
    entry = artifact.entries[0]
    device = BACKEND.simulator()
    arguments = [_argument(device, entry, number) for number in range(len(entry.parameters))]
    block = None if all(entry.workgroup) else (64, 1, 1)
    options = LaunchOptions(block=block, budget=BUDGET)
    report = device.launch(device.load(artifact), entry.name, (1, 1, 1), arguments, options)
    return "findings" if report.findings else "ran"


def _argument(device, entry: Entry, number: int):
    parameter = entry.parameters[number]
    if parameter.kind != "pointer":
        return Scalar(number, parameter.dtype if parameter.dtype != "fp8" else "uint8")
    handle = device.allocate(BUFFER_BYTES, label=parameter.name)
    device.write(handle, bytes(BUFFER_BYTES))
    return BufferView(handle)


def read_text(text: str) -> str:
    """Assembled, and what comes out read."""
    read(assemble(text, "damaged.s"), "damaged")
    return "assembled"


def with_code(code: bytes) -> bytes:
    """A code object whose kernel is `code`, then its end."""
    words = ", ".join(f"{int.from_bytes(code[at : at + 4], 'little'):#x}" for at in range(0, len(code), 4))
    return BACKEND.to_binary(assembled.text(f"{assembled.PROLOGUE}\n.long {words}\ns_endpgm"), "random.s")


def random_code(rng: random.Random, size: int, instructions: Callable[[random.Random], bytes]) -> bytes:
    """`size` bytes: random ones, or random instructions with some bits flipped."""
    if rng.random() < 0.3:
        return rng.randbytes(size)
    made = bytearray()
    while len(made) < size:
        made += instructions(rng)
    for _ in range(rng.choice((0, 0, 1, 4))):
        made[rng.randrange(size)] ^= 1 << rng.randrange(8)
    return bytes(made[:size])
