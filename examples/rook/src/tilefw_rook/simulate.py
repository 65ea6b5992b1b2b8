"""The simulator of the Rook R1: machine text to the simulator kit's instructions, row by row; nothing of the compiler is used."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from tilefw.api import Artifact, CodeError, Place, sim
from tilefw.api.machine import Function, Inst, Operand, Slice, parse_functions
from tilefw_rook.isa import BITS, ROWS, SMALL, Row
from tilefw_rook.target import R1

_FILES = {"x": R1.limits["integer_registers"], "f": R1.limits["float_registers"]}
_FIRST = {"x": 0, "f": _FILES["x"]}  # the number of a file's first register
_CONSTANTS = {"i": range(-(1 << 31), 1 << 32), "c": SMALL, "o": SMALL}


class Simulator(sim.SimulatorDevice):
    """`tilefw.api.Device` for the chip's artifacts. A wave has one program counter, so its lanes must agree on a branch."""

    format: ClassVar = "machine"

    def __init__(self) -> None:
        limits = R1.limits
        super().__init__(sim.SimulatedChip(
            name=R1.name, wave_size=limits["lanes"], pc_per_lane=False, max_threads=limits["threads_per_workgroup"],
            shared_bytes=limits["shared_bytes"], shared_banks=limits["banks"], address_bits=32, first_address=1 << 28,
            spaces=(sim.MemorySpace("private", "lane", limits["private_bytes"]),), mask_stack=limits["mask_depth"],
        ))

    def decoders(self, artifact: Artifact, name: str) -> sim.Decoders:
        decoder = _Decoder(name, artifact.text.splitlines())
        return {function.name: partial(decoder.program, function) for function in parse_functions(artifact.text, name)}


class _Decoder:
    """Functions as programs of the simulator kit; raises CodeError, with the line, for what the chip does not have."""

    def __init__(self, name: str, lines: list[str]) -> None:
        self.name = name
        self.lines = lines

    def program(self, function: Function) -> sim.Program:
        insts: list[Inst] = []
        labels: dict[str, int] = {}
        for block in function.blocks:
            labels[block.label] = len(insts)
            insts += block.insts
        attributes = function.attributes
        return sim.Program(
            name=function.name,
            instructions=[self._instruction(index, inst, labels) for index, inst in enumerate(insts)],
            registers=[BITS[file] for file, n in _FILES.items() for _ in range(n)],
            register_names=[f"{file}{i}" for file, n in _FILES.items() for i in range(n)],
            parameters=tuple(
                sim.ProgramParameter(p.name, p.offset, p.size, p.alignment, p.kind == "pointer")
                for p in attributes.parameters
            ),
            variables=(
                sim.Variable("shared", "shared", attributes.shared_bytes),
                sim.Variable("private", "private", attributes.scratch_bytes),
            ),
            required_workgroup=attributes.workgroup,
        )

    def _instruction(self, index: int, inst: Inst, labels: Mapping[str, int]) -> sim.Instruction:
        text = self.lines[inst.line - 1].partition(" //")[0].strip()
        place = Place(self.name, inst.line, text=text)
        row = ROWS.get(inst.opcode)
        if row is None:
            raise CodeError(f"the R1 has no instruction '{inst.opcode}'", "TFW0702", place)
        if (len(inst.defs), len(inst.uses)) != (len(row.results), len(row.operands)):
            raise CodeError(f"'{inst.opcode}' has {len(row.results)} results and {len(row.operands)} operands", "TFW0702", place)
        if inst.predicate is not None:
            raise CodeError("the R1 has no predicates", "TFW0702", place)
        return sim.Instruction(
            index=index, text=text, mnemonic=inst.opcode, unit=row.unit, meaning=row.meaning,
            sources=tuple(_operand(u, kind, place) for u, kind in zip(inst.uses, row.operands, strict=True)),
            destinations=tuple(_operand(d, kind, place) for d, kind in zip(inst.defs, row.results, strict=True)),  # type: ignore[misc]
            flow=_flow(row, inst, labels, place), code=place, source=inst.place, row=row,
        )


def _operand(operand: Operand, kind: str, place: Place) -> sim.Register | sim.Registers | sim.Immediate:
    if isinstance(operand, Slice):
        file, count = ("x", 2) if kind == "d" else ("x" if kind == "c" else kind, 1)
        own = operand.reg.physical and (operand.reg.cls, operand.count) == (file, count)
        if own and operand.first + count <= _FILES[file]:
            parts = tuple(sim.Register(_FIRST[file] + operand.first + i, 32) for i in range(count))
            return parts[0] if count == 1 else sim.Registers(parts)
    elif isinstance(operand, int) and kind in _CONSTANTS and operand in _CONSTANTS[kind]:
        return sim.Immediate(operand % (1 << 32), 32)
    raise CodeError(f"{operand!r} is not an operand of the kind '{kind}'", "TFW0702", place)


def _flow(row: Row, inst: Inst, labels: Mapping[str, int], place: Place) -> sim.Flow | None:
    if row.control != "branch":
        return {"barrier": sim.Barrier(counted=True, counts="waves"), "end": sim.Exit()}.get(row.control)
    if len(inst.targets) != 1 or inst.targets[0] not in labels:
        raise CodeError(f"a branch to {', '.join(inst.targets) or 'nowhere'}", "TFW0703", place)
    return sim.Branch(labels[inst.targets[0]])
