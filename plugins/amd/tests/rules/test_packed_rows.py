"""Rules for packed registers give for each element what the row gives for it; casts from packed registers, element by element."""

from __future__ import annotations

import numpy as np
import pytest
from served import CHIP, on_each, rules_of_its_own

from rules.expected import ROWS, patterns_of, verdict
from rules.one_row import Column, run, run_from_packed, run_on_pairs, selected
from tilefw.simt.expand.builder import TYPES
from tilefw.simt.lane.registers import bits_of
from tilefw_amd.chips import Chip
from tilefw_amd.select.rules import rules

_COUNT = 256
_ON_PAIRS = sorted(key for key in rules(CHIP) if key.endswith(".f32x2"))
PAIRS = [key for key in _ON_PAIRS if not ROWS[key.partition(".")[0]].is_cast and not key.startswith("select.")]
CASTS_OF_PAIRS = [key for key in _ON_PAIRS if ROWS[key.partition(".")[0]].is_cast]


def _packed_rows(chip: Chip) -> list[str]:
    """All of the first chip's, of the others what they do otherwise."""
    keys = rules(CHIP) if chip is CHIP else rules_of_its_own(chip)
    return sorted(key for key in keys if key.endswith(("x2", "x4")) and not key.endswith(".f32x2"))


def _row(key: str) -> str:
    return key.partition(".")[0].removesuffix("_rtz")


def _types(key: str) -> tuple[str, str]:
    """The operands' and the result's element type of a packed key."""
    name, _, types = key[:-2].partition(".")
    if not ROWS[name.removesuffix("_rtz")].is_cast:
        return types, types
    return next((s, t) for s in TYPES for t in TYPES if types == f"{s}.{t}")


def _packed(columns: list[np.ndarray], bits: int) -> np.ndarray:
    return sum((c << np.uint64(bits * i) for i, c in enumerate(columns)), np.zeros_like(columns[0]))


def _elements(packed: np.ndarray, bits: int, count: int) -> list[np.ndarray]:
    return [packed >> np.uint64(bits * i) & np.uint64((1 << bits) - 1) for i in range(count)]


@pytest.mark.parametrize("chip, key", on_each(lambda chip: [key for key in _packed_rows(chip) if not ROWS[_row(key)].is_cast]))
@pytest.mark.parametrize("constant", [None, 0, 1])
def test_rows_on_packed_registers(chip: Chip, key: str, constant: int | None) -> None:
    source, result = _types(key)
    operands, per, bits = len(ROWS[_row(key)].operands), int(key[-1]), bits_of(source)
    if constant is not None and operands == 1:
        pytest.skip("nothing but constants")
    given = [[patterns_of(source, _COUNT, 10 * o + i) for i in range(per)] for o in range(operands)]
    columns = [Column("packed", _packed(elements, bits)) for elements in given]
    if constant is not None:
        columns[constant] = Column("packed", columns[constant].patterns[:1], constant=True)
        given[constant] = [np.repeat(e[:1], _COUNT) for e in given[constant]]
    found = run(key, "packed", columns, chip=chip)
    for i, element in enumerate(_elements(found, bits, per)):
        outcome = verdict(key[:-2], result, [(source, elements[i]) for elements in given], element)
        assert not outcome.wrong, (key, i, str(outcome))


@pytest.mark.parametrize("key", PAIRS)
@pytest.mark.parametrize("constant", [None, 0, 1])
def test_rows_on_pairs_of_registers(key: str, constant: int | None) -> None:
    operands = len(ROWS[_row(key)].operands)
    if constant is not None and operands == 1:
        pytest.skip("nothing but constants")
    given = [[patterns_of("f32", _COUNT, 10 * o + i) for i in range(2)] for o in range(operands)]
    columns = [Column("i64", _packed(elements, 32)) for elements in given]
    if constant is not None:
        columns[constant] = Column("f32", given[constant][0][:1], constant=True)
        given[constant] = [np.repeat(given[constant][0][:1], _COUNT)] * 2
    found = run_on_pairs(key, columns)
    for i, element in enumerate(_elements(found, 32, 2)):
        outcome = verdict(key[:-2], "f32", [("f32", elements[i]) for elements in given], element)
        assert not outcome.wrong, (key, i, str(outcome))


