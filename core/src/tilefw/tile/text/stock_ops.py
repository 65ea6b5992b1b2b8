"""Stock ops that are right at a glance: every kernel has a module, a function and its return, and xDSL takes 50 µs to check each.

What is not plainly right is left to xDSL's own verifiers, which say in words what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.scf import ForOp, IfOp, YieldOp
from xdsl.ir import Block, Operation, SSAValue

_FUNCTION_PROPERTIES = frozenset({"sym_name", "function_type", "sym_visibility", "arg_attrs"})


def plainly_right(op: Operation, visible: Collection[SSAValue]) -> bool:
    """Whether nothing can be wrong with the op itself, where these values are visible; its regions are not looked into."""
    if op.__class__ is YieldOp:
        return _yield(op)
    glance = _GLANCES.get(op.__class__)
    return glance is not None and not (visible and op.regions) and not (op._operands or op.results or op._successors) and glance(op)


def _module(op: ModuleOp) -> bool:
    block = _only_block(op)
    if block is None or block.args or op.properties or op.parent is not None:
        return False
    names = [each.properties.get("sym_name") for each in block.ops if each.__class__ is FuncOp]
    return len(set(names)) == len(names) and not any(each.results for each in block.ops)


def _function(op: FuncOp) -> bool:
    block, properties = _only_block(op), op.properties
    if block is None or op.parent_op().__class__ is not ModuleOp or not properties.keys() <= _FUNCTION_PROPERTIES:
        return False
    name, type, said = (properties.get(each) for each in ("sym_name", "function_type", "arg_attrs"))
    if not isinstance(properties.get("sym_visibility", name), StringAttr):
        return False
    if said is not None and not (isinstance(said, ArrayAttr) and all(isinstance(each, DictionaryAttr) for each in said.data)):
        return False
    return isinstance(name, StringAttr) and isinstance(type, FunctionType) and type.inputs.data == block.arg_types


def _return(op: ReturnOp) -> bool:
    parent = op.parent_op()
    type = parent.properties.get("function_type") if isinstance(parent, FuncOp) else None
    nothing = isinstance(type, FunctionType) and not type.outputs.data
    return nothing and not op.properties and not op.regions and op.next_op is None


def _yield(op: Operation) -> bool:
    """Whether it ends a loop or a branch: what these are handed is compared where they are verified."""
    lone = not (op.results or op.regions or op.properties or op._successors) and op.next_op is None
    return lone and op.parent_op().__class__ in _YIELDED_TO


def _only_block(op: Operation) -> Block | None:
    if len(op.regions) != 1 or op.regions[0].first_block is not op.regions[0].last_block:
        return None
    return op.regions[0].first_block


_YIELDED_TO = frozenset({ForOp, IfOp})
_GLANCES: dict[type[Operation], Callable[..., bool]] = {ModuleOp: _module, FuncOp: _function, ReturnOp: _return}
