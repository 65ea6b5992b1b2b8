"""What begins a value and ends none stands right before what reads it; all else keeps its place, programs what they compute."""

from __future__ import annotations

import random

import pytest
from test_early_ends import TABLE, stored

from tilefw.machine.late_begins import late_begins
from tilefw.machine.text import parse_function


def moved(*lines: str) -> list[str]:
    """The entry block's instructions after the pass, as opcode and result."""
    body = "".join(f"  {line}\n" for line in (*lines, "ret"))
    function = parse_function(f'func @f target "toy"\n  regs v: 0-9\nentry:\n{body}')
    late_begins(function, TABLE, apart=1)
    return [f"{i.opcode} {i.defs[0].reg.id}" if i.defs else i.opcode for i in function.blocks[0].insts]


def test_elements_of_an_index_stand_where_they_are_read() -> None:
    found = moved("%0 = set 1", "%1 = add %0, 1", "%2 = add %0, 2", "%3 = add %0, 3", "st %1", "st %2", "st %3", "st %0")
    assert found == ["set 0", "add 1", "st", "add 2", "st", "add 3", "st", "st", "ret"]


@pytest.mark.parametrize("lines", [
    ["%0 = set 1", "%1 = neg %0", "st 0", "st 0", "st %1"],  # what it reads would live longer
    ["%0 = set 1", "%1 = add %0, 1", "st 0", "%0 = set 2", "st %1", "st %0"],  # what it reads is another value there
    ["%0 = set 1", "%1 = lds %0", "st 0", "st 0", "st %1", "st %0"],  # memory may be
], ids=["ends", "written", "memory"])
def test_all_else_stays(lines: list[str]) -> None:
    opcodes = [line.partition(" = ")[2].split()[0] if "=" in line else "st" for line in lines]
    assert [each.split()[0] for each in moved(*lines)] == [*opcodes, "ret"]


def test_what_stands_near_stays() -> None:
    for between, found in ((15, 1), (16, 17)):
        body = "\n  ".join(["%0 = set 1", "%1 = add %0, 1", *["st 0"] * between, "st %1", "st %0"])
        function = parse_function(f'func @f target "toy"\n  regs v: 0-9\nentry:\n  {body}\n  ret\n')
        late_begins(function, TABLE)
        assert [inst.opcode for inst in function.blocks[0].insts].index("add") == found


def test_blocks_store_what_they_did() -> None:
    moves = 0
    for seed in range(200):
        rng = random.Random(seed)
        lines, live = ["%0 = set 0"], [0]
        for i in range(1, 40):
            opcode = rng.choice(["set", "ld", "lds", "neg", "add", "add", "add", "st"])
            uses = [f"%{rng.choice(live[-12:])}" for _ in range({"add": 2, "neg": 1, "st": 1}.get(opcode, 0))] or [str(i)]
            live += [] if opcode == "st" else [i]
            lines.append(f"  {'' if opcode == 'st' else f'%{i} = '}{opcode} {', '.join(uses)}")
        body = "\n".join(lines)
        function = parse_function(f'func @f target "toy"\n  regs v: 0-39\nentry:\n  {body}\n  ret\n')
        before = stored(function.blocks[0].insts)
        moves += late_begins(function, TABLE, apart=1)
        assert stored(function.blocks[0].insts) == before, body
    assert moves > 100
