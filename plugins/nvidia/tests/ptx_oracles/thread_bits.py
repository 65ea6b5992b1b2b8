"""On which bits of the thread's index a register may depend: a guard that only keeps equal threads from repeating a store can go.

Flow-insensitive over the registers of a kernel whose threads all take the same branches. What a load gives depends on what its
address depends on: threads that read one place between the same barriers read the same bytes, or they race. After
x + shuffle(x, lane ^ 2^k), or any other commutative operation, bit k no longer matters.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from oracles.site import Site

_LINE = re.compile(r"^\s*(?:@!?(?P<guard>%\w+)\s+)?(?P<opcode>[a-z][\w.:]*)\s*(?P<operands>[^;]*);")
_GUARDED = re.compile(r"@(?P<guard>%p\d+) (?P<opcode>st\.|cp\.async\.c[ag])(?P<rest>.*);")
_REGISTER = re.compile(r"%[a-z]+\d+")
_OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,{\[\]}]+")
_COMMUTATIVE = ("add", "mul", "max", "min", "and", "or", "xor")
_WITHOUT_RESULT = ("st", "cp", "red", "bra", "bar", "ret", "ld.param")
_WIDTH = 32
_LANE_BITS = frozenset(range(5))
_COMPUTED = -1  # stands in the set of a position that is not a plain copy of a thread's bit

Bits = tuple[frozenset[int], ...]
_NONE: Bits = (frozenset(),) * _WIDTH


@dataclass(frozen=True, slots=True)
class _Node:
    guard: str | None
    opcode: str
    operands: tuple[str, ...]

    @property
    def results(self) -> list[str]:
        return [] if self.opcode.startswith(_WITHOUT_RESULT) or not self.operands else _REGISTER.findall(self.operands[0])

    @property
    def sources(self) -> list[str]:
        return _REGISTER.findall(",".join(self.operands[1:] if self.results else self.operands))


def repeated_store(ptx: str, site: Site) -> str:
    """Why stores without a guard, or without one of its conditions, write the same to the same places; empty where that is open."""
    facts = _facts(ptx)
    if match := _GUARDED.fullmatch(site.before):
        kept, used = facts.zero_bits(match["guard"]), facts.of(_REGISTER.findall(match["rest"]))
    else:
        left_out, remaining, predicate = _condition(site)
        kept, used = facts.zero_bits(left_out), facts.of(remaining) | facts.of_stores_under(predicate)
    if not kept or kept & (used | facts.of_branches()):
        return ""
    bits = ", ".join(map(str, sorted(kept)))
    return f"proved: threads that differ in the bits {bits} of their index alone store the same bytes to the same place"


def _condition(site: Site) -> tuple[str, list[str], str]:
    """The condition that was left out (a predicate, or the register of a comparison with 0), what remains, and the result."""
    before, after = _LINE.match(site.before), _LINE.match(site.after)
    if site.kind != "condition" or before is None or after is None:
        return "", [], ""
    result, *terms = _operands(before["operands"])
    remaining = _operands(after["operands"])[1:]
    left_out = [term for term in terms if term not in remaining]
    compared_with_zero = before["opcode"].startswith("setp.eq.and") and left_out[1:] == ["0"]
    return (left_out[0] if len(left_out) == 1 or compared_with_zero else ""), _REGISTER.findall(",".join(remaining)), result


@functools.lru_cache(4)
def _facts(ptx: str) -> _ThreadBits:
    return _ThreadBits(ptx)


class _ThreadBits:
    """For each register and each of its bits, the thread's bits that may decide it: a fixed point over all instructions."""

    def __init__(self, ptx: str) -> None:
        matches = [_LINE.match(line.split("//")[0]) for line in ptx.splitlines()]
        self._nodes = [_Node(m["guard"], m["opcode"], tuple(_operands(m["operands"]))) for m in matches if m]
        self._made: dict[str, list[_Node]] = {}
        for node in self._nodes:
            for result in node.results:
                self._made.setdefault(result, []).append(node)
        self._bits: dict[str, Bits] = {}
        while self._step():
            pass

    def of(self, registers: list[str]) -> frozenset[int]:
        """The thread's bits that decide any of these registers."""
        return frozenset().union(*(s for r in registers for s in self._bits.get(r, _NONE)), frozenset()) - {_COMPUTED}

    def of_branches(self) -> frozenset[int]:
        return self.of([node.guard for node in self._nodes if node.opcode.startswith("bra") and node.guard])

    def of_stores_under(self, predicate: str) -> frozenset[int]:
        """The thread's bits that decide what stores and copies under the predicate do; all bits where it has other uses."""
        users = [node for node in self._nodes if node.guard == predicate or predicate in node.sources]
        stores = all(node.guard == predicate and node.opcode.startswith(("st.", "cp.async.c")) for node in users)
        if not stores or len(self._made.get(predicate, [])) != 1:
            return frozenset(range(_WIDTH))
        return self.of([register for node in users for register in node.sources])

    def zero_bits(self, name: str) -> frozenset[int]:
        """The thread's bits that are all zero exactly where the predicate holds, or the register is 0; empty for other ones."""
        made = self._made.get(name, [])
        if len(made) != 1:
            return frozenset()
        if name.startswith("%p"):
            if made[0].opcode not in ("setp.eq.s32", "setp.eq.u32", "setp.eq.b32") or made[0].operands[2] != "0":
                return frozenset()
            name = made[0].operands[1]
        positions = self._value(name)
        plain = all(len(s) <= 1 and _COMPUTED not in s for s in positions)
        return frozenset().union(*positions) if plain else frozenset()

    def _step(self) -> bool:
        grown = False
        for node in self._nodes:
            value = self._result(node)
            if node.guard is not None:
                value = _union(value, _spread(self.of([node.guard])))
            for result in node.results:
                joined = _union(self._bits.get(result, _NONE), value)
                grown |= joined != self._bits.get(result)
                self._bits[result] = joined
        return grown

    def _result(self, node: _Node) -> Bits:
        head = node.opcode.split(".")[0]
        if node.opcode in ("mov.u32", "mov.b32") and not node.operands[0].startswith("{"):
            return self._value(node.operands[1])
        if node.opcode in ("and.b32", "xor.b32", "or.b32", "shl.b32", "shr.u32"):
            return self._of_bits(head, *map(self._value, node.operands[1:]), literal=node.operands[2])
        if head in ("ldmatrix", "mma"):
            return _spread(self.of(node.sources) | _LANE_BITS)
        return _spread(self.of(node.sources) - self._combined(node))

    def _of_bits(self, head: str, a: Bits, b: Bits, literal: str) -> Bits:
        if not literal.isdigit():
            return _union(a, b) if head not in ("shl", "shr") else _spread(frozenset().union(*a, *b))
        number = int(literal)
        if head == "and":
            return tuple(s if number >> i & 1 else frozenset() for i, s in enumerate(a))
        if head == "shl":
            return ((frozenset(),) * number + a)[:_WIDTH]
        if head == "shr":
            return a[number:] + (frozenset(),) * number
        flipped = frozenset({_COMPUTED})
        return tuple(s | flipped if number >> i & 1 else s for i, s in enumerate(a))

    def _combined(self, node: _Node) -> frozenset[int]:
        """The lane's bit that x op shuffle(x) rids of."""
        if node.opcode.split(".")[0] not in _COMMUTATIVE or len(node.operands) != 3:
            return frozenset()
        for value, other in (node.operands[1:], node.operands[:0:-1]):
            made = self._made.get(other, [])
            if len(made) == 1 == len(self._made.get(value, [])) and made[0].opcode.startswith("shfl.sync.bfly"):
                distance = made[0].operands[2]
                if made[0].operands[1] == value and distance.isdigit() and int(distance).bit_count() == 1:
                    return frozenset({int(distance).bit_length() - 1})
        return frozenset()

    def _value(self, operand: str) -> Bits:
        if operand == "%tid.x":
            return tuple(frozenset({i}) for i in range(_WIDTH))
        return self._bits.get(operand, _NONE)


def _operands(text: str) -> list[str]:
    return [part for part in (found.strip() for found in _OPERAND.findall(text)) if part]


def _union(a: Bits, b: Bits) -> Bits:
    return tuple(x | y for x, y in zip(a, b, strict=True))


def _spread(bits: frozenset[int]) -> Bits:
    return (bits | {_COMPUTED} if bits else bits,) * _WIDTH
