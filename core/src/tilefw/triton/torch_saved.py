"""PyTorch's own comparisons and files name devices: a tensor that says it is on the GPU is the host's there too."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from tilefw.triton.one_device import require_first

_GPU = "cuda"


def checks_of_recomputed(torch: ModuleType) -> tuple[Any, dict[str, Any]]:
    """`torch.utils.checkpoint`, and what takes the place of its names: it compares the metadata of a tensor that one of PyTorch's
    functions made with that of another, which the program may have."""
    module = importlib.import_module("torch.utils.checkpoint")
    checks = module._allowed_determinism_checks_to_fns

    def without_the_mode(told: Any) -> Any:
        @functools.wraps(told)
        def metadata(tensor: Any) -> Any:
            with torch._C.DisableTorchFunction():
                return told(tensor)

        return metadata

    return module, {"_allowed_determinism_checks_to_fns": {name: without_the_mode(told) for name, told in checks.items()}}


def loading(torch: ModuleType) -> Mapping[ModuleType, Any]:
    """`torch.load` and `torch.jit.load` that put into the host's memory what was on a GPU, or is to go there."""
    plain, of_scripts = torch.load, torch.jit.load

    def location(named: Any) -> Any:
        if str(named).partition(":")[0] != _GPU:
            return named
        require_first(str(named))
        return "cpu"

    def host(storage: Any, tag: str) -> Any:
        return storage if tag.partition(":")[0] in (_GPU, "cpu") else None

    def restored(named: Mapping[Any, Any], storage: Any, tag: str) -> Any:
        """What a dictionary does not name stays where it was."""
        place = location(named.get(tag, tag))
        return host(storage, str(place)) or torch.serialization.default_restore_location(storage, place)

    def answered(function: Any, storage: Any, tag: str) -> Any:
        answer = function(storage, tag)
        return host(storage, tag) if answer is None else answer

    @functools.wraps(plain)
    def load(f: Any, map_location: Any = None, *args: Any, **keywords: Any) -> Any:
        moved: Any = host
        if isinstance(map_location, dict):
            moved = functools.partial(restored, map_location)
        elif callable(map_location):
            moved = functools.partial(answered, map_location)
        elif map_location is not None:
            moved = location(map_location)
        return plain(f, moved, *args, **keywords)

    @functools.wraps(of_scripts)
    def load_script(f: Any, map_location: Any = None, *args: Any, **keywords: Any) -> Any:
        """`load` finds that a file has a script, and hands on what it was given."""
        return of_scripts(f, "cpu" if map_location is None or map_location is host else location(map_location), *args, **keywords)

    return {torch: load, torch.jit: load_script}
