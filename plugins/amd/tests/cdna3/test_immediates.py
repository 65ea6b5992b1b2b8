"""Immediates with a syntax of their own are written as LLVM writes them, every value of their 16 bits."""

from __future__ import annotations

from pathlib import Path

import pytest
from served import CHIP, decode

from tilefw_amd.isa.text.printer import text

from .encodings import dumped, needs_objdump

WORDS = {"s_waitcnt": 0xBF8C, "s_getreg_b32": 0xB880, "s_sendmsg": 0xBF90, "s_set_gpr_idx_mode": 0xBF9D, "s_nop": 0xBF80}


@needs_objdump
@pytest.mark.parametrize("name", WORDS)
def test_each_value_is_written_as_llvm_writes_it(name: str, tmp_path: Path) -> None:
    step = 1 if name == "s_waitcnt" else 5
    codes = [(WORDS[name] << 16 | value).to_bytes(4, "little") for value in range(0, 1 << 16, step)]
    wrong = [(c.hex(), llvm) for c, llvm in zip(codes, dumped(CHIP, codes, tmp_path), strict=True) if text(decode(c)) != llvm]
    assert not wrong[:10]


@needs_objdump
def test_each_swizzle_pattern_is_written_as_llvm_writes_it(tmp_path: Path) -> None:
    codes = [(0xD87A0000 | value | 1 << 32).to_bytes(8, "little") for value in range(0, 1 << 16, 3)]
    wrong = [(c.hex(), llvm) for c, llvm in zip(codes, dumped(CHIP, codes, tmp_path), strict=True) if text(decode(c)) != llvm]
    assert not wrong[:10]
