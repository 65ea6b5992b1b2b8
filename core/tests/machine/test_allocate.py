"""Register allocation: the checker accepts every allocation of random code, and rejects one with two registers swapped."""

from __future__ import annotations

import random

import pytest

from tilefw.api.errors import CapacityError, InternalError
from tilefw.machine.allocate import allocate, drop_identities
from tilefw.machine.assign_registers import assign
from tilefw.machine.check_allocation import check_allocation, snapshot
from tilefw.machine.inst import Function, Inst, Reg, Slice
from tilefw.machine.table import EFFECT, JUMP, MOVE, PURE, InstructionTable, RegisterClass, from_dict
from tilefw.machine.text import parse_function

ROWS = {"op": PURE, "mov": MOVE, "st": EFFECT, "bra": EFFECT, "jmp": JUMP, "ret": JUMP}


def chip(count: int = 32, reserved: frozenset[int] = frozenset()) -> InstructionTable:
    return from_dict("toy", ROWS, [RegisterClass("v", 32, count), RegisterClass("p", 1, 8)], reserved={"v": reserved})


def random_function(seed: int, copies: bool = True) -> Function:
    """Blocks of random instructions with tuples, partial reads and writes, predicates, copies, a loop and a branch."""
    rng = random.Random(seed)
    f = Function("f", "toy")
    registers = [f.register("v", *rng.choice([(1, 1), (1, 1), (1, 1), (2, 2), (4, 4)])) for _ in range(rng.randint(3, 8))]
    guard = f.register("p")
    entry = f.block("entry")
    entry.insts += [Inst("op", [r.whole]) for r in registers] + [Inst("op", [guard.whole])]

    def piece(reg: Reg) -> Slice:
        first = rng.randrange(reg.width)
        return rng.choice([reg.whole, reg.slice(first, 1)])

    for label in ("loop", "arm", "end"):
        block = f.block(label)
        for _ in range(rng.randint(2, 12)):
            kind = rng.random()
            a, b = rng.choice(registers), rng.choice(registers)
            predicate = guard.whole if rng.random() < 0.2 else None
            if copies and kind < 0.25 and a.width == b.width and a is not b:
                block.insts.append(Inst("mov", [a.whole], [b.whole], predicate=predicate))
            elif kind < 0.4:
                block.insts.append(Inst("st", (), [piece(a), piece(b)], predicate=predicate))
            else:
                block.insts.append(Inst("op", [piece(a)], [piece(b), piece(rng.choice(registers)), 7], predicate=predicate))
        if label == "loop":
            block.insts.append(Inst("bra", targets=("end",), predicate=guard.whole))
        elif label == "arm":
            block.insts.append(Inst("bra", targets=("loop",), predicate=guard.whole, predicate_not=True))
    f.blocks[-1].insts += [Inst("st", (), [r.whole for r in registers]), Inst("ret")]
    return f


@pytest.mark.parametrize("seed", range(150))
def test_the_checker_accepts_every_allocation(seed: int) -> None:
    function = random_function(seed)
    before = snapshot(function)
    table = chip(reserved=frozenset({3}))
    used = allocate(function, table)
    assert used["v"] <= 32 and not function.registers
    check_allocation(before, function, table)
    drop_identities(function, table)
    check_allocation(before, function, table)


@pytest.mark.parametrize("seed", range(60))
def test_the_checker_sees_a_read_of_another_register(seed: int) -> None:
    function = random_function(seed, copies=False)  # a copy makes a second register right
    before = snapshot(function)
    table = chip()
    allocate(function, table)
    stores = [i for i in function.blocks[-1].insts if i.opcode == "st"][-1]
    k = random.Random(seed).randrange(len(stores.uses))
    piece = stores.uses[k]
    assert isinstance(piece, Slice)
    wrong = piece.first + piece.count if piece.first + 2 * piece.count <= 32 else piece.first - piece.count
    stores.uses = (*stores.uses[:k], piece.reg.slice(wrong, piece.count), *stores.uses[k + 1 :])
    with pytest.raises(InternalError, match=r"does not hold|puts"):
        check_allocation(before, function, table)


def test_too_few_registers_are_refused_with_the_count() -> None:
    f = Function("f", "toy")
    registers = [f.register("v") for _ in range(9)]
    f.block("entry").insts += [Inst("op", [r.whole]) for r in registers] + [Inst("st", (), [r.whole for r in registers])]
    with pytest.raises(CapacityError, match="needs 9 registers of class 'v' at once; the chip has 8"):
        allocate(f, chip(8))


def test_a_result_takes_the_register_of_an_operand_that_dies() -> None:
    f = parse_function('func @f target "toy"\n  regs v: 0-1\nentry:\n  %0 = op 1\n  %1 = op %0\n  st %1\n')
    assert allocate(f, chip(1)) == {"v": 1}


def test_values_share_a_register_in_the_holes_of_each_other() -> None:
    text = 'func @f target "toy"\n  regs v: 0-2\nentry:\n  %0 = op 1\n  st %0\n  %1 = op 2\n  st %1\n  %0 = op 3\n  st %0\n'
    assert allocate(parse_function(text), chip(1)) == {"v": 1}


def test_a_value_moves_out_of_the_way_of_one_that_finds_no_room() -> None:
    """%2 stands in the low register when %3 begins, and %1 comes back in the high one; in the hole of %1 there is room for %2."""
    lines = ["%0 = op 1", "%1 = op 2", "st %1", "st %0", "%2 = op 3", "%3 = op 4", "st %2", "%1 = op 5", "st %1, %3", "ret"]
    function = parse_function('func @f target "toy"\n  regs v: 0-3\nentry:\n  ' + "\n  ".join(lines) + "\n")
    before, table = snapshot(function), chip(2)
    assert allocate(function, table) == {"v": 2}
    check_allocation(before, function, table)


def test_a_copy_whose_sides_meet_goes_away() -> None:
    f = parse_function('func @f target "toy"\n  regs v: 0-1\nentry:\n  %0 = op 1\n  %1 = mov %0\n  st %1\n')
    table = chip()
    allocate(f, table)
    assert drop_identities(f, table) == 1


def test_a_narrow_value_does_not_go_to_the_far_end_of_a_file() -> None:
    """Two registers are left beside a reserved one there; the wide values that do not fit between them are low."""
    f = Function("f", "toy")
    a, b = f.register("v", 4, 4), f.register("v", 2, 2)
    f.block("entry").insts = [Inst("op", [a.whole]), Inst("op", [b.whole], [a.whole]), Inst("st", (), [a.whole, b.whole])]
    assert allocate(f, chip(32, frozenset({30, 31}))) == {"v": 6}


@pytest.mark.parametrize("files", [("v",), ("p",), ("v", "p")])
def test_each_file_stays_within_its_step_where_no_more_are_live(files: tuple[str, ...]) -> None:
    function, far, steps = Function("f", "toy"), {"v": 20, "p": 6}, {"v": 4, "p": 2}
    block = function.block("entry")
    for cls, size in (("v", 32), ("p", 8)):
        reg, high = function.register(cls), function.file(cls, size).slice(far[cls], 1)  # its copy would go away at `high`
        block.insts += [Inst("op", [reg.whole]), Inst("mov", [high], [reg.whole]), Inst("st", (), [high])]
    block.insts.append(Inst("ret"))
    assign(function, chip(), steps={file: (steps[file],) for file in files})
    used = function.attributes.registers
    assert used is not None
    assert {file: used[file] <= steps[file] for file in used} == {file: file in files for file in ("v", "p")}
