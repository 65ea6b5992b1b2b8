"""Programs of text as steps: control flow, and what every machine of such text does; a plugin adds what is its own.

A step works on a `RunningProgram`, whose registers hold NumPy arrays; literals stand in registers behind all others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilefw.api.artifact import Entry
from tilefw.sim.floats import Array
from tilefw.sim.program_device import ProgramCall, ProgramFault, ProgramTrap, SimulatedEntry
from tilefw.sim.program_text import ProgramOperand, TextInstruction, TextKernel
from tilefw.sim.row_meanings import WORDS, Meaning, signed


class RunningProgram:
    """One program's state: registers, and its own memory, of which every byte is written before it is read. Of the machine's
    `local_bytes` it has what its kernel claims."""

    def __init__(self, call: ProgramCall, entry: Entry, registers: list[Array | None], local_bytes: int) -> None:
        self.call = call
        self.entry = entry
        self.registers = registers
        self.executed = 0
        size = min(local_bytes, entry.scratch_bytes)
        self.local = np.zeros(size, np.uint8)
        self.written = np.zeros(size, bool)

    def count(self) -> None:
        """Spend what has been executed."""
        self.call.spend(self.executed)
        self.executed = 0

    def get(self, register: int) -> Array:
        """A register's elements. Raises ProgramFault where nothing has been set in it."""
        found = self.registers[register]
        if found is None:
            raise ProgramFault("initialisation", f"r{register} is read and nothing is set in it")
        return found

    def whole(self, register: int) -> int:
        """An integer, with its sign."""
        return int(signed(self.get(register))[0])

    def places(self, addresses: Array, width: int) -> Array:
        """The bytes of elements in the program's own memory, a row each. Raises ProgramFault beyond it."""
        if len(addresses) and int(addresses.max()) + width > len(self.local):
            raise ProgramFault("bounds", f"{width} bytes at {int(addresses.max())} of {len(self.local)} bytes of the program's own")
        return addresses.astype(np.int64)[:, None] + np.arange(width)

    def read_local(self, addresses: Array, width: int) -> Array:
        """The bytes of elements of the program's own memory, a row each. Raises ProgramFault."""
        index = self.places(addresses, width)
        if not self.written[index].all():
            raise ProgramFault("initialisation", "bytes of the program's own memory are read that nothing has written")
        return self.local[index]

    def write_local(self, addresses: Array, data: Array) -> None:
        """Write elements to the program's own memory. Raises ProgramFault."""
        index = self.places(addresses, data.shape[1])
        self.local[index] = data
        self.written[index] = True

    def reach(self, addresses: Array, width: int) -> None:
        """Called before memory of arguments is accessed. Raises ProgramFault where that must not be now."""

    def finish(self) -> None:
        """Called at the end. Raises ProgramFault where something is left to do."""


Action = Callable[[Any, TextInstruction, list[int]], Any]
"""What an instruction does to a program, with the registers of its operands; gives the elements of its result."""
_Step = Callable[[RunningProgram], "int | None"]


def simulated_entry(
    kernel: TextKernel, rows: Mapping[str, Meaning], actions: Mapping[str, Action],
    begin: Callable[[ProgramCall, Entry, list[Array | None]], RunningProgram],
) -> SimulatedEntry:
    """What runs a kernel: `rows` by key, `actions` by the opcode up to its first dot; `begin` makes a program's state."""
    code = kernel.instructions
    decoder = _StepMaker(code, rows, {**ACTIONS, **actions})
    steps = [decoder.step(made) for made in code]

    def run(call: ProgramCall) -> None:
        program = begin(call, kernel.entry, list(decoder.registers))
        at = 0
        try:
            while at < len(steps):
                following = steps[at](program)
                program.executed += 1
                if following is not None and following <= at:
                    program.count()
                at = at + 1 if following is None else following
            program.count()
            program.finish()
        except ProgramFault as fault:
            found = code[min(at, len(code) - 1)]
            fault.line, fault.instruction = found.line, found.text
            raise

    return run


