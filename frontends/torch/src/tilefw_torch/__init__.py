"""`torch.compile(model, backend="tilefw")`: PyTorch's compiler writes kernels, tilefw compiles and runs them on a target.

`export` makes a plan of a program that torch.export wrote.
"""

from __future__ import annotations

from tilefw_torch.backend import tilefw
from tilefw_torch.exported import export, read_exported
from tilefw_torch.report import CompiledKernelRecord, CompileReport, FallbackWarning, report, reset_report

__all__ = [
    "CompileReport", "CompiledKernelRecord", "FallbackWarning", "export", "read_exported", "report", "reset_report", "tilefw",
]
