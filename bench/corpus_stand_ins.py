"""Packages that are not installed here, for modules of collections that only name them while they are imported.

A package gets a stand-in once an import has failed for want of it. Triton itself never does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

_NEVER = ("triton", "tilefw", "torch")


class StandInType(type):
    """A class whose every attribute, item and result is another stand-in; as a decorator it hands back what it decorates."""

    def __new__(mcls, name: str, bases: tuple[type, ...], names: dict[str, Any], **_: Any) -> StandInType:
        return super().__new__(mcls, name, bases, names)

    def __init__(cls, name: str, bases: tuple[type, ...], names: dict[str, Any], **_: Any) -> None:
        """A class derived from a stand-in may be given what its absent base would take."""
        super().__init__(name, bases, names)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _made(name)

    def __call__(cls, *args: Any, **_: Any) -> Any:
        if not issubclass(cls, StandIn) or cls.__bases__ != (StandIn,):
            return super().__call__(*args)
        decorated = args[0] if len(args) == 1 and not _ else None
        return decorated if callable(decorated) and not isinstance(decorated, StandInType) else _made(cls.__name__)

    def __getitem__(cls, _: Any) -> Any:
        return cls

    def __or__(cls, _: Any) -> Any:
        return cls

    __ror__ = __or__

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __bool__(cls) -> bool:
        return False

    def __lt__(cls, _: Any) -> bool:
        return False

    __gt__ = __le__ = __ge__ = __lt__


class StandIn(metaclass=StandInType):
    """What a name of an absent package is."""

    def __init__(self, *_: Any, **__: Any) -> None:
        """Classes derived from a stand-in may hand on whatever they like."""


class StandInModule(ModuleType):
    """A module of an absent package."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _made(name)


class StandInFinder(MetaPathFinder, Loader):
    """Serves the packages that failed imports have named, behind all other finders."""

    def __init__(self) -> None:
        self.packages: set[str] = set()

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in self.packages else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return StandInModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """A stand-in has nothing to execute."""


def _made(name: str) -> StandInType:
    return StandInType(name, (StandIn,), {"__module__": __name__})


_FINDER = StandInFinder()


def card_of_torch() -> None:
    """What collections ask of a card while they are imported and PyTorch without CUDA has not."""
    import torch

    properties = SimpleNamespace(warp_size=32, max_threads_per_block=1024, multi_processor_count=108, name="", total_memory=1 << 36)
    asked = ((torch._C, "_cuda_getCurrentRawStream", lambda _=0: 0), (torch.cpu, "get_device_properties", lambda _=0: properties))
    for place, name, value in asked:
        if not hasattr(place, name):
            setattr(place, name, value)


def vendor_of(target: str) -> None:
    """FlagGems asks the vendor's tool for the state of cards unless the environment says whose card it is."""
    os.environ.setdefault("FLAGGEMS_VENDOR", target.partition("-")[0])


def importing(load: Callable[[], Any], find: Callable[[str], str | None]) -> Any:
    """What `load` gives, tried anew for each package that is missing: with the folder where `find` sees it, or a stand-in."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.append(_FINDER)
    while True:
        try:
            return load()
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if not missing or missing in _NEVER or missing in _FINDER.packages or missing in sys.modules:
                raise
            where = find(missing)
            if where is not None and where not in sys.path:
                sys.path.append(where)
            else:
                _FINDER.packages.add(missing)
