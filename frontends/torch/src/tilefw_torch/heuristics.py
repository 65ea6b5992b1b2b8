"""Stands for PyTorch's `triton_heuristics` above a kernel's function: keeps what it is told there, and tunes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilefw.runtime.jit import JITFunction
from tilefw_torch.blocks import TileExtents


class KernelHeuristics:
    """The decorators that PyTorch's compiler writes; each gives the jit function and what was said of it as a pair."""

    def __getattr__(self, kind: str) -> Callable[..., Any]:
        if kind.startswith("__"):
            raise AttributeError(kind)
        return lambda *args, **said: lambda function: (_typed(function, said), _extents(kind, said))


def _typed(function: JITFunction, said: dict[str, Any]) -> JITFunction:
    """The function with the types that PyTorch gives to numbers, whatever their values: it computes with sizes in 64 bits."""
    signature = said.get("triton_meta", {}).get("signature", {})
    for parameter in function.params:
        kind = signature.get(parameter.name, "constexpr")
        if kind != "constexpr" and not kind.startswith("*"):
            parameter.annotate(kind)
    return function


def _extents(kind: str, said: dict[str, Any]) -> TileExtents:
    meta = said.get("triton_meta", {})
    return TileExtents(kind, said.get("size_hints", {}), said.get("inductor_meta", {}), bool(meta.get("native_matmul")))
