"""A made-up instruction set for the kit's own tests: a line is an instruction; registers are `r` (32 bits), `a` (64), `p` (1).

It shows that the simulator kit needs no vendor: everything it knows comes through `tilefw.sim.program`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tilefw.api.errors import Place
from tilefw.sim.program import (
    Await,
    Barrier,
    Branch,
    Call,
    Exit,
    Guard,
    Immediate,
    Instruction,
    Program,
    ProgramParameter,
    Register,
    Return,
    SimulatedChip,
    Special,
    Symbol,
    Variable,
)

CHIP = SimulatedChip("toy", wave_size=8, max_threads=256, max_grid=(1024, 64, 64), shared_bytes=16384, shared_banks=8)

WIDTHS = {"r": 32, "a": 64, "p": 1, "h": 16, "v": 128}
SPECIALS: dict[str, Callable[[Any], Any]] = {
    "lane": lambda x: x.lane_id(), "wave": lambda x: x.wave_id(), "tid": lambda x: x.thread_id(0),
    "group": lambda x: x.workgroup_id(0),
}


def _address(lanes: Any, base: Any, index: Any, scale: int = 4) -> Any:
    return lanes.add(base, lanes.mul(lanes.zero_extend(index, 64), lanes.const(scale, 64)))


# opcode: (number of destinations, meaning)
MEANINGS: dict[str, tuple[int, Callable[..., Any]]] = {
    "mov": (1, lambda x, a: a),
    "add": (1, lambda x, a, b: x.add(a, b)),
    "sub": (1, lambda x, a, b: x.sub(a, b)),
    "mul": (1, lambda x, a, b: x.mul(a, b)),
    "and": (1, lambda x, a, b: x.and_(a, b)),
    "fadd": (1, lambda x, a, b: x.fadd(a, b, "f32")),
    "lt": (1, lambda x, a, b: x.compare(a, b, "lt", False)),
    "eq": (1, lambda x, a, b: x.compare(a, b, "eq", False)),
    "select": (1, lambda x, p, a, b: x.select(p, a, b)),
    "index": (1, lambda x, base, i: _address(x, base, i)),
    "wide": (1, lambda x, a: x.zero_extend(a, 64)),
    "param": (1, lambda x, a: x.load("param", a, 64)[0]),
    "load": (1, lambda x, a: x.load("global", a, 32)[0]),
    "store": (0, lambda x, a, v: x.store("global", a, (v,))),
    "store8": (0, lambda x, a, v: x.store("global", a, (x.truncate(v, 8),))),
    "load4": (4, lambda x, a: x.load("global", a, 32, 4)),
    "load_where": (1, lambda x, p, a: x.load("global", a, 32, where=p)[0]),
    "store_where": (0, lambda x, p, a, v: x.store("global", a, (v,), where=p)),
    "atomadd_where": (1, lambda x, p, a, v: x.atomic("global", a, "add", (v,), where=p)),
    "lload": (1, lambda x, a: x.load("shared", a, 32)[0]),
    "lstore": (0, lambda x, a, v: x.store("shared", a, (v,))),
    "padload": (1, lambda x, a: x.load("pad", a, 32)[0]),
    "padstore": (0, lambda x, a, v: x.store("pad", a, (v,))),
    "sload": (1, lambda x, a: x.load("local", a, 32)[0]),
    "sstore": (0, lambda x, a, v: x.store("local", a, (v,))),
    "atomadd": (1, lambda x, a, v: x.atomic("global", a, "add", (v,))),
    "atomcas": (1, lambda x, a, b, c: x.atomic("global", a, "compare_exchange", (b, c), order="acq_rel")),
    "release": (1, lambda x, a, v: x.atomic("global", a, "exchange", (v,), order="release")),
    "release_near": (1, lambda x, a, v: x.atomic("global", a, "exchange", (v,), order="release", scope="workgroup")),
    "acquire": (1, lambda x, a: x.load("global", a, 32, order="acquire", scope="device")[0]),
    "acquire_near": (1, lambda x, a: x.load("global", a, 32, order="acquire", scope="workgroup")[0]),
    "lr": (1, lambda x, a: x.load_reserved("global", a, 32, order="acquire")),
    "sc": (1, lambda x, a, v: x.store_conditional("global", a, v, order="acq_rel")),
    "readlane": (1, lambda x, a, b: x.read_lane(a, b)),
    "copy": (0, lambda x, d, s: x.copy_async("shared", d, "global", s, 4)),
    "commit": (0, lambda x: x.commit_group()),
    "wait": (0, lambda x: x.wait_group(0)),
    "wait1": (0, lambda x: x.wait_group(1)),
    "make": (0, lambda x, b, n: x.barrier_begin("shared", b, n)),
    "arrive": (1, lambda x, b, n: x.barrier_arrive("shared", b, n)),
    "expect": (1, lambda x, b, n: x.barrier_arrive("shared", b, x.const(1, 32), expect=n)),
    "fetch": (0, lambda x, d, s, n, b: x.engine_copy("shared", d, "global", s, n, barrier=b)),
    "put": (0, lambda x, d, s, n: x.engine_copy("global", d, "shared", s, n)),
    "group": (0, lambda x: x.engine_commit()),
    "drained": (0, lambda x: x.engine_wait(0, True)),
    "fence": (0, lambda x: x.fence("release", "device")),
    "views": (0, lambda x: x.view_fence()),
    "undef": (1, lambda x: x.undefined(32)),
    "push": (0, lambda x, p: x.push_mask(p)),
    "pop": (0, lambda x: x.pop_mask()),
    "anylane": (1, lambda x, p: x.or_(*x.ballot(p))),
    "trap": (0, lambda x: x.trap("the program gave up")),
}


def assemble(
    text: str, *, parameters: int = 0, shared: int = 0, dynamic: bool = False, local: int = 0, pad: int = 0, file: str = "toy.s"
) -> Program:
    """A program from lines such as `L: @!p1 add r1, r2, 7`. Parameters are 64-bit, named arg0, arg1, …"""
    lines = [(n, line.split("#")[0].strip()) for n, line in enumerate(text.splitlines(), 1)]
    labels: dict[str, int] = {}
    bodies: list[tuple[int, str]] = []
    for number, line in lines:
        while found := re.match(r"(\w+):\s*", line):
            labels[found[1]] = len(bodies)
            line = line[found.end() :]
        if line:
            bodies.append((number, line))
    registers: dict[str, int] = {}
    instructions = [_instruction(i, line, Place(file, n), registers, labels) for i, (n, line) in enumerate(bodies)]
    variables = [Variable("local", "local", local, 4)] if local else []
    variables += [Variable("shared", "shared", shared, 16)] if shared else []
    variables += [Variable("pad", "pad", pad, 4)] if pad else []
    variables += [Variable("more", "shared", 0, 16)] if dynamic else []
    return Program(
        "toy", instructions, [WIDTHS[name[0]] for name in registers], list(registers),
        tuple(ProgramParameter(f"arg{i}", 8 * i, 8, 8) for i in range(parameters)), tuple(variables),
    )


def _instruction(index: int, line: str, place: Place, registers: dict[str, int], labels: dict[str, int]) -> Instruction:
    text, guard = line, None
    if found := re.match(r"@(!?)(\w+)\s+", line):
        guard = Guard(_register(found[2], registers), bool(found[1]))
        line = line[found.end() :]
    opcode, _, rest = line.partition(" ")
    operands = [o.strip() for o in rest.split(",") if o.strip()]
    common: dict[str, Any] = {"index": index, "text": text, "mnemonic": opcode, "guard": guard, "code": place}
    if opcode in ("jump", "jumpu", "call"):
        target = labels[operands[0]]
        flow = Call(target) if opcode == "call" else Branch(target, opcode == "jumpu")
        return Instruction(unit="branch", flow=flow, **common)
    if opcode in ("end", "return"):
        return Instruction(unit="branch", flow=Exit() if opcode == "end" else Return(), **common)
    if opcode in ("bar", "wbar", "barn", "barw", "bararrive", "barpop"):
        return _barrier(opcode, operands, registers, common)
    if opcode == "passed":
        sources = tuple(_source(o, registers, None) for o in operands[1:])
        destinations = (_register(operands[0], registers),)
        return Instruction(unit="barrier", flow=Await(), meaning=_passed, sources=sources, destinations=destinations, **common)
    count, meaning = MEANINGS[opcode]
    destinations = tuple(_register(o, registers) for o in operands[:count])
    sources = tuple(_source(o, registers, meaning) for o in operands[count:])
    return Instruction(unit="alu", meaning=meaning, sources=sources, destinations=destinations, **common)


def _passed(lanes: Any, barrier: Any, parity: Any) -> Any:
    return lanes.barrier_passed("shared", barrier, parity, "parity")


def _barrier(opcode: str, operands: list[str], registers: dict[str, int], common: dict[str, Any]) -> Instruction:
    flow = {
        "bar": Barrier(), "wbar": Barrier(scope="wave"), "barn": Barrier(counted=True),
        "barw": Barrier(counted=True, counts="waves"), "barpop": Barrier(reduce="popc"),
        "bararrive": Barrier(action="arrive", counted=True),
    }[opcode]
    destinations: tuple[Register, ...] = ()
    if opcode == "barpop":
        destinations, operands = (_register(operands[0], registers),), operands[1:]
    sources = tuple(_source(o, registers, None) for o in operands)
    return Instruction(unit="barrier", flow=flow, sources=sources, destinations=destinations, **common)


def _register(name: str, registers: dict[str, int]) -> Register:
    return Register(registers.setdefault(name, len(registers)), WIDTHS[name[0]])


def _source(word: str, registers: dict[str, int], _: Any) -> Any:
    if word in SPECIALS:
        return Special(word, 32, SPECIALS[word])
    if re.fullmatch(r"-?\d+", word):
        return Immediate(int(word) % 2**32, 32)
    if re.fullmatch(r"\d+l", word):
        return Immediate(int(word[:-1]), 64)
    if re.fullmatch(r"(arg\d+|shared|local|more)", word):
        return Symbol(word)
    return _register(word, registers)
