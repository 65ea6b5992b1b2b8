"""Software pipelines: loads of a loop are issued some iterations early, into rings of shared slots or into registers.

With S stages the copies of iteration i + S - 1 are issued in iteration i, into the slot that iteration i - 1 has read:

    for s in 0 … S-2: copies of iteration s into slot s, when there is such an iteration; commit
    for i …:          wait S-2                  (the copies of iteration i have landed: here stands the one barrier)
                      copies of iteration i+S-1, when there is one; commit
                      the body, which reads slot i mod S

Each iteration commits one group, with copies in it or not, so that one counted wait is right to the end. Carried values that
addresses need run ahead too, as values of their own; what else they were good for dies.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec

from tilefw.passes.dce import erase_dead
from tilefw.simt.accesses import Accesses
from tilefw.simt.description import ChipDescription, Machine
from tilefw.simt.facts import Facts
from tilefw.simt.pipeline_emit import Emitter, always
from tilefw.simt.pipeline_issue import copy, guarded
from tilefw.simt.pipeline_plan import STAGES, Level, Plan, candidates, plan, stages_of
from tilefw.simt.pipeline_slice import Load
from tilefw.tile import types
from tilefw.tile.shared_ops import AllocSharedOp, CommitOp, LoadSharedOp, SlotOp, WaitOp, shared


@dataclass(frozen=True)
class PipelineLoops(ModulePass):
    """Pipelines the innermost loops with loads for dots, and those that their author marked, at `num_stages` or the mark's.

    `disjoint`: the launch knows that the buffers of different arguments do not overlap.
    """

    machine: Machine
    num_stages: int
    disjoint: bool = False
    name = "pipeline-loops"

    @classmethod
    def from_pass_spec(cls, spec: ArgSpec) -> PipelineLoops:
        """The pass of a textual pipeline, `pipeline-loops{num_stages=3 copies=1 disjoint=0}`, for a plain chip."""
        given = {name.replace("-", "_"): values for name, values in spec.parameters.items()}
        numbers = {"num_stages": 3, "copies": 1, "disjoint": 0, "shared_bytes": 1 << 16}
        for name, values in given.items():
            if name not in numbers or len(values) != 1 or not isinstance(values[0], int):
                raise ValueError(f"pipeline-loops has the whole numbers {', '.join(numbers)} as options, got {name}")
            numbers[name] = values[0]
        copies = (4, 8, 16) if numbers["copies"] else ()
        chip = ChipDescription("plain", 32, 64, 16, shared_bytes=numbers["shared_bytes"], copy_bytes=copies)
        return cls(Machine(chip, 4), numbers["num_stages"], bool(numbers["disjoint"]))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.body.block.ops if isinstance(f, FuncOp)]:
            self._function(function)

    def _function(self, function: FuncOp) -> None:
        loops = [op for op in function.walk() if isinstance(op, ForOp) and stages_of(op, self.num_stages) > 1 and candidates(op)]
        if not loops:
            return
        accesses = Accesses(self.machine, Facts(function))
        plans = [(loop, plan(loop, stages_of(loop, self.num_stages), accesses, self.disjoint)) for loop in loops]
        for loop, found in plans:
            if found is not None:
                Pipeline(loop, found).run()
        while erase_dead(function):
            pass


class Pipeline:
    """The rewrite of one loop."""

    def __init__(self, loop: ForOp, plan: Plan) -> None:
        self.loop = loop
        self.plan = plan
        self.outside = Emitter(loop)
        body = loop.body.block
        assert body.first_op is not None and body.last_op is not None
        self.top = Emitter(body.first_op, self.outside)
        self.end = Emitter(body.last_op, self.outside)
        self.rings: dict[Load, SSAValue] = {}
        self.initial: list[SSAValue] = []  # of what the loop carries in addition, in order
        self.following: list[SSAValue] = []

    def run(self) -> None:
        """Prologue, steady loop, and the loop op that carries what they hand on."""
        self._allocate()
        states, loaded, waiting = self._prologue()
        self._steady(states, loaded, waiting)
        self._replace_loop()

    def _allocate(self) -> None:
        for load in self.plan.ringed:
            type = load.result.type
            ring = shared(self.plan.slots, types.shape_of(type), types.element_of(type))
            self.rings[load] = self.outside.insert(AllocSharedOp(ring), load.location).results[0]
            self.rings[load].name_hint = _named(load, "ring")

    # Each level has a state: the carried values that its slice needs, by index, at the iteration that it issues next.

    def _prologue(self) -> tuple[list[dict[int, SSAValue]], list[dict[Load, SSAValue]], list[list[SSAValue]]]:
        """Issue the first iterations. Gives each level's state and last loaded values, and the tiles that wait in registers."""
        loop, levels, emitter = self.loop, self.plan.levels, self.outside
        states = [{index: loop.iter_args[index] for index in level.slice.carried} for level in levels]
        loaded: list[dict[Load, SSAValue]] = [{} for _ in levels]
        waiting: list[list[SSAValue]] = []
        for iteration in range(levels[-1].distance):
            induction = emitter.ahead(loop.lb, loop.step, iteration)
            when = emitter.row("lts", loop.lb, emitter.before(loop.ub, loop.step, iteration))
            for depth in reversed(range(len(levels))):
                if iteration < levels[depth].distance:
                    inner = loaded[depth + 1] if depth + 1 < len(levels) else {}
                    slot = emitter.constant(iteration, types.i32)
                    states[depth], loaded[depth] = self._issue(
                        levels[depth], emitter, induction, when, states[depth], inner, slot, None
                    )
            if iteration < self.plan.distance:
                waiting.append(list(loaded[0].values()))
        return states, loaded, waiting

    def _issue(
        self, level: Level, emitter: Emitter, induction: SSAValue, when: SSAValue, state: dict[int, SSAValue],
        inner: dict[Load, SSAValue], slot: SSAValue | None, phase: int | None,
    ) -> tuple[dict[int, SSAValue], dict[Load, SSAValue]]:
        """Issue the loads of a level for one iteration; gives its next state and what was loaded into registers."""
        values, following = level.slice.run(self.loop, emitter, induction, state, inner)
        loaded: dict[Load, SSAValue] = {}
        for load in level.loads:
            if level is self.plan.levels[0] and load in self.rings:
                assert slot is not None
                self._copy(load, emitter, values, when, slot, phase)
            else:
                loaded[load] = guarded(load, emitter, values, None if always(when) else when)
        if level is self.plan.levels[0] and self.rings:
            emitter.insert(CommitOp())
        return following, loaded

    def _copy(
        self, load: Load, emitter: Emitter, values: dict[SSAValue, SSAValue], when: SSAValue, slot: SSAValue, phase: int | None
    ) -> None:
        if always(when) is False:
            return
        view = emitter.insert(SlotOp(self.rings[load], slot, phase), load.location).results[0]
        view.name_hint = _named(load, "next")
        emitter.insert(copy(load, view, values, None if always(when) else when), load.location)

    def _steady(
        self, states: list[dict[int, SSAValue]], loaded: list[dict[Load, SSAValue]], waiting: list[list[SSAValue]]
    ) -> None:
        read = write = None
        if self.rings:
            read, write = self._slots()
            self.top.insert(WaitOp(self.plan.distance - 1))
        held = [
            [self._carry(value, _named(load, "ahead")) for load, value in zip(loaded[0], row, strict=True)] for row in waiting
        ]
        inner = [
            {load: self._carry(value, _named(load, "ahead")) for load, value in values.items()} for values in loaded[1:]
        ]
        carried = [
            {index: self._carry(value, self.loop.body.block.args[1 + index].name_hint) for index, value in state.items()}
            for state in states
        ]
        following = self._issue_ahead(carried, inner, write)
        current = dict(zip(loaded[0], held[0], strict=True)) if held else {}
        for load in self.plan.levels[0].loads:
            self._use(load, read, current)
        self._hand_on(held, following)

    def _slots(self) -> tuple[SSAValue, SSAValue]:
        """The slot to read and the one to fill, which is the one that was read last; shared by all rings."""
        zero, count = self.outside.constant(0, types.i32), self.plan.slots
        if count == 1:
            return zero, zero
        read = self._carry(zero, "read_slot")
        more = self.end.row("addi", read, self.end.constant(1, types.i32))
        wraps = self.end.row("eqi", more, self.end.constant(count, types.i32))
        self.following.append(self.end.row("select", wraps, zero, more))
        if self.plan.compact:
            return read, read
        self.following.append(read)
        return read, self._carry(self.outside.constant(count - 1, types.i32), "write_slot")

    def _carry(self, initial: SSAValue, name: str | None) -> SSAValue:
        """One more value that the loop carries."""
        block = self.loop.body.block
        argument = block.insert_arg(initial.type, len(block.args))
        argument.name_hint = name
        self.initial.append(initial)
        return argument

    def _issue_ahead(
        self, carried: list[dict[int, SSAValue]], inner: list[dict[Load, SSAValue]], write: SSAValue | None
    ) -> list[tuple[dict[int, SSAValue], dict[Load, SSAValue]]]:
        """What the steady loop issues: at its top, but copies into slots that are being read at its end."""
        induction = self.loop.body.block.args[0]
        following = []
        for depth, level in enumerate(self.plan.levels):
            emitter = self.end if self.plan.compact and not depth else self.top
            at = emitter.ahead(induction, self.loop.step, level.distance)
            when = emitter.row("lts", induction, self.outside.before(self.loop.ub, self.loop.step, level.distance))
            values = inner[depth] if depth < len(inner) else {}
            following.append(self._issue(level, emitter, at, when, carried[depth], values, write, level.distance))
        return following

    def _use(self, load: Load, read: SSAValue | None, current: dict[Load, SSAValue]) -> None:
        """The body takes the load's value from where it waits."""
        if load in self.rings:
            assert read is not None
            emitter = Emitter(load, self.outside)
            view = emitter.insert(SlotOp(self.rings[load], read, 0)).results[0]
            view.name_hint = _named(load, "slot")
            value = emitter.insert(LoadSharedOp(view)).results[0]
            value.name_hint = load.result.name_hint
        else:
            value = current[load]
        load.result.replace_all_uses_with(value)

    def _hand_on(
        self, held: list[list[SSAValue]], following: list[tuple[dict[int, SSAValue], dict[Load, SSAValue]]]
    ) -> None:
        """The next iteration's values of all that is carried, in the order in which it was added."""
        rows = [*held[1:], list(following[0][1].values())] if held else []
        self.following += [value for row in rows for value in row]
        self.following += [value for _, loaded in following[1:] for value in loaded.values()]
        self.following += [value for state, _ in following for value in state.values()]

    def _replace_loop(self) -> None:
        loop, last = self.loop, self.loop.body.block.last_op
        assert last is not None
        last.operands = [*last.operands, *self.following]
        body = loop.detach_region(loop.body)
        new = ForOp(loop.lb, loop.ub, loop.step, [*loop.iter_args, *self.initial], body)
        new.attributes = {name: value for name, value in loop.attributes.items() if name != STAGES}
        new.location = loop.location
        self.outside.insert(new, loop.location)
        if self.rings:  # all groups that are left are empty; now their buffers are known to be free
            self.outside.insert(WaitOp(0), loop.location)
        for old, result in zip(loop.results, new.results, strict=False):
            result.name_hint = old.name_hint
            old.replace_all_uses_with(result)
        loop.detach()
        loop.erase()


def _named(load: Load, what: str) -> str | None:
    """A name for what belongs to a load."""
    return None if load.result.name_hint is None else f"{load.result.name_hint}_{what}"
