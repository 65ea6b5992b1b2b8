"""The ACME simulators: machine text to the simulator kit's instructions, row by row; nothing of the compiler is used."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from tilefw.api import Artifact, CodeError, Place, TargetInfo
from tilefw.api.machine import Function, Inst, Operand, Slice, parse_functions
from tilefw.api.sim import (
    Barrier,
    Branch,
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
    SimulatedChip,
    SimulatorDevice,
    Variable,
)
from tilefw_acme.isa import BITS, ROWS, Row


class Simulator(SimulatorDevice):
    """`tilefw.api.Device` for the artifacts of a chip. A wave has one program counter, so its lanes must agree on a branch."""

    format: ClassVar = "machine"

    def __init__(self, target: TargetInfo) -> None:
        limits = target.limits
        super().__init__(SimulatedChip(
            name=target.name, wave_size=limits["lanes"], pc_per_lane=False, max_threads=limits["threads_per_workgroup"],
            shared_bytes=limits["shared_bytes"], shared_banks=limits["banks"],
        ))
        self._target = target

    def decoders(self, artifact: Artifact, name: str) -> Decoders:
        decoder = _Decoder(self._target, name, artifact.text.splitlines())
        return {function.name: partial(decoder.program, function) for function in parse_functions(artifact.text, name)}


class _Decoder:
    """Functions as programs of the simulator kit; raises CodeError, with the line, for what the chip does not have."""

    def __init__(self, target: TargetInfo, name: str, lines: list[str]) -> None:
        self.chip = target.chip.upper()
        self.rows = ROWS[target.chip]
        self.vectors = target.limits["registers_per_thread"]
        self.predicates = target.limits["predicates_per_thread"]
        self.name = name
        self.lines = lines

    def program(self, function: Function) -> Program:
        insts: list[Inst] = []
        labels: dict[str, int] = {}
        for block in function.blocks:
            labels[block.label] = len(insts)
            insts += block.insts
        attributes = function.attributes
        return Program(
            name=function.name,
            instructions=[self._instruction(index, inst, labels) for index, inst in enumerate(insts)],
            registers=[32] * self.vectors + [1] * self.predicates,
            register_names=[f"v{i}" for i in range(self.vectors)] + [f"p{i}" for i in range(self.predicates)],
            parameters=tuple(
                ProgramParameter(p.name, p.offset, p.size, p.alignment, p.kind == "pointer")
                for p in attributes.parameters
            ),
            variables=(Variable("shared", "shared", attributes.shared_bytes),),
            required_workgroup=attributes.workgroup,
        )

    def _instruction(self, index: int, inst: Inst, labels: Mapping[str, int]) -> Instruction:
        text = self.lines[inst.line - 1].partition(" //")[0].strip()
        place = Place(self.name, inst.line, text=text)
        row = self.rows.get(inst.opcode)
        if row is None:
            raise CodeError(f"the {self.chip} has no instruction '{inst.opcode}'", "TFW0702", place)
        if (len(inst.defs), len(inst.uses)) != (len(row.results), len(row.operands)):
            raise CodeError(f"'{inst.opcode}' has {len(row.results)} results and {len(row.operands)} operands", "TFW0702", place)
        guard = inst.predicate
        return Instruction(
            index=index, text=text, mnemonic=inst.opcode, unit=row.unit, meaning=row.meaning,
            sources=tuple(self._operand(u, kind, place) for u, kind in zip(inst.uses, row.operands, strict=True)),
            destinations=tuple(self._register(d, kind, place) for d, kind in zip(inst.defs, row.results, strict=True)),
            guard=None if guard is None else Guard(self._register(guard, "p", place), inst.predicate_not),  # type: ignore[arg-type]
            flow=_flow(row, inst, labels, place), code=place, source=inst.place, row=row,
        )

    def _operand(self, operand: Operand, kind: str, place: Place) -> Register | Registers | Immediate:
        if isinstance(operand, Slice):
            return self._register(operand, kind, place)
        if kind == "d" or not isinstance(operand, int):
            raise CodeError(f"{operand!r} is not an operand of the kind '{kind}'", "TFW0702", place)
        return Immediate(operand % (1 << BITS[kind]), BITS[kind])

    def _register(self, piece: Slice, kind: str, place: Place) -> Register | Registers:
        cls, width = ("v", 2) if kind == "d" else (kind, 1)
        limit = self.predicates if cls == "p" else self.vectors
        fits = piece.reg.physical and (piece.reg.cls, piece.count) == (cls, width)
        if not fits or piece.first % width or piece.first + width > limit:
            raise CodeError(f"{piece!r} is not a register of the kind '{kind}'", "TFW0702", place)
        if cls == "p":
            return Register(self.vectors + piece.first, 1)
        parts = tuple(Register(piece.first + i, 32) for i in range(width))
        return parts[0] if width == 1 else Registers(parts)


def _flow(row: Row, inst: Inst, labels: Mapping[str, int], place: Place) -> Flow | None:
    if row.control != "jump":
        return {"barrier": Barrier(), "end": Exit()}.get(row.control)
    if len(inst.targets) != 1 or inst.targets[0] not in labels:
        raise CodeError(f"a jump to {', '.join(inst.targets) or 'nowhere'}", "TFW0703", place)
    return Branch(labels[inst.targets[0]])
