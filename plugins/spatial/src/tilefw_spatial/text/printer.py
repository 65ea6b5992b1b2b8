"""A program as text. What it prints, `parser` reads to the same program."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from tilefw_spatial.isa import TYPES
from tilefw_spatial.machine import Machine, load
from tilefw_spatial.program import BoundParameter, ChipCode, HostTensor, QueueInst, SliceRows, SpatialProgram, Transfer
from tilefw_spatial.text.clock import Clock, idle
from tilefw_spatial.text.runs import bytes_text, numbers_text
from tilefw_spatial.text.statement import statement


def render(program: SpatialProgram, machine: Machine | None = None) -> str:
    """The whole text; `machine` is another than the packaged one of the program's name."""
    return "\n".join(_lines(machine or load(program.machine), program)) + "\n"


def _lines(machine: Machine, program: SpatialProgram) -> Iterator[str]:
    yield f".machine {program.machine} {program.machine_hash}"
    yield f".entry {json.dumps(program.entry)}"
    yield f".grid {', '.join(map(str, program.grid))}"
    yield f".expect_cycles {program.cycles}"
    if program.metadata:
        yield f".metadata {json.dumps(dict(program.metadata), sort_keys=True)}"
    yield from map(_parameter, program.parameters)
    for tensor in program.tensors:
        yield from _tensor(tensor)
    for chip, code in enumerate(program.chips):
        yield f".chip {chip}"
        yield from _chip(machine, code)


def _parameter(parameter: BoundParameter) -> str:
    value = parameter.value.hex() if isinstance(parameter.value, float) else parameter.value
    tail = ("" if value is None else f" value={value}") + (f" nbytes={parameter.nbytes}" if parameter.nbytes else "")
    if parameter.storage is not None:
        tail += " storage={}+{}".format(*parameter.storage)
    return f".parameter {parameter.kind} {json.dumps(parameter.name)} {parameter.dtype}{tail}"


def _tensor(tensor: HostTensor) -> Iterator[str]:
    allocation = tensor.allocation
    yield (f".tensor {tensor.role} {json.dumps(tensor.name)} {allocation.dtype} vectors={allocation.vectors} "
           f"groups={allocation.groups} segment={allocation.segment}")
    for plane in allocation.planes:
        yield ".plane " + ", ".join(map(_rows, plane))
    for transfer in tensor.transfers:
        yield from _transfer(transfer)
    if tensor.data is not None:
        raw = np.ascontiguousarray(tensor.data).view(np.uint8).reshape(len(tensor.data), -1)
        for vector, its in groupby(row.tobytes() for row in raw):
            yield f".data {len(list(its))} x {bytes_text(vector, TYPES[allocation.dtype].nbytes)}"


def _rows(rows: SliceRows) -> str:
    return f"{rows.slice} b{rows.bank}:{rows.row}" + (f" chip={rows.chip}" if rows.chip else "")


def _transfer(transfer: Transfer) -> Iterator[str]:
    yield (f".transfer parameter={transfer.parameter} base={transfer.base} lanes={transfer.lanes} chunk={transfer.chunk} "
           f"fill={transfer.fill:#x}")
    for axis in transfer.axes:
        valid = "" if axis.valid is None else f" valid={numbers_text(axis.valid.astype(np.int8))}"
        offsets = numbers_text(axis.offsets)
        yield f".axis extent={axis.extent} vector={axis.vector} lane={axis.lane} offsets={offsets}{valid}"
    if transfer.explicit is not None:
        columns = " ".join(f"{name}={numbers_text(column)}" for name, column in
                           zip(("elements", "vectors", "lanes"), transfer.explicit.T, strict=True))
        yield f".explicit count={len(transfer.explicit)} {columns}"


def _chip(machine: Machine, code: ChipCode) -> Iterator[str]:
    for number, lanes in enumerate(code.maps):
        yield f".map {number}: {numbers_text(lanes)}"
    for name in machine.queues:
        if name in code.queues:
            yield f".queue {name}"
            yield from _queue(machine, code.queues[name])


def _queue(machine: Machine, insts: Sequence[QueueInst]) -> Iterator[str]:
    """The instructions, with NOPs left out where `@` implies them."""
    clock, waiting = Clock(), list[QueueInst]()
    for inst in insts:
        if inst.op == "NOP":
            waiting.append(inst)
            continue
        said = clock.time is not None and inst.op != "REP" and waiting == idle(sum(nop.imm for nop in waiting))
        yield from _idle(waiting, clock, not said)
        waiting = []
        at = f"@{clock.time} " if clock.time is not None and inst.op != "REP" else ""
        yield f"  {at}{statement(machine, inst)}"
        clock.spend(inst)
    yield from _idle(waiting, clock, True)


def _idle(waiting: Sequence[QueueInst], clock: Clock, shown: bool) -> Iterator[str]:
    for nop in waiting:
        clock.spend(nop)
        if shown:
            yield f"  NOP {nop.imm}"
