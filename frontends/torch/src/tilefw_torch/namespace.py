"""Runs the text of a kernel that PyTorch's compiler wrote with tilefw's language where the text imports Triton.

The process's own `triton` stays what it is: the text has an `__import__` of its own, and so has a second copy of PyTorch's helper
modules, which kernels call.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import linecache
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any

from tilefw.triton.importing import private_modules

_RUNTIME = "torch._inductor.runtime"
# Modules of PyTorch that name Triton's objects; the copies name ours.
_COPIED = (f"{_RUNTIME}.triton_compat", f"{_RUNTIME}.triton_helpers")


class KernelImports:
    """The modules that a kernel's text sees: Triton's as tilefw has them, copies of PyTorch's helpers, and all others."""

    def __init__(self) -> None:
        self._modules: dict[str, Any] = dict(private_modules())
        self.builtins = {**vars(builtins), "__import__": self._import}
        for name in _COPIED:
            self._modules[name] = self._copy(name)
        # The driver that they would choose is Triton's.
        self._modules[f"{_RUNTIME}.triton_helpers"].set_driver_to_cpu = lambda: None

    def _import(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        full = importlib.util.resolve_name("." * level + name, globals["__package__"]) if level else name
        if full == "triton" or full.startswith("triton."):
            return self._triton(full, bool(fromlist))
        if full in self._modules:
            return self._modules[full]
        module = importlib.__import__(name, globals, locals, fromlist, level)
        if full == _RUNTIME:
            copies = {key.rpartition(".")[2]: self._modules[key] for key in _COPIED}
            return SimpleNamespace(**{word: copies.get(word) or getattr(module, word, None) for word in fromlist})
        return module

    def _triton(self, name: str, whole: bool) -> Any:
        if name not in self._modules:
            raise ModuleNotFoundError(f"tilefw has no module {name} in Triton's place", name=name)
        return self._modules[name if whole else "triton"]

    def _copy(self, name: str) -> ModuleType:
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.origin is not None, f"PyTorch has no module {name}"
        with open(spec.origin, encoding="utf-8") as file:
            text = file.read()
        module = ModuleType(name)
        vars(module).update(__builtins__=self.builtins, __file__=spec.origin, __package__=_RUNTIME)
        exec(compile(text, spec.origin, "exec", dont_inherit=True), vars(module))
        return module


@cache
def kernel_imports() -> KernelImports:
    """The modules, made once."""
    return KernelImports()


def run_text(text: str, filename: str, **given: Any) -> dict[str, Any]:
    """The names that a kernel's text defines. `given` stand for modules that it imports by these words."""
    imports = kernel_imports()
    own = dict(imports.builtins)

    def with_given(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        module = own["__import__"](name, globals, locals, fromlist, level)
        if name == _RUNTIME and fromlist:
            vars(module).update({word: given[word] for word in fromlist if word in given})
        return module

    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    names: dict[str, Any] = {"__name__": "tilefw_torch_kernel", "__file__": filename}
    # What PyTorch writes of arguments where Triton is not installed.
    names["AttrsDescriptor"] = dict
    names["__builtins__"] = {**own, "__import__": with_given}
    exec(compile(text, filename, "exec", dont_inherit=True), names)
    return names