class _StepMaker:
    def __init__(self, code: list[TextInstruction], rows: Mapping[str, Meaning], actions: Mapping[str, Action]) -> None:
        self.code, self.rows, self.actions = code, rows, actions
        self.registers: list[Array | None] = [None] * (1 + max((i.result.register or 0 for i in code if i.result), default=0))

    def place(self, operand: ProgramOperand) -> int:
        """The register of an operand."""
        if operand.register is not None:
            return operand.register
        word = WORDS[operand.type]
        size = word().itemsize
        self.registers.append(np.frombuffer((operand.literal % (1 << (8 * size))).to_bytes(size, "little"), word))
        return len(self.registers) - 1

    def step(self, made: TextInstruction) -> _Step:
        sources = [self.place(operand) for operand in made.operands]
        if made.opcode in _CONTROL:
            return _CONTROL[made.opcode](self, made, sources)
        action, row = self.actions.get(made.opcode.split(".")[0]), self.rows.get(made.row(self.rows))
        result = None if made.result is None else made.result.register

        def act(program: RunningProgram) -> None:
            assert action is not None
            found = action(program, made, sources)
            if result is not None:
                program.registers[result] = found

        def compute(program: RunningProgram) -> None:
            assert row is not None and result is not None
            program.registers[result] = row(*[program.get(source) for source in sources])

        return act if action is not None else compute

    def loop(self, made: TextInstruction, sources: list[int]) -> _Step:
        assert made.result is not None and made.result.register is not None
        counter = made.result.register

        def begin(program: RunningProgram) -> int | None:
            first, last, step = (program.whole(source) for source in sources)
            program.registers[counter] = program.get(sources[0])
            return made.other + 1 if first >= last or step <= 0 else None

        return begin

    def branch(self, made: TextInstruction, sources: list[int]) -> _Step:
        return lambda program: None if program.get(sources[0])[0] else made.other + 1

    def leave(self, made: TextInstruction, sources: list[int]) -> _Step:
        behind = self.code[made.other].other + 1
        return lambda program: behind if program.get(sources[0])[0] else None

    def forever(self, made: TextInstruction, sources: list[int]) -> _Step:
        return lambda program: None

    def end(self, made: TextInstruction, sources: list[int]) -> _Step:
        begin, again = self.code[made.other], made.other + 1
        if begin.opcode == "forever":
            return lambda program: again
        if begin.result is None or begin.result.register is None:
            return lambda program: None
        counter, (last, step) = begin.result.register, map(self.place, begin.operands[1:])

        def turn(program: RunningProgram) -> int | None:
            at = program.get(counter)
            if program.whole(last) - int(signed(at)[0]) <= program.whole(step):
                return None
            program.registers[counter] = at + program.get(step)
            return again

        return turn


_CONTROL: Mapping[str, Callable[[_StepMaker, TextInstruction, list[int]], _Step]] = {
    "loop": _StepMaker.loop, "if": _StepMaker.branch, "leave": _StepMaker.leave, "forever": _StepMaker.forever,
    "end": _StepMaker.end,
}


def codes(x: Array) -> Array:
    """Elements as bytes, a row each."""
    return np.ascontiguousarray(x).view(np.uint8).reshape(len(x), x.dtype.itemsize)


def elements(data: Array, type_: str) -> Array:
    """Rows of bytes as elements of a type."""
    if type_ == "i1":
        return data[:, 0] != 0
    found = np.ascontiguousarray(data).view(WORDS[type_]).reshape(len(data))
    return found & np.uint8(15) if type_ == "i4" else found


def _addresses(program: RunningProgram, sources: list[int], lanes: int) -> Array:
    base, offset, stride, unit = (program.get(source) for source in sources[:4])
    return np.broadcast_to(base + (offset + np.arange(lanes, dtype=np.uint64) * stride) * unit, lanes)


