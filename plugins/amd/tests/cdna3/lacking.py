"""Instructions that LLVM knows for a chip and the instruction table does not have yet, by chip.

What agrees with LLVM otherwise is tested without them; `test_memory_rows` and `test_vector_rows_trace` hold that each is missing.
"""

from __future__ import annotations

from tilefw_amd.chips import Chip

_OF_CHIP: dict[str, frozenset[str]] = {}
_ENCODINGS = ("_e32", "_e64", "_sdwa", "_dpp")


def lacking(chip: Chip) -> frozenset[str]:
    """Names of the instructions; those that are a mnemonic with a modifier have it behind a space."""
    return _OF_CHIP.get(chip.name, frozenset())


def name_of(text: str) -> str:
    """The name in LLVM's text of an instruction: the mnemonic without the suffix of an encoding, and `lds` where that is there."""
    mnemonic = text.split(" ")[0]
    found = next((mnemonic.removesuffix(end) for end in _ENCODINGS if mnemonic.endswith(end)), mnemonic)
    return f"{found} lds" if text.split(" ")[-1] == "lds" else found