def test_a_selection_between_pairs_goes_by_the_condition_of_each_element() -> None:
    given = [[patterns_of("f32", _COUNT, 10 * o + i) for i in range(2)] for o in range(2)]
    conditions = [patterns_of("i1", _COUNT, 40 + i) for i in range(2)]
    columns = [Column("i64", _packed(elements, 32)) for elements in given]
    found = run_on_pairs("select.f32x2", columns, [Column("i1", c) for c in conditions])
    for i, element in enumerate(_elements(found, 32, 2)):
        assert (element == np.where(conditions[i] & np.uint64(1), given[0][i], given[1][i])).all()


@pytest.mark.parametrize("key", CASTS_OF_PAIRS)
def test_casts_of_pairs_of_registers(key: str) -> None:
    source = key.split(".")[1]
    given = [patterns_of(source, _COUNT, i) for i in range(2)]
    found = run_on_pairs(key, [Column("i64", _packed(given, 32))])
    for i, element in enumerate(_elements(found, 32, 2)):
        outcome = verdict(key[:-2], "f32", [(source, given[i])], element)
        assert not outcome.wrong, (key, i, str(outcome))


@pytest.mark.parametrize("key", _ON_PAIRS)
def test_elements_that_stand_apart_are_not_moved_together(key: str) -> None:
    one = np.zeros(1, np.uint64)
    assert selected(key, [Column("f32", one)] * 2 * len(ROWS[_row(key)].operands))[2] is None


@pytest.mark.parametrize("chip, key", on_each(lambda chip: [key for key in _packed_rows(chip) if ROWS[_row(key)].is_cast]))
def test_casts_to_packed_registers(chip: Chip, key: str) -> None:
    source, result = _types(key)
    per = int(key[-1])
    given = [patterns_of(source, _COUNT, i) for i in range(per)]
    found = run(key, "packed", [Column(source, g) for g in given], chip=chip)
    for i, element in enumerate(_elements(found, bits_of(result), per)):
        outcome = verdict(key[:-2], result, [(source, given[i])], element)
        assert not outcome.wrong, (key, i, str(outcome))


# Casts that take an element from where it stands in a packed register.
FROM_PACKED = [
    (f"{row}.{source}.{to}", source, to)
    for row, source, to in (
        ("extu", "i8", "i32"), ("exts", "i8", "i32"), ("extu", "i16", "i32"), ("exts", "i16", "i32"), ("exts", "i8", "i64"),
        ("exts", "i8", "i16"), ("trunci", "i16", "i8"), ("u2f", "i8", "f32"), ("s2f", "i8", "f32"), ("s2f", "i16", "f32"),
        ("s2f", "i16", "f16"), ("castf", "f16", "f32"), ("castf", "bf16", "f32"), ("castf", "f16", "bf16"), ("castf", "f16", "f64"),
        ("castf", "f8E4M3FNUZ", "f32"), ("castf", "f8E5M2FNUZ", "f32"), ("castf", "f8E4M3FNUZ", "f16"), ("castf", "f8E5M2", "f16"),
        ("castf", "f8E5M2", "f32"), ("castf", "f8E4M3FN", "f32"), ("castf", "f8E4M3FNUZ", "bf16"),
    )
]


@pytest.mark.parametrize(("key", "source", "to"), FROM_PACKED)
def test_casts_of_elements_of_packed_registers(key: str, source: str, to: str) -> None:
    bits = bits_of(source)
    given = [patterns_of(source, _COUNT, i) for i in range(32 // bits)]
    for i in range(32 // bits):
        found = run_from_packed(key, to, _packed(given, bits), bits, i)
        outcome = verdict(key, to, [(source, given[i])], found)
        assert not outcome.wrong, (key, i, str(outcome))


def test_an_element_of_an_element_is_taken_from_the_right_place() -> None:
    """The low byte of a high half stands in the third byte of the register: bytes and halves are counted apart."""
    given = [patterns_of("i16", _COUNT, i) for i in range(2)]
    found = run_from_packed("trunci.i16.i8", "i32", _packed(given, 16), 16, 1, then="extu.i8.i32")
    assert (found == given[1] & np.uint64(0xFF)).all()
