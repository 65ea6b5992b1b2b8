"""The chip vendor's matrix library, as Triton's `_C.libtriton` shows it to programs that compare with it: PyTorch on the host.

PyTorch's GPU is the host's memory (torch_device.py), and its operations run there; so do this library's.
"""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any


class HostBlas:
    """A handle of the library; the workspace is taken and not needed."""

    def __init__(self, workspace: Any = None) -> None:
        self.workspace = workspace

    def matmul(self, a: Any, b: Any, c: Any) -> None:
        """`c = a @ b.T`, of the rows of both, summed in float32 or wider and rounded once to `c`'s type."""
        c.copy_(_product(a, b))

    def gemm(self, a: Any, b: Any, c: Any, d: Any, alpha: float, beta: float) -> None:
        """`d = alpha * (a @ b.T) + beta * c`."""
        d.copy_(alpha * _product(a, b) + beta * c)


def _product(a: Any, b: Any) -> Any:
    torch = importlib.import_module("torch")
    wide = torch.float64 if a.dtype == torch.float64 else torch.float32
    return torch.matmul(a.to(wide), b.to(wide).T)


CUBLAS = SimpleNamespace(CublasLt=HostBlas)
HIPBLAS = SimpleNamespace(HipblasLt=HostBlas)
