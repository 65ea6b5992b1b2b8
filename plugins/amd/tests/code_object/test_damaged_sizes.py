"""Sizes that a damaged file says are refused before anybody asks the host for so much memory."""

from __future__ import annotations

import assembled
import pytest
from served import read

from tilefw.api import CodeError
from tilefw_amd.code_object import descriptor

TEXT = assembled.text("s_endpgm", values=1)
ARGUMENT = "{.offset: 8, .size: 4, .value_kind: by_value}"
WRONG = {
    "an argument without bytes": (ARGUMENT, "{.offset: 8, .size: 0, .value_kind: by_value}"),
    "a huge argument": (ARGUMENT, "{.offset: 8, .size: 4294967295, .value_kind: hidden_none}"),
    "an argument far away": (ARGUMENT, "{.offset: 4294967290, .size: 4, .value_kind: by_value}"),
    "arguments of gigabytes": (".kernarg_segment_size: 12", ".kernarg_segment_size: 4294967295"),
    "a descriptor that wants gigabytes": (".amdhsa_kernarg_size 12", ".amdhsa_kernarg_size 4294967295"),
    "an image of gigabytes": ("  .rodata\n", "  .bss\n  .zero 1\n  .rodata\n"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_size_beyond_all_reason_is_refused(case: str) -> None:
    before, after = WRONG[case]
    assert before in TEXT
    with pytest.raises(CodeError) as caught:  # what the metadata says is refused in its text already
        data = assembled.BACKEND.to_binary(TEXT.replace(before, after, 1), "damaged.s")
        read(_with_memory(data, 1 << 40) if "image" in case else data, "damaged.hsaco")
    assert caught.value.code == "TFW0724"


def _with_memory(data: bytes, size: int) -> bytes:
    """The file with the last loaded segment so large in memory."""
    from tilefw_amd.code_object.elf import PHDR, PT_LOAD

    at, count = int.from_bytes(data[32:40], "little"), int.from_bytes(data[56:58], "little")
    headers = [at + i * PHDR.size for i in range(count)]
    last = [header for header in headers if PHDR.unpack_from(data, header)[0] == PT_LOAD][-1]
    return data[: last + 40] + size.to_bytes(8, "little") + data[last + 48 :]


def test_more_preloaded_registers_than_there_are() -> None:
    fields = {"user_sgpr_kernarg_preload_length": 17}
    with pytest.raises(CodeError, match="17 registers of arguments"):
        descriptor.decode(descriptor.encode(fields), "damaged")


def test_a_field_outside_of_its_block() -> None:
    with pytest.raises(CodeError, match="block is open"):
        assembled.BACKEND.to_binary(".amdhsa_ 4", "damaged.s")
