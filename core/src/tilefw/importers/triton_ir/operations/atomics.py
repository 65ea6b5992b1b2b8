"""Read-modify-writes, compare-and-swap and waiting for a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilefw.frontend.builtins.atomics import atomic_poll
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
    taken = mask[0] if mask and not always(mask[0]) else None
    return t.b.atomic_rmw(KINDS[kind], pointer, value, taken, order, SCOPES[scope])


@meaning("tt.atomic_cas")
def compare_and_swap(t: Translation, s: TextOperation) -> RuntimeValue:
    order, scope = s.words
    pointer, compared, value = t.operands(s)
    return t.b.atomic_cas(pointer, compared, value, order, SCOPES[scope])


@meaning("tt.atomic_poll")
def poll(t: Translation, s: TextOperation) -> RuntimeValue:
    order, scope = s.words[:2]
    pointer, expected, *timeout = t.operands(s)
    return atomic_poll(t.b, pointer, expected, order, scope, timeout[0] if timeout else None)
