"""Pointers, loads and stores, the place in the grid, assumptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.values import RuntimeValue
from tilefw.tile.dialect.ops import ConstantOp

if TYPE_CHECKING:
    from tilefw.importers.triton_ir.translation import Translation
    from tilefw.importers.triton_ir.tree import TextOperation

meaning = Meanings()

_AXES = ("x", "y", "z")
_EVICTIONS = {"evict_first": "evict_first", "evict_last": "evict_last"}  # evict_normal is no wish


@meaning("tt.get_program_id")
def program_id(t: Translation, s: TextOperation) -> RuntimeValue:
    return t.b.program_id(_AXES.index(s.words[0]))


@meaning("tt.get_num_programs")
def num_programs(t: Translation, s: TextOperation) -> RuntimeValue:
    return t.b.num_programs(_AXES.index(s.words[0]))


@meaning("tt.addptr")
def add_pointer(t: Translation, s: TextOperation) -> RuntimeValue:
    return t.b.add_pointer(*t.operands(s))


@meaning("tt.load")
def load(t: Translation, s: TextOperation) -> RuntimeValue:
    pointer, *masked = t.operands(s)
    mask, other = (*masked, None, None)[:2]
    if always(mask):
        mask = other = None
    return t.b.load(pointer, mask, other, *hints(s), t.flag(s, "isVolatile"))


@meaning("tt.store")
def store(t: Translation, s: TextOperation) -> None:
    pointer, value, *mask = t.operands(s)
    t.b.store(pointer, value, mask[0] if mask and not always(mask[0]) else None, *hints(s))


def hints(s: TextOperation) -> tuple[str, str]:
    """The cache modifier and the eviction policy, empty where there is none."""
    cache = s.after("cacheModifier")
    return "" if cache in (None, "none") else f".{cache}", _EVICTIONS.get(s.after("evictionPolicy") or "", "")


def always(mask: RuntimeValue | None) -> bool:
    """Whether a mask is the constant true, which Triton writes where a kernel has none."""
    return mask is not None and isinstance(mask.ssa.owner, ConstantOp) and mask.ssa.owner.value == 1


@meaning("llvm.intr.assume")
def assume(t: Translation, s: TextOperation) -> None:
    """Nothing follows from it here, as from `tl.assume`."""
    t.operands(s)


@meaning("tt.grid_dependency_wait")
@meaning("tt.grid_dependency_launch_dependents")
def follow(t: Translation, s: TextOperation) -> None:
    """Launches follow one another: none begins early."""


@meaning("gpu.barrier")
@meaning("ttg.barrier")
def barrier(t: Translation, s: TextOperation) -> None:
    t.b.barrier()
