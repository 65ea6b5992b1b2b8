"""Whatever is handed over as an operand, the instruction that comes out has an encoding: constants, scalar registers, masks."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from served import ISAS

from tilefw.api.integers import ceil_div
from tilefw.api.machine import Function, Inst, Slice
from tilefw.api.simt import Code, Const
from tilefw_amd.isa.constants import is_inline
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.machine.machine_inst import instruction
from tilefw_amd.machine.traits import CLASSES, SCALARS
from tilefw_amd.select.lanes import AmdLanes
from tilefw_amd.select.operands import legal, scalar_operands

# Opcodes by the widths of their sources.
VECTOR = {
    "v_add_f32": (32, 32), "v_sub_u32": (32, 32), "v_lshlrev_b32": (32, 32), "v_fma_f32": (32, 32, 32), "v_perm_b32": (32, 32, 32),
    "v_cmp_lt_i32": (32, 32), "v_add_f64": (64, 64), "v_fma_f64": (64, 64, 64), "v_lshl_add_u64": (64, 32, 64), "v_exp_f32": (32,),
    "v_mul_lo_u32": (32, 32), "v_add_f16": (16, 16), "v_pk_add_f16": (32, 32), "v_mad_u64_u32": (32, 32, 64),
}
SCALAR = {"s_add_u32": (32, 32), "s_lshl_b64": (64, 32), "s_and_b64": (64, 64), "s_cselect_b32": (32, 32), "s_cmp_eq_u64": (64, 64)}
RESULTS = {"v_cmp_lt_i32": ("i1",), "v_mad_u64_u32": ("w64", "i1"), "v_add_f64": ("w64",), "v_fma_f64": ("w64",),
           "v_lshl_add_u64": ("w64",)}
LANES = {isa: AmdLanes(isa, True) for isa in ISAS}

constants = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 64, 65, 2**32 - 16, 0x3F800000, 0x3FF0 << 48, 0x3C00]))


def _physical(inst: Inst, function: Function) -> Inst:
    """Registers one behind the other, tuples at multiples of four."""
    places: dict[object, int] = {}
    following = {"v": 0, "s": 0}

    def place(piece: object) -> object:
        if not isinstance(piece, Slice):
            return piece
        file = CLASSES[piece.reg.cls].file or piece.reg.cls
        if piece.reg not in places:
            places[piece.reg] = following[file]
            following[file] += 4
        size = SCALARS if file == "s" else CLASSES["v"].count
        return function.file(file, size or 0).slice(places[piece.reg] + piece.first, piece.count)

    return Inst(inst.opcode, [place(d) for d in inst.defs], [place(u) for u in inst.uses])  # type: ignore[misc]


def _code(isa: InstructionSet = ISAS[0]) -> Code:
    return Code(Function("f", isa.chip.target), LANES[isa])


def _drawn(data: st.DataObject, code: Code, width: int, kinds: str, pool: list[Slice]) -> Slice | Const:
    kind = data.draw(st.sampled_from(kinds))
    if kind == "c":
        return Const({16: "i16", 32: "i32", 64: "i64"}[width], data.draw(constants) & (1 << width) - 1)
    again = [r for r in pool if r.reg.cls == kind and r.count == ceil_div(width, 32)]
    if again and data.draw(st.booleans()):
        return again[0]
    form = "w64" if width == 64 else "w32"
    pool.append(code.new_register(form if kind == "v" else f"u{form}"))
    return pool[-1]


@settings(deadline=None)  # the first call assembles the instruction table
@given(st.data(), st.sampled_from(sorted(VECTOR)), st.sampled_from(ISAS))
def test_vector_instructions_have_an_encoding(data: st.DataObject, opcode: str, isa: InstructionSet) -> None:
    code = _code(isa)
    pool: list[Slice] = []
    sources = [_drawn(data, code, width, "vsc", pool) for width in VECTOR[opcode]]
    uses = legal(code, opcode, sources)
    defs = [code.new_register(form) for form in RESULTS.get(opcode, ("w32",))]
    assert instruction(isa, _physical(Inst(opcode, defs, uses), code.function)).form.row.name == opcode


@settings(deadline=None)  # the first call assembles the instruction table
@given(st.data(), st.sampled_from(sorted(SCALAR)), st.sampled_from(ISAS))
def test_scalar_instructions_have_an_encoding(data: st.DataObject, opcode: str, isa: InstructionSet) -> None:
    code = _code(isa)
    pool: list[Slice] = []
    sources = [_drawn(data, code, width, "sc", pool) for width in SCALAR[opcode]]
    uses = scalar_operands(code, opcode, sources)
    defs = [] if opcode.startswith("s_cmp") else [code.new_register("uw64" if opcode.endswith("64") else "uw32")]
    assert instruction(isa, _physical(Inst(opcode, defs, uses), code.function)).form.row.name == opcode


def test_a_mask_keeps_its_place() -> None:
    """The condition of a choice stands in scalar registers: what else would goes to a vector register."""
    code = _code()
    value, condition = code.new_register("uw32"), code.new_register("ui1")
    x, y, mask = legal(code, "v_cndmask_b32", (value, Const("i32", 1000), condition))
    assert mask is condition
    assert isinstance(x, Slice) and isinstance(y, Slice) and x.reg.cls == y.reg.cls == "v"


def test_inline_constants() -> None:
    assert is_inline(0xFFFFFFF0, 32) and is_inline(64, 32) and is_inline(0x3F800000, 32)
    assert not is_inline(0xFFFFFFEF, 32) and not is_inline(65, 32) and not is_inline(0x3F800000, 64)


@pytest.mark.parametrize(("const", "expected"), [
    (Const("i32", 64), 64), (Const("i32", 2**32 - 16), 2**32 - 16), (Const("f32", 0x3F800000), 0x3F800000),
    (Const("f64", 0x3FF0 << 48), 0x3FF0 << 48), (Const("i1", 1), 2**64 - 1), (Const("i32", 65), None), (Const("i64", 2**40), None),
])
def test_a_literal_is_one_where_every_instruction_takes_it_else_a_register(const: Const, expected: int | None) -> None:
    code = _code()
    literal = LANES[ISAS[0]].operand(code, const)
    if expected is not None:
        assert literal == expected
    else:
        assert isinstance(literal, Slice) and code.function.blocks[0].insts[-1].uses == (const.bits,)
