"""Accesses through pointers: loads, stores, atomics."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from xdsl.ir import Block

from tilefw.frontend.builtins.atomics import atomic_load, atomic_store
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import constant
from tilefw.frontend.values import RuntimeValue
from tilefw.importers.cutile.memory_order import READ, WRITE, AccessToken

if TYPE_CHECKING:
    from tilefw.importers.cutile.bytecode_translation import BytecodeTranslation
    from tilefw.importers.cutile.bytecode_tree import BytecodeOperation

meaning = Meanings()

# Tile IR's words: those of tile IR's atomics, and those of the language's ordered loads and stores.
KINDS: Mapping[str, str] = MappingProxyType({
    "and": "and", "or": "or", "xor": "xor", "add": "add", "addf": "add", "max": "maxs", "min": "mins", "umax": "maxu",
    "umin": "minu", "xchg": "xchg",
})
SCOPES: Mapping[str, str] = MappingProxyType({"tl_blk": "workgroup", "device": "device", "sys": "system"})
_LANGUAGE_SCOPES: Mapping[str, str] = MappingProxyType({"tl_blk": "cta", "device": "gpu", "sys": "sys"})


@meaning("offset")
def add_offset(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    return t.b.add_pointer(t.tile(op, "pointer"), t.tile(op, "offset"))


@meaning("load_ptr_tko")
def load(t: BytecodeTranslation, op: BytecodeOperation) -> list[Any]:
    pointer, mask, other, token = t.tile(op, "source"), t.optional(op, "mask"), t.optional(op, "padding"), t.token(op)
    t.order.before(t.b, token, READ)
    order = op.attributes["semantics"]
    if order == "weak":
        return [t.b.load(pointer, mask, other if mask is not None else None, "", "", False), t.order.after(token, READ)]
    found = atomic_load(t.b, pointer, mask, order, _LANGUAGE_SCOPES[op.attributes["scope"]])
    if mask is not None and other is not None:
        found = t.b.row("select", mask, found, other)
    return [found, ordered(t, token, order)]


@meaning("store_ptr_tko")
def store(t: BytecodeTranslation, op: BytecodeOperation) -> AccessToken:
    pointer, value, mask, token = t.tile(op, "destination"), t.tile(op, "value"), t.optional(op, "mask"), t.token(op)
    order = op.attributes["semantics"]
    if order == "weak":
        t.order.before(t.b, token, WRITE)
        t.b.store(pointer, value, mask, "", "")
        return t.order.after(token, WRITE)
    if order != "release":
        t.order.before(t.b, token, WRITE)
    atomic_store(t.b, pointer, value, mask, order, _LANGUAGE_SCOPES[op.attributes["scope"]])
    return ordered(t, token, order)


def ordered(t: BytecodeTranslation, token: AccessToken | None, order: str) -> AccessToken:
    """The token of an access with an order: what follows one that acquires lies behind it in all lanes."""
    after = t.order.after(token, WRITE)
    if order in ("acquire", "acq_rel"):
        t.order.acquired()
    return after


def _before_atomic(t: BytecodeTranslation, token: AccessToken | None, order: str) -> None:
    if order not in ("release", "acq_rel"):
        t.order.before(t.b, token, WRITE)


@meaning("atomic_rmw_tko")
def read_modify_write(t: BytecodeTranslation, op: BytecodeOperation) -> list[Any]:
    pointer, value, token = t.tile(op, "pointers"), t.tile(op, "value"), t.token(op)
    order, scope = _ordering(op)
    _before_atomic(t, token, order)
    found = t.b.atomic_rmw(KINDS[op.attributes["mode"]], pointer, value, t.optional(op, "mask"), order, scope)
    return [found, ordered(t, token, order)]


@meaning("atomic_cas_tko")
def compare_and_swap(t: BytecodeTranslation, op: BytecodeOperation) -> list[Any]:
    """Where the mask of a scalar is false nothing is accessed, and the result, which may be anything, is zero."""
    pointer, (compared, value), token = t.tile(op, "pointers"), t.same(op, "compare", "value"), t.token(op)
    mask = t.optional(op, "mask")
    order, scope = _ordering(op)
    _before_atomic(t, token, order)
    if mask is None:
        return [t.b.atomic_cas(pointer, compared, value, order, scope), ordered(t, token, order)]
    if pointer.is_tile:
        raise t.refusal(op, "atomic_cas_tko of a tile with a mask is not imported", note="of a scalar it is")
    accessed, left_out = Block(), Block()
    with t.inside(accessed):
        found = t.b.atomic_cas(pointer, compared, value, order, scope)
    with t.inside(left_out):
        zero = constant(t.b, 0, value.dtype)
    results = t.b.branch(mask, accessed, left_out, [(found, zero)])
    return [RuntimeValue(results[0], value.type), t.order.after(token, WRITE)]


def _ordering(op: BytecodeOperation) -> tuple[str, str]:
    return op.attributes["semantics"], SCOPES[op.attributes["scope"]]
