"""What ends more values than it makes stands right behind what it reads; all else keeps its place, programs what they compute."""

from __future__ import annotations

import random

from tilefw.machine.early_ends import early_ends
from tilefw.machine.inst import Inst, Slice
from tilefw.machine.table import EFFECT, JUMP, PURE, InstructionTraits, RegisterClass, from_dict
from tilefw.machine.text import parse_function

LOAD, READ = InstructionTraits(memory="global"), InstructionTraits(memory="shared")
OPCODES = {"add": PURE, "neg": PURE, "set": PURE, "ld": LOAD, "lds": READ, "st": EFFECT, "br": EFFECT, "ret": JUMP}
TABLE = from_dict("toy", OPCODES, [RegisterClass("v", 32)])


def moved(body: str) -> list[str]:
    """The entry block's instructions after the pass, as opcode and result."""
    lines = "\n".join(f"  {line.strip()}" for line in body.strip().splitlines())
    function = parse_function(f'func @f target "toy"\n  regs v: 0-9\nentry:\n{lines}\n  ret\n')
    early_ends(function, TABLE, apart=1)
    return [f"{i.opcode} {i.defs[0].reg.id}" if i.defs else i.opcode for i in function.blocks[0].insts]


def test_a_running_sum_is_made_as_its_terms_come():
    found = moved("""
        %0 = lds 1
        %1 = lds 2
        %2 = lds 3
        st %1
        %3 = add %0, %1
        %4 = add %3, %2
        st %4
    """)
    assert found == ["lds 0", "lds 1", "add 3", "lds 2", "add 4", "st", "st", "ret"]


def test_sums_stand_behind_the_last_of_their_terms_in_order():
    found = moved("""
        %0 = set 1
        %1 = set 2
        %2 = set 3
        st %2
        %3 = add %1, %2
        %4 = add %3, %0
        st %4
    """)
    assert found == ["set 0", "set 1", "set 2", "add 3", "add 4", "st", "st", "ret"]


def test_what_ends_no_more_than_it_makes_stays():
    body = ["%0 = set 1", "%1 = set 2", "st %0", "st %1", "%2 = neg %0", "%3 = add %2, %2", "st %3"]
    found = moved("\n".join(body))
    assert found == ["set 0", "set 1", "st", "st", "neg 2", "add 3", "st", "ret"]


def test_loads_from_global_memory_start_before_anything_waits_for_one():
    found = moved("""
        %0 = ld 1
        %1 = ld 2
        %2 = ld 3
        %3 = ld 4
        st %3
        %4 = add %0, %1
        st %4
        st %2
    """)
    assert found == ["ld 0", "ld 1", "ld 2", "ld 3", "add 4", "st", "st", "st", "ret"]


def test_what_stands_near_stays():
    def body(between: int) -> str:
        return "\n  ".join(["%0 = set 1", "%1 = set 2", *["st 0"] * between, "%2 = add %0, %1", "st %2"])

    for between, found in ((31, 33), (32, 2)):
        function = parse_function(f'func @f target "toy"\n  regs v: 0-9\nentry:\n  {body(between)}\n  ret\n')
        early_ends(function, TABLE)
        assert [inst.opcode for inst in function.blocks[0].insts].index("add") == found


def test_what_is_read_in_a_later_block_does_not_end():
    text = """func @f target "toy"
  regs v: 0-9
entry:
  %0 = set 1
  %1 = set 2
  st %0
  %2 = add %0, %1
  br %2 {targets=end}
next:
  st %2
end:
  st %1
  ret
"""
    function = parse_function(text)
    assert early_ends(function, TABLE, apart=1) == 0


def stored(insts: list[Inst]) -> list[object]:
    """What a block stores, in order: the terms that made it."""
    values: dict[Slice, object] = {}
    found = []
    for inst in insts:
        operands = tuple(values[use] if isinstance(use, Slice) else use for use in inst.uses)
        found += [operands] if inst.opcode == "st" else []
        values.update(dict.fromkeys(inst.defs, (inst.opcode, *operands)))
    return found


def test_blocks_store_what_they_did():
    moves = 0
    for seed in range(200):
        rng = random.Random(seed)
        lines, live = ["%0 = set 0"], [0]
        for i in range(1, 40):
            opcode = rng.choice(["set", "ld", "lds", "neg", "add", "add", "add", "st"])
            uses = [f"%{rng.choice(live[-8:])}" for _ in range({"add": 2, "neg": 1, "st": 1}.get(opcode, 0))] or [str(i)]
            result = "" if opcode == "st" else f"%{i} = "
            live += [] if opcode == "st" else [i]
            lines.append(f"  {result}{opcode} {', '.join(uses)}")
        body = "\n".join(lines)
        function = parse_function(f'func @f target "toy"\n  regs v: 0-39\nentry:\n  {body}\n  ret\n')
        before = stored(function.blocks[0].insts)
        moves += early_ends(function, TABLE, apart=1)
        assert stored(function.blocks[0].insts) == before, body
    assert moves > 200
