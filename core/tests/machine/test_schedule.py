"""Scheduling: what it makes of a block computes the same, and the checker reports every order that would not."""

from __future__ import annotations

import random
from typing import Any

import machine_programs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tilefw.api.errors import InternalError
from tilefw.machine.check_schedule import check_schedule
from tilefw.machine.dependences import aliasing, dependences
from tilefw.machine.headroom import RegisterHeadroom
from tilefw.machine.inst import Function, Inst
from tilefw.machine.list_scheduling import list_schedule
from tilefw.machine.liveness import analyse
from tilefw.machine.schedule import _limits, _regions, schedule
from tilefw.machine.subregisters import Subregisters, block_accesses, live_out
from tilefw.machine.table import EFFECT, JUMP, PURE, InstructionTable, InstructionTraits, RegisterClass, from_dict
from tilefw.machine.text import parse_function, print_function

SLOW = InstructionTraits(latency=100, memory="global", unit="far", issue=8)
ROWS = {
    "op": PURE, "ret": JUMP, "bar": EFFECT, "br": EFFECT,
    "mul": InstructionTraits(latency=16, unit="matrix", issue=16),
    "ld": SLOW, "st": InstructionTraits(effects=True, latency=100, memory="global", unit="far", issue=8),
    "get": InstructionTraits(latency=20, memory="shared", unit="near", issue=4),
    "put": InstructionTraits(effects=True, latency=20, memory="shared", unit="near", issue=4),
}  # fmt: skip


def table(v: int | None = 64) -> InstructionTable:
    return from_dict("toy", ROWS, [RegisterClass("v", 32, v)])


def function(body: str, registers: int = 20) -> Function:
    return parse_function(f'func @f target "toy"\n  regs v: 0-{registers - 1}\nentry:\n{body}')


def scheduled(body: str, disjoint: bool = False, v: int | None = 64) -> list[str]:
    """The opcode and first register of each instruction of one block, in its new order."""
    f = function(body)
    schedule(f, table(v), {}, disjoint, verify=True)
    return [line.strip() for line in print_function(f).splitlines()[3:]]


@given(st.randoms(use_true_random=False), st.lists(st.integers(0, 1), max_size=12))
def test_scheduled_functions_compute_what_they_did(rng: random.Random, choices: list[int]) -> None:
    f = machine_programs.draw(rng, length=20)
    wanted = machine_programs.run(f, choices)
    schedule(f, machine_programs.chip(), {"v": (8, 16, 24)}, verify=True)
    assert machine_programs.run(f, choices) == wanted


def accesses(rng: random.Random) -> Function:
    """One block of accesses, barriers and arithmetic on few registers."""
    f = Function("f", "toy")
    registers = [f.register("v", *rng.choice([(1, 1), (2, 2), (4, 2)])) for _ in range(5)]
    piece = lambda: (r := rng.choice(registers)).slice(*rng.choice([(0, 1), (0, r.width), (r.width - 1, 1)]))  # noqa: E731
    insts = f.block("entry").insts
    for _ in range(rng.randrange(2, 25)):
        opcode = rng.choice(["op", "op", "mul", "ld", "st", "get", "put", "bar"])
        buffer = rng.choice([None, -1, 0, 1, 2]) if opcode in ("ld", "st", "get", "put") else None
        defs = [piece()] if opcode in ("op", "mul", "ld", "get") else []
        uses = [] if opcode == "bar" else [piece() for _ in range(rng.randrange(1, 3))]
        insts.append(Inst(opcode, defs, uses, buffer=buffer, predicate=rng.choice([None, None, None, piece()])))
    insts.append(Inst("ret"))
    return f


@given(st.randoms(use_true_random=False), st.booleans())
def test_the_checker_takes_every_schedule(rng: random.Random, disjoint: bool) -> None:
    schedule(accesses(rng), table(), {"v": (2, 6, 12)}, disjoint, verify=True)


def ordered(a: Inst, b: Inst, changing: set[int | None] | None) -> bool:
    """Whether two neighbours must keep their order, by the words of the rules; `changing` are the global buffers that are written,
    where buffers do not overlap."""
    read_a, read_b = ({u for piece in inst.reads() for u in piece.units} for inst in (a, b))
    written_a, written_b = ({u for piece in inst.writes() for u in piece.units} for inst in (a, b))
    if written_a & read_b or read_a & written_b:
        return True
    assume(not written_a & written_b)  # that is an order only if somebody reads what the second one left
    if changing is not None and not changing & {None, -1}:
        constant = {buffer for buffer in (0, 1, 2) if buffer not in changing}
        if any(inst.opcode == "ld" and inst.buffer in constant for inst in (a, b)):
            return False
    acting = [ROWS[inst.opcode] for inst in (a, b)]
    if any(its.effects and not its.memory for its in acting):
        return all(its.effects or its.memory for its in acting)
    if not acting[0].memory or acting[0].memory != acting[1].memory or not any(its.effects for its in acting):
        return False
    told_apart = acting[0].memory == "shared" or changing is not None
    return not told_apart or a.buffer == b.buffer or {a.buffer, b.buffer} & {None, -1} != set()


