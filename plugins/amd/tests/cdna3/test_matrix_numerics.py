"""How matrix instructions round under `numerics="hw"`: MMA-Sim's CDNA3 models (arXiv 2511.10909), bit for bit.

The differential test needs mmasim (which needs torch) and is skipped without; golden/matrix_sums.json has dot products that the
same models gave, and runs everywhere. To write it anew: `python -m cdna3.test_matrix_numerics` in this folder's parent, with
mmasim.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from served import CHIP

from cdna3.matrices import NUMPY, multiply
from cdna3.samples import BITS, SAMPLES, UNSIGNED, cancelling, values
from tilefw_amd.isa.meaning.fragments import SHAPES, MatrixShape
from tilefw_amd.isa.rows import matrix  # noqa: F401  (fills the table)

GOLDEN = Path(__file__).parent / "golden" / "matrix_sums.json"
MODELLED = [s for s in SHAPES if s.serves(CHIP) and not s.sparse and s.d != "i32"]
CASES = 6  # of each kind of sample
# One shape of each kind of adder.
JUDGES = [
    "v_mfma_f32_16x16x16_f16", "v_mfma_f32_16x16x16_bf16", "v_mfma_f32_16x16x8_xf32", "v_mfma_f32_16x16x32_fp8_fp8",
    "v_mfma_f32_16x16x32_bf8_bf8", "v_mfma_f32_16x16x4_f32", "v_mfma_f64_16x16x4_f64",
]  # fmt: skip


def patterns(matrix_: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(matrix_).view(UNSIGNED[8 * matrix_.dtype.itemsize])


def same_bits(got: np.ndarray, wanted: np.ndarray, chained: bool) -> bool:
    """A chain of fused multiply-adds gives some NaN; the adders of the narrow types one that the model names."""
    equal = patterns(got) == patterns(wanted)
    return bool((equal | (np.isnan(got) & np.isnan(wanted) if chained else False)).all())


# --- against the model itself ---------------------------------------------------------------------------------------------------


def _tensor(torch: Any, matrix_: np.ndarray) -> Any:
    signed = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}[matrix_.dtype.itemsize]
    kinds = {
        "float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64,
        "float8_e4m3fnuz": torch.float8_e4m3fnuz, "float8_e5m2fnuz": torch.float8_e5m2fnuz,
    }  # fmt: skip
    return torch.from_numpy(np.ascontiguousarray(matrix_).view(signed).copy()).view(kinds[matrix_.dtype.name])


def model(shape: MatrixShape, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """What MMA-Sim says, block by block."""
    import torch
    from mmasim.amd import MFMA

    unit = MFMA("CDNA3", shape.name.removeprefix("v_mfma_"))
    d = np.zeros_like(c)
    for wave in range(a.shape[0]):
        for block in range(a.shape[1]):
            d[wave, block] = unit(*(_tensor(torch, x[wave, block]) for x in (a, b, c))).numpy()
    return d


@pytest.mark.skipif(importlib.util.find_spec("mmasim") is None, reason="mmasim is not installed: pip install torch==2.13.0 mmasim")
@pytest.mark.parametrize("shape", MODELLED, ids=lambda s: s.name)
def test_hardware_numerics_agree_with_mmasim_bit_for_bit(shape: MatrixShape) -> None:
    rng = np.random.default_rng(shape.opcode)
    sizes = ((2, shape.blocks, shape.m, shape.k), (2, shape.blocks, shape.k, shape.n), (2, shape.blocks, shape.m, shape.n))
    for name, sample in SAMPLES.items():
        a, b = sample(rng, shape.a, sizes[0]), sample(rng, shape.b, sizes[1])
        for made in ("as it is", "cancelling", "no addend"):
            if made == "cancelling":
                a, b = cancelling(rng, a, b)
            c = sample(rng, shape.d, sizes[2]) if made != "no addend" else np.zeros(sizes[2], NUMPY[shape.d])
            with np.errstate(all="ignore"):
                got, wanted = multiply(shape, a, b, c, hardware=True), model(shape, a, b, c)
            assert same_bits(got, wanted, chained=shape.a in ("f32", "f64")), f"{name}, {made}"


# --- against what it gave --------------------------------------------------------------------------------------------------------


def _words(matrix_: np.ndarray) -> list[str]:
    digits = matrix_.dtype.itemsize * 2
    return ["".join(f"{int(x):0{digits}x}" for x in row) for row in patterns(matrix_).reshape(len(matrix_), -1)]


def _read(rows: list[str], element: str) -> np.ndarray:
    digits = BITS[element] // 4
    codes = [[int(row[i : i + digits], 16) for i in range(0, len(row), digits)] for row in rows]
    return values(np.array(codes, np.uint64), element)


@pytest.mark.parametrize("name", JUDGES)
def test_dot_products_of_the_model_are_reproduced(name: str) -> None:
    """Case i is row i of A, column i of B and element (i, i) of C and D."""
    shape = next(s for s in SHAPES if s.name == name)
    for sample, case in json.loads(GOLDEN.read_text())[name].items():
        a, b, c, d = (_read(case[x], kind) for x, kind in zip("abcd", (shape.a, shape.b, shape.d, shape.d), strict=True))
        with np.errstate(all="ignore"):
            got = multiply(shape, *_filled(shape, a, b, c[:, 0]), hardware=True)
        assert same_bits(np.diagonal(got[0, 0])[:CASES], d[:, 0], chained=shape.a in ("f32", "f64")), sample


def _filled(shape: MatrixShape, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cases as matrices of one wave, zero elsewhere."""
    matrices = [np.zeros((1, 1, *size), x.dtype) for x, size in ((a, (16, shape.k)), (b, (shape.k, 16)), (c, (16, 16)))]
    matrices[0][0, 0, :CASES], matrices[1][0, 0, :, :CASES] = a, b.T
    matrices[2][0, 0, range(CASES), range(CASES)] = c
    return matrices[0], matrices[1], matrices[2]


def _golden() -> dict[str, dict[str, dict[str, list[str]]]]:
    found: dict[str, dict[str, dict[str, list[str]]]] = {}
    for name in JUDGES:
        shape = next(s for s in SHAPES if s.name == name)
        rng = np.random.default_rng(42)
        found[name] = {}
        for sample_name, sample in SAMPLES.items():
            a, b = sample(rng, shape.a, (CASES, shape.k)), sample(rng, shape.b, (shape.k, CASES))
            a[::2], b[:, ::2] = cancelling(rng, a[::2], b[:, ::2])
            b, c = b.T.copy(), sample(rng, shape.d, (CASES, 1))
            d = np.diagonal(model(shape, *_filled(shape, a, b, c[:, 0]))[0, 0])[:CASES, None].copy()
            found[name][sample_name] = {operand: _words(x) for operand, x in zip("abcd", (a, b, c, d), strict=True)}
    return found


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(json.dumps(_golden(), separators=(",", ":")).replace('"},', '"},\n').replace("]},", "]},\n") + "\n")
