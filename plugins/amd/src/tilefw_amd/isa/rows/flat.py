"""Loads and stores of the flat encoding: generic, global and scratch addresses (CDNA3 ISA, chapter "Flat memory instructions").

Flat addresses go through the apertures of LDS and scratch, so that a flat access counts in both queues: vmcnt and lgkmcnt.
Loads to LDS take the LDS address from M0 (`lds_dma`). Opcodes: `FLATInstructions.td`, checked against llvm-mc.
"""

from __future__ import annotations

from functools import partial

from tilefw_amd.isa.row import Chapter
from tilefw_amd.isa.rows.accesses import GENERIC, GLOBAL, LOADS, LOCAL, STORES, Space, bound, load_half
from tilefw_amd.isa.rows.lds_dma import DMA_LOADS, WIDE_DMA_LOADS, dma, dma_facts

CHAPTER = Chapter()
row = CHAPTER.row

SECTION = "Flat memory instructions"

# By the mnemonic's beginning: space, facts.
SPACES: dict[str, tuple[Space, str]] = {
    "flat": (GENERIC, "flat"),
    "global": (GLOBAL, "global"),
    "scratch": (LOCAL, "scratch"),
}


def _add_rows(prefix: str, space: Space, facts: str) -> None:
    for name, opcode, registers, meaning, variant in LOADS:
        kept = "+" if meaning is load_half else ""
        pattern = f"{prefix}_load_{name} {kept}d:b{32 * registers}, [addr]"
        row(pattern, flat=opcode, unit="vmem", section=SECTION, facts=f"{facts}, load")(bound(meaning, space, variant))
    for name, opcode, registers, meaning, variant in STORES:
        pattern = f"{prefix}_store_{name} [addr], a:b{32 * registers}"
        row(pattern, flat=opcode, unit="vmem", section=SECTION, facts=f"{facts}, store")(bound(meaning, space, variant))


for _prefix, (_space, _facts) in SPACES.items():
    _add_rows(_prefix, _space, _facts)

for _prefix, _loads, _since in (("global", DMA_LOADS, 0), ("scratch", DMA_LOADS, 0), ("global", WIDE_DMA_LOADS, 4)):
    _space, _facts = SPACES[_prefix]
    for _name, (_opcode, _, _bytes, _signed) in _loads.items():
        row(
            f"{_prefix}_load_lds_{_name} [addr], <m0", flat=_opcode, unit="vmem", section=SECTION,
            facts=f"{_facts}, {dma_facts(_bytes)}", since=_since,
        )(partial(dma, _space, _bytes, _signed))