def _load(program: RunningProgram, made: TextInstruction, sources: list[int]) -> Array:
    assert made.result is not None
    type_, lanes = made.result.type, made.result.lanes
    width = WORDS[type_]().itemsize
    addresses = _addresses(program, sources, lanes)
    mask = np.broadcast_to(program.get(sources[4]), lanes) if len(sources) > 4 else np.ones(lanes, bool)
    found = np.broadcast_to(program.get(sources[5]), lanes).copy() if len(sources) > 5 else np.zeros(lanes, WORDS[type_])
    if made.opcode.endswith("local"):
        found[mask] = elements(program.read_local(addresses[mask], width), type_)
    else:
        program.reach(addresses[mask], width)
        found[mask] = elements(program.call.memory.read(addresses[mask], width), type_)
    return found


def _store(program: RunningProgram, made: TextInstruction, sources: list[int]) -> None:
    lanes = max(operand.lanes for operand in made.operands)
    addresses, value = _addresses(program, sources, lanes), np.broadcast_to(program.get(sources[4]), lanes)
    mask = np.broadcast_to(program.get(sources[5]), lanes) if len(sources) > 5 else np.ones(lanes, bool)
    addresses, data = addresses[mask], codes(value[mask])
    if made.opcode.endswith("local"):
        program.write_local(addresses, data)
    else:
        program.reach(addresses, data.shape[1])
        program.call.memory.write(addresses, data)


def _cas(program: RunningProgram, made: TextInstruction, sources: list[int]) -> Array:
    address, expected, new = (program.get(source) for source in sources)
    program.reach(address, expected.itemsize)
    found = program.call.memory.read(address, expected.itemsize)
    if np.array_equal(found, codes(expected)):
        program.call.memory.write(address, codes(new))
    return found.view(expected.dtype).reshape(1)


def _narrow(program: RunningProgram, made: TextInstruction, sources: list[int]) -> Array:
    assert made.result is not None
    type_, code = made.result.type, program.get(sources[0])
    if type_ == "f32":
        return code.view(np.float32)
    kept = {"i1": 1, "i4": 15}.get(type_)
    return (code if kept is None else code & np.uint32(kept)).astype(WORDS[type_])


def _bits(program: RunningProgram, made: TextInstruction, sources: list[int]) -> Array:
    value = program.get(sources[0])
    return value.view(np.uint32) if value.dtype == np.float32 else value.astype(np.uint32)


def _parameter(program: RunningProgram, made: TextInstruction, sources: list[int]) -> Array:
    assert made.result is not None
    offset = program.entry.parameters[program.whole(sources[0])].offset
    return np.frombuffer(program.call.arguments, WORDS[made.result.type], 1, offset)


def _stop(program: RunningProgram, made: TextInstruction, sources: list[int]) -> None:
    raise ProgramTrap(program.whole(sources[0]))


def _set(program: RunningProgram, made: TextInstruction, sources: list[int]) -> None:
    program.registers[sources[0]] = np.broadcast_to(program.get(sources[1]), made.operands[0].lanes)


def _word(number: int) -> Array:
    return np.array([number], np.uint32)


def _lanes(made: TextInstruction) -> int:
    return 1 if made.result is None else made.result.lanes


ACTIONS: Mapping[str, Action] = {
    "load": _load, "store": _store, "cas": _cas, "narrow": _narrow, "bits": _bits, "param": _parameter, "trap": _stop, "set": _set,
    "copy": lambda p, made, s: p.get(s[0]),
    "var": lambda p, made, s: None,
    "id": lambda p, made, s: _word(p.call.ids[p.whole(s[0])]),
    "programs": lambda p, made, s: _word(p.call.grid[p.whole(s[0])]),
    "number": lambda p, made, s: np.arange(_lanes(made), dtype=np.uint64),
    "repeat": lambda p, made, s: np.broadcast_to(p.get(s[0]), _lanes(made)),
    "part": lambda p, made, s: p.get(s[0])[p.whole(s[1]) :][: _lanes(made)],
    "low": lambda p, made, s: p.get(s[0]).astype(np.uint32),
    "high": lambda p, made, s: (p.get(s[0]) >> np.uint64(32)).astype(np.uint32),
    "join": lambda p, made, s: p.get(s[0]).astype(np.uint64) | p.get(s[1]).astype(np.uint64) << np.uint64(32),
}
"""What the instructions of `program_text.COMMON` do that are no control flow."""
