"""Selection of structured control flow: loops and branches over registers that several places write, without phis.

Values that a region uses from outside are selected before it, so that it stands there once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.scf import ForOp, IfOp, WhileOp
from xdsl.ir import Block, Operation, SSAValue

from tilefw.machine.inst import Slice
from tilefw.simt.lane import ConstantOp, LeaveOp
from tilefw.simt.lane.registers import carried_packed, per_register, size_of, type_name, vector_in
from tilefw.simt.select import declared
from tilefw.simt.select.code import Const, Element, in_order
from tilefw.simt.select.matrix import is_zero, sums_together
from tilefw.simt.select.values import Values
from tilefw.tile import types
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.nested_ops import nested_ops

Select = Callable[[Operation], None]


def _zeros(moves: Sequence[tuple[Slice, Element]]) -> bool:
    """Whether a pair of registers of 32 bits, at an even place of one register, both begin as zero: one move does for both."""
    to, sources = [register for register, _ in moves], [source for _, source in moves]
    return len(to) == 2 and in_order(to) and to[0].count == 1 and to[0].first % 2 == 0 and is_zero(sources)


def _is_short(block: Block) -> bool:
    """Whether a region is so short that to have it twice is less than a branch."""
    made = list(block.ops)[:-1]
    rows = [op for op in made if not isinstance(op, ConstantOp)]
    return len(rows) <= 1 and all(isinstance(op, ElementwiseOp) and not types.shape_of(op.results[0].type) for op in rows)


class ControlSelection:
    """Emits control flow. A `Select` selects one op of a region; it is handed on and not kept, as the selector that it belongs to
    holds this object: without a cycle, all that selection made is freed when it ends, and the collector need not look for it."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.code = values.code
        self.chip = values.chip

    def capture(self, op: Operation) -> dict[SSAValue, None]:
        """Select what the regions of `op` use from outside, so that it stands before them; these values."""
        vectors = self.values.vectors
        wanted = dict.fromkeys(v for inner in nested_ops(op)[1:] for v in inner.operands if v in vectors)
        for value in wanted:
            self.values.force(value)
        return wanted

    # -- values that several places write

    def registers(self, value: SSAValue) -> list[Element]:
        """All registers of a value, in its carried form."""
        vector = self.values.vectors[value]
        packed = carried_packed(vector.type, vector.n)
        return self.values.all_packed(value) if packed else self.values.all_elements(value)

    def carrier(self, value: SSAValue) -> list[Slice]:
        """Registers for a value that several places write; the value is defined as them."""
        name, n = type_name(value.type), size_of(value.type)
        packed = carried_packed(name, n)
        scalar = not types.shape_of(value.type)
        form, count = ("w32", n // per_register(name)) if packed else (self.chip.form(name, scalar), n)
        group = sums_together(self.chip, value)
        registers = [r for first in range(0, count, group) for r in self.code.new_registers(form, min(group, count - first))]
        self.values.vectors[value] = vector_in(name, n, registers, packed)
        return registers

    def gather(self, values: Sequence[SSAValue]) -> list[Element]:
        return [r for v in values for r in self.registers(v)]

    def carriers(self, values: Sequence[SSAValue]) -> list[Slice]:
        return [r for v in values for r in self.carrier(v)]

    def copy(self, to: Sequence[Slice], sources: Sequence[Element]) -> None:
        """All moves at once: a source that another move writes is saved first."""
        written = {register.reg for register in to}
        saved: list[Element] = []
        for register, source in zip(to, sources, strict=True):
            if isinstance(source, Slice) and source.reg in written and source != register:
                # Both may be a part of a register, as a half of a pair is, or one of an atom's sums.
                cls, width, own = register.reg.cls, register.count, register is register.reg.whole
                align = register.reg.align if own else self.chip.alignment(cls, width)
                fresh = self.code.function.register(cls, width, align).whole
                self.chip.move(self.code, fresh, source)
                source = fresh
            saved.append(source)
        moves = [(register, source) for register, source in zip(to, saved, strict=True) if source != register]
        at = 0
        while at < len(moves):
            (register, source), count = moves[at], 1
            if self.chip.consecutive and _zeros(moves[at : at + 2]):
                register, source, count = register.reg.slice(register.first, 2), Const("i64", 0), 2
            self.chip.move(self.code, register, source)
            at += count

    # -- waves that end

    def leave(self, op: LeaveOp) -> None:
        """The highest bits of the thread index are some if it is not below the lowest of them."""
        code, chip, bits = self.code, self.chip, op.bits
        wave = chip.uniform(code, chip.form("i32", True), chip.thread_id(code))
        lowest, workgroup = bits & -bits, code.function.attributes.workgroup
        if workgroup is not None and bits + lowest == workgroup[0]:
            leaves = code("geu.i32", wave, code.i32(lowest))
        else:
            leaves = code("nei.i32", code("andi.i32", wave, code.i32(bits)), code.i32(0))
        stay = code.label("stay")
        chip.branch_if(code, leaves, stay, True)
        code.start(code.label("leave"))
        declared.end(chip, code)
        code.home = code.start(stay)

    # -- regions

    def region(self, block: Block, select: Select) -> Operation:
        """Select a region's ops but for its terminator, which comes back."""
        self.code.scopes.append({})
        last = block.last_op
        assert last is not None
        for op in block.ops:
            if op is not last:
                select(op)
        return last

    def close(self) -> None:
        self.code.scopes.pop()

    def predicate(self, value: SSAValue) -> Slice:
        """A condition as a predicate register."""
        element = self.values.element(value)
        if isinstance(element, Slice):
            return element
        register = self.code.new_register(self.chip.form("i1", True))
        self.chip.move(self.code, register, element)
        return register

    def for_loop(self, op: ForOp, select: Select) -> None:
        captured = self.capture(op)
        code, body = self.code, op.body.block
        name = type_name(op.lb.type)
        upper, step = self.values.element(op.ub), self.values.element(op.step)
        starts = [*self.registers(op.lb), *self.gather(op.iter_args)]
        variables = self.carriers(list(body.args))
        self.copy(variables, starts)
        head, end = code.label("loop"), code.label("end")
        self._test(name, variables[0], upper, end, True)
        code.start(head)
        last = self.region(body, select)
        nexts = self.gather(last.operands)
        advanced = code(f"addi.{name}", variables[0], step)
        self.copy(variables, [advanced, *nexts])
        self.close()
        self._test(name, variables[0], upper, head, False)
        code.start(end)
        self.values.forget_predicates(captured)
        for result, argument in zip(op.results, body.args[1:], strict=True):
            self.values.vectors[result] = self.values.vectors[argument]

    def _test(self, name: str, index: Element, upper: Element, label: str, leave: bool) -> None:
        self.code.scopes.append({})
        inside = self.code(f"lts.{name}", index, upper)
        self.code.scopes.pop()
        self.chip.branch_if(self.code, inside, label, leave)

    def if_op(self, op: IfOp, select: Select) -> None:
        self.capture(op)
        code = self.code
        predicate = self.predicate(op.cond)
        results = self.carriers(list(op.results))
        has_else = bool(op.false_region.blocks)
        other, end = code.label("else"), code.label("end")
        self.chip.branch_if(code, predicate, other if has_else else end, True)
        code.start(code.label("then"))
        for region, label in ((op.true_region, other), (op.false_region, end)):
            if not region.blocks:
                continue
            last = self.region(region.block, select)
            self.copy(results, self.gather(last.operands))
            self.close()
            if region is op.true_region and has_else:
                self.chip.branch(code, end)
                code.start(label)
        code.start(end)

    def while_loop(self, op: WhileOp, select: Select) -> None:
        """One branch a turn: where nothing is left to do after the condition, and where it is so short that it can be computed both
        before the loop and behind each turn."""
        self.capture(op)
        code, before, after = self.code, op.before_region.block, op.after_region.block
        starts = self.gather(op.arguments)
        arguments = self.carriers(list(before.args))
        passed = self.carriers(list(after.args))
        self.copy(arguments, starts)
        head, end, do = code.label("while"), code.label("end"), code.label("do")

        def check() -> Slice:
            condition = self.region(before, select)
            predicate = self.predicate(condition.operands[0])
            self.copy(passed, self.gather(condition.operands[1:]))
            return predicate

        def turn() -> None:
            last = self.region(after, select)
            self.copy(arguments, self.gather(last.operands))
            self.close()

        short = _is_short(before)
        if not short:
            code.start(head)
        predicate = check()
        if not short and after.first_op is after.last_op:
            turn()
            self.close()
            self.chip.branch_if(code, predicate, head, False)
        else:
            self.close()
            self.chip.branch_if(code, predicate, end, True)
            code.start(do)
            turn()
            if short:
                predicate = check()
                self.close()
                self.chip.branch_if(code, predicate, do, False)
            else:
                self.chip.branch(code, head)
        code.start(end)
        for result, argument in zip(op.results, after.args, strict=True):
            self.values.vectors[result] = self.values.vectors[argument]
