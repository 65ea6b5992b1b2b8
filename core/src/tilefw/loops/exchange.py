"""Atomics of all kinds on a machine that has a compare-and-swap: read, compute, exchange, until nobody came between."""

from __future__ import annotations

from typing import Any

from tilefw.loops.machine import ElementMemory, LoopAtomic, LoopMachine, V
from tilefw.simt.expand.builder import TYPES, Legal

_ROWS = {
    "maxs": "maxs", "maxu": "maxu", "mins": "mins", "minu": "minu", "and": "andi", "or": "ori", "xor": "xori",
}
_ORDERED = {"maxf": "ges", "minf": "les"}
"""Of floats that are ordered as IEEE 754's totalOrder orders them: how their keys compare where the old value stays."""


def by_exchange(machine: LoopMachine[V], access: LoopAtomic[V]) -> V:
    """Any read-modify-write as a loop around `cas` of the integer of its width; the value is what was there before."""
    legal = Legal(machine, machine.rules)
    word = f"i{TYPES[access.type].storage_bits}"
    (operand,) = access.operands
    size = TYPES[access.type].storage_bits // 8
    memory: ElementMemory[V] = ElementMemory(access.address, machine.const(0, "i64"), alignment=size, volatile=True)
    old = machine.variable(word)
    machine.assign(old, machine.load(memory, word, 1))
    with machine.forever():
        seen = machine.read(old)
        made = _bits(legal, _combined(legal, access, _value(legal, seen, access.type), operand), word)
        found = machine.atomic(LoopAtomic("cas", word, access.address, (seen, made), access.order, access.scope))
        machine.assign(old, found)
        machine.leave(legal("eqi", found, seen))
    return _value(legal, machine.read(old), access.type)


def _combined(legal: Legal, access: LoopAtomic[Any], old: Any, operand: Any) -> Any:
    if access.kind == "xchg":
        return operand
    if access.kind == "add":
        return legal("addi" if access.type.startswith("i") else "addf", old, operand)
    if access.kind in _ORDERED:
        first, second = (_key(legal, value) for value in (old, operand))
        return legal("select", legal(_ORDERED[access.kind], first, second), old, operand)
    return legal(_ROWS[access.kind], old, operand)


def _key(legal: Legal, value: Any) -> Any:
    """An integer that is ordered as the float is: the bits below the sign count down where it is set."""
    bits = TYPES[legal.type_of(value)].bits
    code = _bits(legal, value, f"i{bits}")
    sign = legal("shrs", code, legal.integer(bits - 1, f"i{bits}"))
    return legal("xori", code, legal("andi", sign, legal.integer((1 << (bits - 1)) - 1, f"i{bits}")))


def _bits(legal: Legal, value: Any, word: str) -> Any:
    return value if legal.type_of(value) == word else legal("bitcast", value, to=word)


def _value(legal: Legal, code: Any, type_: str) -> Any:
    return code if legal.type_of(code) == type_ else legal("bitcast", code, to=type_)
