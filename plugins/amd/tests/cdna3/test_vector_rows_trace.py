"""Every vector row's meaning is a function of the lane algebra alone, with results of the widths that its pattern states."""

from __future__ import annotations

import pytest
from served import ISAS, having

from cdna3.vector import VECTOR
from tilefw.api.sim import PRIMITIVES, trace
from tilefw_amd.isa.row import Mode, Modifiers, Row

MODES = {
    "usual": Mode(),
    "flushing, directed": Mode("rp", "rm", True, True, False, False),
}
# Its table is not public.
REFUSED = {"v_screen_partition_4se_b32"}
IMPLICIT = {"scc": 1, "vcc": 64, "exec": 64, "m0": 32}


def width(operand) -> int:
    if operand.type is None or operand.type.kind == "mask":
        return 1
    return operand.type.bits


def sources(row: Row) -> list[int]:
    given = [o for o in row.operands if o.role in ("source", "implicit source")]
    return [width(o) if o.role == "source" else IMPLICIT[o.name] for o in given] + [width(o) for o in row.destinations if o.read]


def results(row: Row) -> list[int]:
    found: list[int] = []
    for operand in row.operands:
        if operand.role == "destination":
            found += [32] * (operand.type.bits // 32) if width(operand) > 64 else [width(operand)]
        elif operand.role == "implicit destination":
            found.append(IMPLICIT[operand.name])
    return found


# A source is a tuple of registers: test_vector_integer runs these.
WIDE = {name for name, row in VECTOR.items() if any(w > 64 for w in sources(row))}


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
@pytest.mark.parametrize("name", sorted(VECTOR.keys() - REFUSED - WIDE))
def test_a_meaning_traces_symbolically(name: str, mode: Mode) -> None:
    row = VECTOR[name]
    for given in ({}, {"clamp": 1}) if "clamp" in row.modifiers and "op_sel" not in row.modifiers else ({},):
        modifiers = Modifiers(given)
        modifiers.mode, modifiers.form, modifiers.chip = mode, None, having(name)
        try:
            meaning = row.build(modifiers)
        except ValueError as error:
            assert given and "not documented" in str(error)
            continue
        steps, found = trace(meaning, sources(row), wave_size=64)
        assert {step.name for step in steps} <= set(PRIMITIVES)
        assert list(found) == results(row)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_not_documented_is_refused_by_name(name: str) -> None:
    modifiers = Modifiers()
    modifiers.mode, modifiers.form, modifiers.chip = Mode(), None, having(name)
    with pytest.raises(ValueError, match=name):
        VECTOR[name].build(modifiers)


def test_every_row_says_what_it_means_and_where_that_stands() -> None:
    assert [name for name, row in VECTOR.items() if not row.doc or not row.section] == []


# Opcodes that llvm-mc 22 decodes for the first chip in VOP1, VOP2 and VOPC, without packed, dot and matrix instructions.
COUNTS = {"vop1": 83, "vop2": 56, "vopc": 198}


def test_the_chapters_hold_what_llvm_knows() -> None:
    served = [VECTOR[name] for name in VECTOR if name in ISAS[0].rows]
    assert {encoding: sum(encoding in row.opcodes for row in served) for encoding in COUNTS} == COUNTS
