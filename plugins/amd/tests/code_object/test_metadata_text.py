"""Metadata written as text is read back as itself, by us and by LLVM, and means what YAML says it means."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tilefw.api import CodeError
from tilefw_amd.code_object.metadata import read_text, write_text

ODD = ("yes", "null", "float*", ".nan", "1e3", "0x10", "2001-01-01", "a: b", "- a", "~", "é\n")
words = st.text(max_size=8) | st.sampled_from(ODD)
flat = st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | words
values = st.recursive(flat, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=12)


@given(st.dictionaries(words, values, max_size=4))
def test_a_document_is_read_back_as_itself(entries: dict) -> None:
    document = {**entries, "amdhsa.version": [1, 2]}
    text = write_text(document)
    assert read_text(text, "text") == document
    assert text.isascii() and text.startswith("---\n") and text.endswith("\n...\n")


def test_a_date_is_a_string_as_llvm_has_it() -> None:
    assert read_text("amdhsa.version: [1, 2]\nday: 2001-01-01\n", "text")["day"] == "2001-01-01"
    assert yaml.safe_load("day: 2001-01-01")["day"] != "2001-01-01"


@pytest.mark.parametrize("text", ["a: &x [1]\nb: *x\namdhsa.version: [1, 2]\n", "a: *x\n", "a: [", "- 1"])
def test_what_is_no_metadata_is_an_error_of_ours(text: str) -> None:
    with pytest.raises(CodeError):
        read_text(text, "text")
