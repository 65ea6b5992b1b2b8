"""Reads litmus tests in columns: a line of the test's name, `{ … }` of initial values, a column a thread, a condition on the end.

    LITMUS message-passing
    { x=0; y=0; 1:r0=0; }
    P0@workgroup 0,device 0 | P1@workgroup 1,device 0 ;
    st.weak x, 1            | ld.acquire.device r0, y ;
    st.release.device y, 1  | ld.weak r1, x           ;
    ~exists (1:r0 == 1 /\\ 1:r1 == 0)

A dialect gives the words for scopes, places and ways to memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tilefw.sim.memory.litmus.condition import read_condition
from tilefw.sim.memory.litmus.test import LitmusStep, LitmusTest, Operand
from tilefw.sim.memory.views.events import GENERIC, Order, Participant, SyncScope

_ORDERS: dict[str, Order] = {
    "weak": "weak", "relaxed": "relaxed", "acquire": "acquire", "release": "release", "acq_rel": "acq_rel", "sc": "sc",
}
_ACCESSES = {"ld": ("load", GENERIC), "st": ("store", GENERIC), "atom": ("update", GENERIC), "red": ("reduce", GENERIC)}
_BRANCHES = {"beq": "==", "bne": "!=", "blt": "<", "bgt": ">", "ble": "<=", "bge": ">="}
_ARITHMETIC = ("add", "sub", "mul")


@dataclass(frozen=True)
class LitmusDialect:
    """The words of a family of tests. `accesses`: a mnemonic to (what it is, its way to memory)."""

    scopes: Mapping[str, SyncScope]
    ways: Mapping[str, str] = field(default_factory=lambda: {"generic": GENERIC})
    accesses: Mapping[str, tuple[str, str]] = field(default_factory=lambda: dict(_ACCESSES))


PLAIN = LitmusDialect({"workgroup": SyncScope.WORKGROUP, "device": SyncScope.DEVICE, "system": SyncScope.SYSTEM})


class LitmusTextError(ValueError):
    """Text that is no litmus test of its dialect: the test, and the words that are not understood."""


def read(text: str, dialect: LitmusDialect = PLAIN) -> LitmusTest:
    """The test that a text describes."""
    text = re.sub(r'"[^"]*"', "", text)
    head, brace, rest = text.partition("{")
    name = head.split(maxsplit=1)[1].strip() if len(head.split()) > 1 else ""
    initial, closing, rest = rest.partition("}")
    found = re.search(r"(~\s*exists|exists|forall)", rest)
    if not (brace and closing and found):
        raise LitmusTextError(f"{name or 'a test'}: no initial values in braces, or no exists, ~exists or forall")
    rows = [line.strip() for line in rest[: found.start()].splitlines() if line.strip(" ;")]
    if not rows:
        raise LitmusTextError(f"{name}: no threads between the initial values and the condition")
    places = tuple(_place(name, cell) for cell in _cells(rows[0]))
    memory, registers, aliases = _initial(initial, dialect)
    threads = tuple(
        _thread(name, [cell for row in rows[1:] if (cells := _cells(row)) and len(cells) > i and (cell := cells[i])], dialect)
        for i in range(len(places))
    )
    for step in (step for thread in threads for step in thread if step.address):
        if step.address not in aliases:
            memory.setdefault(step.address, 0)
    try:
        condition = read_condition(found[1].replace(" ", ""), rest[found.end() :])
    except (ValueError, SyntaxError) as error:
        raise LitmusTextError(f"{name}: {rest[found.end() :].strip()!r} is no condition: {error}") from error
    for location in condition.asks:
        if ":" not in location and location not in aliases:
            memory.setdefault(location, 0)
    return LitmusTest(name, places, threads, condition, memory, registers, aliases)


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.rstrip().rstrip(";").split("|")]


def _place(name: str, cell: str) -> Participant:
    found = re.fullmatch(r"P\d+\s*@\s*\w+\s+(\d+)\s*,\s*\w+\s+(\d+)", cell)
    if not found:
        raise LitmusTextError(f"{name}: a thread's place was expected, like P0@workgroup 0,device 0, and not {cell!r}")
    return Participant(device=int(found[2]), workgroup=int(found[1]))


def _initial(
    text: str, dialect: LitmusDialect
) -> tuple[dict[str, int], dict[tuple[int, str], int], dict[object, tuple[object, object]]]:
    memory: dict[str, int] = {}
    registers: dict[tuple[int, str], int] = {}
    aliases: dict[object, tuple[object, object]] = {}
    for item in filter(None, (part.strip() for part in text.split(";"))):
        if found := re.fullmatch(r"(\w+)\s*@\s*(\w+)\s+aliases\s+(\w+)", item):
            alias, kind, other = found.groups()
            if kind not in dialect.ways:
                raise LitmusTextError(f"{kind!r} in {item!r} is none of the ways {', '.join(dialect.ways)}")
            location, generic = aliases.get(other, (other, other))
            aliases[alias] = location, alias if dialect.ways[kind] == GENERIC else generic
        elif found := re.fullmatch(r"P?(\d+)\s*:\s*(\w+)\s*=\s*(-?\d+)", item):
            registers[int(found[1]), found[2]] = int(found[3])
        elif found := re.fullmatch(r"(\w+)\s*=\s*(-?\d+)", item):
            memory[found[1]] = int(found[2])
        else:
            raise LitmusTextError(f"an initial value was expected, like x=0 or 1:r0=0, and not {item!r}")
    return memory, registers, aliases


def _thread(name: str, cells: list[str], dialect: LitmusDialect) -> tuple[LitmusStep, ...]:
    labels: dict[str, int] = {}
    lines: list[str] = []
    for cell in cells:
        if found := re.fullmatch(r"(\w+):", cell):
            labels[found[1]] = len(lines)
        else:
            lines.append(cell)
    try:
        return tuple(_step(line, labels, dialect) for line in lines)
    except (KeyError, IndexError, ValueError) as error:
        raise LitmusTextError(f"{name}: a word or an operand is not understood in one of {lines}: {error}") from error


def _step(line: str, labels: Mapping[str, int], dialect: LitmusDialect) -> LitmusStep:
    word, _, rest = line.partition(" ")
    operands: tuple[Operand, ...] = tuple(_operand(part.strip()) for part in rest.split(",") if part.strip())
    parts = word.split(".")
    if parts[0] == "fence":
        return _fence(parts, dialect)
    if parts[0] in ("bar", "barrier"):
        return LitmusStep("arrive" if parts[-1] == "arrive" else "sync", key=int(operands[0]), operands=operands[1:])
    if parts[0] == "goto":
        return LitmusStep("branch", operands=(0, 0), action="==", goal=labels[str(operands[0])])
    if parts[0] in _BRANCHES:
        return LitmusStep("branch", operands=operands[:2], action=_BRANCHES[parts[0]], goal=labels[str(operands[2])])
    if parts[0] in _ARITHMETIC:
        return LitmusStep("set", register=str(operands[0]), operands=operands[1:3], action=parts[0])
    if len(parts) == 1 and dialect.accesses[parts[0]][0] == "load":
        return LitmusStep("set", register=str(operands[0]), operands=(operands[1], 0), action="add")
    return _access(parts, operands, dialect)


def _access(parts: list[str], operands: tuple[Operand, ...], dialect: LitmusDialect) -> LitmusStep:
    what, way = dialect.accesses[parts[0]]
    order = _ORDERS[parts[1]]
    scope = dialect.scopes[parts[2]] if order != "weak" else SyncScope.SELF
    wanted = {"load": 2, "store": 2, "reduce": 2, "update": 4 if parts[-1] == "cas" else 3}[what]
    if len(operands) != wanted:
        raise ValueError(f"{'.'.join(parts)} has {wanted} operands, not {len(operands)}")
    if what == "load":
        return LitmusStep("load", str(operands[0]), str(operands[1]), (), order, scope, way)
    if what == "store":
        return LitmusStep("store", "", str(operands[0]), operands[1:2], order, scope, way)
    if what == "reduce":
        return LitmusStep("update", "", str(operands[0]), operands[1:], order, scope, way, parts[3])
    return LitmusStep("update", str(operands[0]), str(operands[1]), operands[2:], order, scope, way, parts[3])


def _fence(parts: list[str], dialect: LitmusDialect) -> LitmusStep:
    if parts[1] != "proxy":
        return LitmusStep("fence", order=_ORDERS[parts[1]], scope=dialect.scopes[parts[2]])
    return LitmusStep("fence_names") if parts[2] == "alias" else LitmusStep("fence_way", way=dialect.ways[parts[2]])


def _operand(text: str) -> Operand:
    return int(text) if re.fullmatch(r"-?\d+", text) else text
