"""The file of a program, `.sdm`: a header, then sections each with its length and checksum; all numbers little-endian.

| bytes | header |
|---|---|
| 4 | `SDM` and the version, 1 |
| 4 | number of sections |
| 32 | hash of the machine file (SHA-256) |

Sections, each `kind` (4 letters), length (u32), CRC-32 of the data (u32), data, in this order:

| kind | data |
|---|---|
| `META` | JSON: entry, machine, grid, cycles, parameters, metadata, and the tensors with their arrays as numbers of `DATA` |
| `DATA` | arrays: type (8 letters), dimensions (u32), a u32 each, elements; `runs64`: int64 as rows of first, step, count |
| `CHIP` | one a chip: queues, maps (u32 each); each queue's number and words (u32 each); maps, i16 a lane; words |
"""

from __future__ import annotations

import json
import struct
import zlib

from tilefw.api import CodeError, Place
from tilefw_spatial.container import tables
from tilefw_spatial.container.reading import ContainerReader, Damaged
from tilefw_spatial.container.word import BYTES, WordError, decode, encode
from tilefw_spatial.machine import Machine, load
from tilefw_spatial.program import ChipCode, QueueInst, SpatialProgram
from tilefw_spatial.valid import program_faults

MAGIC = b"SDM\x01"
DAMAGED = "TFW0736"  # the file is cut, changed, or holds what is no program
OTHER_MACHINE = "TFW0737"  # made for another machine file
WRONG_WORD = "TFW0735"  # a word that is no instruction

_HEADER = struct.Struct("<4sI32s")
_SECTION = struct.Struct("<4sII")
_COUNTS = struct.Struct("<II")


def is_container(data: bytes) -> bool:
    """Whether bytes begin as a program's file does."""
    return data[:3] == MAGIC[:3]


def write(program: SpatialProgram, machine: Machine | None = None) -> bytes:
    """The file of a program; `machine` is another than the packaged one of its name.

    Raises CodeError (TFW0735, TFW0736, TFW0737) for a program that the machine cannot be given."""
    machine = machine or load(program.machine)
    _same_machine(machine, program.machine_hash, program.entry)
    for fault in program_faults(machine, program):
        raise CodeError(f"{program.entry}: {fault}", WRONG_WORD if fault.startswith("chip") else DAMAGED)
    arrays: list[bytes] = []
    meta = json.dumps(tables.to_json(program, arrays), separators=(",", ":"), sort_keys=True).encode()
    chips = [_chip(machine, code) for code in program.chips]
    sections = [(b"META", meta), (b"DATA", b"".join(arrays)), *((b"CHIP", chip) for chip in chips)]
    head = _HEADER.pack(MAGIC, len(sections), bytes.fromhex(program.machine_hash))
    return head + b"".join(_SECTION.pack(kind, len(data), zlib.crc32(data)) + data for kind, data in sections)


def read(data: bytes, name: str, machine: Machine | None = None) -> SpatialProgram:
    """The program of a file; `name` is for messages, `machine` another than the packaged one of the file's name.

    Raises CodeError: TFW0735 for a word that is no instruction, TFW0736 for what is cut or changed, TFW0737 for a file made for
    another machine file.
    """
    try:
        return _FileSections(data).program(machine)
    except Damaged as error:
        raise CodeError(str(error), error.code or DAMAGED, Place(name, 0), note=error.note, help=error.help) from None


def _same_machine(machine: Machine, found: str, what: str) -> None:
    if found != machine.hash:
        note = _hashes(machine, found)
        raise CodeError(f"{what} was made for another machine file", OTHER_MACHINE, note=note, help=_AGAIN)


_AGAIN = "compile it again: cycles of one machine file mean nothing on another"


def _hashes(machine: Machine, found: str) -> str:
    return f"its hash is {found[:16]}…, that of {machine.name} here is {machine.hash[:16]}…"


# --- writing ---------------------------------------------------------------------------------------------------------------


