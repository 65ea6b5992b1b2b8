"""Registers of other lanes: by DPP in the vector unit where a pattern has it, else through the crossbar of LDS.

CDNA3 ISA, section "Data Parallel Processing": quad_perm, row_half_mirror, row_mirror, row_ror, in rows of 16 lanes. DS_SWIZZLE_B32
has patterns of 32 lanes, DS_BPERMUTE_B32 takes any lane; neither touches memory.
"""

from __future__ import annotations

from tilefw.api.machine import Slice
from tilefw.api.simt import Code, Const, Element
from tilefw_amd.chips import WAVE
from tilefw_amd.select.operands import in_vector, vector_constant

_ROW, _HALF_ROW, _QUAD = 16, 8, 4
# Lane ^ distance as one control, and distances that one of them leaves to a quad.
_CONTROLS = {
    **{d: f"quad_perm:[{','.join(str(lane ^ d) for lane in range(_QUAD))}]" for d in range(1, _QUAD)},
    _HALF_ROW - 1: "row_half_mirror", _ROW - 1: "row_mirror", _HALF_ROW: f"row_ror:{_HALF_ROW}",
}
EXCHANGES = tuple(_CONTROLS)
# DS_SWIZZLE_B32, offset: within 32 lanes, ((lane & bits 4:0) | bits 9:5) ^ bits 14:10.
_KEEP_LANE, _SWIZZLED_LANES, _EXCHANGED = 0x1F, 32, 10


def shuffle(code: Code, mode: str, value: Element, lanes: Element) -> Element:
    """The register of 32 bits of another lane; `lanes` is an amount, or for `index` a lane."""
    if isinstance(value, Const) or code.uniform(value):
        return value
    if mode == "xor" and isinstance(lanes, Const):
        return _exchanged(code, value, lanes.bits % WAVE)
    if mode == "index" and (isinstance(lanes, Const) or code.uniform(lanes)):
        lane = lanes.bits % WAVE if isinstance(lanes, Const) else lanes
        return code.inst("v_readlane_b32", "uw32", value, lane)
    return _from(code, value, _source(code, mode, lanes))


def _exchanged(code: Code, value: Slice, distance: int) -> Slice:
    if distance == 0:
        return value
    steps = _steps(distance)
    if steps:
        for control in steps:
            value = code.inst("v_mov_b32", "w32", value, control, "row_mask:0xf", "bank_mask:0xf")
        return value
    if distance < _SWIZZLED_LANES:
        return code.inst("ds_swizzle_b32", "w32", value, f"offset:{distance << _EXCHANGED | _KEEP_LANE}")
    return _from(code, value, code("xori.i32", _lane(code), code.i32(distance)))


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
