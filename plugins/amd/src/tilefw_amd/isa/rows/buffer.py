"""Loads and stores through a buffer descriptor (CDNA3 ISA, chapter "Buffer memory instructions"): untyped, typed, and to LDS.

Typed accesses convert by the format in the descriptor, or in the instruction (`tbuffer`); they assemble and print, and stop a
simulation. Opcodes: `BUFInstructions.td`, checked against llvm-mc.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tilefw_amd.isa.row import Chapter, Modifiers
from tilefw_amd.isa.rows.accesses import BUFFER, LOADS, STORES, bound, load_half, store_data_first
from tilefw_amd.isa.rows.lds_dma import DMA_LOADS, WIDE_DMA_LOADS, dma, dma_facts

CHAPTER = Chapter()
row = CHAPTER.row

SECTION = "Buffer memory instructions"

for _name, _opcode, _registers, _meaning, _variant in LOADS:
    _kept = "+" if _meaning is load_half else ""
    row(f"buffer_load_{_name} {_kept}d:b{32 * _registers}, [addr]",
        mubuf=_opcode, unit="vmem", section=SECTION, facts="buffer, load")(bound(_meaning, BUFFER, _variant))
for _name, _opcode, _registers, _meaning, _variant in STORES:
    row(f"buffer_store_{_name} a:b{32 * _registers}, [addr]",
        mubuf=_opcode, unit="vmem", section=SECTION, facts="buffer, store")(store_data_first(_meaning, BUFFER, *_variant))

# --- to LDS: the bit `lds` makes another instruction of a load, without a register for its data --------------------------------

for _loads, _since in ((DMA_LOADS, 0), (WIDE_DMA_LOADS, 4)):
    for _name, (_, _opcode, _bytes, _signed) in _loads.items():
        row(f"buffer_load_{_name}_lds [addr], <m0", mubuf=_opcode, unit="vmem", section=SECTION,
            facts=f"buffer, {dma_facts(_bytes)}", mnemonic=f"buffer_load_{_name}", since=_since)(
            partial(dma, BUFFER, _bytes, _signed)
        )

# --- typed ------------------------------------------------------------------------------------------------------------------------


def _refused(name: str, results: int, m: Modifiers) -> Any:
    """Memory in the descriptor's data and number format, converted; not simulated."""

    def run(lanes: Any, *operands: Any) -> Any:
        lanes.trap(f"{name}: typed buffer accesses are not simulated")
        words = tuple(lanes.undefined(32) for _ in range(results))
        return None if not results else words[0] if results == 1 else lanes.join(words) if results == 2 else words

    return run


_COMPONENTS = ("x", "xy", "xyz", "xyzw")
for _count, _components in enumerate(_COMPONENTS, start=1):
    for _infix, _base, _registers in (("", 0x00, _count), ("d16_", 0x08, (_count + 1) // 2)):
        # A half that no component fills stays as it was.
        _kept = "+" if _infix and _count % 2 else ""
        _name = f"format_{_infix}{_components}"
        row(f"buffer_load_{_name} {_kept}d:b{32 * _registers}, [addr]",
            mubuf=_base + _count - 1, unit="vmem", section=SECTION, facts="buffer, load")(
            partial(_refused, f"buffer_load_{_name}", _registers)
        )
        row(f"buffer_store_{_name} a:b{32 * _registers}, [addr]",
            mubuf=_base + _count + 3, unit="vmem", section=SECTION, facts="buffer, store")(
            partial(_refused, f"buffer_store_{_name}", 0)
        )
        row(f"tbuffer_load_{_name} {_kept}d:b{32 * _registers}, [addr]",
            mtbuf=_base + _count - 1, unit="vmem", section=SECTION, facts="buffer, load")(
            partial(_refused, f"tbuffer_load_{_name}", _registers)
        )
        row(f"tbuffer_store_{_name} a:b{32 * _registers}, [addr]",
            mtbuf=_base + _count + 3, unit="vmem", section=SECTION, facts="buffer, store")(
            partial(_refused, f"tbuffer_store_{_name}", 0)
        )
row("buffer_load_format_d16_hi_x +d:b32, [addr]", mubuf=0x26, unit="vmem", section=SECTION, facts="buffer, load")(
    partial(_refused, "buffer_load_format_d16_hi_x", 1)
)
row("buffer_store_format_d16_hi_x a:b32, [addr]", mubuf=0x27, unit="vmem", section=SECTION, facts="buffer, store")(
    partial(_refused, "buffer_store_format_d16_hi_x", 0)
)
row("buffer_load_format_x_lds [addr], <m0", mubuf=0x00, unit="vmem", section=SECTION, facts="buffer, load, lds dma",
    mnemonic="buffer_load_format_x")(partial(_refused, "buffer_load_format_x to LDS", 0))
