"""Rows on element types that the chip lacks, built of those that it has, are what the table says, at every type claimed."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from graph_evaluator import GraphEvaluator

from tilefw.api import DTYPES, BufferPlacement, UnsupportedError
from tilefw.api.capabilities import missing
from tilefw.tile import numbers
from tilefw.tile.elementwise import ROWS, ElementwiseRow
from tilefw.tile.reference.accuracy import compare
from tilefw.tile.reference.evaluate import evaluate
from tilefw.tile.reference.value import EvaluatedValue
from tilefw_spatial import isa
from tilefw_spatial.elements import on_machine_types
from tilefw_spatial.graph import (
    AccessMap,
    Along,
    Axis,
    Constant,
    Elementwise,
    Gather,
    Graph,
    Load,
    Reduce,
    ReductionKind,
    Rename,
    Store,
    Value,
)
from tilefw_spatial.target import CAPABILITIES, ELEMENTS

FOREIGN = tuple(name for name in ELEMENTS if name not in isa.TYPES)
COUNT = 256


def cases() -> list[tuple[str, str, str]]:
    """(row, operand type, result type) where one is foreign to the chip and the target claims the row."""
    found: list[tuple[str, str, str]] = []
    for row in ROWS.values():
        for source in ELEMENTS:
            if row.group != "cast.pointer" and _is(row.operands[row.typed_by].removeprefix("T:"), source):
                found += [(row.name, source, to) for to in _results(row, source) if {source, to} & set(FOREIGN)]
    return found


def _is(kind: str, dtype: str) -> bool:
    return kind == "any" or (kind == "float") == DTYPES[dtype].is_float


def _results(row: ElementwiseRow, source: str) -> list[str]:
    if not row.is_cast:
        claimed = not missing({row.capability(source)}, CAPABILITIES)
        return ["int1" if row.result == "bool" else source] if claimed else []
    bits = {name: DTYPES[name].bits for name in ELEMENTS}
    fits = {
        "exts": lambda to: bits[to] > bits[source], "extu": lambda to: bits[to] > bits[source],
        "trunci": lambda to: bits[to] < bits[source], "bitcast": lambda to: bits[to] == bits[source],
        "f2s": lambda to: to != "int1", "f2u": lambda to: to != "int1",
    }
    kind = row.result.removeprefix("to:")
    found = [to for to in ELEMENTS if to != source and _is(kind, to) and fits.get(row.name, lambda _: True)(to)]
    return [to for to in found if not missing({row.capability(source), row.capability(to)}, CAPABILITIES)]


@pytest.mark.parametrize(("name", "source", "to"), cases())
def test_a_row_is_what_the_table_says(name: str, source: str, to: str) -> None:
    row = ROWS[name]
    kinds = ["int1" if kind == "bool" else source for kind in row.operands]
    rng = np.random.default_rng(zlib.crc32(f"{name}.{source}.{to}".encode()))
    operands = [drawn(rng, kind) for kind in kinds]
    axis = Axis("i", COUNT)
    loads = tuple(Value(Load(place(axis, k)), (axis,), kind) for k, kind in enumerate(kinds))
    got = run(Value(Elementwise(name, loads), (axis,), to), axis, operands, kinds)
    verdict = compare(got, evaluate(row, [EvaluatedValue(x) for x in operands], DTYPES[source], DTYPES[to]))
    assert not verdict.wrong, verdict


def place(axis: Axis, parameter: int) -> AccessMap:
    """Every element, backwards from the fourth: offsets of all signs."""
    return AccessMap(parameter, COUNT - 1, (Along(axis, -np.arange(COUNT)),))


def drawn(rng: np.random.Generator, dtype: str) -> Any:
    d = DTYPES[dtype]
    if d.is_float:
        codes = rng.integers(0, 1 << min(d.bits, 32), COUNT).astype(numbers.unsigned_type(d.bits))
        return numbers.in_format(numbers.decode(codes, d), d)
    anything = rng.integers(-(1 << 63), (1 << 63) - 1, COUNT) >> rng.integers(0, 64, COUNT)
    return numbers.wrap(np.where(rng.random(COUNT) < 0.5, anything, rng.integers(-9, 9, COUNT)), d.bits)


def run(value: Value, axis: Axis, operands: list[Any], kinds: list[str]) -> Any:
    """What is stored, by the graph on the machine's types; element i of an operand is the i-th of its buffer from behind."""
    dtype = DTYPES[value.dtype]
    graph = on_machine_types(Graph([Store(value, AccessMap(len(operands), 0, (Along(axis, np.arange(COUNT)),)))]))
    assert all(made.dtype in isa.TYPES for made in graph.values())
    storages = [numbers.to_bytes(x[::-1], DTYPES[kind]).copy() for x, kind in zip(operands, kinds, strict=True)]
    storages.append(np.zeros(COUNT * dtype.storage_bits // 8, np.uint8))
    GraphEvaluator(storages, {k: BufferPlacement(k, 0, storage.size) for k, storage in enumerate(storages)}).run(graph)
    return numbers.from_bytes(storages[-1], dtype)


def test_both_words_move_with_an_element() -> None:
    old, new = Axis("old", COUNT), Axis("new", COUNT)
    index = np.random.default_rng(1).permutation(COUNT)
    data = np.random.default_rng(2).integers(-(1 << 62), 1 << 62, COUNT)
    moved = Value(Rename(Value(Load(place(old, 0)), (old,), "int64"), (old,), (new,), index), (new,), "int64")
    assert (run(moved, new, [data], ["int64"]) == data[index]).all()


def test_constants_and_fills_are_split() -> None:
    axis = Axis("i", COUNT)
    data = np.random.default_rng(3).integers(-(1 << 62), 1 << 62, COUNT)
    access_map = AccessMap(0, COUNT - 1, (Along(axis, -np.arange(COUNT), np.arange(COUNT) % 2 == 0),))
    loaded = Value(Load(access_map, fill=0xFEDC_BA98_7654_3210), (axis,), "int64")
    total = Value(Elementwise("addi", (loaded, Value(Constant(data), (axis,), "int64"))), (axis,), "int64")
    expected = np.where(np.arange(COUNT) % 2 == 0, data, np.uint64(0xFEDC_BA98_7654_3210).astype(np.int64)) + data
    assert (run(total, axis, [data], ["int64"]) == expected).all()


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8"])
def test_data_chooses_both_words_of_an_element(dtype: str) -> None:
    rows, chosen = Axis("row", COUNT), Axis("i", COUNT)
    data = np.random.default_rng(4).integers(-(1 << 62), 1 << 62, COUNT)
    index = np.random.default_rng(5).integers(0, 100, COUNT).astype(DTYPES[dtype].numpy)
    table = Value(Load(place(rows, 0)), (rows,), "int64")
    found = Value(Gather(table, rows, Value(Load(place(chosen, 1)), (chosen,), dtype)), (chosen,), "int64")
    assert (run(found, chosen, [data, index], ["int64", dtype]) == data[index]).all()


@pytest.mark.parametrize("kind", [ReductionKind.ADDI, ReductionKind.MAXS])
def test_what_no_words_combine_to_is_refused(kind: ReductionKind) -> None:
    axis = Axis("i", COUNT)
    total = Value(Reduce(kind, Value(Load(place(axis, 0)), (axis,), "int64"), (axis,)), (), "int64")
    with pytest.raises(UnsupportedError) as caught:
        on_machine_types(Graph([Store(total, AccessMap(1, 0, ()))]))
    assert caught.value.code == "TFW0680"
    assert "reduce of int64" in caught.value.message
