"""Loops, branches and calls; a function whose blocks jump forward becomes nested branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntAttr, IntegerAttr, UnitAttr, i32
from xdsl.ir import Attribute, Block, Region, SSAValue

from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.values import RuntimeValue, flatten
from tilefw.importers.triton_ir.jumps import Jumps
from tilefw.importers.triton_ir.tree import TextBlock

if TYPE_CHECKING:
    from tilefw.importers.triton_ir.translation import Translation
    from tilefw.importers.triton_ir.tree import TextOperation

meaning = Meanings()

_TERMINATORS = {
    "tt.return", "scf.yield", "scf.condition", "tt.reduce.return", "tt.scan.return", "tt.map_elementwise.return", "cf.br",
    "cf.cond_br",
}
# Wishes on loops: Triton's attributes, and ours with their form.
_COUNTS = {"tt.num_stages": "tile.num_stages", "tt.loop_unroll_factor": "tile.loop_unroll_factor"}
_FLAGS = {
    "tt.disallow_acc_multi_buffer": "tile.disallow_acc_multi_buffer", "tt.flatten": "tile.flatten",
    "tt.warp_specialize": "tile.warp_specialize", "tt.disable_licm": "tile.disable_licm",
}


def run_block(t: Translation, block: TextBlock, arguments: Sequence[Any]) -> TextOperation | None:
    """Translate a block's statements with its arguments bound; the statement that ends it, if one does."""
    if len(arguments) != len(block.arguments):
        raise ValueError(f"a block of {len(block.arguments)} arguments gets {len(arguments)}")
    for argument, value in zip(block.arguments, arguments, strict=True):
        t.bind(argument.name, value)
    for statement in block.statements:
        if statement.name in _TERMINATORS:
            if statement is not block.statements[-1]:
                raise t.text.malformed(f"{statement.name} ends its block, and another operation follows", statement.start)
            return statement
        t.statement(statement)
    return None


def run_region(t: Translation, region: tuple[TextBlock, ...], arguments: Sequence[Any]) -> list[Any]:
    """Translate a region; the operands of the statement that ends it."""
    return _run_jumps(t, Jumps(region), region[0].label, arguments, None)


def _run_jumps(t: Translation, jumps: Jumps, label: str, arguments: Sequence[Any], stop: str | None) -> list[Any]:
    """Translate from the block at `label` to an end, or to the block at `stop`: what it gives there."""
    while label != stop:
        end = run_block(t, jumps.blocks[label], arguments)
        if end is None or end.name not in ("cf.br", "cf.cond_br"):
            return [] if end is None else t.operands(end)
        targets = [(target, [t.value(name) for name in names]) for target, names in jumps.targets(end)]
        if end.name == "cf.br":
            ((label, arguments),) = targets
            continue
        merge = jumps.merge(label)
        sides = [partial(_run_jumps, t, jumps, target, values, merge) for target, values in targets]
        arguments = _branch(t, t.value(end.items[0]), sides)
        if merge is None:
            return list(arguments)
        label = merge
    return list(arguments)


def _branch(t: Translation, condition: RuntimeValue, sides: Sequence[Callable[[], list[Any]]]) -> list[Any]:
    """What one of two sides gives, by a condition."""
    blocks, given = [Block(), Block()], list[list[Any]]()
    for block, side in zip(blocks, sides, strict=True):
        with t.inside(block):
            given.append(side())
    pairs = list(zip(*([leaf for value in values for leaf in flatten(value)] for values in given), strict=True))
    return t.standing(given[0], t.b.branch(condition, blocks[0], blocks[1], pairs))


@meaning("scf.if")
def branch(t: Translation, s: TextOperation) -> list[Any]:
    (condition,) = t.operands(s)
    regions = (*s.regions, (TextBlock("", (), ()),))[:2]
    return _branch(t, condition, [partial(run_region, t, region, ()) for region in regions])


@meaning("scf.for")
def count(t: Translation, s: TextOperation) -> list[Any]:
    if "unsigned" in s.words:
        raise t.refusal(s, "a loop whose bounds are unsigned is not imported")
    low, high, step, *initial = t.operands(s)
    block = t.block_for(initial, low.ssa)
    variable = RuntimeValue(block.args[0], low.type)
    with t.inside(block):
        final = run_region(t, s.regions[0], [variable, *t.standing(initial, block.args[1:])])
        t.b.insert(scf.YieldOp(*ssas(final)))
    op = scf.ForOp(low.ssa, high.ssa, step.ssa, ssas(initial), Region(block))
    op.attributes.update(_wishes(t, s))
    return t.standing(initial, t.b.insert(op).results)


def _wishes(t: Translation, s: TextOperation) -> dict[str, Attribute]:
    """Only those that wish something: no stages are none."""
    counts = {ours: t.integer(s, theirs) for theirs, ours in _COUNTS.items() if theirs in s.attributes}
    flags = [ours for theirs, ours in _FLAGS.items() if t.flag(s, theirs)]
    wished = {name: IntegerAttr(IntAttr(count), i32) for name, count in counts.items() if count}
    return {**wished, **dict.fromkeys(flags, UnitAttr())}


@meaning("scf.while")
def repeat(t: Translation, s: TextOperation) -> list[Any]:
    initial = t.operands(s)
    before = t.block_for(initial)
    with t.inside(before):
        condition, *passed = run_region(t, s.regions[0], t.standing(initial, before.args))
        t.b.insert(scf.ConditionOp(condition.ssa, *ssas(passed)))
    after = t.block_for(passed)
    with t.inside(after):
        final = run_region(t, s.regions[1], t.standing(passed, after.args))
        t.b.insert(scf.YieldOp(*ssas(final)))
    types = [value.type for value in ssas(passed)]
    op = scf.WhileOp(ssas(initial), types, Region(before), Region(after))
    return t.standing(passed, t.b.insert(op).results)


@meaning("tt.call")
def call(t: Translation, s: TextOperation) -> list[Any]:
    """The function's statements in place of the call, whether Triton would keep the call or not."""
    name = s.words[0].removeprefix("@")
    if name not in t.functions:
        raise ValueError(f"there is no function {name}")
    arguments = t.operands(s)
    with t.called(s):
        return run_region(t, t.functions[name].blocks, arguments)


def ssas(values: Sequence[Any]) -> list[SSAValue]:
    """The run-time parts of values."""
    return [leaf.ssa for value in values for leaf in flatten(value)]
