"""The plain data of the plugin interface: error text, kinds and exit codes, versions, element types."""

from __future__ import annotations

import pytest

from tilefw.api import DTYPES, CheckError, CompileError, KernelError, Place, PluginError, UsageError, dtype
from tilefw.api.artifact import Artifact, Entry
from tilefw.api.version import TILEFW_API, accepts


def test_an_error_shows_place_carets_calls_note_and_help():
    outer = Place("host.py", 40, 5, 12, "    add(x)", "kernel")
    place = Place("k.py", 12, 9, 13, "\tx = spam + 1", "helper", outer)
    text = str(CompileError("`spam` is not defined", "TFW0102", place, "a note\nof two lines", "a hint"))
    assert text.splitlines() == [
        "error[TFW0102]: `spam` is not defined",
        "  --> k.py:12:9 in helper",
        "   |",
        "12 | \tx = spam + 1",
        "   | \t       ^^^^",
        "   = called from host.py:40:5 in kernel",
        "  = note: a note",
        "    of two lines",
        "  = help: a hint",
    ]


@pytest.mark.parametrize("kind, code", [(KernelError, 1), (CompileError, 1), (CheckError, 1), (UsageError, 2), (PluginError, 4)])
def test_each_kind_has_its_exit_code(kind, code):
    assert kind("message", code="TFW0000").exit_code == code


def test_interface_versions():
    assert accepts(TILEFW_API)
    assert not accepts((0, TILEFW_API[1] + 1)) and not accepts((1, 0))


def test_later_minors_of_one_major_are_compatible_backwards(monkeypatch):
    from tilefw.api import version

    monkeypatch.setattr(version, "TILEFW_API", (2, 3))
    assert accepts((2, 3)) and accepts((2, 0)) and not accepts((2, 4)) and not accepts((1, 3)) and not accepts((3, 0))


def test_element_types_by_every_spelling():
    assert len(DTYPES) == 23
    for kind in DTYPES.values():
        assert dtype(kind.name) is kind
        if kind.numpy:
            assert dtype(kind.numpy) is kind
    assert dtype("f32").name == "fp32" and dtype("u8").name == "uint8" and dtype("half").name == "fp16"
    with pytest.raises(KeyError):
        dtype("fp17")


def test_float_formats_add_up():
    for kind in DTYPES.values():
        if kind.is_float:
            assert kind.bits == 1 + kind.exponent_bits + kind.mantissa_bits
        assert kind.storage_bits % 8 == 0 and kind.storage_bits >= kind.bits


def test_an_artifact_finds_its_entries():
    artifact = Artifact("t", "f", "", (Entry("a", (), (1, 1, 1)), Entry("b", (), (1, 1, 1))))
    assert artifact.entry("b").name == "b" and set(artifact.abi) == {"a", "b"}
    with pytest.raises(KeyError, match="entries: a, b"):
        artifact.entry()
