"""The X1 simulator: machine text to the simulator kit's instructions, row by row of THE TABLE. Nothing of the compiler is used."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from tilefw.api import Artifact, CodeError, Place, TargetInfo
from tilefw.api.machine import Function, Inst, Operand, Slice, parse_functions, print_inst
from tilefw.api.sim import (
    Barrier,
    Branch,
    Chip,
    Decoders,
    Exit,
    Flow,
    Guard,
    Immediate,
    Instruction,
    Program,
    ProgramParameter,
    Register,
    Registers,
    SimulatorDevice,
)
from tilefw_acme.isa import BITS, ROWS, Row
from tilefw_acme.target import LANES, PREDICATES, VECTORS


class Simulator(SimulatorDevice):
    """`tilefw.api.Device` for X1 artifacts. A warp has one program counter, so all its lanes must agree on a branch."""

    format: ClassVar = "machine"

    def __init__(self, target: TargetInfo) -> None:
        threads = target.limits["threads_per_workgroup"]
        super().__init__(Chip(name=target.name, wave_size=LANES, pc_per_lane=False, max_threads=threads))

    def decoders(self, artifact: Artifact, name: str) -> Decoders:
        return {function.name: partial(decode, function, name) for function in parse_functions(artifact.text, name)}


def decode(function: Function, name: str) -> Program:
    """A function as a program of the simulator kit; raises CodeError, with the line, for what the X1 does not have."""
    insts: list[Inst] = []
    labels: dict[str, int] = {}
    for block in function.blocks:
        labels[block.label] = len(insts)
        insts += block.insts
    listed: Any = function.attributes["parameters"]
    workgroup: Any = function.attributes["workgroup"]
    return Program(
        name=function.name,
        instructions=[_instruction(index, inst, labels, name) for index, inst in enumerate(insts)],
        registers=[32] * VECTORS + [1] * PREDICATES,
        register_names=[f"v{i}" for i in range(VECTORS)] + [f"p{i}" for i in range(PREDICATES)],
        parameters=tuple(
            ProgramParameter(p["name"], p["offset"], p["size"], p["alignment"], p["kind"] == "pointer") for p in listed
        ),
        required_workgroup=tuple(workgroup),
    )


def _instruction(index: int, inst: Inst, labels: Mapping[str, int], name: str) -> Instruction:
    text = print_inst(inst).partition(" //")[0].strip()
    place = Place(name, inst.line, text=text)
    row = ROWS.get(inst.opcode)
    if row is None:
        raise CodeError(f"the X1 has no instruction '{inst.opcode}'", "TFW0702", place)
    if (len(inst.defs), len(inst.uses)) != (len(row.results), len(row.operands)):
        raise CodeError(f"'{inst.opcode}' has {len(row.results)} results and {len(row.operands)} operands", "TFW0702", place)
    return Instruction(
        index=index, text=text, mnemonic=inst.opcode, unit=row.unit, meaning=row.meaning,
        sources=tuple(_operand(u, kind, place) for u, kind in zip(inst.uses, row.operands, strict=True)),
        destinations=tuple(_register(d, kind, place) for d, kind in zip(inst.defs, row.results, strict=True)),
        guard=None if inst.predicate is None else Guard(_register(inst.predicate, "p", place), inst.predicate_not),  # type: ignore[arg-type]
        flow=_flow(row, inst, labels, place), code=place, source=inst.place, row=row,
    )


def _flow(row: Row, inst: Inst, labels: Mapping[str, int], place: Place) -> Flow | None:
    if row.control != "jump":
        return {"barrier": Barrier(), "end": Exit()}.get(row.control)
    if len(inst.targets) != 1 or inst.targets[0] not in labels:
        raise CodeError(f"a jump to {', '.join(inst.targets) or 'nowhere'}", "TFW0703", place)
    return Branch(labels[inst.targets[0]])


def _operand(operand: Operand, kind: str, place: Place) -> Register | Registers | Immediate:
    if isinstance(operand, Slice):
        return _register(operand, kind, place)
    if kind == "d" or not isinstance(operand, int):
        raise CodeError(f"{operand!r} is no operand of the kind '{kind}'", "TFW0702", place)
    return Immediate(operand % (1 << BITS[kind]), BITS[kind])


def _register(piece: Slice, kind: str, place: Place) -> Register | Registers:
    cls, width = ("v", 2) if kind == "d" else (kind, 1)
    limit = PREDICATES if cls == "p" else VECTORS
    fits = piece.reg.physical and (piece.reg.cls, piece.count) == (cls, width)
    if not fits or piece.first % width or piece.first + width > limit:
        raise CodeError(f"{piece!r} is no register of the kind '{kind}'", "TFW0702", place)
    if cls == "p":
        return Register(VECTORS + piece.first, 1)
    parts = tuple(Register(piece.first + i, 32) for i in range(width))
    return parts[0] if width == 1 else Registers(parts)
