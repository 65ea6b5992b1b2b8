"""Tensor descriptors: made, and accessed by the same functions as the methods of the language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilefw.frontend.builtins import tensor_descriptors as methods
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.tensor_descriptors import DescriptorValue, made
from tilefw.frontend.values import RuntimeValue
from tilefw.importers.triton_ir.types import block_of
from tilefw.tile.dialect.ops import ConstantOp

if TYPE_CHECKING:
    from tilefw.importers.triton_ir.translation import Translation
    from tilefw.importers.triton_ir.tree import TextOperation

meaning = Meanings()

_PADDINGS = {1: "zero", 2: "nan"}
_REDUCTIONS = ("add", "min", "max", "and", "or", "xor")


@meaning("tt.make_tensor_descriptor")
def make(t: Translation, s: TextOperation) -> DescriptorValue:
    base, *numbers = t.operands(s)
    _, block = block_of(s.types[-1])
    axes = len(numbers) // 2
    strides = [*numbers[axes:-1], _known(numbers[-1])]
    padding = _PADDINGS[t.integer(s, "padding")] if "padding" in s.attributes else "zero"
    return made(t.b, base, tuple(numbers[:axes]), tuple(strides), block, padding)


def _known(value: RuntimeValue) -> Any:
    """The number where a value is a constant."""
    owner = value.ssa.owner
    return owner.value if isinstance(owner, ConstantOp) else value


@meaning("tt.descriptor_load")
def load(t: Translation, s: TextOperation) -> RuntimeValue:
    """A result of fewer axes than the block leaves out those of one element."""
    descriptor, *offsets = t.operands(s)
    loaded, wanted = methods.load(t.b, descriptor, tuple(offsets)), t.result_type(s)
    return loaded if loaded.type == wanted else t.b.reshape(loaded, getattr(wanted, "shape", ()))


@meaning("tt.descriptor_store")
def store(t: Translation, s: TextOperation) -> None:
    descriptor, *offsets, value = t.operands(s)
    methods.store(t.b, descriptor, tuple(offsets), _in_block(t, descriptor, value))


def _in_block(t: Translation, descriptor: DescriptorValue, value: RuntimeValue) -> RuntimeValue:
    return value if value.shape == descriptor.block else t.b.reshape(value, descriptor.block)


@meaning("tt.descriptor_reduce")
def combine(t: Translation, s: TextOperation) -> None:
    kind = s.words[0]
    if kind not in _REDUCTIONS:
        raise t.refusal(s, f"the reduction {kind} through a descriptor is not imported", note=f"there are {', '.join(_REDUCTIONS)}")
    descriptor, *offsets, value = t.operands(s)
    build = methods.meaning.of[f"tensor_descriptor.atomic_{kind}"]
    build(t.b, descriptor, tuple(offsets), _in_block(t, descriptor, value))


@meaning("tt.descriptor_gather")
def gather(t: Translation, s: TextOperation) -> RuntimeValue:
    descriptor, rows, column = t.operands(s)
    return methods.gather(t.b, descriptor, rows, column)


@meaning("tt.descriptor_scatter")
def scatter(t: Translation, s: TextOperation) -> None:
    descriptor, rows, column, value = t.operands(s)
    methods.scatter(t.b, descriptor, value, rows, column)