@given(st.randoms(use_true_random=False), st.booleans())
def test_the_checker_reports_exactly_the_neighbours_that_must_keep_their_order(rng: random.Random, disjoint: bool) -> None:
    before = accesses(rng).blocks[0].insts
    at = rng.randrange(len(before) - 2) if len(before) > 2 else None
    if at is None:
        return
    a, b = before[at : at + 2]
    after = [*before[:at], b, a, *before[at + 2 :]]
    if ordered(a, b, {inst.buffer for inst in before if inst.opcode == "st"} if disjoint else None):
        with pytest.raises(InternalError):
            check_schedule(before, after, before, table(), disjoint, "f")
    else:
        check_schedule(before, after, before, table(), disjoint, "f")


def test_the_checker_reports_lost_instructions() -> None:
    before = function("  %0 = op 1\n  st %0\n  ret\n").blocks[0].insts
    with pytest.raises(InternalError, match="lost or made"):
        check_schedule(before, before[1:], before, table(), False, "f")


def test_loads_from_far_go_first_and_their_readers_last() -> None:
    body = "  %0 = op 1\n  %1 = op 2\n  %2 = op %1\n  %3 = ld %0\n  %4 = op %3\n  %5 = op %2\n  st %4, %5\n  ret\n"
    assert scheduled(body) == [
        "%0 = op 1", "%3 = ld %0", "%1 = op 2", "%2 = op %1", "%5 = op %2", "%4 = op %3", "st %4, %5", "ret",
    ]  # fmt: skip


def test_what_keeps_its_pipe_long_is_interleaved() -> None:
    """Every matrix instruction takes as long as the reads for the next one."""
    reads = "".join(f"  %{i} = get {i} {{buffer=0}}\n" for i in range(8))
    products = "".join(f"  %{10 + i} = mul %{2 * i}, %{2 * i + 1}\n" for i in range(4))
    found = scheduled(reads + products + "  put %10, %11, %12, %13 {buffer=1}\n  ret\n")
    kinds = [line.split(" = ")[1].split()[0] for line in found if " = " in line]
    assert kinds.index("mul") < len(kinds) - 1 - kinds[::-1].index("get")  # the first product does not wait for the last read


def test_registers_bound_how_early_loads_go() -> None:
    body = "".join(f"  %{i} = ld {i}\n  %{i + 10} = op %{i}\n  bar %{i + 10}\n" for i in range(6)) + "  ret\n"
    body = "".join(f"  %{i} = ld {i}\n" + f"  put %{i} {{buffer={i}}}\n" for i in range(8)) + "  ret\n"
    free = scheduled(body)
    assert [line.split(" = ")[-1].split()[0] for line in free[:8]] == ["ld"] * 8
    bound = scheduled(body, v=3)
    assert [line.split(" = ")[-1].split()[0] for line in bound[:4]] == ["ld"] * 3 + ["put"]


def peaks(region: Any, order: list[int]) -> list[int]:
    """The most registers of each file that are live as a block's instructions go in an order."""
    region.pressure.restart()
    for i in order:
        region.pressure.schedule(i)
    return list(region.pressure.peak)


@given(st.randoms(use_true_random=False), st.integers(0, 6))
def test_with_room_the_rest_can_always_go_on_as_it_was_written(rng: random.Random, spare: int) -> None:
    chip, f = machine_programs.chip(), machine_programs.draw(rng, length=20)
    for region in _regions(f, chip):
        count = len(region.traits)
        limits = [peak + spare for peak in peaks(region, list(range(count)))]
        insts = region.block.insts[:count]
        order = dependences(insts, region.traits, region.accesses, region.files, aliasing(f.insts(), chip, False), chip.apart)
        region.pressure.restart()
        guards = [inst.predicate for inst in insts]
        found = list_schedule(
            order, region.traits, guards, region.pressure, limits, chip.issue_interval, RegisterHeadroom(region.pressure, limits)
        )
        for placed in range(count + 1):
            rest = sorted(set(range(count)) - set(found[:placed]))
            assert all(peak <= limit for peak, limit in zip(peaks(region, found[:placed] + rest), limits, strict=True))


