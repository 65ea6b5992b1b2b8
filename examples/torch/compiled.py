"""A small model, compiled for a target and compared with what PyTorch itself gives."""

import sys

import tilefw_torch
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(24, 32), torch.nn.GELU(), torch.nn.Linear(32, 8)).eval()
compiled = torch.compile(model, backend="tilefw", options={"target": sys.argv[1], "fallback": "error"})
x = torch.randn(5, 24)
with torch.no_grad():
    error = (compiled(x) - model(x)).abs().max().item()
report = tilefw_torch.report()
print(f"{len(report.kernels)} kernels, right: {error < 1e-5}")
print(report)
