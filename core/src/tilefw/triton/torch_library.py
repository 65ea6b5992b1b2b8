"""Operators that a program registers for the GPU (`torch.library`) are the host's, whose tensors stand for the GPU's."""

from __future__ import annotations

import functools
import importlib
import sys
import weakref
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import FrameType, ModuleType
from typing import Any

# PyTorch's dispatch keys of a GPU -> the host's that stand for them.
_HOSTS = {"CUDA": "CPU", "AutogradCUDA": "AutogradCPU", "AutocastCUDA": "AutocastCPU", "SparseCUDA": "SparseCPU"}
_DECORATORS = ("torch.library", "torch._library.")  # modules that register for their caller
# Keys that registered kernels run under, host's or any device's.
_RUN = frozenset({*_HOSTS.values(), "", "Autograd", "CompositeExplicitAutograd", "CompositeImplicitAutograd"})


def registering(torch: ModuleType, as_program: Callable[[], AbstractContextManager[Any]]) -> tuple[Any, Mapping[str, Any]]:
    """PyTorch's class of libraries, and what takes the place of its methods. An operator's function runs within `as_program`."""
    library = importlib.import_module("torch.library").Library
    begin, implement, end = library.__init__, library.impl, library._destroy
    # Of each library that is there: namespace, operator and the host's key of the GPU's kernels.
    of_gpus: weakref.WeakKeyDictionary[Any, set[tuple[str, str, str]]] = weakref.WeakKeyDictionary()

    def for_the_host(self: Any, ns: str, kind: str, dispatch_key: str = "") -> None:
        self._tilefw_of_gpu = dispatch_key in _HOSTS and _is_programs(sys._getframe(1))
        begin(self, ns, kind, _HOSTS[dispatch_key] if self._tilefw_of_gpu else dispatch_key)

    def implemented(self: Any, op_name: Any, fn: Any, dispatch_key: str = "", **keywords: Any) -> None:
        if not _is_programs(sys._getframe(1)):
            return implement(self, op_name, fn, dispatch_key, **keywords)
        named = dispatch_key or self.dispatch_key
        key = _HOSTS.get(named, named)
        operator = (self.ns, str(op_name).rpartition("::")[2], key)
        if named in _HOSTS or (not dispatch_key and getattr(self, "_tilefw_of_gpu", False)):
            of_gpus.setdefault(self, set()).add(operator)
            keywords["allow_override"] = True  # the host's own kernel may be there, and serves no tensor of the program's
        elif any(operator in added for added in of_gpus.values()):
            return None
        return implement(self, op_name, _within(fn, as_program) if key in _RUN else fn, key, **keywords)

    def ended(self: Any) -> None:
        of_gpus.pop(self, None)
        end(self)

    return library, {"__init__": for_the_host, "impl": implemented, "_destroy": ended}


def _is_programs(frame: FrameType | None) -> bool:
    """Whether the program registers something, itself or by PyTorch's decorators: PyTorch registers operators of its own too."""
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_DECORATORS):
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] != "torch"


def _within(fn: Any, as_program: Callable[[], AbstractContextManager[Any]]) -> Any:
    if not hasattr(fn, "__code__") or fn.__name__ == "fallthrough_kernel":  # PyTorch's own, which it knows by identity
        return fn

    @functools.wraps(fn)
    def run(*args: Any, **keywords: Any) -> Any:
        with as_program():
            return fn(*args, **keywords)

    return run