def _chip(machine: Machine, code: ChipCode) -> bytes:
    numbers = {name: number for number, name in enumerate(machine.queues)}
    queues = sorted(code.queues.items(), key=lambda item: numbers[item[0]])
    parts = [_COUNTS.pack(len(queues), len(code.maps))]
    parts += [_COUNTS.pack(numbers[name], len(insts)) for name, insts in queues]
    parts += [struct.pack(f"<{machine.lanes}h", *lanes) for lanes in code.maps]
    parts += [encode(inst) for _, insts in queues for inst in insts]
    return b"".join(parts)


# --- reading ---------------------------------------------------------------------------------------------------------------


class _FileSections:
    """A file cut into its sections."""

    def __init__(self, data: bytes) -> None:
        reader = ContainerReader(data, "the file")
        magic, count, machine_hash = reader.unpack(_HEADER, "header")
        if magic[:3] != MAGIC[:3]:
            raise Damaged("this is no program of the machine: it does not begin with SDM")
        if magic != MAGIC:
            raise Damaged(f"a file of version {magic[3]}: version {MAGIC[3]} is read")
        self.machine_hash: str = machine_hash.hex()
        self.sections = [self._section(reader, number) for number in range(min(count, len(data)))]
        reader.end()
        if [kind for kind, _ in self.sections[:2]] != [b"META", b"DATA"] or any(kind != b"CHIP" for kind, _ in self.sections[2:]):
            raise Damaged("the sections are not META, DATA and one CHIP for each chip")

    @staticmethod
    def _section(reader: ContainerReader, number: int) -> tuple[bytes, bytes]:
        kind, length, checksum = reader.unpack(_SECTION, f"head of section {number}")
        data = reader.take(length, f"section {number}")
        if zlib.crc32(data) != checksum:
            raise Damaged(f"section {number} has been changed: its checksum is not that of its bytes")
        return kind, data

    def program(self, machine: Machine | None) -> SpatialProgram:
        found = tables.document(self.sections[0][1])
        machine = machine or tables.machine_of(found)
        if self.machine_hash != machine.hash:
            raise Damaged("it was made for another machine file", OTHER_MACHINE, _hashes(machine, self.machine_hash), _AGAIN)
        chips = tuple(_read_chip(machine, data, number) for number, (_, data) in enumerate(self.sections[2:]))
        program = tables.from_json(found, tables.arrays(self.sections[1][1]), chips, machine)
        for fault in program_faults(machine, program):
            raise Damaged(fault, WRONG_WORD if fault.startswith("chip") else DAMAGED)
        return program


def _read_chip(machine: Machine, data: bytes, chip: int) -> ChipCode:
    reader = ContainerReader(data, f"chip {chip}")
    queues, maps = reader.unpack(_COUNTS, "head")
    names = list(machine.queues)
    heads = [reader.unpack(_COUNTS, f"queue {i}") for i in range(min(queues, len(data)))]
    numbers = [number for number, _ in heads]
    if any(number >= len(names) for number in numbers) or sorted(set(numbers)) != numbers:
        raise Damaged(f"chip {chip}: its queues are not among the machine's {len(names)}, each once and in order")
    lanes = struct.Struct(f"<{machine.lanes}h")
    tables_ = tuple(reader.unpack(lanes, f"map {i}") for i in range(min(maps, len(data))))
    found = {names[number]: _words(reader, f"chip {chip}, {names[number]}", count) for number, count in heads}
    reader.end()
    return ChipCode(found, tables_)


def _words(reader: ContainerReader, where: str, count: int) -> tuple[QueueInst, ...]:
    data = reader.take(count * BYTES, where)
    return tuple(_word(data[at : at + BYTES], f"{where}, word {at // BYTES}") for at in range(0, len(data), BYTES))


def _word(code: bytes, where: str) -> QueueInst:
    try:
        return decode(code)
    except WordError as error:
        raise Damaged(f"{where}: {error}", WRONG_WORD) from None
