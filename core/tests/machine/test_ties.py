"""A result that is tied to an operand finds it in its register, and the operand stays what it was for everybody else."""

from __future__ import annotations

import pytest

from tilefw.api.errors import InternalError
from tilefw.machine.inst import Function, Inst, Operand, Slice
from tilefw.machine.ties import tie_operands


def _copy(to: Slice, source: Operand) -> Inst:
    return Inst("copy", [to], [source])


def test_the_operand_is_copied_to_the_result() -> None:
    function = Function("f", "chip")
    x, y, d = (function.register("v").whole for _ in range(3))
    inst = Inst("insert", [d], [x, y], tied=((0, 1),))
    function.block("entry").insts = [inst, Inst("use", (), [y, d])]
    assert tie_operands(function, _copy) == 1
    copy, tied, use = function.blocks[0].insts
    assert (copy.opcode, copy.defs, copy.uses) == ("copy", (d,), (y,))
    assert tied.uses == (x, d) and tied.defs == (d,)
    assert use.uses == (y, d)


def test_what_is_in_place_stays() -> None:
    function = Function("f", "chip")
    x, d = (function.register("v").whole for _ in range(2))
    function.block("entry").insts = [Inst("insert", [d], [x, d], tied=((0, 1),))]
    assert tie_operands(function, _copy) == 0
    assert len(function.blocks[0].insts) == 1


def test_a_result_that_is_another_operand_too_is_refused() -> None:
    function = Function("f", "chip")
    y, d = (function.register("v").whole for _ in range(2))
    function.block("entry").insts = [Inst("insert", [d], [d, y], tied=((0, 1),))]
    with pytest.raises(InternalError, match="reads the register"):
        tie_operands(function, _copy)
