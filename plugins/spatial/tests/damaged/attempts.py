"""How programs are damaged, and one damaged program through all that reads it; what came of it in a word."""

from __future__ import annotations

import random
import re
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from launches import bound
from random_programs import program

from tilefw.api import BufferView, LaunchOptions, Scalar
from tilefw.testing.damaged import Damage
from tilefw_spatial import container, text
from tilefw_spatial.backend import SpatialBackend
from tilefw_spatial.checked import arguments
from tilefw_spatial.isa import CODES, OPS
from tilefw_spatial.machine import load
from tilefw_spatial.pipeline import compile_kernel
from tilefw_spatial.program import QueueInst, SpatialProgram
from tilefw_spatial.simulate.device import Loaded, SpatialDevice
from tilefw_spatial.target import SDM1
from tilefw_spatial.valid import inst_fault

MACHINE = load()
BACKEND = SpatialBackend(SDM1)
BUDGET = 320 * 5_000  # lanes by vectors: some thousand instructions
LARGEST_BUFFER = 1 << 16
KERNELS = ("vector_add", "softmax", "matmul")
_EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "sdm-1" / "increment.s"
_HEADER = 40
_SECTION = struct.Struct("<4sII")
_SNIPPETS = ("", " ", "0", "9" * 30, "-1", ",", "\n", '"', "=", ".", "->", "é", "\0", "@", "n=4096", "sW31", "b1:4095", "#1e40")


def whole(data: bytes) -> str:
    """Read, written as text and read again to the same bytes, and launched."""
    artifact = BACKEND.parse(data, "damaged.sdm")
    assert artifact.binary is not None
    if BACKEND.to_binary(BACKEND.to_text(data, "damaged.sdm"), "damaged.s") != artifact.binary:
        raise AssertionError("the text does not keep the program")
    return launched(container.read(data, "damaged.sdm"))


def assembled(source: str) -> str:
    """Assembled, and what comes out launched."""
    return launched(container.read(BACKEND.to_binary(source, "damaged.s"), "damaged.sdm"))


def launched(found: SpatialProgram) -> str:
    """Run with small buffers of zeros and the numbers that the program was made for."""
    device = SpatialDevice(MACHINE)
    given: list[BufferView | Scalar] = []
    for parameter in arguments(found):
        if parameter.kind != "pointer":
            given.append(Scalar(0 if parameter.value is None else parameter.value, parameter.dtype))
            continue
        size = min(max(parameter.nbytes, 1), LARGEST_BUFFER)
        handle = device.allocate(size, label=parameter.name)
        device.write(handle, bytes(size))
        given.append(BufferView(handle))
    report = device.launch(Loaded(found), found.entry, found.grid, given, LaunchOptions(budget=BUDGET))
    return "findings" if report.findings else "ran"


# --- what is damaged, and how ----------------------------------------------------------------------------------------------


@cache
def subjects() -> tuple[bytes, ...]:
    """Whole programs: the example, kernels of the library, random ones."""
    launches = [bound(kernel, {}) for kernel in KERNELS]
    compiled = [compile_kernel(found.module(), found.launch, MACHINE).program for found in launches]
    made = [text.parse(_EXAMPLE.read_text(encoding="utf-8"), "increment.s"), *compiled]
    made += [program(MACHINE, random.Random(seed)) for seed in range(4)]
    return tuple(container.write(found) for found in made)


@cache
def _texts() -> tuple[str, ...]:
    return tuple(text.render(container.read(data, "whole.sdm")) for data in subjects())


def _bytes_changed(rng: random.Random) -> bytes:
    out = bytearray(rng.choice(subjects()))
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(out))
        out[at : at + rng.choice((0, 1, 1, 4))] = rng.randbytes(rng.choice((0, 1, 1, 4)))
    return bytes(out[: rng.randrange(len(out))] if rng.random() < 0.2 else out)


def resealed(data: bytes) -> bytes:
    """The file with the checksums of its bytes, so that damage gets past them."""
    out, at = bytearray(data), _HEADER
    while at + _SECTION.size <= len(out):
        length = _SECTION.unpack_from(out, at)[1]
        struct.pack_into("<I", out, at + 8, zlib.crc32(bytes(out[at + 12 : at + 12 + length])))
        at += _SECTION.size + length
    return bytes(out)


def _sections(data: bytes) -> list[tuple[bytes, bytes]]:
    found, at = [], _HEADER
    while at < len(data):
        kind, length, _ = _SECTION.unpack_from(data, at)
        found.append((kind, data[at + 12 : at + 12 + length]))
        at += 12 + length
    return found


