"""Random instructions and programs of the table: right by themselves, whatever they would do together."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from tilefw.api.integers import ceil_div
from tilefw_spatial.isa import OPS, PUT_FLAG, TYPES, InstructionRow, OperandKind, Use, WordField
from tilefw_spatial.isa.wellformed import misplaced, planes_of
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import (
    AxisMap,
    BoundParameter,
    ChipCode,
    HostTensor,
    QueueInst,
    RowAllocation,
    SliceRows,
    SpatialProgram,
    Transfer,
)

_CFG = {"CFG.vl": (1, 20), "CFG.power": (0, 3), "CFG.halt": (0, 0)}


def instruction(machine: Machine, rng: random.Random, ops: list[str] | None = None) -> QueueInst:
    """One instruction, each row with the same chance."""
    op = rng.choice(ops or sorted(OPS))
    row, variant = OPS[op]
    inst = QueueInst(op, rng.choice(sorted(row.types_of(variant))) if row.types else "", burst=_burst(row, rng))
    if row.name == "TRED":
        inst = replace(inst, step=rng.choice([d for d in range(1, 4096) if inst.burst % d == 0]))
    if row.name == "LW":
        rows = machine.depth(inst.dtype) * TYPES[inst.dtype].nbytes // machine.weight_streams
        inst = replace(inst, burst=min(inst.burst, rows))
    if row.operands:
        inst = replace(inst, map=0b111111)
    for field in row.fields:
        inst = _filled(machine, rng, row, inst, field)
    if op in _CFG:
        inst = replace(inst, imm=rng.randint(*_CFG[op]))
    return inst


def _burst(row: InstructionRow, rng: random.Random) -> int:
    return rng.choice([1, 2, 20, 4096, rng.randint(1, 4096)]) if row.burst else 1


def _stream(rng: random.Random, planes: int) -> int:
    return rng.randrange(64 // planes) * planes


def _filled(machine: Machine, rng: random.Random, row: InstructionRow, inst: QueueInst, field: WordField) -> QueueInst:
    match field.use:
        case Use.TAKE:
            return replace(inst, **{field.part: _stream(rng, planes_of(inst, field))})
        case Use.PUT:
            if not row.operands:
                return replace(inst, dst=_stream(rng, planes_of(inst, field)))
            if rng.random() < 0.5:
                return inst
            return replace(inst, dst=_stream(rng, planes_of(inst, field)), flags=inst.flags | PUT_FLAG)
        case Use.ROW | Use.ACCUMULATOR:
            return _rows(rng, inst, any(f.use is Use.STEP for f in row.fields))
        case Use.STEP if field.key == "step":
            return inst  # with the rows
        case Use.STEP:
            return replace(inst, step=rng.randint(field.low, field.high))
        case Use.NUMBER:
            high = machine.depth(inst.dtype) if field.key == "depth" else field.high
            return inst if field.key == "every" else replace(inst, **{field.part: rng.randint(field.low, high)})
        case Use.LANES:
            return replace(inst, map=2 if row.name == "DST" else rng.randrange(3))
        case Use.FLAG:
            wanted = rng.random() < 0.5 and not (field.key == "half" and inst.dtype == "int8")
            return replace(inst, flags=inst.flags | field.low) if wanted else inst
        case _:
            return _operand(rng, row, inst, field)


def _rows(rng: random.Random, inst: QueueInst, steps: bool) -> QueueInst:
    """A first row and a step with which the burst stays in one bank."""
    if not steps:
        return replace(inst, address=rng.randrange(8192))
    reach = 4095 // max(1, inst.burst - 1)
    step = rng.randint(-reach, reach) if rng.random() < 0.5 else min(1, reach)
    span = abs(step) * (inst.burst - 1)
    first = rng.randint(0, 4095 - span) + (span if step < 0 else 0)
    return replace(inst, address=rng.randrange(2) * 4096 + first, step=step)


def _operand(rng: random.Random, row: InstructionRow, inst: QueueInst, field: WordField) -> QueueInst:
    kinds = {Use.MASK: [0, 1, 2], Use.CONSTANT: [2, 3]}.get(field.use, [0, 1, 2, 3])
    kind, at = OperandKind(rng.choice(kinds)), "abc".index(field.part)
    value = {OperandKind.STREAM: _stream(rng, planes_of(inst, field)), OperandKind.ALU: rng.randrange(64)}.get(kind, 0)
    map_ = inst.map & ~(3 << 2 * at) | kind << 2 * at
    if field.use is not Use.MASK and TYPES[inst.dtype].is_float and not (field.use is Use.START and kind is OperandKind.LANE):
        map_ |= rng.randrange(2) << 6 + at | rng.randrange(2) << 9 + at
    imm = rng.getrandbits(32) if kind is OperandKind.IMMEDIATE else inst.imm
    return replace(inst, map=map_, imm=imm, **{field.part: value})


# --- programs --------------------------------------------------------------------------------------------------------------


def program(machine: Machine, rng: random.Random) -> SpatialProgram:
    """A program of random instructions in the queues that take them, random allocations and transfers."""
    chips = tuple(_chip(machine, rng) for _ in range(rng.randint(1, 3)))
    parameters = (
        BoundParameter("x", "pointer", "fp16", 4096, None, (0, 16)), BoundParameter(
            "n", "scalar", "int32", value=rng.randint(-5, 10**6)
        ),
        BoundParameter("s", "scalar", "fp32", value=rng.choice([0.5, -1e30, float("inf")])),
        BoundParameter("load beside x", "check", "int1", 320),
    )
    tensors = tuple(_tensor(rng, f"t{i}", len(chips)) for i in range(rng.randint(0, 4)))
    grid, cycles = (rng.randint(1, 9), 1, 2), rng.randint(20, 10**6)
    note = {"note": "random", "blocks": [1, 2, {"depth": 0.5}]}
    return SpatialProgram("kernel", machine.name, machine.hash, grid, parameters, tensors, chips, cycles, note)


def _chip(machine: Machine, rng: random.Random) -> ChipCode:
    queues = {}
    for name in rng.sample(sorted(machine.queues), rng.randint(0, 12)):
        queue = machine.queues[name]
        ops = sorted(op for op, (row, _) in OPS.items() if queue.kind in row.queues and op != "REP")
        insts: list[QueueInst] = []
        for _ in range(rng.randint(1, 8)):
            inst = instruction(machine, rng, ops)
            if misplaced(queue, inst):
                continue
            insts.append(inst)
            if OPS[insts[-1].op][0].unit != "ICU" and rng.random() < 0.3:
                period = rng.randint(insts[-1].burst, 65535)
                insts.append(QueueInst("REP", burst=rng.randint(1, 4096), imm=period, step=rng.randint(-9, 9)))
        queues[name] = tuple(insts)
    maps = [tuple(rng.randint(-1, 319) for _ in range(320)) for _ in range(2)]
    maps.append(tuple(rng.choice((-1, lane ^ rng.randrange(16))) for lane in range(320)))  # within superlanes
    return ChipCode(queues, tuple(maps))


def _tensor(rng: random.Random, name: str, chips: int) -> HostTensor:
    dtype, groups = rng.choice(sorted(TYPES)), rng.randint(1, 3)
    vectors, segment = rng.randint(1, 12), groups * rng.randint(1, 3)
    places = ceil_div(vectors, segment) * groups
    planes = tuple(tuple(_place(rng, chips) for _ in range(places)) for _ in range(TYPES[dtype].nbytes))
    allocation = RowAllocation(dtype, vectors, planes, groups, segment)
    role = rng.choice(["in", "out", "const"])
    if role == "const":
        codes = np.frombuffer(rng.randbytes(vectors * 320 * TYPES[dtype].nbytes), np.uint8).reshape(vectors, -1)
        data = codes % 2 == 1 if dtype == "int1" else codes.view(TYPES[dtype].numpy)
        return HostTensor(name, role, allocation, data=data)
    return HostTensor(name, role, allocation, tuple(_transfer(rng) for _ in range(rng.randint(0, 2))))


def _place(rng: random.Random, chips: int) -> SliceRows:
    return SliceRows(f"MEM.{rng.choice('WE')}{rng.randrange(44)}", rng.randrange(2), rng.randrange(4000), rng.randrange(chips))


def _transfer(rng: random.Random) -> Transfer:
    if rng.random() < 0.3:
        explicit = np.array([[rng.randint(0, 99), rng.randint(0, 9), rng.randrange(320)] for _ in range(5)], np.int64)
        return Transfer(0, rng.randint(0, 50), (), 320, explicit=explicit, fill=rng.getrandbits(8))
    axes = tuple(_axis(rng) for _ in range(rng.randint(0, 3)))
    return Transfer(0, rng.randint(-3, 50), axes, rng.choice([320, 160]), rng.randint(0, 4), fill=rng.getrandbits(8))


def _axis(rng: random.Random) -> AxisMap:
    extent = rng.randint(1, 20)
    regular = rng.random() < 0.5
    offsets = np.arange(extent) * rng.randint(-4, 64) if regular else np.array([rng.randint(-99, 999) for _ in range(extent)])
    valid = np.array([rng.random() < 0.8 for _ in range(extent)]) if rng.random() < 0.5 else None
    return AxisMap(extent, offsets.astype(np.int64), rng.randint(0, 9), rng.randint(0, 9), valid)
