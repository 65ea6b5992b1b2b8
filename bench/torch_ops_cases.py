"""PyTorch's test file of its compiler as a class for tensors of the host; torch_ops.py gives this file to pytest.

`TORCH_OPS_FILE` in the environment names the file. A name that it imports and this PyTorch no longer has is a refusal where it is
called: the file may be of another release. Tests that PyTorch itself leaves out for Triton on the host run too.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import sys
import unittest
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import torch


class AbsentName:
    """Stands for a name that this PyTorch does not have; a test that calls it, or that it decorates, is skipped."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *given: Any, **_: Any) -> Any:
        reason = f"this PyTorch has no {self._name}"
        if len(given) == 1 and inspect.isfunction(given[0]):
            return unittest.skip(reason)(given[0])
        raise unittest.SkipTest(reason)

    def __getattr__(self, word: str) -> Any:
        if word.startswith("__"):
            raise AttributeError(word)
        raise unittest.SkipTest(f"this PyTorch has no {self._name}")


def loaded(path: Path) -> ModuleType:
    """The test file as a module."""
    for module, name in _imported(path):
        try:
            owner = importlib.import_module(module)
        except ImportError:
            continue
        if not hasattr(owner, name):
            setattr(owner, name, AbsentName(f"{module}.{name}"))
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[path.stem] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _imported(path: Path) -> list[tuple[str, str]]:
    found = [node for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.ImportFrom)]
    return [(node.module, alias.name) for node in found if node.module and not node.level for alias in node.names]


# TorchVision's binary part need not fit this PyTorch: its operators have to be there by name.
LIBRARY = torch.library.Library("torchvision", "DEF")
for operator in ("nms", "qnms"):
    LIBRARY.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
FILE: Any = loaded(Path(os.environ["TORCH_OPS_FILE"]))
FILE.is_triton_cpu_backend = lambda device: False


class CompilerTests(FILE.TestCase):
    common = FILE.check_model
    device = "cpu"


class SweptInputs(FILE.SweepInputs2, FILE.TestCase):
    gen = FILE.InputGen(10, "cpu")


FILE.copy_tests(FILE.CommonTemplate, CompilerTests, "cpu")
SweptInputs.populate()
