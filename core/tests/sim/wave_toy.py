"""A made-up machine whose program counter belongs to a wave: vector registers `v0`…, wave registers `w0`…, and a mask of lanes.

`on` is the predicate that says which lanes act; the code sets it from a wave register (`mask w3`). At the start v0 is the thread
in its workgroup, w0:w1 the address of the arguments, w2 the workgroup. Memory answers later: loads and stores of global memory in
order in the queue "far"; shared memory in order, and loads for the wave in any order, in the queue "near". `slow` results
may be touched only after 3 wait states, 1 by another `slow`; `pause n` gives n.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from running import Outcome

from tilefw.api.device import ALL_CHECKS, LaunchOptions
from tilefw.api.errors import Place
from tilefw.sim.engine.load import load_program
from tilefw.sim.engine.run import launch
from tilefw.sim.memory.regions import GlobalMemory
from tilefw.sim.program import (
    Barrier,
    Branch,
    Exit,
    Guard,
    HazardRule,
    Hazards,
    Immediate,
    Instruction,
    Issue,
    Jump,
    Program,
    Register,
    Registers,
    SimulatedChip,
    Special,
    Symbol,
    Variable,
    Wait,
)
from tilefw.sim.steps.operand_registers import reads, writes

CHIP = SimulatedChip(
    "wave toy", wave_size=8, pc_per_lane=False, max_threads=128, max_grid=(1024, 64, 64), shared_bytes=4096, shared_banks=8
)
CODE_BYTES = 4
VECTORS, WAVES = 16, 16
NAMES = ("on", *(f"v{i}" for i in range(VECTORS)), *(f"w{i}" for i in range(WAVES)))
ON = Guard(Register(0, 1))
FAR = ("far", "in order")
LOCAL = ("near", "shared")


def register(name: str) -> Register:
    return Register(NAMES.index(name), 1 if name == "on" else 32)


def _address(x: Any, base: Any, offset: Any) -> Any:
    return x.add(base, x.zero_extend(offset, 64))


def _high(x: Any, base: Any, offset: Any, old: Any) -> Any:
    part = x.zero_extend(x.load("global", _address(x, base, offset), 16, alignment=1)[0], 32)
    return x.or_(x.shl(part, x.const(16, 32)), x.and_(old, x.const(0xFFFF, 32)))


# Vector instructions, which the mask guards: (number of destinations, meaning).
VECTOR: Mapping[str, tuple[int, Callable[..., Any]]] = {
    "mov": (1, lambda x, a: a),
    "add": (1, lambda x, a, b: x.add(a, b)),
    "sub": (1, lambda x, a, b: x.sub(a, b)),
    "mul": (1, lambda x, a, b: x.mul(a, b)),
    "and": (1, lambda x, a, b: x.and_(a, b)),
    "slow": (1, lambda x, a: x.mul(a, a)),
    "both": (2, lambda x, a, b: (x.add(a, b), x.ballot(x.compare(a, b, "lt", False))[0])),
    "less": (1, lambda x, a, b: x.ballot(x.compare(a, b, "lt", False))[0]),
    "odd": (1, lambda x, a: x.ballot(x.truncate(a, 1))[0]),
    "load": (1, lambda x, base, offset: x.load("global", _address(x, base, offset), 32)[0]),
    "load2": (2, lambda x, base, offset: x.load("global", _address(x, base, offset), 32, 2, alignment=4)),
    "loadhigh": (1, _high),
    "store": (0, lambda x, base, offset, v: x.store("global", _address(x, base, offset), (v,))),
    "exchange": (1, lambda x, base, offset, v: x.atomic("global", _address(x, base, offset), "exchange", (v,), order="relaxed")),
    "lload": (1, lambda x, a: x.load("shared", a, 32)[0]),
    "lstore": (0, lambda x, a, v: x.store("shared", a, (v,))),
    "copy": (0, lambda x, a, base, offset: x.copy_async("shared", a, "global", _address(x, base, offset), 4)),
}
# Instructions that see all lanes, whatever the mask.
ACROSS: Mapping[str, Callable[..., Any]] = {
    "mask": lambda x, low: x.unballot(low, x.const(0, 32)),
    "getlane": lambda x, a, lane: x.read_lane(a, lane, inactive="value"),
}
# Instructions that execute once for the wave.
WAVE: Mapping[str, tuple[int, Callable[..., Any]]] = {
    "wmov": (1, lambda x, a: a),
    "wadd": (1, lambda x, a, b: x.add(a, b)),
    "wsub": (1, lambda x, a, b: x.sub(a, b)),
    "wand": (1, lambda x, a, b: x.and_(a, b)),
    "wnot": (1, lambda x, a: x.not_(a)),
    "where": (1, lambda x, a: a),
    "wload": (1, lambda x, base, offset: x.load("global", _address(x, base, offset), 32)[0]),
    "wload2": (1, lambda x, base, offset: x.load("global", _address(x, base, offset), 64)[0]),
    "wlload": (1, lambda x, a: x.load("shared", a, 32)[0]),
    "give": (0, lambda x: x.fence("release", "device")),
    "take": (0, lambda x: x.fence("acquire", "device")),
    "give_near": (0, lambda x: x.fence("release", "workgroup")),
    "take_near": (0, lambda x: x.fence("acquire", "workgroup")),
    "wait": (0, lambda x: None),
    "pause": (0, lambda x: None),
}
FLOWS: Mapping[str, tuple[Any, Callable[..., Any] | None]] = {
    "jz": (Branch, lambda x, a: x.compare(a, x.const(0, 32), "eq", False)),
    "jump": (Branch, None),
    "goto": (Jump, None),
    "call": (Jump, lambda x, to, back: (to, back)),
    "bar": (Barrier, None),
    "end": (Exit, None),
}
SPECIALS: Mapping[str, Callable[[Any], Any]] = {
    "lane": lambda x: x.lane_id(), "wave": lambda x: x.wave_id(), "group": lambda x: x.workgroup_id(0),
}


def _in_range(x: Any) -> Any:
    thread = x.add(x.mul(x.wave_id(), x.const(8, 32)), x.lane_id())
    return x.compare(thread, x.workgroup_size(0), "lt", False)


def _issues(opcode: str, written: tuple[int, ...]) -> tuple[Issue, ...]:
    if opcode in ("load", "load2", "store", "exchange"):
        return (Issue(*FAR, pending=written),)
    if opcode == "loadhigh":
        return (Issue(*FAR, pending=written, merged=written),)
    if opcode == "copy":
        return (Issue(*FAR, settles=True),)
    if opcode in ("lload", "lstore", "wlload"):
        return (Issue(*LOCAL, pending=written, settles=True),)
    return (Issue("near", "", pending=written),) if opcode in ("wload", "wload2") else ()


def _slow_needs(producer: Instruction, consumer: Instruction) -> int:
    return 1 if consumer.mnemonic == "slow" else 3


def _slow(instruction: Instruction) -> tuple[int, ...]:
    return writes(instruction) if instruction.mnemonic == "slow" else ()


HAZARDS = Hazards(
    (HazardRule("slow result", "Toy, 4.5", _slow, lambda i: (*reads(i), *writes(i)), _slow_needs, horizon=4),),
    lambda i: i.sources[0].value if i.mnemonic == "pause" else 1,
)


def assemble(text: str, *, shared: int = 0, file: str = "wave.s") -> Program:
    labels: dict[str, int] = {}
    bodies: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#")[0].strip()
        while found := re.match(r"(\w+):\s+|(\w+):$", line):
            labels[found[1] or found[2]] = len(bodies)
            line = line[found.end() :]
        if line:
            bodies.append((number, line))
    instructions = [_instruction(i, line, Place(file, n), labels) for i, (n, line) in enumerate(bodies)]
    variables = [Variable("code", "global", CODE_BYTES * len(bodies), 4)]
    variables += [Variable("shared", "shared", shared, 16)] if shared else []
    address = Special("arguments", 64, lambda x: x.argument_address())
    return Program(
        "toy", instructions, [1, *(32 for _ in NAMES[1:])], NAMES, variables=tuple(variables),
        wave_registers=frozenset(range(1 + VECTORS, len(NAMES))),
        initial=(
            (0, Special("in range", 1, _in_range)),
            (register("v0").index, Special("thread", 32, lambda x: x.thread_id(0))),
            (register("w0").index, Special("low", 32, lambda x: x.split(address.meaning(x), 32)[0])),
            (register("w1").index, Special("high", 32, lambda x: x.split(address.meaning(x), 32)[1])),
            (register("w2").index, Special("group", 32, SPECIALS["group"])),
            (register("w15").index, Immediate(15, 32)),
        ),
        arguments_in_memory=True, code=("code", {CODE_BYTES * i: i for i in range(len(bodies))}), hazards=HAZARDS,
    )


def _instruction(index: int, line: str, place: Place, labels: Mapping[str, int]) -> Instruction:
    opcode, _, rest = line.partition(" ")
    words = [w.strip() for w in rest.split(",") if w.strip()]
    common: dict[str, Any] = {"index": index, "text": line, "mnemonic": opcode, "code": place}
    if opcode in FLOWS:
        return _flow(opcode, words, labels, common)
    if opcode == "wait":
        limits = tuple((queue, int(count)) for queue, count in (word.split() for word in words))
        return Instruction(unit="wave", meaning=WAVE[opcode][1], wave=True, waits=Wait(limits), **common)
    if opcode in ACROSS:
        destination = register("on") if opcode == "mask" else register(words.pop(0))
        sources = tuple(_source(w, labels) for w in words)
        return Instruction(unit="vector", meaning=ACROSS[opcode], sources=sources, destinations=(destination,), **common)
    count, meaning = (VECTOR if opcode in VECTOR else WAVE)[opcode]
    destinations = tuple(_operand(w) for w in words[:count])
    sources = tuple(_source(w, labels) for w in (words[count:] + words[:1] if opcode == "loadhigh" else words[count:]))
    if opcode == "pause":
        meaning, sources = (lambda x, n: None), (Immediate(int(words[0]), 32),)
    written = tuple(p.index for d in destinations for p in (d.parts if isinstance(d, Registers) else (d,)))
    return Instruction(
        unit="vector", meaning=meaning, sources=sources, destinations=destinations, wave=opcode in WAVE,
        guard=ON if opcode in VECTOR else None, issues=_issues(opcode, written), **common,
    )


def _flow(opcode: str, words: list[str], labels: Mapping[str, int], common: dict[str, Any]) -> Instruction:
    kind, meaning = FLOWS[opcode]
    flow = Branch(labels[words.pop()]) if kind is Branch else kind()
    destinations = (_operand(words.pop(0)),) if opcode == "call" else ()
    sources = tuple(_source(w, labels) for w in words)
    if opcode == "call":
        sources = (*sources, Symbol("code", CODE_BYTES * (common["index"] + 1)))
    if opcode == "bar":
        sources = (Immediate(0, 32),)
    return Instruction(unit="flow", flow=flow, meaning=meaning, sources=sources, destinations=destinations, wave=True, **common)


def _operand(word: str) -> Register | Registers:
    if ":" in word:
        return Registers(tuple(register(name) for name in word.split(":")))
    return register(word)


def _source(word: str, labels: Mapping[str, int]) -> Any:
    if word in SPECIALS:
        return Special(word, 32, SPECIALS[word])
    if re.fullmatch(r"-?\d+", word):
        return Immediate(int(word) % 2**32, 32)
    if word.startswith("&"):
        return Symbol("code", CODE_BYTES * labels[word[1:]])
    return Symbol("shared", bits=32) if word == "shared" else _operand(word)


def run(text: str, *arrays: np.ndarray | int, grid: int = 1, block: int = 8, shared: int = 0, **options: Any) -> Outcome:
    """As `running.run`; the arguments are the addresses of the arrays."""
    memory = GlobalMemory()
    loaded = load_program(assemble(text, shared=shared), CHIP, memory)
    handles = []
    for number, array in enumerate(arrays):
        size = array if isinstance(array, int) else array.nbytes
        handles.append(memory.allocate(size, label=f"arg{number}"))
        if not isinstance(array, int):
            memory.region(handles[-1]).initialise(0, array.tobytes())
    arguments = np.array([memory.region(h).base for h in handles], dtype=np.uint64).tobytes()
    options.setdefault("checks", ALL_CHECKS)
    report = launch(loaded, memory, (grid,), (block, 1, 1), arguments, LaunchOptions(**options))
    regions = [memory.region(h) for h in handles]
    kinds = [np.uint32 if isinstance(a, int) else a.dtype for a in arrays]
    return Outcome(report, [r.data[: r.size].view(k).copy() for r, k in zip(regions, kinds, strict=True)])
