"""The M1 simulator: machine text to the simulator kit's instructions, row by row of THE TABLE. Nothing of the compiler is used."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tilefw.api import (
    Argument,
    Artifact,
    BufferView,
    CodeError,
    Entry,
    LaunchError,
    LaunchOptions,
    LaunchReport,
    Parameter,
    TargetInfo,
)
from tilefw.api.machine import Function, Inst, Operand, Slice, parse_function
from tilefw.api.sim import (
    Branch,
    Chip,
    GlobalMemory,
    Guard,
    Immediate,
    Instruction,
    LoadedProgram,
    Program,
    ProgramParameter,
    Register,
    Registers,
    launch,
    load_program,
    pack,
)
from tilefw_acme.isa import ROWS
from tilefw_acme.target import LANES, PREDICATES, REGISTERS

_FORMATS = {("int", 1): "b", ("int", 2): "h", ("int", 4): "i", ("int", 8): "q", ("fp", 4): "f", ("fp", 8): "d"}


def functions(text: str, name: str) -> list[Function]:
    """Every function of an artifact's text; raises IRError with the line of a fault."""
    starts = [m.start() for m in re.finditer(r"^func @", text, re.M)]
    if not starts:
        raise CodeError(f"{name} holds no function", code="TFW0702")
    parts = zip(starts, [*starts[1:], len(text)], strict=True)
    return [parse_function(text[start:end], name, text.count("\n", 0, start) + 1) for start, end in parts]


def decode(function: Function) -> Program:
    """A function as a program of the simulator kit; raises CodeError for an instruction that the M1 does not have."""
    labels: dict[str, int] = {}
    insts: list[Inst] = []
    for block in function.blocks:
        labels[block.label] = len(insts)
        insts += block.insts
    listed: Any = function.attributes["parameters"]
    workgroup: Any = function.attributes["workgroup"]
    return Program(
        name=function.name,
        instructions=[_instruction(index, inst, labels) for index, inst in enumerate(insts)],
        registers=[32] * REGISTERS + [1] * PREDICATES,
        register_names=[f"r{i}" for i in range(REGISTERS)] + [f"p{i}" for i in range(PREDICATES)],
        parameters=tuple(
            ProgramParameter(p["name"], p["offset"], p["size"], p["alignment"], p["kind"] == "pointer") for p in listed
        ),
        required_workgroup=tuple(workgroup),
    )


def _instruction(index: int, inst: Inst, labels: Mapping[str, int]) -> Instruction:
    row = ROWS.get(inst.opcode)
    if row is None:
        raise CodeError(f"the M1 has no instruction {inst.opcode!r}", code="TFW0702", place=inst.place)
    flow = Branch(labels[inst.targets[0]]) if inst.opcode == "br" else row.flow
    guard = None if inst.predicate is None else Guard(_register(inst.predicate), inst.predicate_not)
    return Instruction(
        index=index, text=repr(inst), mnemonic=inst.opcode, unit=row.unit, meaning=row.meaning,
        sources=tuple(_source(operand, row.immediate_bits) for operand in inst.uses) if flow is None else _flow_sources(inst),
        destinations=tuple(_place(d) for d in inst.defs), guard=guard, flow=flow, source=inst.place, row=row,
    )


def _flow_sources(inst: Inst) -> tuple[Immediate, ...]:
    return (Immediate(0, 32),) if inst.opcode == "bar" else ()


def _source(operand: Operand, bits: int) -> Register | Registers | Immediate:
    if isinstance(operand, Slice):
        return _place(operand)
    if not isinstance(operand, int):
        raise CodeError(f"the M1 has no operand {operand!r}", code="TFW0702")
    return Immediate(operand & ((1 << bits) - 1), bits)


def _place(piece: Slice) -> Register | Registers:
    if piece.count == 1:
        return _register(piece)
    return Registers(tuple(_register(piece.part(i)) for i in range(piece.count)))


def _register(piece: Slice) -> Register:
    if not piece.reg.physical:
        raise CodeError(f"{piece!r} is no physical register", code="TFW0702")
    return Register(REGISTERS + piece.first, 1) if piece.reg.cls == "p" else Register(piece.first, 32)


class Simulator:
    """`tilefw.api.Device` for M1 artifacts."""

    executor: Literal["sim"] = "sim"

    def __init__(self, target: TargetInfo) -> None:
        self.name = target.name
        self._chip = Chip(name=target.name, wave_size=LANES, max_threads=target.limits["threads_per_workgroup"])
        self._memory = GlobalMemory()

    def allocate(self, nbytes: int, *, label: str = "", readonly: bool = False, element: str = "") -> int:
        return self._memory.allocate(nbytes, label=label, readonly=readonly, element=element)

    def free(self, handle: int) -> None:
        self._memory.free(handle)

    def write(self, handle: int, data: Any, offset: int = 0) -> None:
        self._memory.region(handle).initialise(offset, memoryview(data).cast("B"))

    def read(self, handle: int, nbytes: int, offset: int = 0) -> bytes:
        return self._memory.region(handle).data[offset : offset + nbytes].tobytes()

    def load(self, artifact: Artifact) -> dict[str, tuple[Entry, LoadedProgram]]:
        if artifact.format != "machine":
            raise CodeError(f"{self.name} runs machine text, not {artifact.format}", code="TFW0702")
        decoded = {f.name: decode(f) for f in functions(artifact.text, f"{artifact.target}.machine")}
        return {e.name: (e, load_program(decoded[e.name], self._chip, self._memory, {})) for e in artifact.entries}

    def launch(
        self, module: dict[str, tuple[Entry, LoadedProgram]], entry: str, grid: Sequence[int], args: Sequence[Argument],
        options: LaunchOptions,
    ) -> LaunchReport:
        declared, program = module[entry]
        if len(args) != len(declared.parameters):
            raise LaunchError(f"{entry} takes {len(declared.parameters)} arguments, not {len(args)}", code="TFW0322")
        values = {p.offset: self._bytes(p, a) for p, a in zip(declared.parameters, args, strict=True)}
        block = options.block or declared.workgroup
        size = max((p.offset + p.size for p in declared.parameters), default=0)
        return launch(program, self._memory, grid, block, pack(values, size), options)

    def memory_info(self) -> Mapping[str, int]:
        return {"total": self._memory.limit, "used": self._memory.used, "free": self._memory.limit - self._memory.used}

    def _bytes(self, parameter: Parameter, argument: Argument) -> bytes:
        if isinstance(argument, BufferView):
            base = self._memory.region(argument.handle).base if argument.handle else 0
            return struct.pack("<Q", base + argument.offset)
        if parameter.dtype.startswith("fp") and parameter.size >= 4:
            return struct.pack(f"<{_FORMATS['fp', parameter.size]}", argument.value)
        if parameter.dtype.startswith(("int", "uint")):
            return (int(argument.value) & ((1 << (8 * parameter.size)) - 1)).to_bytes(parameter.size, "little")
        raise LaunchError(f"{parameter.name}: the M1 takes no scalar of type {parameter.dtype}", code="TFW0324")
