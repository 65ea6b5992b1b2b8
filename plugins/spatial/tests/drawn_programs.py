"""Random small programs that keep every rule of the machine, made step by step; for tests of simulators and of the checker.

Each step is drawn with its times, and left out where it would conflict with what is there already: that is judged cell by cell
(stream and diagonal, queue and cycle, bank and cycle), as slowly and as plainly as can be.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from hand_made import counted, matrix, queue
from numpy.typing import NDArray

from tilefw_spatial.isa import ACCUMULATE_FLAG, HALF_FLAG, OPS, PUT_FLAG, TYPES, OperandKind, Use, latency_key, result_type
from tilefw_spatial.machine import Machine, load
from tilefw_spatial.program import BoundParameter, ChipCode, HostTensor, QueueInst, RowAllocation, SliceRows, SpatialProgram
from tilefw_spatial.simulate.transfers import HostBuffer
from tilefw_spatial.tick import TickArray

MACHINE: Machine = load("sdm-1")
LANES = 320
CENTRE = MACHINE.position("VXM")
ELEMENTWISE = sorted(op for op, (row, _) in OPS.items() if row.unit == "VXM" and row.name != "TRED")
FOLDS = sorted(op for op, (row, _) in OPS.items() if row.name == "TRED")


class Taken(Exception):
    """A step that conflicts with another one."""


@dataclass(frozen=True)
class StreamedVectors:
    """`count` vectors `period` cycles apart on the streams from `stream` on; the first is at `position` at `time`, and flows on."""

    chip: int
    stream: int
    dtype: str
    position: int
    time: int
    count: int
    period: int

    def at(self, position: int) -> int:
        """When the first passes a position, which lies before it."""
        distance = MACHINE.passes(self.stream, self.position, position)
        if distance is None:
            raise Taken
        return self.time + distance


@dataclass
class DrawnProgram:
    """A program in the making. What a step takes is given back when the step fails."""

    rng: random.Random
    chips: int = 1
    timed: list[dict[str, list[tuple[int, QueueInst]]]] = field(default_factory=list)
    tensors: list[HostTensor] = field(default_factory=list)
    arrays: list[NDArray[np.uint8]] = field(default_factory=list)
    flows: list[StreamedVectors] = field(default_factory=list)
    cells: set[tuple] = field(default_factory=set)
    maps: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        self.timed = [{} for _ in range(self.chips)]
        local = tuple(i // 16 * 16 + self.rng.randrange(16) for i in range(LANES))
        self.maps = (tuple(self.rng.randint(-1, 319) for _ in range(LANES)), local)

    # --- cells ---------------------------------------------------------------------------------------------------------

    def take(self, *cells: tuple) -> None:
        for cell in cells:
            if cell in self.cells:
                raise Taken
            self.cells.add(cell)

    def put(self, flow: StreamedVectors, planes: int = 0) -> StreamedVectors:
        key = MACHINE.diagonal(flow.stream, flow.position, flow.time)
        for plane in range(planes or TYPES[flow.dtype].nbytes):
            self.take(*(("stream", flow.chip, flow.stream + plane, key + i * flow.period) for i in range(flow.count)))
        self.flows.append(flow)
        return flow

    def issue(self, chip: int, name: str, time: int, inst: QueueInst, count: int, period: int) -> None:
        """`count` points: one burst, or a repeated one of one vector."""
        if time < 0:
            raise Taken
        repeated = period > 1 or (count > 1 and self.rng.random() < 0.2 and not inst.op.startswith(("TRED", "LW")))
        if repeated and inst.op.startswith("LW"):
            raise Taken
        last = time + (count - 1) * period
        self.take(*(("queue", chip, name, t) for t in range(time, last + 1)))
        entries = self.timed[chip].setdefault(name, [])
        if not repeated or count == 1:
            entries.append((time, replace(inst, burst=count)))
            return
        # A repeated burst goes on at once: entries are sorted by time, and the queue is taken for both.
        entries.append((time, replace(inst, burst=1)))
        entries.append((time + 1, QueueInst("REP", burst=count - 1, imm=period, step=inst.step)))

    def bank(self, chip: int, name: str, bank: int, time: int, count: int, period: int, writes: bool) -> None:
        for i in range(count):
            t = time + i * period
            self.take(("port", chip, name, writes, t))
            if ("bank", chip, name, not writes, bank, t) in self.cells:
                raise Taken
            self.take(("bank", chip, name, writes, bank, t))

    def slice(self, stream: int = 0, before: int | None = None, after: int | None = None) -> tuple[str, int, int]:
        """A slice, a bank, a first row; the slice is on the stream's path to or from a position."""
        names = [
            name for name, q in MACHINE.queues.items() if q.kind == "MEM"
            and (before is None or MACHINE.passes(stream, q.position, before) is not None)
            and (after is None or MACHINE.passes(stream, after, q.position) is not None)
        ]
        if not names:
            raise Taken
        return self.rng.choice(names), self.rng.randrange(2), self.rng.randrange(0, 4000)

    def stream(self, planes: int, west: bool | None = None) -> int:
        west = self.rng.random() < 0.5 if west is None else west
        return 32 * west + self.rng.randrange(0, 32, planes)

    # --- arrays --------------------------------------------------------------------------------------------------------

    def tensor(self, role: str, dtype: str, count: int, positions: Sequence[SliceRows]) -> None:
        """An array whose byte planes lie at `positions`."""
        nbytes = TYPES[dtype].nbytes
        allocation = RowAllocation(dtype, count, tuple((place,) for place in positions), 1, count)
        self.tensors.append(HostTensor(f"t{len(self.tensors)}", role, allocation, (matrix(len(self.arrays), count),)))
        bits = np.frombuffer(self.rng.randbytes(count * LANES * nbytes), np.uint8).copy()
        if TYPES[dtype].is_float and self.rng.random() < 0.7:
            values = np.random.default_rng(self.rng.randrange(1 << 30)).standard_normal(count * LANES).astype(np.float32)
            bits = values.astype(TYPES[dtype].numpy).view(np.uint8).copy()
        self.arrays.append(bits if role == "in" else np.zeros_like(bits))

    def read(self, chip: int, dtype: str, count: int, period: int, stream: int, position: int, time: int) -> StreamedVectors:
        """An array of its own that passes a position at a time."""
        positions = []
        for plane in range(TYPES[dtype].nbytes):
            name, bank, row = self.slice(stream, before=position)
            distance = MACHINE.passes(stream, MACHINE.position(name), position)
            if distance is None:
                raise Taken
            issue = time - distance - 5
            self.take(*(("row", chip, name, bank, row + i) for i in range(count)))
            self.bank(chip, name, bank, issue, count, period, writes=False)
            self.issue(chip, name, issue, QueueInst("RD", dst=stream + plane, address=bank * 4096 + row, step=1), count, period)
            positions.append(SliceRows(name, bank, row, chip))
        self.tensor("in", dtype, count, positions)
        return self.put(StreamedVectors(chip, stream, dtype, position, time, count, period))

    def write(self, flow: StreamedVectors) -> None:
        """A flow into an array that the host reads, by slices that it comes to; perhaps back on another stream."""
        positions = []
        for plane in range(TYPES[flow.dtype].nbytes):
            name, bank, row = self.slice(flow.stream, after=flow.position)
            issue = flow.at(MACHINE.position(name)) - 2
            self.take(*(("row", flow.chip, name, bank, row + i) for i in range(flow.count)))
            self.bank(flow.chip, name, bank, issue + 2, flow.count, flow.period, writes=True)
            inst = QueueInst("WR", a=flow.stream + plane, address=bank * 4096 + row, step=1)
            self.issue(flow.chip, name, issue, inst, flow.count, flow.period)
            positions.append(SliceRows(name, bank, row, flow.chip))
        self.tensor("out", flow.dtype, flow.count, positions)

    # --- steps ---------------------------------------------------------------------------------------------------------

    def chain(self) -> None:
        """ALUs, each fed by streams, by those before it, or by the word."""
        rng = self.rng
        chip, count, period = rng.randrange(self.chips), rng.randint(1, 6), rng.choice([1, 1, 1, 3])
        time, made = rng.randint(60, 140), []
        for _ in range(rng.randint(1, 5)):
            op = rng.choice(ELEMENTWISE)
            dtype = rng.choice(sorted(OPS[op][0].types_of(OPS[op][1])))
            time += 4 * rng.randint(0, 3)
            made.append(self.alu(chip, op, dtype, time, count, period, made))
        if period == 1 and rng.random() < 0.5:
            every = rng.randint(1, 3)
            op = rng.choice(FOLDS)
            dtype = rng.choice(sorted(OPS[op][0].types_of(OPS[op][1])))
            made.append(self.alu(chip, op, dtype, time + 4, count * every, 1, [], every))
        for flow in made:
            if flow is not None:
                self.write(flow[3])

    def alu(self, chip: int, op: str, dtype: str, time: int, count: int, period: int, made: list, every: int = 1):
        """One ALU: its number, when its first result is there, its type, its flow."""
        rng, row = self.rng, OPS[op][0]
        inst = QueueInst(op, dtype, map=0b111111, step=every if row.name == "TRED" else 0)
        for operand in row.operands:
            inst = self.operand(chip, inst, operand.part, operand.use, time, count, period, made, every)
        number = rng.randrange(16)
        there = time + (every - 1) * period + MACHINE.delays[latency_key(op, dtype)]
        apart = every * period
        self.take(*(("result", chip, number, there + i * apart) for i in range(count // every)))
        kind = result_type(op, dtype)
        stream = self.stream(TYPES[kind].nbytes)
        self.issue(chip, f"VXM.{number}", time, replace(inst, dst=stream, flags=PUT_FLAG), count, period)
        flow = self.put(StreamedVectors(chip, stream, kind, CENTRE, there, count // every, apart))
        return number, there, kind, flow

    def operand(self, chip, inst: QueueInst, part: str, use: Use, time, count, period, made, every) -> QueueInst:
        rng, place = self.rng, "abc".index(part)
        dtype = "int1" if use is Use.MASK else inst.dtype
        near = [m for m in made if time - m[1] in (0, 4, 8, 12)]
        kinds = {Use.CONSTANT: [2, 3], Use.MASK: [0, 1, 2], Use.START: [0, 3]}.get(use, [0, 0, 1, 1, 2, 3])
        kind = OperandKind(rng.choice(kinds))
        if kind is OperandKind.ALU and not near:
            kind = OperandKind.STREAM
        value = 0
        if kind is OperandKind.STREAM:
            value = self.stream(TYPES[dtype].nbytes)
            start = use is Use.START
            self.read(chip, dtype, count // every if start else count, period * every if start else period, value, CENTRE, time)
        elif kind is OperandKind.ALU:
            number, there, _, _ = rng.choice(near)
            value = number | (time - there) // 4 << 4
        map_ = inst.map & ~(3 << 2 * place) | kind << 2 * place
        if TYPES[dtype].is_float and not (use is Use.START and kind is OperandKind.LANE):
            map_ |= rng.randrange(2) << 6 + place | rng.randrange(2) << 9 + place
        imm = rng.getrandbits(32) if kind is OperandKind.IMMEDIATE else inst.imm
        return replace(inst, map=map_, imm=imm, **{part: value})

    def switch(self) -> None:
        rng, chip = self.rng, self.rng.randrange(self.chips)
        side = rng.choice("WE")
        unit, op = f"SXM.{side}", rng.choice(["LSH", "SELL", "PRM", "DST", "TRN"])
        dtype = "" if op == "TRN" else rng.choice(sorted(TYPES))
        planes = 16 if op == "TRN" else TYPES[dtype].nbytes
        time, count, period = rng.randint(110, 160), rng.randint(1, 4), rng.choice([1, 1, 2])
        position = MACHINE.position(unit)
        streams = [self.stream(planes, side == "W") for _ in range(2 if op == "SELL" else 1)]
        for stream in streams:
            kinds = [("uint8", stream + i) for i in range(16)] if op == "TRN" else [(dtype, stream)]
            for kind, first in kinds:
                self.read(chip, kind, count, period, first, position, time)
        step = rng.randint(-320, 320) if op == "LSH" else 0
        dst, map_ = self.stream(planes, side == "E"), {"DST": 1}.get(op, 0)
        inst = QueueInst(op, dtype, a=streams[0], b=streams[-1] if op == "SELL" else 0, dst=dst, step=step, map=map_)
        self.issue(chip, f"{unit}{rng.randrange(8)}", time, inst, count, period)
        there = time + MACHINE.delays[latency_key(op, dtype)]
        for kind, first in [("uint8", dst + i) for i in range(16)] if op == "TRN" else [(dtype, dst)]:
            self.write(self.put(StreamedVectors(chip, first, kind, position, there, count, period)))

    def product(self) -> None:
        """One or two sets of weights in a plane or pair, multiplied one after the other into the same accumulators."""
        rng, chip = self.rng, self.rng.randrange(self.chips)
        side, dtype = rng.choice("WE"), rng.choice(["int8", "fp16", "bf16", "fp8e5", "fp8e4nv"])
        unit, nbytes = f"MXM.{side}", TYPES[dtype].nbytes
        plane = rng.randrange(2) if dtype == "int8" else 0
        if ("plane", chip, unit) in self.cells:
            raise Taken
        self.cells.add(("plane", chip, unit))
        position, west = MACHINE.position(unit), side == "W"
        name = f"{unit}{plane}"
        loads, count = rng.randint(1, 3), rng.randint(1, 5)
        depth = rng.randint(1, loads * 16 // nbytes)
        time, row = rng.randint(110, 130), rng.randrange(0, 8000)
        if row // 4096 != (row + count) // 4096:
            raise Taken
        delay = MACHINE.delays[latency_key("MAC", dtype)]
        first, sets = 0, rng.randint(1, 2)
        for k in range(sets):
            stream = 32 * west + 16 * rng.randrange(2)
            for i in range(16):
                self.read(chip, "uint8", loads, 1, stream + i, position, time)
            self.issue(chip, f"{name}.LW", time, QueueInst("LW", dtype, a=stream, imm=k), loads, 1)
            install = time + loads + (0 if k == 0 else max(0, first + count - 19 - time - loads))
            self.issue(chip, f"{name}.LW", install, QueueInst("IW", dtype, imm=k), 1, 1)
            first = install + 20 + rng.randint(0, 3)
            stream = self.stream(nbytes, west)
            self.read(chip, dtype, count, 1, stream, position, first)
            half = HALF_FLAG if dtype != "int8" and rng.random() < 0.5 else 0
            inst = QueueInst("MAC", dtype, a=stream, address=row, step=1, imm=depth, flags=half | (ACCUMULATE_FLAG if k else 0))
            self.issue(chip, f"{name}.MAC", first, inst, count, 1)
            time = install + rng.randint(1, 9)
        drained, kind = first + delay + rng.randint(0, 3), "int32" if dtype == "int8" else "fp32"
        dst = self.stream(4, not west)
        self.issue(chip, f"{name}.DRN", drained, QueueInst("DRN", kind, dst=dst, address=row, step=1), count, 1)
        self.write(self.put(StreamedVectors(chip, dst, kind, position, drained + 4, count, 1)))

    def gather(self) -> None:
        """A table's rows by an index that stays below 256."""
        rng, chip = self.rng, self.rng.randrange(self.chips)
        name, bank, row = self.slice()
        row = min(row, 4096 - 256)
        time, count, stream = rng.randint(110, 160), rng.randint(1, 3), self.stream(2)
        position = MACHINE.position(name)
        self.take(*(("row", chip, name, bank, row + i) for i in range(256)))
        self.tensor("in", "uint8", 256, [SliceRows(name, bank, row, chip)])
        self.read(chip, "uint16", count, 1, stream, position, time)
        self.arrays[-1].reshape(-1, 2)[:, 1] = 0
        self.bank(chip, name, bank, time + 4, count, 1, writes=False)
        dst = self.stream(1)
        self.issue(chip, name, time, QueueInst("GTH", a=stream, dst=dst, address=bank * 4096 + row), count, 1)
        self.write(self.put(StreamedVectors(chip, dst, "uint8", position, time + 9, count, 1)))

    def scatter(self) -> None:
        """Bytes into rows that the host fills before and reads after."""
        rng, chip = self.rng, self.rng.randrange(self.chips)
        name, bank, row = self.slice()
        row = min(row, 4096 - 256)
        time, count, stream, other = rng.randint(110, 160), rng.randint(1, 3), self.stream(2), self.stream(1)
        position = MACHINE.position(name)
        self.take(*(("row", chip, name, bank, row + i) for i in range(256)))
        for role in ("in", "out"):
            self.tensor(role, "uint8", 256, [SliceRows(name, bank, row, chip)])
        self.read(chip, "uint16", count, 1, stream, position, time)
        self.arrays[-1].reshape(-1, 2)[:, 1] = 0
        self.read(chip, "uint8", count, 1, other, position, time)
        self.bank(chip, name, bank, time, count, 1, writes=True)
        self.issue(chip, name, time - 2, QueueInst("SCT", a=stream, b=other, address=bank * 4096 + row), count, 1)

    def hop(self) -> None:
        """A vector to another chip."""
        rng, chip = self.rng, self.rng.randrange(self.chips)
        peer = rng.randrange(self.chips)
        if peer == chip:
            raise Taken
        link, back = MACHINE.link(chip, peer), MACHINE.link(peer, chip)
        here, there = MACHINE.queues[f"C2C.{link}"].position, MACHINE.queues[f"C2C.{back}"].position
        time = rng.randint(110, 160)
        self.take(*(("link", chip, link, t) for t in range(time, time + 24)))
        flow = self.read(chip, "uint8", 1, 1, self.stream(1), here, time)
        self.issue(chip, f"C2C.{link}", time, QueueInst("SND", a=flow.stream), 1, 1)
        dst = self.stream(1)
        self.issue(peer, f"C2C.{back}", time + 217, QueueInst("RCV", dst=dst), 1, 1)
        self.write(self.put(StreamedVectors(peer, dst, "uint8", there, time + 217, 1, 1)))

    def again(self) -> None:
        """A flow stored once more, by slices further on."""
        if self.flows:
            self.write(self.rng.choice(self.flows))

    def attempt(self, step: str) -> bool:
        """A step as a whole or not at all."""
        kept = [dict((n, list(q)) for n, q in chip.items()) for chip in self.timed], list(self.tensors), list(self.arrays)
        flows, cells = list(self.flows), set(self.cells)
        try:
            getattr(self, step)()
        except Taken:
            self.timed, self.tensors, self.arrays = kept
            self.flows, self.cells = flows, cells
            return False
        return True

    def program(self) -> SpatialProgram:
        names = [f"p{i}" for i in range(len(self.arrays))]
        chips = tuple(ChipCode({n: queue(t) for n, t in chip.items()}, self.maps) for chip in self.timed)
        # A parameter has the type of its array: the transfer moves elements.
        dtypes = {t.transfers[0].parameter: t.allocation.dtype for t in self.tensors}
        parameters = tuple(BoundParameter(n, "pointer", dtypes[i], len(self.arrays[i])) for i, n in enumerate(names))
        return counted(SpatialProgram("random", MACHINE.name, MACHINE.hash, (1, 1, 1), parameters, tuple(self.tensors), chips, 0))


STEPS = ("chain", "chain", "chain", "switch", "product", "gather", "scatter", "hop", "again")


def drawn(rng: random.Random, steps: int = 4) -> tuple[SpatialProgram, list[NDArray[np.uint8]]]:
    """A program and the host's arrays, one a parameter."""
    growing = DrawnProgram(rng, chips=rng.choice([1, 1, 2, 3]))
    done = tries = 0
    while done < steps and tries < 40 * steps:
        tries += 1
        done += growing.attempt(rng.choice(STEPS))
    return growing.program(), growing.arrays


def shaken(rng: random.Random, made: SpatialProgram, amounts: Sequence[int]) -> SpatialProgram | None:
    """The program with the first NOP of one queue longer by one of `amounts` of cycles, so that all behind it moves; None where no
    queue begins with one."""
    names = [(chip, name) for chip, code in enumerate(made.chips) for name, words in code.queues.items() if words[0].op == "NOP"]
    if not names:
        return None
    chip, name = rng.choice(names)
    code = made.chips[chip]
    first, *rest = code.queues[name]
    moved = replace(first, imm=first.imm + rng.choice(amounts))
    queues = {**code.queues, name: ((moved,) if moved.imm else ()) + tuple(rest)}
    return replace(made, chips=(*made.chips[:chip], replace(code, queues=queues), *made.chips[chip + 1 :]))


def host_buffers(arrays: Sequence[NDArray[np.uint8]]) -> list[HostBuffer | None]:
    """Arrays as the fast simulator takes them."""
    return [HostBuffer(f"p{i}", array, 0) for i, array in enumerate(arrays)]


def host_arrays(arrays: Sequence[NDArray[np.uint8]]) -> list[TickArray | None]:
    """Arrays as the slow simulator takes them."""
    return [TickArray(f"p{i}", array) for i, array in enumerate(arrays)]
