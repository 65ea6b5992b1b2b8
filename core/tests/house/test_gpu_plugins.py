"""The two GPU plugins have the same files, so that who knows one knows where to look in the other; differences have a reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from tree import PLUGINS

ROOMS = ("", "chips", "isa", "select", "simulate")  # within `isa/rows`, `text` and `meaning` each instruction set is its own

# What one plugin has alone, by room, with the reason.
ONLY = {
    "amd": {
        "abi": "registers at a kernel's start",
        "assembler": "PTX goes to the vendor's assembler; machine code has ours",
        "code_object": "ELF files",
        "options": "the target has options of its own",
        "resources": "registers are counted here; PTX's are counted by the vendor's assembler",
        "machine": "the machine layer: spills, waits, wait states and encodings, which PTX leaves to the vendor's assembler",
        "isa/__main__": "makes the documentation page of the rows",
        "isa/page": "the documentation page of the rows",
        "isa/constants": "inline constants of the encoding",
        "isa/encoding": "bits of instructions",
        "isa/registers": "physical registers",
        "isa/row": "one row with several encodings",
        "isa/units": "units that rows name",
        "select/access": "three kinds of address, each with offsets of its own",
        "select/six_bits": "elements of six bits, of which registers hold sixteen in three",
        "select/possible_bits": "which bits of a value may be set, by which an exclusive or becomes an or that takes more operands",
        "select/copies": "copies that land where a register of the wave says",
        "select/operands": "what fits an operand: scalar registers, constants",
        "select/packing": "elements smaller or larger than a register, which PTX has registers for",
        "select/program_order": "dies with an L2 each",
        "select/shuffles": "exchanges by data-parallel primitives",
        "simulate/arguments": "the kernel-argument segment",
        "simulate/initial_state": "registers at a kernel's start",
        "simulate/kernel": "a kernel of a code object",
        "simulate/speculative_loads": "first guesses of the loops that LLVM makes of atomics",
        "chips/machines": "the e_flags of code objects",
    },
    "nvidia": {
        "ptxas": "the vendor's assembler",
        "isa/known": "opcodes of other chips, to refuse them by name",
        "isa/tensor_map_size": "the size of an engine's map, for those who make room for one",
        "chips/latencies": "latencies that several chips share",
        "select/eight_bits": "older chips have no conversions of 8-bit floats",
        "select/copy_engine": "an engine that copies boxes by tensor maps",
        "select/mbarrier": "barriers in memory that count arrivals and bytes",
        "select/emits": "rules name their instructions, which chips have or lack",
        "select/warpgroup": "the matrix unit that four warps share and that runs beside them",
        "select/registers_needed": "the vendor's assembler assigns registers, and this foresees how many it will need",
        "select/warp_reductions": "integers are reduced over a warp by one instruction",
        "chips/versions": "the versions of PTX that targets without a page came with",
    },
}
PAGES = {"amd": "gfx", "nvidia": "sm"}  # chips/<generation>.py


def names(plugin: str) -> set[str]:
    found = set()
    for room in ROOMS:
        folder = PLUGINS[plugin] / room
        for path in folder.iterdir():
            if (path.suffix == ".py" or any(path.glob("*.py"))) and path.name != "__init__.py":
                found.add(str(Path(room, path.stem)))
    return {name for name in found if not name.startswith(f"chips/{PAGES[plugin]}")}


@pytest.mark.parametrize(("plugin", "other"), [("amd", "nvidia"), ("nvidia", "amd")])
def test_files_that_one_plugin_has_alone_have_a_reason(plugin: str, other: str) -> None:
    assert names(plugin) - names(other) == set(ONLY[plugin])
