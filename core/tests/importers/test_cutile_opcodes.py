"""Every operation that cuTile's own writer encodes is read as it was meant, in every version. Skipped where cuTile is not
installed.
"""

from __future__ import annotations

import enum
import inspect
import typing
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tilefw.importers.cutile.bytecode_file import VERSIONS, read_file
from tilefw.importers.cutile.bytecode_tree import BytecodeOperation
from tilefw.importers.cutile.opcodes import ENUMERATIONS, LATER, OPCODES, TERMINATORS

pytest.importorskip("cuda.tile", reason="cuTile is not installed: pip install cuda-tile==1.7.0")

import cuda.tile._bytecode as bc
from cuda.tile._bytecode import attribute, encodings

# Not written into functions, or for several devices: what the importer refuses by these names.
LEFT_OUT = {
    "EntryOp", "GlobalOp", "ModuleOp", "PreviewCallOp", "MultimemLoadReduceViewTkoOp", "MultimemReduceViewTkoOp",
    "MultimemStoreViewTkoOp",
}
ENCODERS = {
    name.removeprefix("encode_"): getattr(encodings, name)
    for name in encodings.__all__ if name.startswith("encode_") and name.removeprefix("encode_") not in LEFT_OUT
}
SINCE = {"since 13.2": (13, 2), "since 13.3": (13, 3), "since 13.4": (13, 4), "since 13.5": (13, 5)}


def test_the_table_has_every_operation() -> None:
    assert len(ENCODERS) == len(OPCODES) and len(LATER) == len(LEFT_OUT)


source = cache(inspect.getsource)
hinted = cache(typing.get_type_hints)


def since(encode: Callable[..., Any]) -> tuple[int, int]:
    first = source(encode).partition("\n")[0]
    return next((version for text, version in SINCE.items() if text in first), (13, 1))


class Given:
    """Arguments of an encoder: the largest of everything (`full`), or as little as it takes."""

    def __init__(self, encode: Callable[..., Any], version: tuple[int, int], full: bool, types: Any, values: Any) -> None:
        self._version, self._full, self._types, self._values = version, full, types, values
        text, hints = source(encode), hinted(encode)
        self.arguments: dict[str, Any] = {}
        for name in inspect.signature(encode).parameters:
            if name != "code_builder":
                line = next(line for line in text.splitlines() if line.strip().startswith(f"{name}:"))
                late = any(said in line for said, first in SINCE.items() if first > version)
                if bc.TypeId in typing.get_args(hints[name]) and type(None) in typing.get_args(hints[name]):
                    self.arguments[name] = None if late else types  # the writer needs it where the version has it
                else:
                    self.arguments[name] = self._argument(name, hints[name], full and not late)

    def _argument(self, name: str, hint: Any, full: bool) -> Any:
        inner = typing.get_args(hint)
        if type(None) in inner:
            return self._argument(name, inner[0], full) if full else None
        if name == "result_types" or name == "identities":
            return [self._types] if name == "result_types" else [attribute.Integer.create_i32(7)]
        if typing.get_origin(hint) is not None:
            return [self._argument(name, inner[0], full) for _ in range(2 if full else 0)]
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return self._word(hint, full)
        if name.endswith("type") or hint is bc.TypeId:
            return self._types
        plain: dict[Any, Any] = {int: 5 if full else 0, bool: full, str: "text", bytes: b"\x01\x00\x00\x00"}
        if hint in plain:
            return plain[hint]
        if hint is attribute.OptimizationHints:
            return attribute.make_load_store_hints({"default": attribute.LoadStoreHints(latency=3, allow_tma=False)})
        return attribute.DivBy(16, 2, 0) if hint is attribute.AssumePredicate else next(self._values)

    def _word(self, hint: type[enum.Enum], full: bool) -> enum.Enum:
        """Full is the default where an old version has no other."""
        words = list(hint)
        if hint is encodings.RoundingMode and self._version < (13, 3):
            return encodings.RoundingMode.FULL
        return words[-1] if full else words[0]


def written(name: str, encode: Callable[..., Any], version: tuple[int, int], full: bool) -> tuple[BytecodeOperation, Given]:
    """The operation that our reader finds in a function that cuTile's writer wrote."""
    buffer = bytearray()
    with bc.write_bytecode(1, buffer, bc.BytecodeVersion(version[0] * 10000 + version[1] * 100)) as writer:
        types = writer.type_table
        number = types.tile(types.I32, ())
        with writer.function("f", [number] * 40, [], True, {}, bc.MISSING_DEBUG_ATTR_ID) as (builder, parameters):
            given = Given(encode, version, full, number, iter(parameters))
            made = encode(builder, **given.arguments)
            if hasattr(made, "new_block"):
                while made._num_blocks:
                    with made.new_block([number]):
                        encodings.encode_YieldOp(builder, [])
                made.done()
            if OPCODES_OF[name] not in TERMINATORS:
                encodings.encode_ReturnOp(builder, [])
    (function,) = read_file(bytes(buffer), "f").functions
    return function.body.operations[0], given


OPCODES_OF = {
    name: OPCODES[int(source(encode).partition("encode_varint(")[2].partition(",")[0])].name
    for name, encode in ENCODERS.items()
}


@pytest.mark.parametrize("name", ENCODERS)
def test_an_operation_is_read_as_it_was_written(name: str) -> None:
    encode = ENCODERS[name]
    read = 0
    for version in VERSIONS:
        if since(encode) > version:
            continue
        for full in (False, True):
            operation, given = written(name, encode, version, full)
            numbers = [value.value_id for value in flat(given.arguments.values()) if isinstance(value, bc.Value)]
            assert operation.name == OPCODES_OF[name]
            assert sorted(flat(operation.operands.values())) == sorted(numbers), (version, full)
            words = sorted(word_of(value) for value in given.arguments.values() if isinstance(value, enum.Enum))
            found = sorted(value for value in operation.attributes.values() if isinstance(value, str) and value != "text")
            assert found == words if version == VERSIONS[-1] else set(found) <= set(words), (version, full)
            read += 1
    assert read or since(encode) > VERSIONS[-1]


KINDS = {
    "AtomicRMWMode": "mode", "ComparisonOrdering": "ordering", "ComparisonPredicate": "predicate", "IntegerOverflow": "overflow",
    "MemoryOrderingSemantics": "semantics", "MemoryScope": "scope", "RoundingMode": "rounding", "Signedness": "signedness",
}
SPELLED = {"nsw": "no_signed_wrap", "nuw": "no_unsigned_wrap", "nw": "no_wrap"}


def word_of(value: enum.Enum) -> str:
    """Our word for a word of cuTile's."""
    return ENUMERATIONS[KINDS[type(value).__name__]][value.value[0]]


@pytest.mark.parametrize("name", KINDS)
def test_the_words_are_cutiles(name: str) -> None:
    words = getattr(encodings, name)
    assert [SPELLED.get(word.name.lower(), word.name.lower()) for word in words] == [word_of(word) for word in words]
    assert len(words) == len(ENUMERATIONS[KINDS[name]])


def flat(values: Any) -> list[Any]:
    found: list[Any] = []
    for value in values:
        found.extend(flat(value) if isinstance(value, list | tuple) else [value])
    return found
