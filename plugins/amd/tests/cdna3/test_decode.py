"""Bytes decode as LLVM's disassembler decodes them: every form, changed words, random words; what it refuses is refused."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from served import ISA, ISAS, decode, decode_all

from tilefw.api.errors import CodeError
from tilefw_amd.isa.encoding import decode as decoder
from tilefw_amd.isa.encoding.encode import encode
from tilefw_amd.isa.model import MCInst
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.isa.text.printer import text

from .encodings import CRASHED, LITERAL, crashes_llvm, dumped, flipped, needs_objdump
from .lacking import lacking, name_of
from .llvm import assemble
from .random_inst import random_instructions

# What LLVM prints though no chip here has it: its own assembler refuses these texts, or reads others than were disassembled.
UNREAL = re.compile(
    r"/\*"  # LLVM's own doubts: no such control, no such register
    r"|\bnull\b|src_lds_direct|src_flat_scratch_base|s\[100:103\]"  # registers of other chips
    r"|^flat_.* offset:(?:4[1-9]|409[6-9]|[5-8])\d*\b"  # 13 bits where the chip has 12
    r"|^s_(?:buffer_|atc_probe_buffer).*-0x"  # negative offsets in buffers
    r"|^(?:v_cndmask|v_\w+_co_u32).*, v\[\d+:\d+\](?: clamp)?$"  # masks in vector registers
    r"|^v_cmpx?_\w+ src_"  # a mask written to a value that is read
    r"|^s_cbranch_g_fork .*(?:0x|lit)"  # a literal, which its assembler refuses
    r"|^global_load_lds_\w+ v\d+, exec"
    r"|_f8f6f4 .*(?:cbsz|blgp):[5-7]\b"  # codes that name no format
    r"|^v_smfmac_.*, (?!v\d)\S+$"  # an index that is in no vector register
    r"|^v_mfma_.*\bsrc_"  # factors of matrices that are not registers
)
# LLVM reads eight registers of A and B before it knows how many there are: tuples that end with the file it refuses.
SHORT_TUPLE = re.compile(r"_f8f6f4 .*[va]\[(?:249|25\d):")
# Sources that are integers and have bits for signs all the same: LLVM drops them, and so would the text.
SIGNS_IGNORED = re.compile(
    r"v_(?:dot[248]c_i32|cvt_pk_u8_f32|cvt_pkaccum_u8|cvt_sr_|cvt_scalef32_|ldexp_|trig_preop|cvt_pk_f32_[fb][pf]8|pk_fmac_f16_sdwa"
    r"|mfma_ld_scale_b32|ashr_pk_)"
)


Difference = tuple[str, str | None, str | None, str]
on_each_chip = pytest.mark.parametrize("isa", ISAS, ids=str)


def ours(isa: InstructionSet, code: bytes) -> tuple[str | None, str]:
    """Our text, or None and why."""
    try:
        return text(decoder.decode(isa, code)), ""
    except CodeError as error:
        assert error.code == "TFW0723"
        return None, error.note or ""


def agrees(isa: InstructionSet, code: bytes, llvm: str | None) -> bool:
    mine, why = ours(isa, code)
    if mine == llvm or llvm == CRASHED or (mine is not None and SHORT_TUPLE.search(mine)):
        return True
    if mine is not None or llvm is None:
        return False
    odd = "must begin at" in why or "beyond the last" in why  # LLVM rounds down to a tuple that exists
    if name_of(llvm) in lacking(isa.chip):
        return True
    return odd or UNREAL.search(llvm) is not None or SIGNS_IGNORED.match(llvm) is not None


def wrong(isa: InstructionSet, codes: list[bytes], folder: Path) -> list[Difference]:
    """Where we and LLVM differ: the code, LLVM's text, ours or why there is none."""
    tame = [code for code in codes if not crashes_llvm(code)]
    answers = zip(tame, dumped(isa.chip, tame, folder), strict=True)
    return _written(isa, [(code.hex(), llvm, *ours(isa, code)) for code, llvm in answers if not agrees(isa, code, llvm)])


def _written(isa: InstructionSet, found: list[Difference]) -> list[Difference]:
    """Without literals that LLVM prints where no literal can stand: its own assembler refuses them, for some chips it crashes."""
    texts = [text_ or "" for _, text_, _, why in found if why.endswith("a literal is not allowed here")]
    refused = {text_ for text_, answer in zip(texts, assemble(texts, isa.chip), strict=True) if answer.error}
    return [difference for difference in found if difference[1] not in refused]


@needs_objdump
@on_each_chip
def test_every_form_with_changed_bits_is_what_llvm_says(isa: InstructionSet, tmp_path: Path) -> None:
    assert not wrong(isa, list(flipped(isa, 1, 1)), tmp_path)[:20]


@needs_objdump
@on_each_chip
def test_random_words_are_what_llvm_says(isa: InstructionSet, tmp_path: Path) -> None:
    rng = random.Random(2)
    assert not wrong(isa, [rng.randbytes(8) + LITERAL for _ in range(12000)], tmp_path)[:20]


@on_each_chip
def test_what_is_encoded_decodes_as_the_same_instruction(isa: InstructionSet) -> None:
    for inst in random_instructions(isa, 3, 2):
        code = encode(inst)
        assert len(code) == inst.size
        again = decoder.decode(isa, code)
        assert encode(again) == code and text(again) == text(inst)


def test_code_cut_anywhere_is_an_error_with_its_place() -> None:
    insts: list[MCInst] = list(random_instructions(ISA, 4, 1))[::40]
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


@on_each_chip
def test_no_two_forms_claim_the_same_words(isa: InstructionSet) -> None:
    """Of two forms at an opcode that can both match, the special case stands first: it fixes all bits that the other does, or
    those of further words."""
    for several in isa.forms_by_opcode.values():
        for index, first in enumerate(several):
            for second in several[index + 1 :]:
                apart = (first.value ^ second.value) & first.mask & second.mask
                assert apart or first.size > second.size or (first.mask & second.mask) == second.mask, (first, second)
