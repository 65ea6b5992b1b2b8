"""One field of one instruction changed, or an instruction dropped or doubled: what the checker and the simulator say of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from cycles.launched import MACHINE, Launched, Ran
from tilefw_spatial.check import check
from tilefw_spatial.isa import OPS, TYPES, Use
from tilefw_spatial.program import QueueInst, SpatialProgram
from tilefw_spatial.valid import program_faults

Words = tuple[QueueInst, ...]
Place = tuple[int, str, int]  # chip, queue, number there
ERROR, FINDING, OTHER, SAME = "an error of the checker", "a finding", "other results", "nothing to be seen"


def _stream(inst: QueueInst, rng: random.Random) -> QueueInst | None:
    """Another stream of the same direction for one operand, or for what is put."""
    parts = [f.part for f in OPS[inst.op][0].fields if f.use in (Use.TAKE, Use.PUT)]
    if not parts:
        return None
    part = rng.choice(parts)
    value: int = getattr(inst, part)
    return replace(inst, **{part: value // MACHINE.streams * MACHINE.streams + rng.randrange(MACHINE.streams)})


def _row(inst: QueueInst, rng: random.Random) -> QueueInst | None:
    if not any(f.use in (Use.ROW, Use.ACCUMULATOR) for f in OPS[inst.op][0].fields):
        return None
    return replace(inst, address=max(0, inst.address + rng.choice([-1, 1])))


def _dtype(inst: QueueInst, rng: random.Random) -> QueueInst | None:
    return replace(inst, dtype=rng.choice(sorted(TYPES))) if inst.dtype else None


def _buffer(inst: QueueInst, rng: random.Random) -> QueueInst | None:
    return replace(inst, imm=1 - inst.imm) if inst.op in ("LW", "IW") else None


def _count(inst: QueueInst, rng: random.Random) -> QueueInst | None:
    return replace(inst, burst=inst.burst + rng.choice([-1, 1])) if inst.op == "REP" else None


def _distance(inst: QueueInst, rng: random.Random) -> QueueInst | None:
    return replace(inst, imm=inst.imm + rng.choice([-1, 1])) if inst.op == "REP" else None


FIELDS: Mapping[str, Callable[[QueueInst, random.Random], QueueInst | None]] = {
    "stream": _stream, "row": _row, "element type": _dtype, "weight buffer": _buffer, "count of REP": _count,
    "distance of REP": _distance,
}
KINDS = (*FIELDS, "slice", "dropped", "doubled")


@dataclass
class Edits:
    """What was seen of each kind; contradictions are findings and other results in the count of cycles that the checker lacks."""

    seen: Counter[tuple[str, str]] = field(default_factory=Counter)
    contradictions: list[str] = field(default_factory=list)

    def sample(self, launched: Launched, rng: random.Random, count: int) -> None:
        """So many edits of each kind that a launch's program has."""
        before = launched.fast()
        for kind in KINDS:
            for index, program in _drawn(launched.program, kind, rng, count):
                self._one(launched.moved(program), kind, index, before)

    def _one(self, launched: Launched, kind: str, index: Place, before: Ran) -> None:
        problems = check(launched.program, MACHINE)
        after = launched.fast()
        seen = FINDING if after.findings else SAME if after.same(before) else OTHER
        self.seen[kind, ERROR if problems else seen] += 1
        if after.findings and not problems:
            self.contradictions.append(f"{launched.name}: {kind} at {index} is sound, and the simulator finds {after.findings}")


def _drawn(program: SpatialProgram, kind: str, rng: random.Random, count: int) -> Iterator[tuple[Place, SpatialProgram]]:
    """Edited programs that are programs still: what is none is refused before anything runs."""
    places = [(c, n, i) for c, code in enumerate(program.chips) for n, words in code.queues.items() for i in range(len(words))]
    rng.shuffle(places)
    found = 0
    for index in places:
        made = _edited(program, kind, index, rng)
        if made is None or made == program or any(program_faults(MACHINE, made)):
            continue
        yield index, made
        found += 1
        if found == count:
            return


def _edited(program: SpatialProgram, kind: str, index: Place, rng: random.Random) -> SpatialProgram | None:
    chip, queue, number = index
    queues = dict(program.chips[chip].queues)
    words = queues[queue]
    inst = words[number]
    if kind in FIELDS:
        changed = FIELDS[kind](inst, rng)
        if changed is None or changed == inst:
            return None
        queues[queue] = (*words[:number], changed, *words[number + 1 :])
    elif kind == "slice":
        side, at = queue[:5], queue[5:]
        neighbour = f"{side}{int(at) + 1}" if queue.startswith("MEM.") else ""
        if number or neighbour not in MACHINE.queues:
            return None
        queues[queue], queues[neighbour] = queues.get(neighbour, ()), words  # all that the slice does, one further
    elif inst.op in ("NOP", "REP"):
        return None
    else:
        queues[queue] = _without(words, number) if kind == "dropped" else (*words[: number + 1], inst, *words[number + 1 :])
    chips = [*program.chips]
    chips[chip] = replace(chips[chip], queues={name: queues[name] for name in MACHINE.queues if queues.get(name)})
    return replace(program, chips=tuple(chips))


def _without(words: Words, number: int) -> Words:
    """Its cycles stay, so that what is behind it stays where it was; its repetitions go as well."""
    inst, rest = words[number], words[number + 1 :]
    idle = inst.burst if OPS[inst.op][0].burst else 1
    if rest and rest[0].op == "REP":
        idle, rest = rest[0].burst * rest[0].imm + idle, rest[1:]
    return (*words[:number], *(QueueInst("NOP", imm=part) for part in _idle(idle)), *rest)


def _idle(cycles: int) -> Iterator[int]:
    while cycles:
        yield min(cycles, 65535)
        cycles -= min(cycles, 65535)
