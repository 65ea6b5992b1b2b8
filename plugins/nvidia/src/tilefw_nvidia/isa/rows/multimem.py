"""Accesses through multimem addresses (PTX ISA, "Data Movement and Conversion Instructions": multimem.ld_reduce, .st, .red).

A multimem address stands for one place in the memory of several cards; no other instruction may have one.
"""

from __future__ import annotations

from tilefw.api.sim import MULTICAST
from tilefw_nvidia.isa.model import Chapter, Facts, Modifiers
from tilefw_nvidia.isa.rows.memory import SCOPE, SCOPES
from tilefw_nvidia.isa.types import TYPES

CHAPTER = Chapter()
form = CHAPTER.form

SECTION = "Data Movement and Conversion Instructions: multimem"
_FACTS: Facts = dict(unit=MULTICAST, section=SECTION, ptx="8.1", since=90)
_PAIRS = "f16x2 bf16x2"


def _operation(op: str, type_name: str) -> tuple[str, str]:
    """The algebra's operation and float format."""
    kind = TYPES[type_name]
    if kind.kind == "float":
        return f"f{op}", type_name
    return (f"{op}_{'s' if kind.signed else 'u'}", "") if op in ("min", "max") else (op, "")


def _count(m: Modifiers) -> int:
    return int(m.vec[1:]) if m.vec else 1


def _scope(m: Modifiers) -> str:
    return SCOPE[m.scope] if m.scope else "device"


def _aligned(m: Modifiers, meaning):
    """The meaning, at addresses that are multiples of the whole vector."""
    size = _count(m) * TYPES[m.type].bits // 8

    def checked(lanes, address, *values):
        rest = lanes.and_(address, lanes.const(size - 1, 64))
        lanes.require(
            lanes.compare(rest, lanes.const(0, 64), "eq", False), f"the address of a multimem access is no multiple of {size} bytes"
        )
        return meaning(lanes, address, *values)

    return checked


def _load(m: Modifiers):
    """d = what all copies of the place hold, combined."""
    op, fmt = _operation(m.op or "add", m.type)
    bits, count, order = TYPES[m.type].bits, _count(m), m.sem or "weak"
    wide, scope = bool(m.acc), _scope(m)
    return _aligned(
        m, lambda lanes, address: lanes.multicast_load(address, op, fmt, bits, count, wide=wide, order=order, scope=scope)
    )


def _store(m: Modifiers):
    """Every copy of the place = b."""
    order, scope = m.sem or "weak", _scope(m)
    return _aligned(m, lambda lanes, address, *values: lanes.multicast_store(address, values, order=order, scope=scope))


def _reduce(m: Modifiers):
    """Every copy of the place becomes op(it, b), atomically."""
    op, fmt = _operation(m.op or "add", m.type)
    order, scope = m.sem or "relaxed", _scope(m)
    return _aligned(
        m, lambda lanes, address, *values: lanes.multicast_atomic(address, op, values, fmt, order=order, scope=scope)
    )


_ORDERS = {"ld_reduce": "relaxed acquire", "red": "relaxed release", "st": "relaxed release"}
_MEANINGS = {"ld_reduce": _load, "red": _reduce, "st": _store}


def _both(name: str, rest: str, **facts: str) -> None:
    """An instruction without an order, and with one, which takes a scope."""
    plain = "" if name == "red" else "{.weak}"
    acc = {"acc": "acc::f32", "needs": {"acc::f32": ("8.2", 90)}} if ".acc" in rest else {}
    form(f"multimem.{name}{plain}{{.global}}{rest}", **_FACTS, **facts, **acc)(_MEANINGS[name])
    ordered: Facts = dict(sem=_ORDERS[name], scope=SCOPES)
    form(f"multimem.{name}.sem.scope{{.global}}{rest}", **_FACTS, **facts, **acc, **ordered)(_MEANINGS[name])


for _ops, _types in (("add", "u32 s32 u64"), ("min max", "u32 s32 u64 s64"), ("and or xor", "b32 b64"), ("add", "f32 f64")):
    _both("ld_reduce", ".op.type d, [a]", op=_ops, type=_types)
    _both("red", ".op.type [a], b", op=_ops, type=_types)
_both("ld_reduce", ".op.type d, [a]", op="min max", type=_PAIRS)
_both("ld_reduce", ".add{.acc}.type d, [a]", type=_PAIRS)
_both("red", ".add.type [a], b", type=_PAIRS)
_both("st", ".type [a], b", type=f"b32 u32 s32 b64 u64 s64 f32 f64 {_PAIRS}")
for _types, _vec in (("f32", "v2 v4"), (_PAIRS, "v2 v4"), ("f16 bf16", "v2 v4 v8")):
    _both("ld_reduce", f".add{'' if _types == 'f32' else '{.acc}'}.vec.type d*vec, [a]", type=_types, vec=_vec)
    _both("st", ".vec.type [a], b*vec", type=_types, vec=_vec)
    _both("red", ".add.vec.type [a], b*vec", type=_types, vec=_vec)
    if _types != "f32":
        _both("ld_reduce", ".op.vec.type d*vec, [a]", op="min max", type=_types, vec=_vec)
