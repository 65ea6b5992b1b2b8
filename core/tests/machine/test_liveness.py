"""Liveness, dead code and copies: loops keep what they carry, predicates do not kill, copies vanish when nothing is lost."""

from __future__ import annotations

from tilefw.machine.coalesce import coalesce
from tilefw.machine.dead import eliminate_dead
from tilefw.machine.liveness import analyse
from tilefw.machine.table import EFFECT, JUMP, MOVE, PURE, RegisterClass, from_dict
from tilefw.machine.text import parse_function, print_function

TABLE = from_dict("toy", {"op": PURE, "mov": MOVE, "st": EFFECT, "br": EFFECT, "ret": JUMP}, [RegisterClass("v", 32)])

LOOP = """func @f target "toy"
  regs v: 0-4
  regs p: 5
entry:
  %0 = op 1
  %1 = mov %0
loop:
  %2 = op %1
  %3 = op %2
  %1 = mov %2
  %5 = op %1
  @%5 br {targets=loop}
end:
  st %1
  ret
"""


def test_a_carried_register_is_live_around_the_loop():
    f = parse_function(LOOP)
    live = analyse(f, TABLE)
    one = f.registers[1]
    assert {reg.id for reg, _ in live.live_in[1]} == {1}
    assert (one, 0) in live.live_out[1] and live.live_in[0] == set()


def test_dead_code_goes_and_copies_merge():
    f = parse_function(LOOP)
    assert eliminate_dead(f, TABLE) == 1  # %3
    assert coalesce(f, TABLE) == 2
    assert "mov" not in print_function(f)


def test_of_a_tuple_the_parts_go_that_nobody_reads():
    head = 'func @f target "toy"\n  regs v x3 a1: 0\n  regs v: 1\nentry:\n'
    lines = ["%0[0:1] = op 0", "%0[1:1] = op 1", "%0[1:2] = op 2", "%1 = op %0[0:1]", "st %0[2:1]", "ret"]
    f = parse_function(head + "".join(f"  {line}\n" for line in lines))
    assert eliminate_dead(f, TABLE) == 3
    assert [inst.uses for inst in f.blocks[0].insts[:1]] == [(2,)]
    whole = parse_function(head + "".join(f"  {line}\n" for line in (*lines[:3], "st %0", "ret")))
    assert eliminate_dead(whole, TABLE) == 0


def test_a_predicated_write_keeps_the_old_value_alive():
    head = 'func @f target "toy"\n  regs v: 0\n  regs p: 1\nentry:\n'
    f = parse_function(head + "  %0 = op 0\n  %1 = op 1\n  @%1 %0 = op 2\n  st %0\n  ret\n")
    assert eliminate_dead(f, TABLE) == 0


def test_a_swap_keeps_its_copies():
    text = (
        'func @f target "toy"\n  regs v: 0-2\n  regs p: 3\nentry:\n  %0 = op 0\n  %1 = op 1\nloop:\n  %2 = mov %0\n  %0 = mov %1\n'
        "  %1 = mov %2\n  %3 = op %0\n  @%3 br {targets=loop}\nend:\n  st %0, %1\n  ret\n"
    )
    f = parse_function(text)
    coalesce(f, TABLE)
    kept = [i for i in f.insts() if i.opcode == "mov"]
    assert len(kept) >= 2
