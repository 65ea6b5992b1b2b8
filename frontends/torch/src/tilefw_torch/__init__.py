"""`torch.compile(model, backend="tilefw")`: PyTorch's compiler writes kernels, tilefw compiles and runs them on a target."""

from __future__ import annotations

from tilefw_torch.backend import tilefw
from tilefw_torch.report import CompiledKernelRecord, CompileReport, FallbackWarning, report, reset_report

__all__ = ["CompileReport", "CompiledKernelRecord", "FallbackWarning", "report", "reset_report", "tilefw"]
