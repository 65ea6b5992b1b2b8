"""Read-modify-writes, compare-and-swap, ordered loads and stores, and waiting for a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilefw.frontend.builtins.atomics import atomic_load, atomic_poll, atomic_store
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.values import RuntimeValue
from tilefw.importers.triton_ir.operations.memory import always

if TYPE_CHECKING:
    from tilefw.importers.triton_ir.translation import Translation
    from tilefw.importers.triton_ir.tree import TextOperation

meaning = Meanings()

# Triton's word: the kind of tile IR. Floats have no minimum and maximum: Triton makes two integer atomics of theirs.
KINDS: dict[str, str] = {
    "and": "and", "or": "or", "xor": "xor", "add": "add", "fadd": "add", "max": "maxs", "min": "mins", "umax": "maxu",
    "umin": "minu", "exch": "xchg",
}
SCOPES: dict[str, str] = {"cta": "workgroup", "gpu": "device", "sys": "system"}


@meaning("tt.atomic_rmw")
def read_modify_write(t: Translation, s: TextOperation) -> RuntimeValue:
    kind, order, scope = s.words
    pointer, value, *mask = t.operands(s)
    return t.b.atomic_rmw(KINDS[kind], pointer, value, _taken(mask), order, SCOPES[scope])


@meaning("tt.atomic_cas")
def compare_and_swap(t: Translation, s: TextOperation) -> RuntimeValue:
    order, scope = s.words
    pointer, compared, value = t.operands(s)
    return t.b.atomic_cas(pointer, compared, value, order, SCOPES[scope])


@meaning("tt.atomic_load")
def load(t: Translation, s: TextOperation) -> RuntimeValue:
    pointer, *mask = t.operands(s)
    return atomic_load(t.b, pointer, _taken(mask), *s.words)


@meaning("tt.atomic_store")
def store(t: Translation, s: TextOperation) -> None:
    pointer, value, *mask = t.operands(s)
    atomic_store(t.b, pointer, value, _taken(mask), *s.words)


def _taken(mask: Sequence[RuntimeValue]) -> RuntimeValue | None:
    """The mask, where there is one that is not always true."""
    return mask[0] if mask and not always(mask[0]) else None


@meaning("tt.atomic_poll")
def poll(t: Translation, s: TextOperation) -> RuntimeValue:
    order, scope = s.words[:2]
    pointer, expected, *timeout = t.operands(s)
    return atomic_poll(t.b, pointer, expected, order, scope, timeout[0] if timeout else None)
