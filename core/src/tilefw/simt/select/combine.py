"""Instruction combining: a chip's table of small rewrites over selected code, each of one instruction and what made its operand.

A `Fusion` puts the instruction that made an operand into the one that reads it: `add.f32 (mul.f32 a, b), c` becomes
`fma.rn.f32 a, b, c`. `single` asks that nobody else reads the value between, so that no work is done twice; the others leave the
maker to dead-code elimination. An address that is a register plus a literal moves the literal into the access.

Registers that are written once are values: what made them may be repeated wherever they are read. All others (loop
variables, results of branches, loads under a predicate) are never looked through, and are operands only within the block, as
long as nobody writes them between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tilefw.machine.function_pass import FunctionPass
from tilefw.machine.inst import Block, Function, Inst, Operand, Reg, Slice


@dataclass(frozen=True, slots=True)
class Fusion:
    """`outer` reading, as one of the operands `at`, what `inner` made, as `fused` on `inner`'s operands and the outer's others.

    `fits` says whether the inner's and the others' operands suit the new instruction. One of its operands `negated` goes in with
    the other sign: a literal where there is one, else what the instruction `negation` makes of the last of them. `both`: the
    outer's other operand was made by an `inner` as well, and both inners' operands are the new instruction's. The new operands
    are in the given `order` where there is one, and the `words` behind them. `condition`: what the inner one made only decides, so
    that the exact integer of the outer one (`Inst.no_wrap`) is still its other operands'.
    """

    outer: str
    inner: str
    fused: str
    at: tuple[int, ...] = (0, 1)
    single: bool = True
    fits: Callable[[Sequence[Operand], Sequence[Operand]], bool] = lambda inner, others: True
    negated: tuple[int, ...] = ()
    negation: str = ""
    both: bool = False
    order: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    condition: bool = False


@dataclass(frozen=True, slots=True)
class Addresses:
    """How addresses are summed: `add` on a register and a literal; accesses hold (register, literal) from operand 0, the literal
    within `limit`."""

    add: str
    accesses: tuple[str, ...]
    limit: int


@dataclass(frozen=True, slots=True)
class Combiner:
    """A chip's table: fusions by outer opcode, tried in order, its address mode, and the literal of the other sign."""

    fusions: Mapping[str, Sequence[Fusion]]
    addresses: Addresses | None = None
    opposite: Callable[[Operand], Operand | None] = lambda literal: None


@dataclass(frozen=True)
class CombineInstructions(FunctionPass):
    """Rewrites pairs of instructions to one. What its rewrites leave unread is for `eliminate-dead`."""

    name = "combine"
    combiner: Combiner

    def run(self, function: Function) -> None:
        combine(function, self.combiner)


def combine(function: Function, table: Combiner) -> int:
    """Rewrite every block from its start, so that a product of one rewrite meets the next; how many were made."""
    return _Combining(function, table).run()


def _registers_written(inst: Inst) -> Collection[Reg]:
    """Each register that an instruction writes, once."""
    if len(inst.defs) == 1 and not inst.implicit_defs:
        return (inst.defs[0].reg,)
    return {piece.reg for piece in inst.writes()}


def _operands_read(inst: Inst) -> Iterable[Operand]:
    return inst.uses if inst.predicate is None and not inst.implicit_uses else inst.reads()