@given(st.randoms(use_true_random=False))
def test_no_block_needs_more_registers_than_its_step(rng: random.Random) -> None:
    chip, f, steps = machine_programs.chip(), machine_programs.draw(rng, length=20), {"v": (8, 16, 24)}
    given = _regions(f, chip)
    limits = _limits(given, chip, steps)
    schedule(f, chip, steps)
    for before, after in zip(given, _regions(f, chip), strict=True):
        for had, peak, limit in zip(before.pressure.peak, after.pressure.peak, limits, strict=True):
            assert peak <= max(had, limit)


def test_a_block_that_cannot_have_its_own_order_is_not_left_as_it_was() -> None:
    """With the first loads that come to hand, more than three registers are needed; not so with the one whose turn is last."""
    rows = ["%0 = ld 0", "%1 = ld 1", "%2 = op %0, %1", "%3 = ld 3", "put %2 {buffer=4}", "%4 = ld 4", "%5 = op %3, %4"]
    rows += ["%6 = ld 6", "%7 = op %6, %5", "%8 = ld 8", "put %7 {buffer=10}", "%9 = ld 9", "%10 = ld 10", "%11 = op %10, %9"]
    rows += ["%12 = op %8, %11", "%13 = ld 13", "put %12 {buffer=16}", "put %13 {buffer=17}", "ret"]
    found = scheduled("".join(f"  {row}\n" for row in rows), v=3)
    assert found != rows
    f = function("".join(f"  {row}\n" for row in found))
    assert _regions(f, table(3))[0].pressure.peak == [3]


def test_a_function_little_above_a_step_is_scheduled_below_it_where_another_order_is() -> None:
    """As written 17 registers are live at once; with the second half of the operands behind the first products 16 suffice."""
    loads = "".join(f"  %{i} = get {i} {{buffer={i}}}\n" for i in range(17))
    products = "".join(f"  %{17 + i} = mul %{i}, %{i}\n  put %{17 + i} {{buffer={30 + i}}}\n" for i in range(17))
    steps = {"v": (8, 16, 32)}
    f = function(loads + products + "  ret\n", 40)
    assert _regions(f, table())[0].pressure.peak == [17]
    schedule(f, table(), steps, verify=True, lower=steps)
    assert _regions(f, table())[0].pressure.peak[0] <= 16


def test_a_load_passes_a_store_only_where_buffers_do_not_overlap() -> None:
    body = "  %0 = op 1\n  st %0 {buffer=0}\n  %1 = ld 2 {buffer=1}\n  st %1 {buffer=0}\n  ret\n"
    assert scheduled(body)[1].startswith("st")
    assert scheduled(body, disjoint=True)[0].startswith("%1 = ld")


def test_volatile_loads_keep_their_order_and_other_loads_pass_them() -> None:
    """The one whose result is wanted for long work stays behind the other, also where nothing of memory changes."""
    body = "  %0 = ld 1 {buffer=0, volatile}\n  %1 = ld 2 {buffer=1, volatile}\n  %2 = ld 3 {buffer=2}\n"
    body += "  %3 = mul %1\n  %4 = mul %3\n  %5 = mul %2\n  %6 = mul %5\n  %7 = mul %6\n  st %0, %4, %7 {buffer=3}\n  ret\n"
    assert scheduled(body, disjoint=True)[:3] == ["%2 = ld 3 {buffer=2}", *(line.strip() for line in body.splitlines()[:2])]
    insts = function(body).blocks[0].insts
    with pytest.raises(InternalError, match="another order"):
        check_schedule(insts, [insts[1], insts[0], *insts[2:]], insts, table(), True, "f")


def test_what_stands_behind_a_branch_stays() -> None:
    body = "  %0 = op 1\n  br {targets=entry}\n  %1 = ld 2\n  %2 = op %1\n  %3 = ld 3\n  st %3, %0\n  st %2\n  ret\n"
    assert scheduled(body) == [line.strip() for line in body.splitlines()]


@given(st.randoms(use_true_random=False))
def test_cells_live_behind_blocks_are_the_units_of_liveness(rng: random.Random) -> None:
    f = machine_programs.draw(rng)
    subregisters = Subregisters(f, machine_programs.chip())
    found = live_out(f, machine_programs.chip(), block_accesses(f, subregisters))
    of: dict[int, list] = {}
    for piece, numbers in subregisters.of.items():
        its = list(piece.units)
        for number in numbers:
            of[number], its = its[: subregisters.weights[number]], its[subregisters.weights[number] :]
    for live, wanted in zip(found, analyse(f, machine_programs.chip()).live_out, strict=True):
        assert {unit for number in live for unit in of[number]} == {unit for unit in wanted if not unit[0].physical}
