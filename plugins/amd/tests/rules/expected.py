"""What the reference says of a row on patterns: values with their bounds, and which patterns to try."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilefw.simt.expand.builder import TYPES
from tilefw.tile import numbers
from tilefw.tile.elementwise import ROWS, ElementwiseRow
from tilefw.tile.reference.accuracy import Comparison, compare
from tilefw.tile.reference.evaluate import evaluate
from tilefw.tile.reference.value import EvaluatedValue

_SPECIAL = (0.0, 1.0, 0.5, 1.5, 2.5, 2.0, 3.0, 1e-3, 100.0, 240.0, 248.0, 448.0, 464.0, 57344.0, 65504.0, 65520.0, 1e9, 2.0**31,
            2.0**32, 2.0**63, 2.0**64, 1e30, float("inf"), float("nan"))


def verdict(key: str, result: str, operands: Sequence[tuple[str, np.ndarray]], found: np.ndarray) -> Comparison:
    """Whether `found`, patterns of type `result`, is what the row `key` gives for operands given as (type, patterns)."""
    name = key.partition(".")[0]
    rounding = "rtz" if name.endswith("_rtz") else "rtne"
    row = ROWS[name.removesuffix("_rtz")]
    source = operands[row.typed_by][0]
    values = [EvaluatedValue(value_of(patterns, type_)) for type_, patterns in operands]
    wanted = evaluate(row, values, TYPES[source], TYPES[result], rounding=rounding)  # type: ignore[arg-type]
    return compare(value_of(found, result), wanted)


def value_of(patterns: np.ndarray, type_: str) -> np.ndarray:
    """Patterns as the reference holds them: floats in f64, integers signed in their width."""
    dtype = TYPES[type_]
    if type_ == "i1":
        return patterns.astype(bool)
    word = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[dtype.storage_bits]
    if dtype.is_float:
        with np.errstate(invalid="ignore"):
            return numbers.decode(patterns.astype(word), dtype)
    if dtype.bits < 8:
        return numbers.wrap(patterns.astype(np.int64), dtype.bits)
    return patterns.astype(word).view(numbers.int_type(dtype.bits))


def patterns_of(type_: str, count: int, seed: int, near: tuple[float, float] | None = None) -> np.ndarray:
    """Random patterns; small and edge ones of integers, special and ordinary numbers of floats, some in the range `near`."""
    dtype, rng = TYPES[type_], np.random.default_rng(seed)
    bits = dtype.bits
    anything = rng.integers(0, 1 << 64, count, dtype=np.uint64) & np.uint64((1 << bits) - 1)
    if not dtype.is_float:
        edges = [0, 1, 2, 3, bits, bits - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1, (1 << bits) - 1, (1 << bits) - 2]
        some = np.array([e % (1 << bits) for e in edges], np.uint64)
        small = rng.integers(0, min(100, 1 << bits), count, dtype=np.uint64)
        short = anything >> (rng.integers(0, bits, count).astype(np.uint64))
        negative = (np.uint64(0) - small) & np.uint64((1 << bits) - 1)
        pool = [anything, small, short, negative, rng.choice(some, count)]
    else:
        signs = np.array([s * v for v in _SPECIAL for s in (1, -1)])
        ordinary = rng.normal(size=count) * np.exp2(rng.integers(-12, 12, count))
        inside = rng.uniform(*(near or (-4, 4)), size=count)
        pool = [anything, _encoded(rng.choice(signs, count), type_), _encoded(ordinary, type_), _encoded(inside, type_)]
    return np.concatenate([p[: count // len(pool) + 1] for p in pool])[:count][rng.permutation(count)]


def _encoded(x: np.ndarray, type_: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        return numbers.encode(numbers.in_format(x, TYPES[type_]), TYPES[type_]).astype(np.uint64)


def keys() -> list[tuple[str, tuple[str, ...], str]]:
    """Every row on every type: (key, types of the operands, type of the result)."""
    found: list[tuple[str, tuple[str, ...], str]] = []
    for row in ROWS.values():
        for type_, dtype in TYPES.items():
            kind = row.operands[row.typed_by].removeprefix("T:")
            if kind == "ptr" or (kind == "int" and dtype.is_float) or (kind == "float" and not dtype.is_float):
                continue
            types = tuple("i1" if k == "bool" else type_ for k in row.operands)
            if row.is_cast:
                found += _casts(row, type_)
            else:
                found.append((f"{row.name}.{type_}", types, "i1" if row.result == "bool" else type_))
    return found


def _casts(row: ElementwiseRow, type_: str) -> list[tuple[str, tuple[str, ...], str]]:
    source = TYPES[type_]
    found = []
    for to, dtype in TYPES.items():
        kind = row.result.removeprefix("to:")
        if kind == "ptr" or (kind == "int" and dtype.is_float) or (kind == "float" and not dtype.is_float) or to == type_:
            continue
        if (row.name in ("exts", "extu") and dtype.bits <= source.bits) or (row.name == "trunci" and dtype.bits >= source.bits):
            continue
        if row.name == "bitcast" and dtype.bits != source.bits:
            continue
        for suffix in ("", "_rtz") if row.rounding else ("",):
            found.append((f"{row.name}{suffix}.{type_}.{to}", (type_,), to))
    return found