class _Combining:
    def __init__(self, function: Function, table: Combiner) -> None:
        self.function = function
        self.table = table
        self.fusions: dict[str, dict[str, list[Fusion]]] = {}  # by the outer, then by the inner opcode
        for outer, listed in table.fusions.items():
            for fusion in listed:
                self.fusions.setdefault(outer, {}).setdefault(fusion.inner, []).append(fusion)
        self.made: dict[Reg, tuple[Inst, Block]] = {}
        self.reads = Counter([use.reg for inst in function.insts() for use in _operands_read(inst) if isinstance(use, Slice)])
        writes = Counter([reg for inst in function.insts() for reg in _registers_written(inst)])
        for block in function.blocks:
            for inst in block.insts:
                if len(inst.defs) == 1 and inst.predicate is None and writes[inst.defs[0].reg] == 1:
                    self.made[inst.defs[0].reg] = (inst, block)
        self.fixed = {reg for reg, count in writes.items() if count == 1}
        self.passed: dict[Reg, int] = {}  # in the open block: where the makers stand
        self.written: dict[Reg, int] = {}  # and the last writes of registers that are not values
        self.opposites: dict[tuple[Slice, int], Slice] = {}  # and what stands there with the other sign, by that last write
        self.before: list[Inst] = []  # what the open instruction needs

    def run(self) -> int:
        changed = 0
        for block in self.function.blocks:
            self.passed, self.written, self.opposites = {}, {}, {}
            kept, block.insts = block.insts, []
            for at, inst in enumerate(kept):
                while self.fuse(inst, block):  # each time with what stands further ahead
                    changed += 1
                changed += self.address(inst)
                block.insts += [*self.before, inst]
                self.before = []
                for reg in _registers_written(inst):
                    (self.passed if reg in self.made else self.written)[reg] = at
        return changed

    def maker(self, operand: Operand) -> tuple[Inst, Block] | None:
        """What made a whole register that is written once, if its operands still hold what they held there."""
        if not isinstance(operand, Slice) or operand is not operand.reg.whole or operand.reg not in self.made:
            return None
        inst, block = self.made[operand.reg]
        at = self.passed.get(operand.reg)
        for use in inst.uses:
            if isinstance(use, Slice) and use.reg not in self.fixed and (at is None or self.written.get(use.reg, -1) > at):
                return None
        return inst, block

    def fuse(self, inst: Inst, block: Block) -> bool:
        """Make the first fusion that suits one of the instruction's operands."""
        by_inner = self.fusions.get(inst.opcode)
        if by_inner is None:
            return False
        for at, use in enumerate(inst.uses):
            made = self.made.get(use.reg) if isinstance(use, Slice) else None
            if made is None or made[0].opcode not in by_inner:
                continue
            found = self.maker(use)
            for fusion in () if found is None else by_inner.get(found[0].opcode, ()):
                inner, home = found  # type: ignore[misc]
                if at not in fusion.at or (fusion.single and (home is not block or self.reads[inner.defs[0].reg] > 1)):
                    continue
                others = self.others(inst, at, fusion)
                if others is not None and fusion.fits(inner.uses, others):
                    uses = self.signed(inst, fusion, [*inner.uses, *others])
                    ordered = tuple(uses[i] for i in fusion.order) if fusion.order else uses
                    if inst.no_wrap == "exact" and inner.no_wrap not in ("exact", "proven") and not fusion.condition:
                        inst.no_wrap = "lost"  # what the inner instruction gave was a number of its own, which may have wrapped
                    self.replace(inst, fusion.fused, (*ordered, *fusion.words))
                    return True
        return False

    def others(self, inst: Inst, at: int, fusion: Fusion) -> tuple[Operand, ...] | None:
        """The operands that the outer instruction adds; None where another `inner` is wanted behind them and is not there."""
        others = inst.uses[:at] + inst.uses[at + 1 :]
        if not fusion.both:
            return others
        found = [self.maker(other) for other in others]
        if any(other is None or other[0].opcode != fusion.inner for other in found):
            return None
        return tuple(use for other in found if other is not None for use in other[0].uses)

    def signed(self, inst: Inst, fusion: Fusion, uses: list[Operand]) -> tuple[Operand, ...]:
        """A fused instruction's operands, one of those `negated` with the other sign."""
        for i in fusion.negated:
            literal = None if isinstance(uses[i], Slice) else self.table.opposite(uses[i])
            if literal is not None:
                uses[i] = literal
                return tuple(uses)
        for i in fusion.negated[-1:]:
            uses[i] = self.opposite(uses[i], fusion.negation, inst)
        return tuple(uses)

    def opposite(self, operand: Operand, opcode: str, inst: Inst) -> Slice:
        """A register with the other sign of an operand of `inst`, made once a block and value."""
        assert isinstance(operand, Slice), "the table's literals have opposites"
        key = (operand, self.written.get(operand.reg, -1))
        if key not in self.opposites:
            reg = operand.reg
            self.opposites[key] = self.function.register(reg.cls, reg.width, reg.align).whole
            self.before.append(Inst(opcode, [self.opposites[key]], [operand], place=inst.place))
            self.reads[reg] += 1
        return self.opposites[key]

    def address(self, inst: Inst) -> bool:
        modes = self.table.addresses
        if modes is None or not inst.opcode.startswith(modes.accesses) or not inst.uses or not isinstance(inst.uses[0], Slice):
            return False
        found = self.maker(inst.uses[0])
        if found is None or found[0].opcode != modes.add:
            return False
        base, literal = found[0].uses
        offset = inst.uses[1]
        if not (isinstance(base, Slice) and isinstance(literal, int) and isinstance(offset, int)):
            return False
        if not -modes.limit <= literal + offset < modes.limit:
            return False
        self.replace(inst, inst.opcode, (base, literal + offset, *inst.uses[2:]))
        return True

    def replace(self, inst: Inst, opcode: str, uses: tuple[Operand, ...]) -> None:
        self.reads.subtract(u.reg for u in inst.uses if isinstance(u, Slice))
        self.reads.update(u.reg for u in uses if isinstance(u, Slice))
        inst.opcode, inst.uses = opcode, uses
