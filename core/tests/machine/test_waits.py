"""Waits on a made-up chip: as late and as weak as can be, on every path, and the checker sees each that is weaker.

Queue "far" finishes in order, loads (`ld`) and stores (`st`) alike. In queue "near", `get` and `put` finish in order among
themselves, `fetch` whenever it likes. A barrier (`bar`) needs what `put` does to be done.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from physical_lines import function

from tilefw.api.errors import InternalError
from tilefw.machine.check_waits import Begun, Seen, check_waits
from tilefw.machine.inst import Inst, Slice
from tilefw.machine.register_sets import RegisterSets
from tilefw.machine.table import EFFECT, JUMP, PURE, RegisterClass, from_dict
from tilefw.machine.text import parse_function, print_function
from tilefw.machine.waits import Concern, Event, WaitModel, insert_waits

ROWS = dict.fromkeys(("op", "ld", "half", "get", "fetch"), PURE) | dict.fromkeys(("st", "put", "bar", "wait", "br"), EFFECT)
TABLE = from_dict("toy", ROWS | {"jmp": JUMP, "ret": JUMP}, [RegisterClass("v", 32, 16)])
KINDS = {"ld": ("far", "far"), "half": ("far", "far"), "st": ("far", "far"), "get": ("near", "near"), "put": ("near", "near"),
         "fetch": ("near", "")}
SHARED = 16  # the effect of `put`, behind sixteen registers
MOST = {"far": 4, "near": 4}


def _events(inst: Inst, sets: RegisterSets) -> tuple[Event, ...]:
    if inst.opcode not in KINDS:
        return ()
    effect = 1 << SHARED if inst.opcode == "put" else 0
    results = sets.union(inst.defs)
    return (Event(*KINDS[inst.opcode], results | effect, results if inst.opcode == "half" else 0),)


def _limits(inst: Inst) -> dict[str, int]:
    pairs = (str(use).split(":") for use in inst.uses) if inst.opcode == "wait" else ()
    return {queue: int(count) for queue, count in pairs}


def _wait(limits: Mapping[str, int]) -> Inst:
    return Inst("wait", (), [f"{queue}:{count}" for queue, count in sorted(limits.items())])


def _concern(opcode: str) -> Concern:
    return Concern(0, opcode in (*KINDS, "bar", "wait"))


MODEL = WaitModel(
    MOST, {"v": 0}, {}, _concern, _events, lambda inst: 1 << SHARED if inst.opcode == "bar" else 0, _limits, _wait
)


def _numbers(*operands: object) -> frozenset[int]:
    pieces = (operand for operand in operands if isinstance(operand, Slice))
    return frozenset(n for piece in pieces for n in range(piece.first, piece.first + piece.count))


def _seen(inst: Inst) -> Seen:
    results = _numbers(*inst.defs)
    merged = results if inst.opcode == "half" else frozenset()
    effect = frozenset({SHARED} if inst.opcode == "put" else ())
    events = (Begun(*KINDS[inst.opcode], results | effect, merged),) if inst.opcode in KINDS else ()
    needs = frozenset({SHARED} if inst.opcode == "bar" else ())
    return Seen(_numbers(*inst.uses), results, needs, events, _limits(inst))


def waited(body: str) -> list[str]:
    """The lines of the code with waits; what stands there is checked."""
    f = function(body)
    insert_waits(f, TABLE, MODEL)
    check_waits(f, TABLE, _seen)
    return [line.strip() for line in print_function(f).splitlines()[3:-2]]


def test_a_result_is_waited_for_where_it_is_read_and_later_ones_stay_under_way() -> None:
    assert waited("""
      $v[0:1] = ld $v[8:1]
      $v[1:1] = ld $v[8:1]
      $v[2:1] = op $v[0:1]
      $v[3:1] = op $v[1:1]
    """) == [
        "$v[0:1] = ld $v[8:1]", "$v[1:1] = ld $v[8:1]", 'wait "far:1"', "$v[2:1] = op $v[0:1]", 'wait "far:0"',
        "$v[3:1] = op $v[1:1]",
    ]


def test_what_finishes_in_any_order_is_waited_for_until_nothing_is_left() -> None:
    lines = waited("$v[0:1] = fetch $v[8:1]\n$v[1:1] = fetch $v[8:1]\n$v[2:1] = op $v[0:1]\n$v[3:1] = op $v[1:1]")
    assert lines[2:] == ['wait "near:0"', "$v[2:1] = op $v[0:1]", "$v[3:1] = op $v[1:1]"]


def test_an_ordered_event_counts_those_of_its_own_order_alone() -> None:
    lines = waited("$v[0:1] = get $v[8:1]\n$v[1:1] = fetch $v[8:1]\n$v[2:1] = get $v[8:1]\n$v[3:1] = op $v[0:1]")
    assert lines[3] == 'wait "near:1"'


def test_one_wait_serves_several_queues() -> None:
    assert 'wait "far:0", "near:0"' in waited("$v[0:1] = ld $v[8:1]\n$v[1:1] = get $v[8:1]\n$v[2:1] = op $v[0:1], $v[1:1]")


def test_a_register_that_is_overwritten_is_waited_for_unless_the_same_order_writes_it() -> None:
    assert waited("$v[0:1] = ld $v[8:1]\n$v[0:1] = op $v[8:1]")[1] == 'wait "far:0"'
    assert waited("$v[0:1] = ld $v[8:1]\n$v[0:1] = get $v[8:1]")[1] == 'wait "far:0"'
    assert len(waited("$v[0:1] = ld $v[8:1]\n$v[0:1] = ld $v[8:1]")) == 2


def test_a_result_that_keeps_part_of_its_register_follows_those_of_its_order() -> None:
    assert len(waited("$v[0:1] = half $v[8:1], $v[0:1] {tied=0:1}\n$v[0:1] = half $v[8:1], $v[0:1] {tied=0:1}")) == 2
    assert 'wait "far:0"' in waited("$v[0:1] = ld $v[8:1]\n$v[0:1] = half $v[0:1], $v[0:1] {tied=0:1}")


def test_effects_are_waited_for_where_they_are_needed() -> None:
    assert waited("put $v[8:1]\n$v[0:1] = get $v[8:1]\nbar")[2] == 'wait "near:1"'


def test_a_distance_beyond_the_counter_takes_the_most_that_it_counts() -> None:
    body = "\n".join(f"$v[{n}:1] = ld $v[8:1]" for n in range(7)) + "\n$v[10:1] = op $v[0:1]"
    assert waited(body)[7] == 'wait "far:4"'


def test_paths_meet_at_the_youngest_event() -> None:
    lines = waited("""
      $v[0:1] = ld $v[8:1]
      br {targets=over}
    more:
      $v[1:1] = ld $v[8:1]
    over:
      $v[2:1] = op $v[0:1]
    """)
    assert lines[lines.index("$v[2:1] = op $v[0:1]") - 1] == 'wait "far:0"'


def test_a_branch_leaves_from_where_it_stands() -> None:
    lines = waited("$v[0:1] = ld $v[8:1]\nbr {targets=over}\n$v[1:1] = ld $v[8:1]\nover:\n$v[2:1] = op $v[0:1]")
    assert lines[lines.index("$v[2:1] = op $v[0:1]") - 1] == 'wait "far:0"'


def test_loads_stay_under_way_over_the_end_of_an_iteration() -> None:
    assert waited("""
      $v[0:1] = ld $v[8:1]
      $v[1:1] = ld $v[8:1]
    loop:
      $v[2:1] = op $v[0:1]
      $v[0:1] = ld $v[8:1]
      $v[3:1] = op $v[1:1]
      $v[1:1] = ld $v[8:1]
      br {targets=loop}
    """)[3:] == [
        'wait "far:1"', "$v[2:1] = op $v[0:1]", "$v[0:1] = ld $v[8:1]", 'wait "far:1"', "$v[3:1] = op $v[1:1]",
        "$v[1:1] = ld $v[8:1]", "br {targets=loop}",
    ]


def test_waits_that_stand_there_are_counted_on() -> None:
    body = '$v[0:1] = ld $v[8:1]\nwait "far:0"\n$v[1:1] = op $v[0:1]'
    assert len(waited(body)) == 3


def test_the_checker_sees_a_weaker_wait_on_one_path_only() -> None:
    f = function("""
      $v[0:1] = ld $v[8:1]
      br {targets=over}
    more:
      $v[1:1] = ld $v[8:1]
    over:
      wait "far:1"
      $v[2:1] = op $v[0:1]
    """)
    with pytest.raises(InternalError, match=r"accesses 0 while .* has not finished"):
        check_waits(f, TABLE, _seen)


def test_virtual_registers_are_refused() -> None:
    f = parse_function('func @f target "toy"\n  regs v: 0-1\nentry:\n  %0 = ld %1\n  ret\n')
    with pytest.raises(InternalError, match="is not on a physical register"):
        insert_waits(f, TABLE, MODEL)
