"""The campaign over sums of wgmma: with hardware's numerics, every shape and type that MMA-Sim models, a million elements a type.

    python -m isa.wgmma_numerics        # writes bench/wgmma-numerics.md

(with plugins/nvidia/tests and the root of the repository on PYTHONPATH; `pip install torch==2.13.0 mmasim`).
"""

from __future__ import annotations

import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np

from isa.machine import launch
from isa.wgmma_kernel import ROWS, Product, operands, results, text_and_buffers
from tilefw_nvidia.chips import named

_FP8 = ("e4m3", "e5m2")
MODELLED = (
    ".f32.f16.f16", ".f16.f16.f16", ".f32.bf16.bf16", ".f32.tf32.tf32",
    *(f".{sums}.{a}.{b}" for sums in ("f32", "f16") for a in _FP8 for b in _FP8),
)
_BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1}
COLUMNS = range(8, 257, 8)
# Exponents of operands differ by up to twice these, in one workgroup each.
SPREADS = (0, 4, 8, 12)
PAGE = Path(__file__).parents[4] / "bench" / "wgmma-numerics.md"


def product_of(types: str, n: int) -> Product:
    _, sums, _, b = types.split(".")
    return Product(types, n, _BYTES[b], sums)


def modelled(product: Product, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """MMA-Sim's D."""
    import torch
    from mmasim.nv_ptx import WGMMA

    def tensor(values: np.ndarray) -> torch.Tensor:
        words = {1: np.uint8, 2: np.int16, 4: np.int32}[values.dtype.itemsize]
        return torch.from_numpy(np.ascontiguousarray(values).view(words).copy()).view(getattr(torch, values.dtype.name))

    return WGMMA("Hopper", f"m64n{product.n}k{product.k}{product.types}")(tensor(a), tensor(b.T), tensor(c)).numpy()


def as_words(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values).view({2: np.uint16, 4: np.uint32}[values.dtype.itemsize])


def differing(types: str, n: int) -> tuple[int, int]:
    """(Elements that are not MMA-Sim's, elements) of one shape."""
    product = product_of(types, n)
    drawn = [operands(product, 1000 * n + spread, spread) for spread in SPREADS]
    text, buffers = text_and_buffers(product, *drawn)
    found, findings = launch(text, buffers, len(drawn), 128, chip=named("sm_90a"), numerics="hw")
    assert findings == (), findings
    pairs = zip(results(product, found[2]), drawn, strict=True)
    wrong = sum(int((as_words(got) != as_words(modelled(product, *each))).sum()) for got, each in pairs)
    return wrong, len(drawn) * ROWS * n


def main() -> int:
    began = time.perf_counter()
    rows, failed = [], 0
    for types in MODELLED:
        wrong, elements = np.sum([differing(types, n) for n in COLUMNS], axis=0).tolist()
        print(types, elements, wrong, flush=True)
        rows.append(f"| `{types}` | {len(COLUMNS)} | {elements} | {wrong} |")
        failed += wrong
    seconds = time.perf_counter() - began
    PAGE.write_text(
        f"# Sums of wgmma with hardware's numerics against MMA-Sim\n\nmmasim {version('mmasim')}, its model of Hopper; every N"
        f" from 8 to 256, operands whose exponents differ by up to 0, 8, 16 and 24; {seconds:.0f} s.\n\n"
        "| types of D, A, B | shapes | elements | that differ |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
