"""Puts tilefw in the place of the `triton` package, for this process, and takes it away again.

Triton's modules stand in `sys.modules`; a finder says of the ones that are absent why. Another one waits for `torch`, which may be
imported later or never, and makes its GPU the host (torch_device.py).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from tilefw.api.errors import UsageError
from tilefw.triton.names import GLUON, NAMES, VERSION, WHOLE


def install() -> None:
    """Make `import triton` mean tilefw from here on, and the GPUs of PyTorch the host's memory. A second call does nothing.

    Raises UsageError TFW0918 where Triton itself was imported before: its kernels would go on meaning Triton.
    """
    if installed():
        return
    if "triton" in sys.modules:
        raise UsageError(
            "Triton was imported before tilefw could take its place", code="TFW0918",
            help="call tilefw.triton.install() first, or run `python -m tilefw.triton PROGRAM`",
        )
    sys.modules.update(_modules())
    sys.meta_path.insert(0, TritonFinder())
    wait_for_torch()


def installed() -> bool:
    """Whether `import triton` means tilefw now."""
    return any(isinstance(finder, TritonFinder) for finder in sys.meta_path)


def uninstall() -> None:
    """Undo `install`: the next `import triton` finds what is installed under that name. PyTorch is as it was."""
    if not installed():
        return
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, TritonFinder)]
    _taken_out()
    leave_torch()


@contextmanager
def in_tritons_place() -> Iterator[None]:
    """`import triton` means tilefw inside the block, and PyTorch's GPU the host's memory; behind it what they did before."""
    if installed():
        yield
        return
    waited = _waits_for_torch()
    before = _taken_out()
    finder = AwaitedTriton()
    sys.meta_path.insert(0, finder)
    wait_for_torch()
    try:
        yield
    finally:
        if finder in sys.meta_path:  # which `uninstall` in the block has taken out
            sys.meta_path.remove(finder)
        _taken_out()
        sys.modules.update(before)
        if not waited:
            leave_torch()


def _taken_out() -> dict[str, ModuleType]:
    """Triton's modules, whosever they are, which no longer stand in `sys.modules`."""
    return {name: sys.modules.pop(name) for name in [*sys.modules] if name.partition(".")[0] == "triton"}


def wait_for_torch() -> None:
    """Make PyTorch's GPU the host's memory, now or when the program imports PyTorch."""
    if not _waits_for_torch():
        sys.meta_path.insert(0, TorchFinder())
    if "torch" in sys.modules:
        _on_torch(sys.modules["torch"])


def _waits_for_torch() -> bool:
    return any(isinstance(finder, TorchFinder) for finder in sys.meta_path)


def leave_torch() -> None:
    """Undo `wait_for_torch`."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, TorchFinder)]
    if "torch" in sys.modules:
        from tilefw.triton import torch_device

        torch_device.leave()


def private_modules() -> dict[str, ModuleType]:
    """Triton's modules as tilefw has them, for a text that is run with imports of its own: `sys.modules` stays as it is."""
    made: dict[str, ModuleType] = {}
    made.update(_modules(made))
    return made


def _modules(siblings: Mapping[str, ModuleType] = sys.modules) -> dict[str, ModuleType]:
    made: dict[str, ModuleType] = {name: TritonModule(name, names, siblings) for name, names in NAMES.items()}
    for name, ours in WHOLE.items():
        made[name] = importlib.import_module(ours)
    return made


class TritonModule(ModuleType):
    """One of Triton's modules: its names are looked up where they are first asked for, its submodules among `siblings`."""

    def __init__(self, name: str, names: Any, siblings: Mapping[str, ModuleType]) -> None:
        super().__init__(name, f"`{name}`, as tilefw has it.")
        self.__path__ = []
        self.__version__ = VERSION
        if name == "triton":
            self.__file__ = str(Path(__file__).with_name("__init__.py"))  # programs ask for the folder of Triton's own frames
        self.__spec__ = ModuleSpec(name, None, is_package=True)
        self._names = names
        self._siblings = siblings

    def __getattr__(self, name: str) -> Any:
        found = self._names.get(name)
        if found is not None:
            home, _, attribute = found.partition(":")
            module = importlib.import_module(home)
            return getattr(module, attribute) if attribute else module
        submodule = self._siblings.get(f"{self.__name__}.{name}")
        if submodule is not None:
            return submodule
        raise AttributeError(f"tilefw serves no {self.__name__}.{name}")

    def __dir__(self) -> list[str]:
        prefix = f"{self.__name__}."
        return sorted([*self._names, *(name.removeprefix(prefix) for name in self._siblings if name.startswith(prefix))])


class TritonFinder(MetaPathFinder):
    """Refuses the modules of Triton that there are none of, but those below Gluon's."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name.startswith(f"{GLUON}."):
            return ModuleSpec(name, GluonLoader(), is_package=True)
        if name.startswith("triton."):
            raise ModuleNotFoundError(f"tilefw has no module {name} in Triton's place", name=name)
        return None


class AwaitedTriton(TritonFinder):
    """Makes the modules when Triton is first imported: a file that has none of it does not wait for them."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(name, PrivateLoader(), is_package=True) if name == "triton" else super().find_spec(name, path, target)


class PrivateLoader(Loader):
    """Puts the private modules in Triton's place, all at once."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        made = private_modules()
        sys.modules.update(made)
        return made[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: its names are looked up when they are asked for."""


class GluonLoader(Loader):
    """Any module below Gluon's is Gluon's."""

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = sys.modules[GLUON]


class TorchFinder(MetaPathFinder):
    """Finds `torch` as the other finders do, to act once it is loaded."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return _watched(name, path, target) if name == "torch" else None


def _watched(name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
    """The module's own spec, whose loader tells us when it is done."""
    for finder in sys.meta_path:
        if not isinstance(finder, TorchFinder):
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = WatchedLoader(spec.loader)
                return spec
    return None


class WatchedLoader(Loader):
    """Loads as the loader that it stands for, which the module keeps, and then calls `_on_torch`."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        _on_torch(module)


def _on_torch(torch: ModuleType) -> None:
    from tilefw.triton import torch_device

    torch_device.enter(torch)
