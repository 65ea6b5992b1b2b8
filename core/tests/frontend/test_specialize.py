"""Signature entries: every spelling that Triton has, and words for every other."""

from __future__ import annotations

import pytest

import tilefw.language as tl
from tilefw.api.dtypes import DTYPES
from tilefw.api.errors import CompileError
from tilefw.frontend.specialize import Specialization, parse


@pytest.mark.parametrize(("text", "wanted"), [
    ("i32", Specialization(tl.int32)),
    ("i32:16", Specialization(tl.int32, 16)),
    ("i32:1", Specialization(tl.int32, constant=1)),
    ("u64:16", Specialization(tl.uint64, 16)),
    ("i1", Specialization(tl.int1)),
    ("u1", Specialization(tl.int1)),
    ("fp32", Specialization(tl.float32)),
    ("bf16", Specialization(tl.bfloat16)),
    ("f16", Specialization(tl.float16)),
    ("*fp32", Specialization(tl.pointer_type(tl.float32))),
    ("*fp32:16", Specialization(tl.pointer_type(tl.float32), 16)),
    ("*ku8:16", Specialization(tl.pointer_type(tl.uint8, const=True), 16)),
    ("*fp8e4nv", Specialization(tl.pointer_type(tl.float8e4nv))),
    ("*float8_e4m3fn", Specialization(tl.pointer_type(tl.float8e4nv))),
])
def test_entries_are_read(text: str, wanted: Specialization) -> None:
    assert parse(text) == wanted


@pytest.mark.parametrize("name", DTYPES)
def test_every_element_type_may_stand_behind_a_pointer(name: str) -> None:
    assert parse(f"*{name}").type == tl.pointer_type(tl.dtype(name))


@pytest.mark.parametrize("text", ["", "fp33", "fp32*", "**fp32", "i32:8", "fp32:16", "fp32:1", "*fp32:1", "*", "i32 ", ":16"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(CompileError) as caught:
        parse(text, "n")
    assert caught.value.code == "TFW0120"
