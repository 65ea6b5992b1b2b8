"""A signalling NaN in storage means what a quiet one means, in every row, on every processor."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from tilefw.api.dtypes import DTYPES, DType
from tilefw.sim.algebra.floating import FloatLanes
from tilefw.sim.floats import FORMATS, UNSIGNED
from tilefw.testing.processors import pytest_without_features, run_without_features
from tilefw.tile import numbers
from tilefw.tile.elementwise import ROWS, ElementwiseRow
from tilefw.tile.reference.evaluate import evaluate
from tilefw.tile.reference.value import EvaluatedValue

IEEE = [d for d in DTYPES.values() if d.is_float and d.specials == "ieee"]
NUMBERS = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 3.0, np.inf, -np.inf])


def signalling(bits: int, mantissa: int) -> int:
    """The code of the first NaN after infinity: the highest fraction bit, which says quiet, is clear."""
    return ((1 << bits - 1 - mantissa) - 1 << mantissa) | 1


@pytest.mark.parametrize("dtype", [d for d in DTYPES.values() if d.is_float], ids=lambda d: d.name)
def test_every_nan_is_read_as_one(dtype: DType) -> None:
    codes = np.arange(1 << min(dtype.bits, 16)).astype(numbers.unsigned_type(dtype.bits)) << max(0, dtype.bits - 16)
    if dtype.specials == "ieee":
        codes = np.append(codes, np.array([signalling(dtype.bits, dtype.mantissa_bits)], codes.dtype))
    values = numbers.decode(codes, dtype)
    nans = values[np.isnan(values)].view(np.uint64)
    assert len(nans) > 0 or dtype.specials == "finite"
    assert set(nans.tolist()) <= {int(np.array(np.nan).view(np.uint64))}


def all_tuples(count: int, dtype: DType, code: int) -> list[EvaluatedValue]:
    """Every tuple of `count` operands out of NUMBERS and one NaN, which is read from `code`."""
    read = numbers.decode(np.array([code], numbers.unsigned_type(dtype.bits)), dtype)
    drawn = np.append(numbers.in_format(NUMBERS, dtype), read)
    grid = np.meshgrid(*[np.arange(len(drawn))] * count, indexing="ij")
    return [EvaluatedValue(drawn[index.reshape(-1)]) for index in grid]


FLOAT_ROWS = [row for row in ROWS.values() if set(row.operands) <= {"T:float", "T:any"} and row.result != "to:ptr"]


@pytest.mark.parametrize("dtype", IEEE, ids=lambda d: d.name)
@pytest.mark.parametrize("row", FLOAT_ROWS, ids=lambda r: r.name)
def test_every_row_takes_a_signalling_nan_as_a_quiet_one(row: ElementwiseRow, dtype: DType) -> None:
    to = {"to:int": "int32", "to:float": "fp32", "to:any": f"int{dtype.bits}"}.get(row.result, dtype.name)
    first = signalling(dtype.bits, dtype.mantissa_bits)
    codes = first, first | 1 << dtype.mantissa_bits - 1
    found = [evaluate(row, all_tuples(len(row.operands), dtype, code), dtype, DTYPES[to]) for code in codes]
    assert found[0].x.tobytes() == found[1].x.tobytes()
    if row.name == "pow":
        one = numbers.decode(np.array([first], numbers.unsigned_type(dtype.bits)), dtype)
        power = evaluate(row, [EvaluatedValue(np.ones(1)), EvaluatedValue(one)], dtype, dtype)
        assert power.x[0] == 1.0, "IEEE 754-2019, 9.2.1: pow(1, qNaN)"


@pytest.mark.parametrize("name", ["f64", "f32", "f16", "bf16", "f8E5M2"])
@pytest.mark.parametrize("smaller", [True, False], ids=["fmin", "fmax"])
def test_a_number_wins_over_a_signalling_nan_in_simulators(name: str, smaller: bool) -> None:
    form = FORMATS[name]
    nan = np.full(64, signalling(form.bits, form.mantissa), UNSIGNED[form.bits])
    number = np.arange(64).astype(UNSIGNED[form.bits])
    lanes = FloatLanes()
    extreme = lanes.fmin if smaller else lanes.fmax
    with np.errstate(all="ignore"):
        assert extreme(number, nan, name).tolist() == extreme(nan, number, name).tolist() == number.tolist()


def test_all_of_this_holds_without_the_processors_features() -> None:
    here = Path(__file__)
    done = pytest_without_features(here, here.parent / "test_elementwise.py", "-k", "not without_the_processors_features")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


def test_the_child_process_uses_the_baseline_alone() -> None:
    done = run_without_features([sys.executable, "-c", "from tilefw.testing.processors import features; print(features())"])
    assert done.stdout.strip() == "[]", done.stderr
