"""What execution with tokens takes for a right allocation and what not, on code of a few instructions."""

from __future__ import annotations

import pytest

from oracles import tokens
from tilefw.machine.check_allocation import snapshot
from tilefw.machine.inst import Function
from tilefw.machine.table import EFFECT, JUMP, MOVE, PURE, InstructionTraits, RegisterClass, from_dict
from tilefw.machine.text import parse_function

TABLE = from_dict(
    "toy", {"op": PURE, "set": InstructionTraits(cheap=True), "copy": MOVE, "store": EFFECT, "branch": EFFECT, "end": JUMP},
    [RegisterClass("v", 32, 8)],
)
# Virtual code | what it becomes; a line that has one side alone went away or was added.
_RIGHT = {
    "registers of their own": """entry:
        %0 = op 1   | $v[0:1] = op 1
        %1 = op 2   | $v[1:1] = op 2
        store %0    | store $v[0:1]
        store %1    | store $v[1:1]""",
    "a copy whose sides are one register": """entry:
        %0 = op 1    | $v[0:1] = op 1
        %1 = copy %0 |
        store %1     | store $v[0:1]
        store %0     | store $v[0:1]""",
    "a value that waits elsewhere": """entry:
        %0 = op 1   | $v[0:1] = op 1
                    | $v[5:1] = copy $v[0:1]
        %1 = op 2   | $v[0:1] = op 2
        store %1    | store $v[0:1]
                    | $v[3:1] = copy $v[5:1]
        store %0    | store $v[3:1]""",
    "a constant that is made again": """entry:
        %0 = set 7  | $v[0:1] = set 7
        %1 = op 2   | $v[0:1] = op 2
        store %1    | store $v[0:1]
                    | $v[3:1] = set 7
        store %0    | store $v[3:1]""",
    "what nobody has written": """entry:
        store %0    | store $v[4:1]""",
}
_WRONG = {
    "two values in one register": """entry:
        %0 = op 1   | $v[0:1] = op 1
        %1 = op 2   | $v[0:1] = op 2
        store %0    | store $v[0:1]
        store %1    | store $v[0:1]""",
    "another register than was written": """entry:
        %0 = op 1   | $v[0:1] = op 1
        store %0    | store $v[1:1]""",
    "another constant": """entry:
        %0 = set 7  |
                    | $v[3:1] = set 8
        store %0    | store $v[3:1]""",
    "a copy of an older value": """entry:
        %0 = op 1    | $v[0:1] = op 1
                     | $v[1:1] = copy $v[0:1]
        %0 = op %0   | $v[0:1] = op $v[0:1]
        store %0     | store $v[1:1]""",
    "lost in a later iteration": """entry:
        %0 = op 1   | $v[0:1] = op 1
        loop:
        store %0    | store $v[0:1]
        %1 = op 2   | $v[0:1] = op 2
        store %1    | store $v[0:1]
        branch {targets=loop} | branch {targets=loop}
        last:
        end         | end""",
    "lost where a branch is taken": """entry:
        %0 = op 1   | $v[0:1] = op 1
        branch {targets=last} | branch {targets=last}
        other:
        %0 = op 2   | $v[1:1] = op 2
        last:
        store %0    | store $v[1:1]""",
}


def _differs(rows: str) -> str:
    sides: list[list[str]] = [[], []]
    pairs: list[list[tuple[bool, bool]]] = []
    for row in rows.splitlines():
        if row.strip().endswith(":"):
            pairs.append([])
            found = [row.strip(), row.strip()]
        else:
            found = [side.strip() for side in row.split("|")]
            pairs[-1].append((bool(found[0]), bool(found[1])))
        for lines, side in zip(sides, found, strict=True):
            lines.append(f"  {side}\n" if side and not side.endswith(":") else f"{side}\n" if side else "")
    virtual, physical = (_parsed("".join(lines)) for lines in sides)
    before = snapshot(virtual)
    for block, other, kept in zip(virtual.blocks, physical.blocks, pairs, strict=True):
        old, new = iter(block.insts), iter(other.insts)
        block.insts = []
        for has_old, has_new in kept:
            inst, to = next(old) if has_old else None, next(new) if has_new else None
            if inst is not None and to is not None:
                inst.defs, inst.uses = to.defs, to.uses
            if to is not None:
                block.insts.append(inst or to)
    return tokens.differs(before, virtual, TABLE)


def _parsed(lines: str) -> Function:
    return parse_function(f'func @f target "toy"\n  regs v: 0-1\n  file v: 8\n{lines}')


@pytest.mark.parametrize("name", _RIGHT)
def test_right_allocations(name: str) -> None:
    assert _differs(_RIGHT[name]) == ""


@pytest.mark.parametrize("name", _WRONG)
def test_wrong_allocations(name: str) -> None:
    assert "does not hold" in _differs(_WRONG[name])