def _joined(head: bytes, sections: list[tuple[bytes, bytes]]) -> bytes:
    return resealed(head + b"".join(_SECTION.pack(kind, len(part), 0) + part for kind, part in sections))


def _numbers_changed(rng: random.Random) -> bytes:
    """Numbers of the tables, everything else in order."""
    data = rng.choice(subjects())
    sections = _sections(data)
    found = list(re.finditer(rb"-?\d+", sections[0][1]))
    match = rng.choice(found)
    new = str(rng.choice((-1, 0, 1, 319, 4095, 4096, 2**31, 2**63 - 1, -(2**63), 10**30, rng.randint(-99, 99)))).encode()
    sections[0] = (b"META", sections[0][1][: match.start()] + new + sections[0][1][match.end() :])
    return _joined(data[:_HEADER], sections)


def _words_changed(rng: random.Random) -> bytes:
    """Bits of the last words of a chip: times, fields, opcodes."""
    data = rng.choice(subjects())
    sections = _sections(data)
    place = rng.randrange(2, len(sections))
    code = bytearray(sections[place][1])
    for _ in range(rng.randint(1, 3)):
        if len(code) >= 16:
            at = len(code) - 16 * rng.randint(1, max(1, len(code) // 32))
            bit = rng.randrange(128)
            code[at + bit // 8] ^= 1 << bit % 8
            if rng.random() < 0.2:
                code[at] = rng.choice(sorted(CODES))
    sections[place] = (b"CHIP", bytes(code))
    return _joined(data[:_HEADER], sections)


@cache
def _programs() -> tuple[SpatialProgram, ...]:
    return tuple(container.read(data, "whole.sdm") for data in subjects())


def _instruction_changed(rng: random.Random) -> bytes:
    """One instruction a cycle, a row or a stream beside where it should be, or another of its kind; still an instruction."""
    found = rng.choice([made for made in _programs() if any(code.queues for code in made.chips)])
    chip = rng.choice([number for number, code in enumerate(found.chips) if code.queues])
    code = found.chips[chip]
    name = rng.choice(sorted(code.queues))
    insts = list(code.queues[name])
    place = rng.randrange(len(insts))
    for _ in range(50):
        changed = [*insts[:place], _beside(rng, insts[place]), *insts[place + 1 :]]
        if not any(inst_fault(MACHINE, name, changed, at, code.maps) for at in range(place, min(place + 2, len(changed)))):
            insts = changed
            break
    queues = {**code.queues, name: tuple(insts)}
    chips = (*found.chips[:chip], replace(code, queues=queues), *found.chips[chip + 1 :])
    return container.write(replace(found, chips=chips))


def _beside(rng: random.Random, inst: QueueInst) -> QueueInst:
    if inst.op == "NOP":
        return replace(inst, imm=inst.imm + rng.choice((-1, 1)))
    if rng.random() < 0.2:
        row = OPS[inst.op][0]
        return replace(inst, op=row.named(rng.choice(row.variants)))
    part = rng.choice(("burst", "a", "b", "c", "dst", "address", "step", "imm", "map", "flags"))
    return replace(inst, **{part: getattr(inst, part) + rng.choice((-4, -1, 1, 4))})


def _text_changed(rng: random.Random) -> str:
    source = rng.choice(_texts())
    lines = source.split("\n")
    for _ in range(rng.randint(1, 3)):
        number = rng.randrange(len(lines))
        line = lines[number]
        at = rng.randint(0, len(line))
        lines[number] = line[:at] + rng.choice(_SNIPPETS) + line[at + rng.randrange(3) :]
        if rng.random() < 0.3:
            lines.insert(rng.randrange(len(lines)), rng.choice(lines))
    return "\n".join(lines)


def _file(make: Callable[[random.Random], bytes], rng: random.Random) -> Callable[[], str]:
    return partial(whole, make(rng))


DAMAGES: Mapping[str, tuple[float, Damage]] = {
    "bytes changed": (0.1, partial(_file, _bytes_changed)),
    "bytes changed below right checksums": (0.3, partial(_file, lambda rng: resealed(_bytes_changed(rng)))),
    "numbers of the tables changed": (0.05, partial(_file, _numbers_changed)),
    "words changed": (0.15, partial(_file, _words_changed)),
    "an instruction changed": (0.1, partial(_file, _instruction_changed)),
    "text changed": (0.3, lambda rng: partial(assembled, _text_changed(rng))),
}
"""Kinds of damage, with their part of all attempts."""
