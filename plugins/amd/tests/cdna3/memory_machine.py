"""One memory instruction run by the simulator's engine: a wave with its registers, EXEC, LDS and one global buffer.

The instruction is bound as in a kernel; the program around it only fills registers and LDS before, and stores them behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from served import ISA

from tilefw.api import LaunchOptions
from tilefw.api.device import ALL_CHECKS
from tilefw.api.sim import (
    Exit,
    GlobalMemory,
    Instruction,
    Program,
    Register,
    SimulatedChip,
    Special,
    Variable,
    Wait,
    launch,
    load_program,
)
from tilefw_amd.isa.encoding.forms import assembled
from tilefw_amd.isa.meaning.binding import Site, bind
from tilefw_amd.isa.model import Form, InlineConstant, MCInst, RegisterTuple
from tilefw_amd.isa.registers import COUNT, EXEC_MASK, SCC, number
from tilefw_amd.isa.row import Mode
from tilefw_amd.isa.set import InstructionSet

WAVE = 64
LDS_BYTES = 4096
BASE = 0x10_0000_0000
"""Where the buffer stands: a fresh memory gives its first allocation this address (asserted below)."""
SHARED_WINDOW, SCRATCH_WINDOW = 1 << 56, 2 << 56
CHIP = SimulatedChip(
    "one wave", wave_size=WAVE, shared_bytes=65536, windows={"shared": (SHARED_WINDOW, 1 << 32), "local": (SCRATCH_WINDOW, 1 << 32)}
)
_WIDTHS = tuple(1 if i in (SCC, EXEC_MASK) else 32 for i in range(COUNT))
NEVER_WRITTEN = 0xDDDDDDDD


@dataclass
class Outcome:
    """`registers[i]` are the asked-for registers, an array of 64; `memory` and `lds` what they hold afterwards, as words."""

    registers: list[np.ndarray]
    memory: np.ndarray
    lds: np.ndarray
    findings: tuple[Any, ...]


def v(index: int, count: int = 1) -> RegisterTuple:
    return RegisterTuple("v", index, count)


def s(index: int, count: int = 1) -> RegisterTuple:
    return RegisterTuple("s", index, count)


def inst(name: str, operands: Mapping[str, Any], isa: InstructionSet = ISA, **modifiers: Any) -> MCInst:
    """The instruction of the row with exactly these operands, by name; modifiers choose among forms too."""
    for form in _forms(name, isa):
        if _fits(form, operands, modifiers):
            given = tuple(operands.get(o.name) for o in form.operands)
            written = {k: value for k, value in modifiers.items() if form.defaults.get(k) != value}
            return MCInst(form, given, written, form.size)
    raise LookupError(f"{name} has no form with {sorted(operands)} {modifiers}: {_forms(name, isa)}")


def _forms(name: str, isa: InstructionSet) -> list[Form]:
    return list(assembled(isa.rows[name], isa.chip))


def _fits(form: Form, operands: Mapping[str, Any], modifiers: Mapping[str, Any]) -> bool:
    if {o.name for o in form.operands if set(o.kinds) != {"o"}} != set(operands):
        return False
    if any(o.registers != operands[o.name].count for o in form.operands if isinstance(operands.get(o.name), RegisterTuple)):
        return False
    return all(form.fixed.get(k, value) == value for k, value in modifiers.items()) and all(
        not value or k in modifiers for k, value in form.fixed.items()
    )


def run(
    steps: MCInst | Sequence[MCInst], values: Mapping[RegisterTuple, Any], results: tuple[RegisterTuple, ...] = (), *,
    exec_lanes: Any = True,
    memory: np.ndarray | None = None, lds: np.ndarray | None = None, checks: frozenset[str] = ALL_CHECKS - {"leftovers"},
    waits: tuple[str, ...] = ("vmcnt", "lgkmcnt"),
) -> Outcome:
    """Run it once with these registers: an array of 64 or one number each, of 32 bits a register; tuples as [count, …].

    A wait for the queues named in `waits` stands behind it."""
    memory = np.zeros(256, np.uint32) if memory is None else memory
    space = GlobalMemory()
    handle = space.allocate(memory.nbytes, label="memory")
    region = space.region(handle)
    assert region.base == BASE
    region.initialise(0, memory.tobytes())
    before = _Program(values, exec_lanes, lds)
    for step in [steps] if isinstance(steps, MCInst) else steps:
        before.steps.append(bind(step, Mode(), Site(len(before.steps)), step.form.mnemonic))
    before.wait(waits)
    out = before.dump(results, lds is not None)
    program = Program(
        "k", (*before.steps, Instruction(len(before.steps), "end", "end", "control", flow=Exit())), _WIDTHS,
        variables=(Variable("lds", "shared", LDS_BYTES, 16), Variable("scratch", "local", 256, 16)),
    )
    options = LaunchOptions(block=(WAVE, 1, 1), checks=checks)
    report = launch(load_program(program, CHIP, space), space, (1,), (WAVE, 1, 1), b"", options)
    after = region.data[: region.size].view(memory.dtype).copy()
    return Outcome([out["registers"][n] for r in results for n in number(r)], after, out["lds"], report.findings)


class _Program:
    """Instructions before and behind; what they read and write of the test are arrays, handed over by closures."""

    def __init__(self, values: Mapping[RegisterTuple, Any], exec_lanes: Any, lds: np.ndarray | None) -> None:
        self.steps: list[Instruction] = []
        for register, value in values.items():
            words = np.asarray(value) if register.count > 1 else [value]
            for index, word in zip(number(register), words, strict=True):
                self._set(index, 32, np.asarray(word).astype(np.uint32))
        self._set(EXEC_MASK, 1, np.asarray(exec_lanes, np.bool_))
        if lds is not None:
            self._fill_lds(lds.tobytes())

    def _add(self, meaning: Callable[..., Any], sources: Any = (), destinations: Any = ()) -> None:
        index = len(self.steps)
        self.steps.append(Instruction(index, f"step {index}", "step", "valu", meaning, sources, destinations))

    def _set(self, index: int, bits: int, value: np.ndarray) -> None:
        full = value.reshape(1, 1, -1)
        self._add(lambda lanes, a: a, (Special("given", bits, lambda lanes: full),), (Register(index, bits),))

    def _fill_lds(self, data: bytes) -> None:
        words = np.frombuffer(data, np.uint32)

        def fill(lanes: Any) -> None:
            for i, word in enumerate(words.tolist()):
                lanes.store("shared", lanes.const(4 * i, 32), (lanes.const(word, 32),))

        self._add(fill)

    def wait(self, queues: tuple[str, ...]) -> None:
        index = len(self.steps)
        limits = tuple((queue, 0) for queue in queues)
        self.steps.append(Instruction(index, f"step {index}", "step", "control", lambda lanes: None, waits=Wait(limits), wave=True))

    def dump(self, results: tuple[RegisterTuple, ...], lds: bool) -> dict[str, Any]:
        """Where the registers and LDS will be found after the run."""
        found: dict[str, Any] = {"registers": {}, "lds": np.zeros(0, np.uint32)}
        numbers = tuple(n for r in results for n in number(r))

        def keep(lanes: Any, *values: Any) -> None:
            for n, value in zip(numbers, values, strict=True):
                found["registers"][n] = np.broadcast_to(getattr(value, "bits", value), (1, 1, WAVE)).reshape(WAVE).copy()
            if lds:
                raw = getattr(lanes, "base", lanes).batch.memory.region("shared").data
                found["lds"] = raw[:LDS_BYTES].view(np.uint32).copy()

        self._add(keep, tuple(Register(n, 32) for n in numbers))
        return found


def constant(value: int) -> InlineConstant:
    """An inline integer of 0 to 64."""
    return InlineConstant(128 + value)
