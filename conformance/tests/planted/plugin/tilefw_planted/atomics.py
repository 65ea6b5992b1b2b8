"""Bugs of atomics: not atomic at all, the wrong kind or result, masks and orders ignored."""

from __future__ import annotations

from tilefw.passes.rewriting import exchange, insert
from tilefw.tile import types
from tilefw.tile.dialect.atomic_ops import KINDS
from tilefw.tile.dialect.base import string_attr
from tilefw.tile.dialect.ops import AtomicCasOp, AtomicRmwOp, LoadOp, StoreOp
from tilefw_planted.bug import Bug, changed, made

_ROWS = {"maxs": "maxs", "maxu": "maxu", "mins": "mins", "minu": "minu", "and": "andi", "or": "ori", "xor": "xori"}
_OTHER_SIGN = {"maxs": "maxu", "maxu": "maxs", "mins": "minu", "minu": "mins"}
_OTHER_KIND = {
    "and": "or", "or": "and", "xor": "or",
    "maxs": "mins", "mins": "maxs", "maxu": "minu", "minu": "maxu", "maxf": "minf", "minf": "maxf",
}


def _is_tile(op: object) -> bool:
    return isinstance(op, AtomicRmwOp) and _row(op) is not None and types.is_tile(op.results[0].type)


def _row(op: AtomicRmwOp) -> str | None:
    return ("addf" if types.is_float(op.value.type) else "addi") if op.kind == "add" else _ROWS.get(op.kind)


def _plain(op: AtomicRmwOp) -> None:
    """A load, the operation, a store."""
    old = insert(LoadOp(op.pointer, op.offsets, op.mask), op)
    new = made(_row(op) or "", old, op.value, before=op)
    store = StoreOp(op.pointer, new, op.offsets, op.mask)
    store.location = op.location
    assert op.parent is not None
    op.parent.insert_op_before(store, op)
    op.results[0].replace_all_uses_with(old)
    op.detach()
    op.erase()


def _is_masked(op: object) -> bool:
    return isinstance(op, AtomicRmwOp | AtomicCasOp) and op.mask is not None


def _kind(op: AtomicRmwOp, kind: str) -> None:
    op.properties["kind"] = string_attr(kind)


def _new_value(op: AtomicRmwOp) -> None:
    value = op.value
    if op.kind == "xchg":
        changed(op, lambda old, before: value)
    else:
        changed(op, lambda old, before: made(_row(op) or "", old, value, before=before))


def _says_old(op: object) -> bool:
    return isinstance(op, AtomicRmwOp) and op.result_is_used and (op.kind == "xchg" or _row(op) is not None)


def _always(op: AtomicCasOp) -> None:
    exchange(op, AtomicRmwOp("xchg", op.pointer, op.value, op.offsets, op.mask, order=op.order, scope=op.scope))


BUGS = [
    Bug("atomic-as-plain", "an atomic of a tile is a load and a store", "for addresses that come twice", _is_tile, _plain),
    Bug(
        "atomic-unmasked", "an atomic ignores its mask", "in elements that must stay",
        _is_masked, lambda op: exchange(op, op.rebuilt(op.pointer, op.offsets, None)),
    ),
    Bug(
        "atomic-other-sign", "a signed atomic minimum or maximum is unsigned, or the other way", "with a top bit set",
        lambda op: isinstance(op, AtomicRmwOp) and op.kind in _OTHER_SIGN, lambda op: _kind(op, _OTHER_SIGN[op.kind]),
    ),
    Bug(
        "atomic-other-kind", "and, or, xor, minimum or maximum is another of them", "where bits differ",
        lambda op: isinstance(op, AtomicRmwOp) and op.kind in _OTHER_KIND, lambda op: _kind(op, _OTHER_KIND[op.kind]),
    ),
    Bug("atomic-gives-new", "an atomic gives what it wrote, not what it found", "where the two differ", _says_old, _new_value),
    Bug(
        "cas-always", "a compare-and-swap exchanges without comparing", "where the compare fails",
        lambda op: isinstance(op, AtomicCasOp) and types.element_of(op.value.type) in KINDS["xchg"].elements, _always,
    ),
    Bug(
        "atomic-unordered", "an atomic's acquire and release are left out", "where it orders other accesses",
        lambda op: isinstance(op, AtomicRmwOp | AtomicCasOp) and op.order != "relaxed",
        lambda op: op.properties.update(order=string_attr("relaxed")), frozenset({"races"}),
    ),
    Bug(
        "atomic-narrow-scope", "an atomic for the device is one for its own program", "where programs meet",
        lambda op: isinstance(op, AtomicRmwOp | AtomicCasOp) and op.scope != "workgroup",
        lambda op: op.properties.update(scope=string_attr("workgroup")), frozenset({"races"}),
    ),
]
