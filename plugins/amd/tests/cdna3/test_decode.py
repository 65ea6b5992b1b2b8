"""Bytes decode as LLVM's disassembler decodes them: every form, changed words, random words; what it refuses is refused."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from served import ISA, decode, decode_all

from tilefw.api.errors import CodeError
from tilefw_amd.isa.encoding.encode import encode
from tilefw_amd.isa.model import MCInst
from tilefw_amd.isa.text.printer import text

from .encodings import CRASHED, LITERAL, crashes_llvm, dumped, flipped, needs_objdump
from .random_inst import random_instructions

# What LLVM prints though gfx942 has no such thing: its own assembler refuses these texts, or reads others than were disassembled.
UNREAL = re.compile(
    r"/\*"  # LLVM's own doubts: no such control, no such register
    r"|\bnull\b|src_lds_direct|src_flat_scratch_base|s\[100:103\]"  # registers of other chips
    r"|^flat_.* offset:(?:4[1-9]|409[6-9]|[5-8])\d*\b"  # 13 bits where the chip has 12
    r"|^s_(?:buffer_|atc_probe_buffer).*-0x"  # negative offsets in buffers
    r"|^(?:v_cndmask|v_\w+_co_u32).*, v\[\d+:\d+\]$"  # masks in vector registers
    r"|^v_cmpx?_\w+ src_"  # a mask written to a value that is read
    r"|^s_cbranch_g_fork .*(?:0x|lit)"  # a literal, which its assembler refuses
    r"|^global_load_lds_\w+ v\d+, exec"
    r"|^v_smfmac_.*, (?!v\d)\S+$"  # an index that is in no vector register
)
# Sources that are integers and have bits for signs all the same: LLVM drops them, and so would the text.
SIGNS_IGNORED = re.compile(
    r"v_(?:dot[248]c_i32|cvt_pk_u8_f32|cvt_pkaccum_u8|cvt_sr_|ldexp_|trig_preop|cvt_pk_f32_[fb]f?8|pk_fmac_f16_sdwa)"
)


def ours(code: bytes) -> tuple[str | None, str]:
    """Our text, or None and why."""
    try:
        return text(decode(code)), ""
    except CodeError as error:
        assert error.code == "TFW0723"
        return None, error.note or ""


def agrees(code: bytes, llvm: str | None) -> bool:
    mine, why = ours(code)
    if mine == llvm or llvm == CRASHED:
        return True
    if mine is not None or llvm is None:
        return False
    odd = "must begin at" in why or "beyond the last" in why  # LLVM rounds down to a tuple that exists
    return odd or UNREAL.search(llvm) is not None or SIGNS_IGNORED.match(llvm) is not None


@needs_objdump
def test_every_form_with_changed_bits_is_what_llvm_says(tmp_path: Path) -> None:
    codes = [code for code in flipped(1, 3) if not crashes_llvm(code)]
    wrong = [(c.hex(), llvm, *ours(c)) for c, llvm in zip(codes, dumped(codes, tmp_path), strict=True) if not agrees(c, llvm)]
    assert not wrong[:20]


@needs_objdump
def test_random_words_are_what_llvm_says(tmp_path: Path) -> None:
    rng = random.Random(2)
    codes = [code for code in (rng.randbytes(8) + LITERAL for _ in range(20000)) if not crashes_llvm(code)]
    wrong = [(c.hex(), llvm, *ours(c)) for c, llvm in zip(codes, dumped(codes, tmp_path), strict=True) if not agrees(c, llvm)]
    assert not wrong[:20]


def test_what_is_encoded_decodes_as_the_same_instruction() -> None:
    for inst in random_instructions(3, 4):
        code = encode(inst)
        assert len(code) == inst.size
        again = decode(code)
        assert encode(again) == code and text(again) == text(inst)


def test_code_cut_anywhere_is_an_error_with_its_place() -> None:
    insts: list[MCInst] = list(random_instructions(4, 1))[::40]
    for inst in insts:
        code = encode(inst)
        for size in range(4, len(code), 4):
            try:
                found = decode(code[:size])
            except CodeError as error:
                assert error.code == "TFW0723"
            else:
                assert found.size <= size
    with pytest.raises(CodeError, match="byte 0x4"):
        list(decode_all((0xBF800000).to_bytes(4, "little") + b"\xff\xff\xff\xff"))


def test_no_two_forms_claim_the_same_words() -> None:
    """Of two forms at an opcode that can both match, the special case stands first: it fixes all bits that the other does."""
    for several in ISA.forms_by_opcode.values():
        for index, first in enumerate(several):
            for second in several[index + 1 :]:
                apart = (first.value ^ second.value) & first.mask & second.mask
                assert apart or (first.mask & second.mask) == second.mask, (first, second)
