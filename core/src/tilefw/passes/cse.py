"""Common subexpressions: an op without effect equal to one that is in scope gives way to it; loads too, until memory may change."""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import IsolatedFromAbove

from tilefw.passes.rewriting import replace
from tilefw.passes.side_effects import effects_are_inside, is_side_effect_free, may_write, orders_memory
from tilefw.tile.attribute_keys import AttributeKeys
from tilefw.tile.dialect.block_ops import LoadBlockOp
from tilefw.tile.dialect.combine_op import CombineOp
from tilefw.tile.dialect.memory_ops import LoadOp


class CsePass(ModulePass):
    """Replaces ops that compute the same value by one.

    One walk with a scoped table of values: stock xDSL's pass hashes each op's whole text of attributes; this one does not.
    """

    name = "cse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in op.body.blocks:
            _Scope({}, AttributeKeys()).run(block)


class _Scope:
    """The ops seen on the way from the root to a block; `epoch` counts what orders memory in that block."""

    def __init__(self, known: dict[Hashable, Operation], keys: AttributeKeys) -> None:
        self.known = known
        self.keys = keys
        self.epoch = 0

    def run(self, block: Block) -> None:
        op = block.first_op
        while op is not None:
            following = op.next_op
            self._visit(op, block)
            op = following

    def _visit(self, op: Operation, block: Block) -> None:
        if op.regions:
            isolated = op.has_trait(IsolatedFromAbove)
            written = False
            for region in op.regions:
                for inner in region.blocks:
                    scope = _Scope({} if isolated else dict(self.known), self.keys)
                    scope.run(inner)
                    written |= scope.epoch > 0
            if not isinstance(op, CombineOp):
                self.epoch += written if effects_are_inside(op) else may_write(op)
                return
        key = self._key(op, block)
        if key is None:
            self.epoch += orders_memory(op)
            return
        existing = self.known.setdefault(key, op)
        if existing is not op:
            _replace(op, existing)

    def _key(self, op: Operation, block: Block) -> Hashable | None:
        if not op.results:
            return None
        memory: Hashable = None
        if isinstance(op, LoadOp | LoadBlockOp):
            if op.fetches_anew:
                return None
            memory = (block, self.epoch)
        elif not is_side_effect_free(op):
            return None
        inside = self._body_key(op.combine) if isinstance(op, CombineOp) else None
        return op.name, op._operands, *self._attributes_key(op), memory, inside

    def _attributes_key(self, op: Operation) -> tuple[Hashable, Hashable]:
        of = self.keys.of
        properties = tuple(sorted([(name, of(found)) for name, found in op.properties.items()])) if op.properties else ()
        return tuple([of(result.type) for result in op.results]), properties

    def _body_key(self, block: Block) -> Hashable:
        """What a combine function computes: its ops with their operands numbered. It sees nothing from outside."""
        numbers: dict[SSAValue, int] = {argument: index for index, argument in enumerate(block.args)}
        steps: list[Hashable] = []
        for op in block.ops:
            steps.append((op.name, tuple(numbers[o] for o in op._operands), *self._attributes_key(op)))
            numbers.update((result, len(numbers)) for result in op.results)
        return tuple(steps)


def _replace(op: Operation, existing: Operation) -> None:
    # Hints are facts about the value, so both ops' hints hold.
    for name, attribute in op.attributes.items():
        existing.attributes.setdefault(name, attribute)
    replace(op, *existing.results)
