"""Asynchronous copies: loads to LDS, of which lane i's bytes land i times as many behind M0 (`isa.rows.lds_dma`).

What ends beyond a descriptor's limit lands as zeros. A copy at addresses of 64 bits has no limit: where its mask is false, the lane
stores zeros itself.
"""

from __future__ import annotations

from tilefw.api.integers import log2
from tilefw.api.machine import Operand, Slice
from tilefw.api.simt import AsyncCopy, Code, Const, Element, TransposedLoad
from tilefw_amd.chips import WAVE
from tilefw_amd.isa.rows.lds_dma import WIDE_DMA_LOADS
from tilefw_amd.isa.rows.local_transpose import GROUP, TRANSPOSING
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.machine.pseudo import COMMIT, COPY, WAIT
from tilefw_amd.select import access
from tilefw_amd.select.operands import in_vector

_WORD = 32
# Loads to LDS of a dword a lane are left to kernels that say so: four of them do what one of 16 bytes does.
_LOADS = {16: "dwordx4"}


def copy_bytes(isa: InstructionSet) -> tuple[int, ...]:
    """The sizes of a lane's copies that the chip has."""
    return tuple(size for size, word in _LOADS.items() if word in WIDE_DMA_LOADS and f"global_load_lds_{word}" in isa.rows)


def transposed_loads(isa: InstructionSet) -> tuple[TransposedLoad, ...]:
    """Those of elements of whole bytes."""
    found = ((f"ds_read_{name}", bits, registers) for name, _, bits, registers in TRANSPOSING)
    return tuple(
        TransposedLoad(name, log2(GROUP), registers * _WORD // 8, bits)
        for name, bits, registers in found if name in isa.rows and bits % 8 == 0
    )


def copy_async(code: Code, copy: AsyncCopy) -> None:
    """Start one copy of a wave."""
    word, place, predicate = _LOADS[copy.bytes], _place(code, copy), copy.predicate
    if copy.base is not None:
        where = access.through_descriptor(code, copy.base, copy.limit, copy.source, copy.source_immediate)
        opcode, names = f"buffer_load_{word}", ["offen", "lds"]
    else:
        address = code("addi.i64", copy.source, Const("i64", copy.source_immediate & (1 << 64) - 1))
        where, names = access.flat_address(code, address, 0)
        opcode = f"global_load_lds_{word}"
    if copy.mask is not None:
        _store_zeros(code, copy, code("addi.i32", place, code.i32(copy.immediate)))
        if isinstance(copy.mask, Const):
            return
        predicate = copy.mask
    uses: list[Operand] = [code.chip.operand(code, place), copy.immediate, *where, *names]
    code.effect(COPY + opcode, (), [*uses, *access.hints(copy.cache, copy.eviction)], predicate=predicate)


def commit(code: Code) -> None:
    code.effect(COMMIT)


def wait(code: Code, pending: int) -> None:
    code.effect(WAIT, (), [pending])


def _place(code: Code, copy: AsyncCopy) -> Element:
    """Where in LDS a wave's bytes go, without the immediate: a scalar."""
    address, *wave = (_scalar(code, part) for part in (copy.address, copy.wave) if part is not None)
    return code("addi.i32", address, *wave) if wave else address


def _scalar(code: Code, part: Slice) -> Element:
    return code.chip.uniform(code, "uw32", part)  # type: ignore[attr-defined]


def _store_zeros(code: Code, copy: AsyncCopy, place: Element) -> None:
    """What masked-off lanes do in place of a copy."""
    lane = code("andi.i32", code.chip.thread_id(code), code.i32(WAVE - 1))
    at = code("addi.i32", code("muli.i32", lane, code.i32(copy.bytes)), place)
    off = code("xori.i1", copy.mask, Const("i1", 1)) if isinstance(copy.mask, Slice) else None
    words = code.tuple([code.i32(0)] * (copy.bytes * 8 // _WORD), "v")
    code.effect("ds_write_b128", (), [in_vector(code, at) if code.uniform(at) else at, words], predicate=off, buffer=copy.buffer)
