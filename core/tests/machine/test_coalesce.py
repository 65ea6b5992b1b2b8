"""Coalescing and dead code keep what a program computes, empty the loops of accumulators, and do work linear in them."""

from __future__ import annotations

import random
from typing import Any

import machine_programs
from hypothesis import given, settings
from hypothesis import strategies as st

from tilefw.machine.coalesce import coalesce
from tilefw.machine.dead import eliminate_dead
from tilefw.machine.inst import Function, Inst, Reg
from tilefw.machine.table import EFFECT, JUMP, MOVE, PURE, RegisterClass, from_dict
from tilefw.machine.text import parse_function, print_function
from tilefw.testing.work import lines_run

TABLE = from_dict(
    "toy", {"add": PURE, "mul": PURE, "mov": MOVE, "set": PURE, "st": EFFECT, "br": EFFECT, "ret": JUMP}, [RegisterClass("v", 32)]
)


def execute(function: Function, choices: list[int]) -> list[int]:
    """What a run stores. Registers that nothing wrote hold 0; each branch is taken as the next choice says, and in the end not."""
    registers: dict[Reg, int] = {}
    labels = {block.label: i for i, block in enumerate(function.blocks)}
    stored: list[int] = []
    taken = iter(choices)
    at = 0

    def value(use: Any) -> int:
        return use if isinstance(use, int) else registers.get(use.reg, 0)

    while at < len(function.blocks):
        following = at + 1
        for inst in function.blocks[at].insts:
            uses = [value(u) for u in inst.uses]
            if inst.opcode == "br" and next(taken, 0):
                following = labels[inst.targets[0]]
                break
            if inst.opcode == "st":
                stored += uses
            elif inst.defs and (inst.predicate is None or value(inst.predicate) & 1):
                registers[inst.defs[0].reg] = {"add": sum(uses), "mul": uses[0] * uses[-1] + 1}.get(inst.opcode, uses[0]) % 10007
        at = following
    return stored


def draw(rng: random.Random) -> Function:
    """Blocks of moves and arithmetic on few registers, with branches anywhere."""
    function = Function("f", "toy")
    registers = [function.register("v").whole for _ in range(rng.randrange(3, 9))]
    count = rng.randrange(2, 6)
    for i in range(count):
        block = function.block(f"b{i}")
        for _ in range(rng.randrange(1, 7)):
            opcode = rng.choice(["mov", "mov", "mov", "add", "mul", "set", "st"])
            uses = [rng.choice(registers) for _ in range({"mov": 1, "st": 1, "set": 0}.get(opcode, 2))] or [rng.randrange(100)]
            guard = rng.choice(registers) if rng.random() < 0.1 else None
            block.insts.append(Inst(opcode, () if opcode == "st" else [rng.choice(registers)], uses, predicate=guard))
            if opcode == "st":
                block.insts[-1].predicate = None
        if rng.random() < 0.7:
            block.insts.append(Inst("br", targets=(f"b{rng.randrange(count)}",)))
    for register in registers:
        function.blocks[-1].insts.append(Inst("st", (), [register]))
    return function


@settings(max_examples=400, deadline=None)
@given(st.randoms(use_true_random=False), st.lists(st.lists(st.integers(0, 1), max_size=12), min_size=4, max_size=4))
def test_programs_compute_what_they_did(rng: random.Random, ways: list[list[int]]) -> None:
    function = draw(rng)
    before = [execute(function, way) for way in ways]
    text = print_function(function)
    eliminate_dead(function, TABLE)
    coalesce(function, TABLE)
    assert [execute(function, way) for way in ways] == before, f"{text}\nbecame\n{print_function(function)}"


@settings(max_examples=400, deadline=None)
@given(st.randoms(use_true_random=False), st.lists(st.lists(st.integers(0, 1), max_size=12), min_size=3, max_size=3))
def test_parts_of_tuples_merge_and_programs_compute_what_they_did(rng: random.Random, ways: list[list[int]]) -> None:
    function = machine_programs.draw(rng)
    before = [machine_programs.run(function, way) for way in ways]
    text = print_function(function)
    coalesce(function, machine_programs.chip())
    after = [machine_programs.run(function, way) for way in ways]
    assert all(map(machine_programs.agree, before, after)), f"{text}\nbecame\n{print_function(function)}"


def accumulating(count: int) -> Function:
    """A loop that adds to `count` registers, as selection makes it: every new sum in a register of its own, copied at the end."""
    function = Function("f", "toy")
    entry = function.block("entry").insts
    carried = [function.register("v").whole for _ in range(count)]
    start = function.register("v").whole
    entry.append(Inst("set", [start], [0]))
    entry += [Inst("mov", [c], [start]) for c in carried]
    body = function.block("loop").insts
    sums = [function.register("v").whole for _ in range(count)]
    body += [Inst("add", [s], [c, 1]) for s, c in zip(sums, carried, strict=True)]
    body += [Inst("mov", [c], [s]) for s, c in zip(sums, carried, strict=True)]
    body.append(Inst("br", targets=("loop",)))
    function.block("end").insts += [Inst("st", (), [c]) for c in carried]
    return function


def test_a_loop_of_accumulators_keeps_no_moves() -> None:
    function = accumulating(128)
    coalesce(function, TABLE)
    assert [inst.opcode for inst in function.blocks[1].insts] == ["add"] * 128 + ["br"]


def work(count: int) -> int:
    function = accumulating(count)
    return lines_run(lambda: coalesce(function, TABLE))


def test_twice_the_accumulators_take_twice_the_work() -> None:
    assert work(512) < 2.1 * work(256)


def test_values_fetched_ahead_need_no_moves_where_the_old_ones_are_done() -> None:
    function = parse_function(
        'func @f target "toy"\n  regs v: 0-2\nentry:\n  %0 = set 1\nloop:\n  st %0\n  %1 = set 2\n  %2 = add %1, 1\n  st %2\n'
        "  %0 = mov %1\n  br {targets=loop}\nend:\n  st %0\n"
    )
    assert coalesce(function, TABLE) == 1


def test_what_only_feeds_itself_round_a_loop_is_dead() -> None:
    function = parse_function(
        'func @f target "toy"\n  regs v: 0-1\nentry:\n  %0 = set 1\nloop:\n  %1 = add %0, 1\n  %0 = mov %1\n'
        "  br {targets=loop}\nend:\n  ret\n"
    )
    assert eliminate_dead(function, TABLE) == 3
