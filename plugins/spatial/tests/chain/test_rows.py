"""Every row at every type that the target claims gives what the elementwise table says, within its error rule, on the machine's own
instructions; and what is claimed is all that is served."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

from tilefw.api import DTYPES, UnsupportedError
from tilefw.api.capabilities import missing
from tilefw.testing.processors import pytest_without_features
from tilefw.tile import numbers
from tilefw.tile.elementwise import ROWS, ElementwiseRow
from tilefw.tile.reference.accuracy import compare
from tilefw.tile.reference.evaluate import evaluate
from tilefw.tile.reference.value import EvaluatedValue
from tilefw_spatial import isa
from tilefw_spatial.chain import Apply, Input, NodeResult
from tilefw_spatial.target import CAPABILITIES

from .running import chain, run

INTEGERS = ("int1", "int8", "int16", "int32")
FLOATS = ("fp8e4nv", "fp8e5", "fp16", "bf16", "fp32")
COUNT = 640


def cases() -> list[tuple[str, str, str]]:
    """(row, operand type, result type) of all that must work."""
    found: list[tuple[str, str, str]] = []
    for row in ROWS.values():
        for source in INTEGERS + FLOATS:
            if row.group != "cast.pointer" and source in _types(row.operands[row.typed_by].removeprefix("T:")):
                found += [(row.name, source, to) for to in _results(row, source) if served(row, source, to)]
    return found


def served(row: ElementwiseRow, source: str, to: str) -> bool:
    """Whether the target's claims cover the row's capabilities at these types."""
    needed = {row.capability(source), row.capability(to)} if row.is_cast else {row.capability(source)}
    return not missing(needed, CAPABILITIES)


def _types(kind: str) -> tuple[str, ...]:
    return {"int": INTEGERS, "float": FLOATS, "any": INTEGERS + FLOATS}[kind]


def _results(row: ElementwiseRow, source: str) -> list[str]:
    if not row.is_cast:
        return ["int1" if row.result == "bool" else source]
    bits = {name: DTYPES[name].bits for name in INTEGERS + FLOATS}
    fits = {
        "exts": lambda to: bits[to] > bits[source], "extu": lambda to: bits[to] > bits[source],
        "trunci": lambda to: bits[to] < bits[source], "bitcast": lambda to: bits[to] == bits[source],
        "f2s": lambda to: to != "int1", "f2u": lambda to: to != "int1",
    }
    return [to for to in _types(row.result.removeprefix("to:")) if to != source and fits.get(row.name, lambda _: True)(to)]


@pytest.mark.parametrize(("name", "source", "to"), cases())
def test_a_row_is_within_the_tables_error(name: str, source: str, to: str) -> None:
    row = ROWS[name]
    kinds = ["int1" if kind == "bool" else source for kind in row.operands]
    operands = [_drawn(row, k, kind, f"{name}.{source}.{to}.{k}") for k, kind in enumerate(kinds)]
    fused_segments = chain([NodeResult("out", Apply(name, tuple(Input(k, kind) for k, kind in enumerate(kinds)), to))])
    arrays = {k: _stored(x, kind) for k, (x, kind) in enumerate(zip(operands, kinds, strict=True))}
    got = run(fused_segments, arrays, (COUNT // 320, 320))["out"].reshape(-1)
    expected = evaluate(row, [EvaluatedValue(x) for x in operands], DTYPES[source], DTYPES[to])
    verdict = compare(_read(got, to), expected)
    assert not verdict.wrong, verdict


def test_the_rows_hold_without_the_processors_features() -> None:
    done = pytest_without_features(__file__, "-k", "within_the_tables_error")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


def _drawn(row: ElementwiseRow, k: int, dtype: str, seed: str) -> Any:
    """Operands: bit patterns of the type, numbers near each other, and what the row says is worth trying."""
    rng = np.random.default_rng(zlib.crc32(seed.encode()))
    d = DTYPES[dtype]
    if not d.is_float:
        small = rng.integers(-9, 9, COUNT // 2)
        anything = rng.integers(-(1 << 31), 1 << 31, COUNT - COUNT // 2) >> rng.integers(0, 32, COUNT - COUNT // 2)
        return numbers.wrap(rng.permutation(np.concatenate([small, anything])).astype(np.int64), d.bits)
    patterns = numbers.decode(rng.integers(0, 1 << d.bits, COUNT // 2).astype(numbers.unsigned_type(d.bits)), d)
    low, high = (row.draw.ranges[min(k, len(row.draw.ranges) - 1)] or (-10.0, 10.0)) if row.draw.ranges else (-10.0, 10.0)
    special = rng.choice(np.array(row.draw.special), COUNT // 8)
    near = rng.uniform(low, high, COUNT - len(special) - len(patterns))
    return numbers.in_format(rng.permutation(np.concatenate([patterns, special, near])), d)


def _stored(x: Any, dtype: str) -> Any:
    raw = numbers.to_bytes(x, DTYPES[dtype])
    made = raw != 0 if dtype == "int1" else np.ascontiguousarray(raw).view(isa.TYPES[dtype].numpy)
    return made.reshape(-1, 320)


def _read(found: Any, dtype: str) -> Any:
    if dtype == "int1":
        return np.ascontiguousarray(found) != 0
    return numbers.from_bytes(np.ascontiguousarray(found).view(np.uint8).reshape(-1), DTYPES[dtype])


@pytest.mark.parametrize("dtype", ["int64", "fp64", "int4", "fp8e5b16"])
def test_what_the_machine_has_no_elements_of_is_refused_by_name(dtype: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        chain([NodeResult("out", Apply("select", (Input(0, "int1"), Input(1, dtype), Input(2, dtype)), dtype))])
    assert caught.value.code == "TFW0680"
    assert dtype in caught.value.message
