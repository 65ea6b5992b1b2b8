"""Registers of other lanes: by DPP in the vector unit where a pattern has it, else through the crossbar of LDS.

CDNA3 ISA, section "Data Parallel Processing": quad_perm, row_half_mirror, row_mirror, row_ror, row_newbcast, in rows of 16 lanes;
row_bcast from row to row. DS_SWIZZLE_B32
has patterns of 32 lanes, DS_BPERMUTE_B32 takes any lane; neither touches memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilefw.api.machine import Slice
from tilefw.api.simt import Code, Const, Element
from tilefw_amd.chips import WAVE
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.select.operands import in_vector, vector_constant

_ROW, _HALF_ROW, _QUAD = 16, 8, 4
# Lane ^ distance as one control, and distances that one of them leaves to a quad.
_CONTROLS = {
    **{d: f"quad_perm:[{','.join(str(lane ^ d) for lane in range(_QUAD))}]" for d in range(1, _QUAD)},
    _HALF_ROW - 1: "row_half_mirror", _ROW - 1: "row_mirror", _HALF_ROW: f"row_ror:{_HALF_ROW}",
}
# From the last lane of a lower half, and from the first lane of an upper half, by the size of the half.
_HALVES = {
    "lower": {
        1: ("quad_perm:[0,0,2,2]",), 2: ("quad_perm:[1,1,1,1]",), 4: ("quad_perm:[3,3,3,3]", "row_half_mirror"),
        8: ("row_newbcast:7",), 16: ("row_bcast:15",), 32: ("row_bcast:31",),
    },
    "upper": {
        1: ("quad_perm:[1,1,3,3]",), 2: ("quad_perm:[2,2,2,2]",), 4: ("quad_perm:[0,0,0,0]", "row_half_mirror"),
        8: ("row_newbcast:8",),
    },
}
# DS_SWIZZLE_B32, offset: within 32 lanes, ((lane & bits 4:0) | bits 9:5) ^ bits 14:10.
_KEEP_LANE, _SWIZZLED_LANES, _EXCHANGED = 0x1F, 32, 10


def described(isa: InstructionSet) -> dict[str, Any]:
    """What `ChipDescription` says of shuffles. A chip without the instructions that take any lane has none."""
    if not {"ds_bpermute_b32", "ds_swizzle_b32"} <= isa.rows.keys():
        return {}
    return {"shuffles": True, "exchanges": tuple(_CONTROLS), "scan_shuffles": ("lower", "upper")}


def shuffle(code: Code, mode: str, value: Element, lanes: Element) -> Element:
    """The register of 32 bits of another lane; `lanes` is an amount, or for `index` a lane."""
    if isinstance(value, Const) or code.uniform(value):
        return value
    if mode == "xor" and isinstance(lanes, Const):
        return _exchanged(code, value, lanes.bits % WAVE)
    if mode in _HALVES and isinstance(lanes, Const):
        return _from_half(code, mode, value, lanes.bits)
    if mode == "index" and (isinstance(lanes, Const) or code.uniform(lanes)):
        lane = lanes.bits % WAVE if isinstance(lanes, Const) else lanes
        return code.inst("v_readlane_b32", "uw32", value, lane)
    return _from(code, value, _source(code, mode, lanes))


def _exchanged(code: Code, value: Slice, distance: int) -> Slice:
    if distance == 0:
        return value
    steps = _steps(distance)
    if steps:
        return _by(code, value, steps)
    if distance < _SWIZZLED_LANES:
        return code.inst("ds_swizzle_b32", "w32", value, f"offset:{distance << _EXCHANGED | _KEEP_LANE}")
    return _from(code, value, code("xori.i32", _lane(code), code.i32(distance)))


def _by(code: Code, value: Slice, controls: Sequence[str]) -> Slice:
    for control in controls:
        value = code.inst("v_mov_b32", "w32", value, control, "row_mask:0xf", "bank_mask:0xf")
    return value


def _from_half(code: Code, mode: str, value: Slice, half: int) -> Slice:
    controls = _HALVES[mode].get(half)
    if controls:
        return _by(code, value, controls)
    own, below = _lane(code), code.i32(half - 1)
    if mode == "lower":
        return _from(code, value, code("andi.i32", code("ori.i32", own, below), code.i32(~half)))
    return _from(code, value, code("ori.i32", code("andi.i32", own, code.i32(-half)), code.i32(half)))


def _steps(distance: int) -> tuple[str, ...]:
    """The controls that together exchange lanes at a distance; none where that takes more than two, or rows."""
    if distance in _CONTROLS:
        return (_CONTROLS[distance],)
    for control in (_HALF_ROW - 1, _ROW - 1, _HALF_ROW):
        if distance ^ control in _CONTROLS:
            return _CONTROLS[control], _CONTROLS[distance ^ control]
    return ()


def _source(code: Code, mode: str, lanes: Element) -> Element:
    """The lane that a lane reads: its own where there is none (`lane.shuffle`)."""
    if mode == "index":
        return lanes
    own = _lane(code)
    if mode == "xor":
        return code("xori.i32", own, lanes)
    other = code("subi.i32" if mode == "up" else "addi.i32", own, lanes)
    return code("select.i32", code("ltu.i32", other, code.i32(WAVE)), other, own)


def _lane(code: Code) -> Element:
    return code("andi.i32", code.chip.thread_id(code), code.i32(WAVE - 1))


def _from(code: Code, value: Slice, lane: Element) -> Slice:
    """DS_BPERMUTE_B32 counts lanes in bytes."""
    place = code("shl.i32", lane, code.i32(2))
    if isinstance(place, Const):
        place = vector_constant(code, place.bits, 32)
    if code.uniform(place):
        place = in_vector(code, place)
    return code.inst("ds_bpermute_b32", "w32", place, value)
