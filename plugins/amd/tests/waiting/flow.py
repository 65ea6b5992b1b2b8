"""Random control flow of a chip's code, and what the simulator's own trackers say of all its paths.

The pasts that a tracker knows are finitely many, so that going through every block with every past that may come to it is going
along all paths.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from tilefw.api import CodeError
from tilefw.api.machine import Function, Inst
from tilefw.api.sim import Instruction
from tilefw.machine.flow import successors
from tilefw.sim.checks.hazards import HazardTracker
from tilefw.sim.checks.pending import ResultTracker
from tilefw.sim.tracking.history import Found
from tilefw_amd.isa.meaning.binding import Site, bind
from tilefw_amd.isa.row import Mode
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.isa.text.parser import parse
from tilefw_amd.machine.hazards import straight_hazards
from tilefw_amd.machine.machine_inst import instruction
from tilefw_amd.machine.traits import instructions
from waiting import listing

# {v}, {w}: vector registers, {p}: a pair of them, {q}: four, {s}: a scalar register.
MEMORY = (
    "global_load_dword v{v}, v[{p}:{p}+1], off", "global_load_dwordx4 v[{q}:{q}+3], v[{p}:{p}+1], off",
    "global_load_short_d16 v{v}, v[{p}:{p}+1], off", "global_load_short_d16_hi v{v}, v[{p}:{p}+1], off",
    "global_store_dword v[{p}:{p}+1], v{v}, off", "global_store_dwordx4 v[{p}:{p}+1], v[{q}:{q}+3], off",
    "global_atomic_add v{v}, v[{p}:{p}+1], v{w}, off sc0", "global_atomic_add v[{p}:{p}+1], v{w}, off",
    "flat_load_dword v{v}, v[{p}:{p}+1]", "ds_read_b32 v{v}, v{w}", "ds_read_u16_d16 v{v}, v{w}", "ds_write_b32 v{v}, v{w}",
    "ds_bpermute_b32 v{v}, v{w}, v{v}", "ds_read_b128 v[{q}:{q}+3], v{v}", "s_load_dword s{s}, s[8:9], 0x0",
    "s_load_dwordx2 vcc, s[8:9], 0x8", "s_load_dwordx4 s[4:7], s[8:9], 0x0",
    "buffer_load_dword v{v}, v{w}, s[4:7], 0 offen", "buffer_atomic_add v{v}, v{w}, s[4:7], 0 offen sc0",
    "buffer_wbl2 sc1", "buffer_inv sc1", "global_store_dword v[{p}:{p}+1], v{v}, off sc1", "ds_read_b64_tr_b16 v[{p}:{p}+1], v{w}",
    "buffer_load_dwordx3 v[{q}:{q}+2], v{w}, s[4:7], 0 offen",
)
ARITHMETIC = (
    "v_mov_b32_e32 v{v}, v{w}", "v_add_u32_e32 v{v}, s{s}, v{w}", "v_readfirstlane_b32 s{s}, v{v}",
    "v_readlane_b32 s{s}, v{v}, s5", "v_writelane_b32 v{v}, 0, s{s}", "v_cmp_eq_u32_e32 vcc, v{v}, v{w}",
    "v_cndmask_b32_e32 v{v}, v{w}, v{v}, vcc", "v_div_fmas_f32 v{v}, v{w}, v{v}, v{w}", "v_exp_f32_e32 v{v}, v{w}",
    "v_mov_b32_dpp v{v}, v{w} row_shr:1 row_mask:0xf bank_mask:0xf", "v_add_f64 v[{p}:{p}+1], v[{q}:{q}+1], v[{p}:{p}+1]",
    "v_mov_b32_sdwa v{v}, v{w} dst_sel:BYTE_1 dst_unused:UNUSED_PAD src0_sel:DWORD", "s_mov_b32 m0, s{s}",
    "v_mfma_f32_4x4x4_16b_f16 v[{q}:{q}+3], v[{p}:{p}+1], v[{p}:{p}+1], v[{q}:{q}+3]",
    "v_mfma_f32_16x16x16_f16 v[{q}:{q}+3], v[{p}:{p}+1], v[{p}:{p}+1], v[{q}:{q}+3]",
    "v_mfma_f32_32x32x8_f16 v[16:31], v[{p}:{p}+1], v[{p}:{p}+1], v[16:31]", "v_mov_b32_e32 v{v}, v20",
    "v_mfma_f64_16x16x4_f64 v[16:23], v[{p}:{p}+1], v[{p}:{p}+1], v[16:23]", "s_add_u32 s{s}, s{s}, s5", "s_mov_b32 s4, 0",
    "v_dot4_i32_i8 v{v}, v{w}, v{w}, v{v}", "s_load_dword s{s}, s[8:9], 0x0",
    "global_store_dwordx4 v[{p}:{p}+1], v[{q}:{q}+3], off",
    "v_permlane32_swap_b32_e32 v{v}, v{w}", "v_permlane16_swap_b32_e32 v{v}, v{w}",
    "v_cvt_scalef32_pk_f32_fp8 v[{p}:{p}+1], v{v}, v{w}", "v_cvt_scalef32_pk_fp8_f32 v{v}, v{w}, v{v}, v{w} op_sel:[0,0,0,1]",
    "v_mfma_f32_16x16x32_f16 v[{q}:{q}+3], v[{q}:{q}+3], v[{q}:{q}+3], v[{q}:{q}+3]",
    "v_bitop3_b32 v{v}, v{w}, v{v}, v20 bitop3:0x6c",
    "v_mfma_f32_16x16x128_f8f6f4 v[{q}:{q}+3], v[0:7], v[16:23], v[{q}:{q}+3]", "global_load_lds_dword v[{p}:{p}+1], off",
    "v_mfma_scale_f32_16x16x128_f8f6f4 v[{q}:{q}+3], v[0:7], v[16:23], v[{q}:{q}+3], v{v}, v{w}",
)
BRANCHES = ("s_cbranch_scc0", "s_cbranch_vccz")


@dataclass(frozen=True)
class Shape:
    """Statements by block, and of each block how it ends: None falls through, else (conditional, block)."""

    blocks: tuple[tuple[str, ...], ...]
    ends: tuple[tuple[bool, int] | None, ...]


def served(isa: InstructionSet, menu: Sequence[str]) -> tuple[str, ...]:
    """The statements of the menu that the chip has."""
    return tuple(statement for statement in menu if _has(isa, _statement((statement, 0, 1, 0, 1, 0))))


@functools.cache
def _has(isa: InstructionSet, statement: str) -> bool:
    try:
        parse(isa, statement)
    except CodeError as error:
        assert error.code == "TFW0720", error  # another mistake than an unknown mnemonic is one of the menu
        return False
    return True


def shapes(menu: Sequence[str], most: int = 8) -> st.SearchStrategy[Shape]:
    """Up to five blocks of up to `most` instructions."""
    statement = st.tuples(
        st.sampled_from(menu), st.integers(0, 7), st.integers(0, 7), st.integers(0, 3), st.integers(0, 1), st.integers(0, 3)
    ).map(_statement)
    block = st.lists(statement, max_size=most).map(tuple)

    def with_ends(blocks: list[tuple[str, ...]]) -> st.SearchStrategy[Shape]:
        end = st.none() | st.tuples(st.just(True) | st.booleans(), st.integers(0, len(blocks) - 1))
        return st.tuples(*[end] * len(blocks)).map(lambda ends: Shape(tuple(blocks), ends))

    return st.lists(block, min_size=1, max_size=5).flatmap(with_ends)


def _statement(drawn: tuple[str, int, int, int, int, int]) -> str:
    """Registers v0 to v7 and s0 to s3 only, so that they often meet."""
    text, v, w, p, q, s = drawn
    sums = {f"{{{name}}}+{more}": str(value + more) for name, value in (("p", 2 * p), ("q", 4 * q)) for more in (1, 2, 3)}
    for written, value in sums.items():
        text = text.replace(written, value)
    return text.format(v=v, w=w, p=2 * p, q=4 * q, s=s)


def function(isa: InstructionSet, shape: Shape) -> Function:
    """Machine code of the shape; behind the last block the program ends."""
    made = Function("random", isa.chip.target)
    for number, (statements, end) in enumerate(zip(shape.blocks, shape.ends, strict=True)):
        block = made.block(f"L{number}")
        block.insts += [listing.machine(isa, made, statement) for statement in statements]
        if end is not None:
            conditional, target = end
            opcode = BRANCHES[target % 2] if conditional else "s_branch"
            block.insts.append(Inst(opcode, targets=(f"L{target}",)))
    made.block("end").insts.append(Inst("s_endpgm"))
    return made


def faults(isa: InstructionSet, code: Function) -> list[Found]:
    """What the simulator finds on any path: results touched too early, and too few wait states."""
    following = successors(code, instructions(isa))
    numbered: list[list[Instruction]] = []
    for block in code.blocks:
        first = sum(map(len, numbered))
        numbered.append([_bound(isa, inst, first + n) for n, inst in enumerate(block.insts)])
    flat = [instruction for block in numbered for instruction in block]
    found: list[Found] = []
    for tracker in (ResultTracker(flat, ()), HazardTracker(straight_hazards(isa.chip), flat, ())):
        known = {(0, tracker.start)}
        work = [(0, tracker.start)]
        while work:
            block, past = work.pop()
            after, faulty = tracker.through(numbered[block], past)
            found += faulty
            for successor in following[block]:
                if (successor, after) not in known:
                    known.add((successor, after))
                    work.append((successor, after))
    return found


def _bound(isa: InstructionSet, inst: Inst, index: int) -> Instruction:
    return bind(instruction(isa, inst), _mode(), Site(index, target=0), inst.opcode)


@functools.cache
def _mode() -> Mode:
    return Mode()
