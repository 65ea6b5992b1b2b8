"""Wait states on a made-up chip: exactly as many as lack, on every path, and the checker sees one fewer.

What `slow` writes may be read by `op` three wait states later, and by `slow` one later; `flag` leaves something unwritten, which
`look` may touch two later. `idle n` gives n wait states.
"""

from __future__ import annotations

import pytest
from physical_lines import function

from tilefw.api.errors import InternalError
from tilefw.machine.check_wait_states import PairRules, check_wait_states
from tilefw.machine.inst import Inst, Slice
from tilefw.machine.table import EFFECT, JUMP, PURE, RegisterClass, from_dict
from tilefw.machine.text import print_function
from tilefw.machine.wait_states import Profile, Share, WaitStateModel, fill_wait_states

ROWS = dict.fromkeys(("op", "slow", "other"), PURE) | dict.fromkeys(("flag", "look", "idle", "br"), EFFECT)
TABLE = from_dict("toy", ROWS | {"jmp": JUMP, "ret": JUMP}, [RegisterClass("v", 32, 16)])
FLAG = 1 << 16
SLOW, FLAGGED = 0, 1
NEEDED = {(SLOW, "op"): 3, (SLOW, "slow"): 1, (FLAGGED, "look"): 2}


def _profile(inst: Inst) -> Profile:
    leaves = {"slow": (Share((SLOW,), (0,)),), "flag": (Share((FLAGGED,), (), FLAG),)}
    reads = Share((SLOW,), tuple(range(len(inst.defs), len(inst.defs) + len(inst.uses))))
    touches = {"op": (reads,), "slow": (reads,), "look": (Share((FLAGGED,), (), FLAG),)}
    return Profile(leaves.get(inst.opcode, ()), touches.get(inst.opcode, ()), _states(inst))


def _states(inst: Inst) -> int:
    return int(str(inst.uses[0])) if inst.opcode == "idle" else 1


def _needed(rule: object, producer: Inst, consumer: Inst) -> int:
    return next(states for (number, opcode), states in NEEDED.items() if number == rule and opcode == consumer.opcode)


MODEL = WaitStateModel((3, 2), {"v": 0}, {}, _profile, _needed, lambda states: [Inst("idle", (), (states,))])


def _numbers(*operands: object) -> frozenset[int]:
    pieces = (operand for operand in operands if isinstance(operand, Slice))
    return frozenset(n for piece in pieces for n in range(piece.first, piece.first + piece.count))


def _leaves(inst: Inst) -> dict[object, frozenset[int]]:
    return {"slow": {SLOW: _numbers(*inst.defs)}, "flag": {FLAGGED: frozenset({16})}}.get(inst.opcode, {})


def _touches(inst: Inst) -> dict[object, frozenset[int]]:
    read = {SLOW: _numbers(*inst.uses)}
    return {"op": read, "slow": read, "look": {FLAGGED: frozenset({16})}}.get(inst.opcode, {})


RULES = PairRules(_leaves, _touches, _needed, _states, horizon=3)


def filled(body: str) -> list[str]:
    """The lines of the code with pauses; what stands there is checked."""
    f = function(body)
    fill_wait_states(f, TABLE, MODEL)
    check_wait_states(f, TABLE, RULES)
    return [line.strip() for line in print_function(f).splitlines()[3:-2]]


@pytest.mark.parametrize(("between", "pause"), [(0, ["idle 3"]), (2, ["idle 1"]), (3, []), (4, [])])
def test_only_what_lacks_is_filled(between: int, pause: list[str]) -> None:
    others = ["$v[9:1] = other"] * between
    lines = filled("\n".join(["$v[0:1] = slow $v[8:1]", *others, "$v[1:1] = op $v[0:1]"]))
    assert lines[1 + between : -1] == pause


def test_who_touches_other_registers_waits_for_nothing() -> None:
    assert len(filled("$v[0:2] = slow $v[8:1]\n$v[3:1] = op $v[2:1]")) == 2
    assert len(filled("$v[0:2] = slow $v[8:1]\n$v[3:1] = op $v[1:1]")) == 3


def test_the_pair_says_how_many() -> None:
    assert filled("$v[0:1] = slow $v[8:1]\n$v[1:1] = slow $v[0:1]")[1] == "idle 1"


def test_what_no_register_shows_counts_too() -> None:
    assert filled("flag\nlook")[1] == "idle 2"


def test_the_worst_of_several_decides() -> None:
    lines = filled("$v[0:1] = slow $v[8:1]\n$v[1:1] = slow $v[8:1]\n$v[2:1] = op $v[0:1], $v[1:1]")
    assert lines[2] == "idle 3"


def test_an_earlier_pause_counts() -> None:
    assert filled("$v[0:1] = slow $v[8:1]\n$v[1:1] = op $v[0:1]\n$v[2:1] = op $v[0:1]")[1:] == [
        "idle 3", "$v[1:1] = op $v[0:1]", "$v[2:1] = op $v[0:1]",
    ]


def test_the_nearest_way_decides() -> None:
    lines = filled("""
      $v[0:1] = slow $v[8:1]
      br {targets=over}
    more:
      $v[9:1] = other
      $v[9:1] = other
    over:
      $v[1:1] = op $v[0:1]
    """)
    assert lines[lines.index("$v[1:1] = op $v[0:1]") - 1] == "idle 2"  # the branch itself gave one


def test_an_iteration_counts_from_the_one_before() -> None:
    lines = filled("loop:\n$v[1:1] = op $v[0:1]\n$v[0:1] = slow $v[8:1]\nbr {targets=loop}")
    assert lines[lines.index("$v[1:1] = op $v[0:1]") - 1] == "idle 2"


def test_the_checker_sees_one_too_few_on_one_path() -> None:
    f = function("$v[0:1] = slow $v[8:1]\nbr {targets=over}\n$v[9:1] = other\nover:\nidle 1\n$v[1:1] = op $v[0:1]")
    with pytest.raises(InternalError, match=r"accesses 0 2 wait states after .* 3 are needed"):
        check_wait_states(f, TABLE, RULES)
