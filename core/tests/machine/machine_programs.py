"""Random machine functions, and an interpreter that runs them on virtual or physical registers alike.

The interpreter is what passes are judged by: a run stores the same numbers before and after. What nobody has written is poison, and
so is what comes of it; a pass may change what stands there. Branches are taken as a list of choices says.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from tilefw.machine.inst import Function, Inst, Operand, Reg, Slice
from tilefw.machine.spill_model import MEMORY, WHOLE, Location, SpillModel, SpillSlotClass
from tilefw.machine.table import EFFECT, JUMP, MOVE, PURE, InstructionTable, InstructionTraits, RegisterClass, from_dict

LANES = 8  # of a register of class v

ROWS = {
    "op": PURE, "const": InstructionTraits(cheap=True), "early": InstructionTraits(early=True), "mov": MOVE, "movm": MOVE,
    "base": InstructionTraits(cheap=True),
    "mova": MOVE, "st": EFFECT, "br": EFFECT, "jmp": JUMP, "ret": JUMP, "save": EFFECT, "restore": PURE, "put": PURE, "get": PURE,
}


def chip(v: int = 64, s: int = 24, a: int = 64, reserved: dict[str, frozenset[int]] | None = None) -> InstructionTable:
    """Lane registers, accumulators, and wave registers that lane masks share."""
    classes = [RegisterClass("v", 32, v), RegisterClass("a", 32, a), RegisterClass("s", 32, s), RegisterClass("m", 32, s, "s")]
    return from_dict("toy", ROWS, classes, reserved)


def _move(opcode: str, to: Slice, source: Slice) -> list[Inst]:
    return [Inst(opcode, [to], [source])]


def _units(piece: Slice) -> list[Slice]:
    return [piece.part(i) for i in range(piece.count)]


def _save(value: Slice, base: Slice | None, at: int) -> list[Inst]:
    if base is None:
        return [Inst("save", (), [value, at])]
    return [Inst("base", [base], [at - at % 16]), Inst("save", (), [value, at % 16, base])]


def _restore(value: Slice, base: Slice | None, at: int) -> list[Inst]:
    if base is None:
        return [Inst("restore", [value], [at])]
    return [Inst("base", [base], [at - at % 16]), Inst("restore", [value], [at % 16, base])]


_MEMORY = SpillSlotClass(MEMORY, 1, 100, _save, _restore)
SPILLS = SpillModel(
    slot_classes={
        "v": (SpillSlotClass("a", 1, 4, lambda v, a, _: _move("mova", a, v), lambda v, a, _: _move("mova", v, a)), _MEMORY),
        "a": (_MEMORY,),
        **{
            cls: (
                SpillSlotClass(
                    "v", LANES, 8,
                    lambda s, v, at: [Inst("put", [v], [u, at + i], implicit_uses=[v]) for i, u in enumerate(_units(s))],
                    lambda s, v, at: [Inst("get", [u], [v, at + i]) for i, u in enumerate(_units(s))],
                ),
            )
            for cls in ("s", "m")
        },
    },
    accepts=lambda inst, reg, cls: cls == "a" and inst.opcode in ("op", "st") and inst.predicate is None,
    copied=lambda inst: _copied(inst),
    pointer=lambda inst: _pointer(inst),
)
# The same where offsets reach two values only.
_FAR = replace(_MEMORY, reach=8, pointer="s")
FAR_SPILLS = replace(
    SPILLS, slot_classes=SPILLS.slot_classes | {"v": (SPILLS.slot_classes["v"][0], _FAR), "a": (_FAR,)}
)


def _pointer(inst: Inst) -> Slice | None:
    return inst.uses[-1] if inst.opcode in ("save", "restore") and isinstance(inst.uses[-1], Slice) else None


def _copied(inst: Inst) -> list[tuple[Location, Location]] | None:
    if inst.opcode == "mova":
        (to,), (source,) = inst.defs, inst.uses
        return [((to.reg.cls, to.first + i, WHOLE), (source.reg.cls, source.first + i, WHOLE)) for i in range(to.count)]
    if inst.opcode == "save":
        value, at, *_ = inst.uses
        return [((MEMORY, at + 4 * i, WHOLE), (value.reg.cls, value.first + i, WHOLE)) for i in range(value.count)]
    if inst.opcode == "restore":
        (value,), (at, *_) = inst.defs, inst.uses
        return [((value.reg.cls, value.first + i, WHOLE), (MEMORY, at + 4 * i, WHOLE)) for i in range(value.count)]
    if inst.opcode == "put":
        (holder,), (value, lane) = inst.defs, inst.uses
        return [((holder.reg.cls, holder.first, lane), (value.reg.cls, value.first, WHOLE))]
    if inst.opcode == "get":
        (value,), (holder, lane) = inst.defs, inst.uses
        return [((value.reg.cls, value.first, WHOLE), (holder.reg.cls, holder.first, lane))]
    return None


# -- programs


class Drawing:
    """One random function: tuples that are built of parts and taken apart, loops, predicates, ties, physical operands."""

    def __init__(self, rng: random.Random, registers: int = 8, length: int = 10, classes: str = "vvvvsma") -> None:
        self.rng = rng
        self.length = length
        self.function = Function("f", "toy")
        shapes = [(1, 1), (1, 1), (1, 1), (2, 2), (3, 1), (4, 2), (4, 4)]
        self.registers = []
        for _ in range(registers):
            cls = rng.choice(classes)
            self.registers.append(self.function.register(cls, *((2, 2) if cls == "m" else rng.choice(shapes))))
        self.guard = self.function.register("s")
        self.count = rng.randrange(2, 6)

    def draw(self) -> Function:
        entry = self.function.block("entry").insts
        for reg in (*self.registers, self.guard):
            if self.rng.random() < 0.9:  # what nobody defined is poison
                entry.append(Inst(self.rng.choice(["const", "op"]), [reg.whole], [self.rng.randrange(100)]))
        for i in range(self.count):
            block = self.function.block(f"b{i}")
            for _ in range(self.rng.randrange(1, self.length)):
                block.insts += self.step()
            if self.rng.random() < 0.7:
                block.insts.append(Inst("br", targets=(f"b{self.rng.randrange(self.count)}",)))
        self.function.block("last").insts += [*(Inst("st", (), [r.whole]) for r in self.registers), Inst("ret")]
        return self.function

    def step(self) -> list[Inst]:
        kind = self.rng.random()
        if kind < 0.35:
            return self.copy()
        if kind < 0.45:
            return [Inst("st", (), [self.piece() for _ in range(self.rng.randrange(1, 3))])]
        if kind < 0.5:
            return self.through_physical()
        if kind < 0.6:
            tied = self.piece()
            return [Inst(self.rng.choice(["op", "early"]), [tied], [self.piece(), tied], tied=((0, 1),))]
        if kind < 0.65:
            return [Inst("const", [self.piece()], [self.rng.randrange(9)])]
        results = self.apart(self.rng.choice([1, 1, 1, 2]))
        opcode = self.rng.choice(["op", "op", "op", "early"])
        uses = [self.piece() for _ in range(self.rng.randrange(1, 4))]
        if opcode == "early":
            uses = [u for u in uses if all(u.reg is not r.reg for r in results)]
        return [self.guarded(Inst(opcode, results, [*uses, self.rng.randrange(5)]))]

    def guarded(self, inst: Inst) -> Inst:
        if self.rng.random() < 0.2:
            inst.predicate, inst.predicate_not = self.guard.whole, self.rng.random() < 0.5
        return inst

    def copy(self) -> list[Inst]:
        """A move between parts of one class, often into or out of a register of its own."""
        to, source = self.rng.choice(self.registers), self.rng.choice(self.registers)
        if self.rng.random() < 0.4:
            source = self.function.register(to.cls, *((2, 2) if to.cls == "m" else self.rng.choice([(1, 1), (2, 2), (4, 2)])))
            self.registers.append(source)
        width = self.rng.randrange(1, min(to.width, source.width) + 1)
        into = to.slice(self.rng.randrange(to.width - width + 1), width)
        out = source.slice(self.rng.randrange(source.width - width + 1), width)
        if {to.cls, source.cls} not in ({to.cls}, {"s", "m"}):
            return [Inst("op", [into], [out])]
        return [self.guarded(Inst("mov" if to.cls == source.cls else "movm", [into], [out]))]

    def through_physical(self) -> list[Inst]:
        """A result that a second instruction takes from one certain register."""
        place = self.function.file("s", 24).slice(self.rng.randrange(4, 8), 1)
        return [
            Inst("op", [self.piece()], [self.piece()], implicit_defs=[place]),
            Inst("op", [self.piece()], [self.piece()]),
            Inst("op", [self.piece()], [self.piece()], implicit_uses=[place]),
        ]

    def piece(self) -> Slice:
        reg = self.rng.choice(self.registers)
        count = self.rng.randrange(1, reg.width + 1)
        return reg.slice(self.rng.randrange(reg.width - count + 1), count)

    def apart(self, count: int) -> list[Slice]:
        """Pieces of several registers."""
        found: dict[Reg, Slice] = {}
        for _ in range(count):
            piece = self.piece()
            found[piece.reg] = piece
        return list(found.values())


def draw(rng: random.Random, registers: int = 8, length: int = 10, classes: str = "vvvvsma") -> Function:
    return Drawing(rng, registers, length, classes).draw()


# -- runs

_POISON = None
_PRIME = 1_000_003
Value = int | None


class _Run:
    def __init__(self, function: Function) -> None:
        self.state: dict[tuple[object, int, int], Value] = {}
        self.stored: list[Value] = []
        writers: dict[tuple[object, int], int] = {}
        for inst in function.insts():
            for key in (key for piece in inst.writes() for key in _keys(piece)):
                writers[key] = writers.get(key, 0) + 1
        self.once = {key for key, count in writers.items() if count == 1}

    def value(self, operand: Operand) -> list[Value]:
        if isinstance(operand, Slice):
            return [self.state.get((*key, WHOLE), _POISON) for key in _keys(operand)]
        return [hash(operand) % _PRIME if isinstance(operand, str) else operand]

    def step(self, inst: Inst) -> None:
        guard: Value = 1
        if inst.predicate is not None:
            guard = self.value(inst.predicate)[0]
            guard = guard if guard is _POISON else (guard & 1) ^ inst.predicate_not
        if inst.opcode == "st":
            self.stored += [v for use in inst.uses for v in self.value(use)]
        elif inst.opcode in ("save", "restore", "put", "get"):
            self.transfer(inst)
        else:
            results = self.results(inst)
            for piece in inst.writes():
                for key in _keys(piece):
                    new = next(results)
                    if guard == 0:  # where no other writes it, there is no old value to keep
                        new = _POISON if key in self.once and not piece.reg.physical else self.state.get((*key, WHOLE), _POISON)
                    self.state[(*key, WHOLE)] = _POISON if guard is _POISON else new

    def results(self, inst: Inst) -> Iterator[Value]:
        values = [v for use in (*inst.uses, *inst.implicit_uses) for v in self.value(use)]
        if inst.opcode in ("mov", "movm", "mova", "base"):
            return iter(values)
        seed = hash(tuple(values)) + 17 * len(values)
        bad = any(v is _POISON for v in values)
        return iter([_POISON if bad else (seed + 31 * i) % _PRIME for i in range(sum(p.count for p in inst.writes()))])

    def transfer(self, inst: Inst) -> None:
        found = [self.state.get(self.moved(inst, source), _POISON) for _, source in _copied(inst) or ()]
        for (to, _), value in zip(_copied(inst) or (), found, strict=True):
            self.state[self.moved(inst, to)] = value

    def moved(self, inst: Inst, location: Location) -> Location:
        """Where a location is, by what the pointer holds."""
        pointer, (place, number, lane) = _pointer(inst), location
        base = 0 if pointer is None or place != MEMORY else self.value(pointer)[0]
        assert base is not _POISON
        return place, number + base, lane


def _keys(piece: Slice) -> Iterator[tuple[object, int]]:
    name: object = piece.reg.cls if piece.reg.physical else piece.reg
    return ((name, i) for i in range(piece.first, piece.first + piece.count))


def run(function: Function, choices: list[int], most: int = 2000) -> list[Value]:
    """What a run stores; each branch is taken as the next choice says, and in the end not."""
    labels = {block.label: i for i, block in enumerate(function.blocks)}
    taken = iter(choices)
    machine = _Run(function)
    at = 0
    while at < len(function.blocks):
        following = at + 1
        for inst in function.blocks[at].insts:
            most -= 1
            if inst.opcode == "br" and next(taken, 0):
                following = labels[inst.targets[0]]
                break
            machine.step(inst)
        at = following if most > 0 else len(function.blocks)
    return machine.stored


def agree(before: list[Value], after: list[Value]) -> bool:
    """Whether a run after a pass stores what one before stored, where that was no poison."""
    return len(before) == len(after) and all(b is _POISON or a == b for a, b in zip(after, before, strict=True))
