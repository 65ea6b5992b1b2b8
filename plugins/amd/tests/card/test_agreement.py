"""The comparison of simulator and card counts every bit: results that are changed are found, and told how far they are off."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tilefw.kernels.spec import Buffer, Launch

BENCH = next(parent / "bench" for parent in Path(__file__).parents if (parent / "bench" / "on_gpu.py").is_file())


@pytest.fixture
def on_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(BENCH))
    yield
    for name in [name for name in sys.modules if name.startswith("gpu_") or name in ("library", "works", "reports")]:
        sys.modules.pop(name, None)


def launch(array: np.ndarray, dtype: str) -> Launch:
    return Launch({"out_ptr": Buffer(array, dtype)}, {}, (1, 1, 1), ("out_ptr",))


@pytest.mark.parametrize(("kind", "dtype"), [(np.float32, "fp32"), (np.float16, "fp16"), (ml_dtypes.bfloat16, "bf16")])
def test_neighbours_are_one_unit_apart_across_zero(kind: type, dtype: str, on_path: None) -> None:
    from gpu_agreement import difference

    one = np.array([1, 0, -1, 5], kind)
    other = one.copy()
    codes = other.view(f"u{other.itemsize}")
    codes[0] += 3  # three units up
    codes[1] = 1 + (1 << (8 * other.itemsize - 1))  # one unit below zero
    assert difference(launch(one, dtype), launch(other, dtype)) == (4, 2, 3)
    assert difference(launch(one, dtype), launch(one.copy(), dtype)) == (4, 0, 0)


def test_integers_differ_by_their_values(on_path: None) -> None:
    from gpu_agreement import difference

    one = np.arange(6, dtype=np.int32).reshape(2, 3)
    other = one + np.array([0, 0, 9], np.int32)
    assert difference(launch(one, "int32"), launch(other, "int32")) == (6, 2, 9)


def test_a_wrong_product_leaves_its_bound(on_path: None) -> None:
    from gpu_speed import product_error
    from library import Work

    work = Work("matmul", {"m": 32, "n": 32, "k": 32})
    made = work.launch()
    a, b = (made.buffer(name).array.astype(np.float64) for name in ("a_ptr", "b_ptr"))
    right = (a @ b).astype(np.float16)
    assert product_error(made, right) <= 1
    wrong = right.copy()
    wrong[:, 5] = np.nextafter(wrong[:, 5], np.float16(np.inf)) + np.float16(0.25)
    assert product_error(made, wrong) > 1


def test_a_wrong_attention_leaves_its_bound(on_path: None) -> None:
    from gpu_speed import attention_error
    from library import Work

    work = Work("attention", {"heads": 1, "kv_heads": 1, "queries": 64, "keys": 64, "causal": True})
    made = work.launch()
    right = np.asarray(work.spec.expected(work.spec.resolve(work.parameters), made)["out_ptr"]).astype(np.float16)
    assert attention_error(made, right) <= 1
    assert attention_error(made, right * np.float16(1.02)) > 1
