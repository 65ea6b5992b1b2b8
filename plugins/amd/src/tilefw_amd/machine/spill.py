"""Where values wait for a register: lane values in accumulation registers, then in scratch memory; wave values in lanes of a vector
register.

Sources: CDNA3 ISA, sections "VGPRs" (a wave has accumulation registers behind its others), "V_WRITELANE_B32" and "V_READLANE_B32"
(neither looks at EXEC), "Flat, Global and Scratch" (a scratch address is the wave's base, swizzled by lane, a scalar register or
none, and an offset of 13 bits with its sign; data may be accumulation registers).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from functools import partial
from math import gcd

from tilefw.api.errors import InternalError
from tilefw.api.integers import ceil_div, round_up
from tilefw.api.machine import MEMORY, WHOLE, Inst, Location, Operand, Reg, Slice, SpillModel, SpillSlotClass
from tilefw_amd.chips import WAVE, Chip
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.machine.expand import COPIES, is_constant, made_in_accumulation
from tilefw_amd.machine.machine_inst import instruction
from tilefw_amd.machine.pseudo import steps
from tilefw_amd.machine.traits import CLASSES

_REACH = 4096  # as far as the offset of a scratch access goes
_PAGE = 2048  # beyond it a scalar register has a multiple of this, so that accesses of neighbours are told by their offsets
_WORDS = {1: "dword", 2: "dwordx2", 4: "dwordx4"}
# Cycles until a value is back: a vector instruction and the wait states behind it, or what memory takes (`timing`).
_ACCUMULATION, _LANE, _SCRATCH = 4, 8, 120


def limits(chip: Chip, waves: int, most: int | None = None, per_simd: int = 0) -> dict[str, int]:
    """Registers of each file with which all `waves` of a workgroup are resident at once, and `per_simd` on a SIMD (`waves_per_eu`).

    A lane has at most `most` (`maxnreg`). A SIMD's registers are shared by its waves, and vector and accumulation registers come
    from one store (CDNA3 ISA, section "VGPRs")."""
    granule, each = chip.vector_granule, max(per_simd, _waves_of(chip, waves))
    together = chip.limits["registers_per_thread"] // each // granule * granule
    together = together if most is None else min(together, most)
    vectors = CLASSES["v"].count or 0
    return {"v": min(vectors, together), "a": min(vectors, max(0, together - vectors))}


def limited_by(chip: Chip, waves: int, most: int | None = None, per_simd: int = 0) -> str:
    """Which of them leaves a lane fewer registers than there are; empty where none does."""
    allowed = limits(chip, waves, most, per_simd)
    if allowed == limits(chip, 1):
        return ""
    if allowed != limits(chip, waves, None, per_simd):
        return f"maxnreg={most}"
    if per_simd > _waves_of(chip, waves):
        return f"waves_per_eu={per_simd}"
    return f"num_warps={waves}: waves of a workgroup share the registers of a SIMD"


def _waves_of(chip: Chip, waves: int) -> int:
    """The waves of one workgroup on a SIMD."""
    return ceil_div(waves, chip.limits["simds_per_processor"])


def _to_accumulation(value: Slice, place: Slice | None, index: int) -> list[Inst]:
    assert place is not None
    return [Inst("move.a", [place], [value])]


def _from_accumulation(value: Slice, place: Slice | None, index: int) -> list[Inst]:
    assert place is not None
    return [Inst("move.v", [value], [place])]


def _to_lanes(value: Slice, place: Slice | None, index: int) -> list[Inst]:
    assert place is not None  # other lanes stay: the register is read as well
    return [Inst("v_writelane_b32", [place], [value.part(i), index + i], implicit_uses=[place]) for i in range(value.count)]


def _from_lanes(value: Slice, place: Slice | None, index: int) -> list[Inst]:
    assert place is not None
    return [Inst("v_readlane_b32", [value.part(i)], [place, index + i]) for i in range(value.count)]


def _to_scratch(value: Slice, place: Slice | None, index: int) -> list[Inst]:
    made, base, start = _base(place, index)
    for words, at in _words(value, start):
        made.append(Inst(f"scratch_store_{_WORDS[words.count]}", (), ["off", words, base, *_offset(at)], buffer=-1))
    return made


def _from_scratch(value: Slice, place: Slice | None, index: int) -> list[Inst]:
    made, base, start = _base(place, index)
    for words, at in _words(value, start):
        made.append(Inst(f"scratch_load_{_WORDS[words.count]}", [words], ["off", base, *_offset(at)], buffer=-1))
    return made


def _base(place: Slice | None, index: int) -> tuple[list[Inst], Operand, int]:
    """What makes the scalar part of a scratch address, that part, and the offset that is left."""
    if place is None:
        return [], "off", index
    left = index % _PAGE
    return [Inst("s_mov_b32", [place], [index - left])], place, left


def _offset(at: int) -> list[Operand]:
    return [f"offset:{at}"] if at else []


def _words(value: Slice, at: int) -> Iterator[tuple[Slice, int]]:
    """A value as accesses of up to four registers; those of several begin at even ones."""
    even = gcd(value.first, value.reg.align) % 2 == 0
    done = 0
    while done < value.count:
        left = value.count - done
        count = 1 if not even or left < 2 else 4 if left >= 4 else 2
        yield value.part(done, count), at + 4 * done
        done += count


_MEMORY = SpillSlotClass(MEMORY, 1, _SCRATCH, _to_scratch, _from_scratch, _REACH, "s")
_IN_LANES = SpillSlotClass("v", WAVE, _LANE, _to_lanes, _from_lanes)
SLOT_CLASSES = {
    "v": (SpillSlotClass("a", 1, _ACCUMULATION, _to_accumulation, _from_accumulation), _MEMORY),
    "a": (_MEMORY,),
    "s": (_IN_LANES,),
    "m": (_IN_LANES,),
}


def accepts(isa: InstructionSet, inst: Inst, reg: Reg, cls: str) -> bool:
    """Whether an encoding takes every operand of `reg` in class `cls` (see `SpillModel`)."""
    operands = (*inst.defs, *inst.uses, *inst.implicit_defs, *inst.implicit_uses)
    if any(isinstance(o, Slice) and o.reg is reg for o in operands[len(inst.defs) + len(inst.uses) :]):
        return False
    if is_constant(inst):
        return cls == "a" and made_in_accumulation(inst)
    if inst.opcode.startswith("move."):
        files = [_file_of(operand, reg, cls) for operand in (inst.defs[0], inst.uses[0])]
        return tuple(files) in COPIES
    if cls == "a" and inst.opcode not in isa.own(_naming_accumulation):
        return False  # as most do: choosing what to spill asks of every access
    return not steps(inst.opcode) and _encodes(isa, inst, reg, cls)


def _naming_accumulation(isa: InstructionSet) -> frozenset[str]:
    """The mnemonics of which a form has an operand that may be an accumulation register."""
    named = isa.forms_by_mnemonic.items()
    return frozenset(name for name, forms in named if any("a" in operand.kinds for form in forms for operand in form.operands))


def _file_of(operand: Operand, reg: Reg, cls: str) -> str:
    if not isinstance(operand, Slice):
        return ""
    return cls if operand.reg is reg else CLASSES[operand.reg.cls].file or operand.reg.cls


_Shown = tuple[str, int, int] | int | str
"""A register as class, first and count; any other operand as it is."""


def _encodes(isa: InstructionSet, inst: Inst, reg: Reg, cls: str) -> bool:
    """Try it on registers that are apart, aligned as tuples are."""
    places: dict[Reg, tuple[str, int]] = {}
    taken: dict[str, int] = {}

    def placed(operand: Operand) -> _Shown:
        if not isinstance(operand, Slice):
            return operand
        if operand.reg.physical:
            return operand.reg.cls, operand.first, operand.count
        place = places.get(operand.reg)
        if place is None:
            file = _file_of(operand, reg, cls)
            first = taken.get(file, 0)
            place = places[operand.reg] = file, first
            taken[file] = first + round_up(operand.reg.width, 4)
        return place[0], place[1] + operand.first, operand.count

    return _takes(isa, inst.opcode, tuple([placed(d) for d in inst.defs]), tuple([placed(u) for u in inst.uses]), inst.tied)


@functools.lru_cache(maxsize=1 << 14)
def _takes(
    isa: InstructionSet, opcode: str, defs: tuple[_Shown, ...], uses: tuple[_Shown, ...], tied: tuple[tuple[int, int], ...]
) -> bool:
    """Whether an encoding takes these operands. The choice of what to spill asks it of each access, and few differ in shape."""
    made = [[Slice(_file(o[0]), o[1], o[2]) if isinstance(o, tuple) else o for o in operands] for operands in (defs, uses)]
    try:
        instruction(isa, Inst(opcode, made[0], made[1], tied=tied))  # type: ignore[arg-type]
    except InternalError:
        return False
    return True


@functools.cache
def _file(name: str) -> Reg:
    return Reg(-1, name, 1 << 12, 1, physical=True)


def copied(inst: Inst) -> Sequence[tuple[Location, Location]] | None:
    """What a lane access or a scratch access on physical registers copies (see `SpillModel`)."""
    if inst.opcode == "v_writelane_b32":
        return [(_lane(inst.defs[0], inst.uses[1]), _register(inst.uses[0], 0))]
    if inst.opcode == "v_readlane_b32":
        return [(_register(inst.defs[0], 0), _lane(inst.uses[0], inst.uses[1]))]
    kind, _, words = inst.opcode.rpartition("_")
    if kind not in ("scratch_load", "scratch_store") or inst.uses[0] != "off":
        return None
    value = inst.defs[0] if kind == "scratch_load" else inst.uses[1]
    offset = next((int(u[len("offset:") :]) for u in inst.uses if isinstance(u, str) and u.startswith("offset:")), 0)
    count = next(count for count, name in _WORDS.items() if name == words)
    pairs = [((MEMORY, offset + 4 * i, WHOLE), _register(value, i)) for i in range(count)]
    return [(register, memory) for memory, register in pairs] if kind == "scratch_load" else pairs


def pointer(inst: Inst) -> Slice | None:
    """The scalar register of a scratch access's address (see `SpillModel`)."""
    kind, _, _ = inst.opcode.rpartition("_")
    base = inst.uses[{"scratch_load": 1, "scratch_store": 2}[kind]] if kind in ("scratch_load", "scratch_store") else None
    return base if isinstance(base, Slice) else None


def _lane(holder: Operand, lane: Operand) -> Location:
    file, number, _ = _register(holder, 0)
    assert isinstance(lane, int)
    return file, number, lane


def _register(operand: Operand, i: int) -> Location:
    assert isinstance(operand, Slice)
    return operand.reg.cls, operand.first + i, WHOLE


def model(isa: InstructionSet) -> SpillModel:
    """What register assignment asks, of one instruction set."""
    return SpillModel(SLOT_CLASSES, partial(accepts, isa), copied, isa.chip.limits["scratch_bytes_per_thread"], pointer)
