"""The kernels of cuTile's samples with arguments of our own, and what NumPy says that they should compute."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

Arguments = Mapping[str, Any]
_G = np.random.default_rng(11)


@dataclass(frozen=True, slots=True)
class SampleLaunch:
    """One launch of a sample's kernel: arrays and numbers by name, in the order of its parameters, then constants. `due` makes of
    them what outputs, by name, should hold."""

    file: str
    kernel: str
    grid: tuple[int, ...]
    arguments: Arguments
    constants: Sequence[Any]
    due: Callable[[Arguments], Mapping[str, np.ndarray]]
    tolerance: float = 1e-5
    elements: Mapping[str, str] | None = None  # types that NumPy lacks, of arrays of bytes

    def function(self, checkout: Path) -> Any:
        """The kernel itself, from the checkout's file."""
        folder = checkout / "samples"
        if str(folder) not in sys.path:
            sys.path[:0] = [str(folder), str(folder / "quickstart")]
        sys.modules.setdefault("cupy", np)  # the quick start imports it for its arrays, which are NumPy's here
        return getattr(importlib.import_module(self.file), self.kernel)


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return _G.standard_normal(shape).astype(dtype)


def eighths(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Numbers of few digits, which every format has."""
    return (_G.integers(-16, 17, shape) / 8).astype(dtype)


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


def wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)


def launches() -> Iterator[SampleLaunch]:
    """Every kernel of the samples, once or more."""
    yield from _additions()
    yield from _products()
    yield from _normalisations()
    yield SampleLaunch(
        "Transpose", "transpose_kernel", (4, 2), {"x": normal(100, 50), "y": zeros(50, 100)}, (32, 32), lambda a: {"y": a["x"].T}, 0
    )
    yield from _attentions()
    yield _transform()
    yield from _experts()
    yield _scaled()


def _additions() -> Iterator[SampleLaunch]:
    def due(a: Arguments) -> Mapping[str, np.ndarray]:
        return {"c": a["a"] + a["b"]}

    for suffix in ("", "_gather"):
        line = {"a": normal(1000), "b": normal(1000), "c": zeros(1000)}
        yield SampleLaunch("VectorAddition", f"vec_add_kernel_1d{suffix}", (8,), line, (128,), due)
        plane = {"a": normal(100, 60), "b": normal(100, 60), "c": zeros(100, 60)}
        yield SampleLaunch("VectorAddition", f"vec_add_kernel_2d{suffix}", (7, 2), plane, (16, 32), due)
    doubles = {"a": normal(512, dtype=np.float64), "b": normal(512, dtype=np.float64), "c": zeros(512, dtype=np.float64)}
    yield SampleLaunch("VectorAdd_quickstart", "vector_add", (32,), doubles, (16,), due)


def _products() -> Iterator[SampleLaunch]:
    def due(a: Arguments) -> Mapping[str, np.ndarray]:
        return {"C": wide(a["A"]) @ wide(a["B"])}

    half = {"A": normal(40, 70, dtype=np.float16), "B": normal(70, 50, dtype=np.float16), "C": zeros(40, 50, dtype=np.float16)}
    yield SampleLaunch("MatMul", "matmul_kernel", (4,), half, (32, 32, 32), due, 2e-2)
    full = {"A": eighths(70, 70), "B": eighths(70, 90), "C": zeros(70, 90)}
    yield SampleLaunch("MatMul", "persistent_matmul_kernel", (4,), full, (32, 32, 32), due)
    batch = {"A": normal(2, 40, 70, dtype=np.float16), "B": normal(2, 70, 50, dtype=np.float16), "C": zeros(2, 40, 50)}
    yield SampleLaunch("BatchMatMul", "batch_matmul_kernel", (2, 2, 2), batch, (32, 32, 32), due, 1e-3)
    listed = {"inp_list": [normal(32, 32)], "w": normal(32, 32), "out": zeros(32, 32)}
    yield SampleLaunch(
        "AllGatherMatmul", "gather_matmul_kernel", (1, 1), listed, (32, 32, 32), lambda a: {"out": a["inp_list"][0] @ a["w"]}
    )


def _normalisations() -> Iterator[SampleLaunch]:
    rows, columns, groups, eps = 6, 100, 4, 1e-3
    x, w, b = normal(rows, columns), normal(columns), normal(columns)
    mean, scale = wide(x).mean(1), 1 / np.sqrt(wide(x).var(1) + eps)
    plain = (wide(x) - mean[:, None]) * scale[:, None]
    forward = {"X": x, "W": w, "B": b, "Y": zeros(rows, columns), "Mean": zeros(rows), "Rstd": zeros(rows), "eps": eps}
    yield SampleLaunch(
        "LayerNorm", "layer_norm_fwd", (rows,), forward, (64,), lambda a: {"Y": plain * w + b, "Mean": mean, "Rstd": scale}, 1e-4
    )
    dy = normal(rows, columns)
    backward = {
        "DX": zeros(rows, columns), "DY": dy, "DW": zeros(groups, columns), "DB": zeros(groups, columns), "X": x, "W": w,
        "Mean": mean.astype(np.float32), "Rstd": scale.astype(np.float32), "Locks": zeros(groups, dtype=np.int32),
    }

    def gradients(a: Arguments) -> Mapping[str, np.ndarray]:
        weighted = wide(w) * dy
        inner, outer = (plain * weighted).mean(1, keepdims=True), weighted.mean(1, keepdims=True)
        sums = [np.stack([part[g::groups].sum(0) for g in range(groups)]) for part in (dy * plain, wide(dy))]
        return {"DX": (weighted - (plain * inner + outer)) * scale[:, None], "DW": sums[0], "DB": sums[1]}

    yield SampleLaunch("LayerNorm", "layer_norm_bwd_dx_partial_dwdb", (rows,), backward, (64,), gradients, 1e-4)
    last = {"DW": normal(10, columns), "DB": normal(10, columns), "FINAL_DW": zeros(columns), "FINAL_DB": zeros(columns)}
    yield SampleLaunch(
        "LayerNorm", "layer_norm_bwd_dwdb", (4,), last, (4, 32),
        lambda a: {"FINAL_DW": wide(a["DW"]).sum(0), "FINAL_DB": wide(a["DB"]).sum(0)},
    )


def _attentions() -> Iterator[SampleLaunch]:
    for causal in (False, True):
        q, k, v = (normal(1, 2, rows, 32, dtype=np.float16) for rows in (64, 80, 80))
        arguments = {"Q": q, "K": k, "V": v, "Out": zeros(1, 2, 64, 32, dtype=np.float16), "qk_scale": 0.2, "input_pos": 0}

        def due(a: Arguments, causal: bool = causal) -> Mapping[str, np.ndarray]:
            scores = wide(a["Q"]) @ wide(a["K"]).swapaxes(2, 3) * a["qk_scale"]
            if causal:
                scores = np.where(np.arange(64)[:, None] >= np.arange(80), scores, -np.inf)
            powers = np.exp(scores - scores.max(3, keepdims=True))
            return {"Out": powers / powers.sum(3, keepdims=True) @ wide(a["V"])}

        yield SampleLaunch("AttentionFMHA", "fmha_kernel", (2, 2), arguments, (32, 2, 32, 32, 1, causal, False), due, 3e-3)


def _pairs(numbers: np.ndarray) -> np.ndarray:
    return np.stack([numbers.real, numbers.imag], -1).astype(np.float32)


def _roots(rows: int, columns: int, factor: int) -> np.ndarray:
    return _pairs(np.exp(-2j * np.pi * np.outer(np.arange(rows), np.arange(columns)) / factor))


def _transform() -> SampleLaunch:
    points, factors, packed = 64, (4, 4, 4), 16
    x = _G.standard_normal((2, points)) + 1j * _G.standard_normal((2, points))
    f0, f1, f2 = factors
    arguments = {
        "x": _pairs(x).reshape(2, -1, packed), "y": zeros(2, 2 * points // packed, packed), "W0": _roots(f0, f0, f0),
        "W1": _roots(f1, f1, f1), "W2": _roots(f2, f2, f2), "T0": _roots(f0, f1 * f2, points), "T1": _roots(f1, f2, f1 * f2),
    }
    return SampleLaunch(
        "FFT", "fft_kernel", (2,), arguments, (points, *factors, 1, packed),
        lambda a: {"y": _pairs(np.fft.fft(x)).reshape(2, -1, packed)}, 1e-4,
    )


def _experts() -> Iterator[SampleLaunch]:
    tokens, copies, experts, tile = 12, 2, 3, 16
    chosen = np.stack([_G.permutation(experts)[:copies] for _ in range(tokens)]).ravel()
    tiles = [(e, ids) for e in range(experts) for ids in [np.flatnonzero(chosen == e)] if len(ids)]
    listed = [np.pad(ids, (0, -len(ids) % tile), constant_values=tokens * copies) for _, ids in tiles]
    of_tiles = [e for (e, _), ids in zip(tiles, listed, strict=True) for _ in range(len(ids) // tile)]
    arguments = {
        "A": normal(tokens, 64, dtype=np.float16), "B": normal(experts, 48, 64, dtype=np.float16), "C": zeros(tokens * copies, 48),
        "weights": normal(tokens * copies), "ids": np.concatenate(listed).astype(np.int32), "experts": np.array(of_tiles, np.int32),
        "copies": copies,
    }

    def due(a: Arguments) -> Mapping[str, np.ndarray]:
        rows = [wide(a["A"][i // copies]) @ wide(a["B"][chosen[i]]).T * a["weights"][i] for i in range(tokens * copies)]
        return {"C": np.stack(rows)}

    grid = len(of_tiles) * 2
    yield SampleLaunch("MoE", "fused_moe_kernel", (grid,), arguments, (True, tile, 32, 32), due, 2e-3)
    gate = {"A": normal(6, 50), "B": normal(6, 50), "C": zeros(6, 50)}
    yield SampleLaunch("MoE", "silu_and_mul_kernel", (6,), gate, (64,), lambda a: {"C": a["A"] / (1 + np.exp(-a["A"])) * a["B"]})


def _scaled() -> SampleLaunch:
    """In tiles of 64 and 128: the sample's own of 256 are more than one workgroup of some chips holds."""
    m, n, k, block = 64, 128, 256, 32
    fp8 = ml_dtypes.float8_e4m3fn
    arguments = {
        "A": normal(m, k).astype(fp8), "A_scale": _G.integers(120, 132, (m, k // block)).astype(np.uint8),
        "B": normal(k, n).astype(fp8), "B_scale": _G.integers(120, 132, (k // block, n)).astype(np.uint8), "C": zeros(m, n),
    }

    def due(a: Arguments) -> Mapping[str, np.ndarray]:
        left, right = (np.exp2(wide(a[name]) - 127).repeat(block, axis) for name, axis in (("A_scale", 1), ("B_scale", 0)))
        return {"C": (wide(a["A"]) * left) @ (wide(a["B"]) * right)}

    scales = dict.fromkeys(("A_scale", "B_scale"), "float8_e8m0fnu")
    return SampleLaunch(
        "BlockScaledMatMul", "block_scaled_matmul_kernel", (2,), arguments, (64, 64, 128, block), due, 1e-3, scales
    )
