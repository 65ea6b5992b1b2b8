"""Every row on every type that kernels compute in gives what the reference says: the chip's rules and what core makes of them."""

from __future__ import annotations

import numpy as np
import pytest
from served import CHIP, CHIPS, on_each, rules_of_its_own

from rules.expected import ROWS, keys, patterns_of, verdict
from rules.one_row import Column, run
from tilefw.simt.expand.elements import expansion
from tilefw_amd.chips import Chip
from tilefw_amd.select.rules import rules, uniform_rules

# Formats that are stored, not computed in: the front end widens them first.
_COMPUTED = ("i1", "i4", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")
_COUNT = 384


def _row(key: str) -> str:
    return key.partition(".")[0].removesuffix("_rtz")


def _is_tried(key: str, types: tuple[str, ...]) -> bool:
    return ROWS[_row(key)].is_cast or types[-1] in _COMPUTED


def _is_to_bool(key: str, result: str) -> bool:
    """Floats become predicates by a comparison: no target serves these casts."""
    return key[:3] in ("f2s", "f2u") and result == "i1"


KEYS = {key: (types, result) for key, types, result in keys() if _is_tried(key, types) and not _is_to_bool(key, result)}
BY_ROW = sorted({key.partition(".")[0] for key in KEYS})


def columns_of(key: str, types: tuple[str, ...], count: int) -> list[Column]:
    ranges = (*ROWS[_row(key)].draw.ranges, None, None, None)
    return [Column(t, patterns_of(t, count, seed, ranges[seed])) for seed, t in enumerate(types)]


def check(key: str, columns: list[Column], uniform: bool = False, chip: Chip = CHIP) -> None:
    result = KEYS[key][1]
    found = run(key, result, columns, uniform, chip)
    wave = len(found)
    operands = [(c.type, np.resize(c.patterns, wave)) for c in columns]
    outcome = verdict(key, result, operands, found)
    assert not outcome.wrong, (key, str(outcome))


@pytest.mark.parametrize("row", BY_ROW)
def test_values_of_lanes(row: str) -> None:
    for key, (types, _) in KEYS.items():
        if key.partition(".")[0] == row:
            check(key, columns_of(key, types, _COUNT))


def _of_its_own(chip: Chip) -> list[str]:
    """What the chip does otherwise than the first one."""
    return sorted(key for key in rules_of_its_own(chip) if key in KEYS)


@pytest.mark.parametrize("chip, key", on_each(_of_its_own, chips=CHIPS[1:]))
def test_values_of_lanes_where_a_chip_has_a_rule_of_its_own(chip: Chip, key: str) -> None:
    check(key, columns_of(key, KEYS[key][0], _COUNT), chip=chip)


@pytest.mark.parametrize("row", sorted({key.partition(".")[0] for key in uniform_rules(CHIP)}))
def test_values_equal_in_all_lanes(row: str) -> None:
    for key, (types, _) in KEYS.items():
        if key.partition(".")[0] == row and all(t in ("i1", "i8", "i16", "i32", "i64") for t in types):
            check(key, columns_of(key, types, 12), uniform=True)


@pytest.mark.parametrize("row", sorted({row for key in rules(CHIP) if len(ROWS[row := _row(key)].operands) == 2}))
def test_constants_on_either_side(row: str) -> None:
    """Constants that are inline, literals, zero, one, all ones; scalar registers beside them."""
    for key, (types, _) in KEYS.items():
        if key.partition(".")[0] != row or key not in rules(CHIP):
            continue
        for place in range(2):
            for seed in range(3):
                columns = columns_of(key, types, 64)
                columns[place] = Column(types[place], patterns_of(types[place], 8, 10 * seed + place)[:1], constant=True)
                check(key, columns)


def test_the_rules_name_rows() -> None:
    """A rule for what is not a row, or no type, would never be asked for."""
    packed = ("x2", "x4")
    for key in (*rules(CHIP), *uniform_rules(CHIP)):
        plain = key[:-2] if key.endswith(packed) else key
        assert plain in KEYS or expansion(plain) is not None or plain.startswith("select."), key


def test_a_quotient_is_right_where_its_divisors_reciprocal_is_subnormal() -> None:
    """What a row's definition leaves open; a large number by a larger one is neither zero nor, of an infinity, a NaN."""
    large = np.float32(np.finfo(np.float32).max)
    x = np.resize(np.array([np.inf, -np.inf, large, 1.0, 2.0**126, -large], np.float32), _COUNT)
    y = np.resize(np.array([large, 2.0**127, -large, 2.0**126, 1.5 * 2.0**126], np.float32), _COUNT)
    found = run("divf.f32", "f32", [Column("f32", one.view(np.uint32)) for one in (x, y)], False, CHIP)
    quotients = found.astype(np.uint32).view(np.float32)
    exact = np.resize(x, found.size).astype(np.float64) / np.resize(y, found.size)
    finite = np.isfinite(exact)
    assert np.array_equal(quotients[~finite], exact[~finite])
    assert np.abs(quotients[finite] / exact[finite] - 1).max() < 4 * 2.0**-23
