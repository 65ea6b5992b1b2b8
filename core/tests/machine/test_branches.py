"""A conditional branch falls through, however it is spelled; one that is declared as a jump is refused, never compiled."""

from __future__ import annotations

import pytest

from tilefw.api.errors import PluginError
from tilefw.machine.assign_registers import assign
from tilefw.machine.flow import successors
from tilefw.machine.table import BRANCH, EFFECT, JUMP, PURE, InstructionTable, InstructionTraits, RegisterClass, from_dict
from tilefw.machine.text import parse_function

TEXT = """func @f target "toy"
  regs v: 0-2
entry:
  %0 = set 1
  %1 = set 2
  BRANCH
next:
  st %1
end:
  ret
"""


def table(branch: InstructionTraits) -> InstructionTable:
    rows = {"set": PURE, "st": EFFECT, "bnez": branch, "j": JUMP, "ret": JUMP}
    return from_dict("toy", rows, [RegisterClass("v", 32, 4)])


@pytest.mark.parametrize(("text", "branch"), [
    ("bnez %0 {targets=end}", BRANCH), ("@%0 bnez {targets=end}", JUMP), ("@!%0 bnez {targets=end}", JUMP),
])
def test_both_ways_out_are_seen(text: str, branch: InstructionTraits) -> None:
    function = parse_function(TEXT.replace("BRANCH", text))
    assert sorted(successors(function, table(branch))[0]) == [1, 2]
    assign(function, table(branch))  # %0 and %1 are alive together: the checker agrees
    first, second = (inst.defs[0] for inst in function.blocks[0].insts[:2])
    assert first != second


def test_a_jump_without_condition_has_one_way_out() -> None:
    assert successors(parse_function(TEXT.replace("BRANCH", "j {targets=end}")), table(BRANCH))[0] == [2]


def test_a_condition_of_what_never_falls_through_is_refused() -> None:
    function = parse_function(TEXT.replace("BRANCH", "bnez %0 {targets=end}"))
    with pytest.raises(PluginError, match="toy says that bnez never falls through") as caught:
        assign(function, table(JUMP))
    assert caught.value.code == "TFW0513" and "BRANCH" in (caught.value.help or "")


def test_a_condition_that_is_no_written_operand_is_seen_too() -> None:
    """Flags: the branch reads a register that its text does not name."""
    function = parse_function(TEXT.replace("BRANCH", "bnez {targets=end}"))
    branch = function.blocks[0].insts[-1]
    branch.implicit_uses = (function.blocks[0].insts[0].defs[0],)
    with pytest.raises(PluginError, match="toy says that bnez never falls through"):
        assign(function, table(JUMP))
