"""Memory that kernels reach through addresses that they load: `tilefw.register(array)`, for tables of pointers.

    a, b = torch.randn(64), torch.randn(96)
    tilefw.register(a), tilefw.register(b)
    table = torch.tensor([a.data_ptr(), b.data_ptr()])
    kernel[(2,)](table, …)        # p = tl.load(table + i).to(tl.pointer_type(tl.float32))

A simulated device places registered memory at the host's own addresses, for each launch, and copies back what changed.
"""

from __future__ import annotations

import functools
import importlib
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilefw.api.errors import LaunchError
from tilefw.runtime.arguments.arrays import HostArray, host_array

_LABEL = "registered memory"
ALIGNMENT = 16  # bytes: what kernels may be promised of a storage's start


@dataclass(frozen=True, slots=True)
class _Registered:
    """`owner` gives what owns the memory, and None once it has been freed."""

    memory: HostArray
    owner: Callable[[], Any]


class _Registry:
    """What is registered in this process, by where it starts and what owns it: two owners may have one memory, and end apart.

    An address means one thing in the whole process, as `data_ptr()` gives it, whoever launches: so this belongs to the process,
    like the memory itself. It decides what a kernel may reach, never what code is made, and forgets what has been freed.
    """

    def __init__(self) -> None:
        self.parts: dict[tuple[int, int], _Registered] = {}


_REGISTRY = _Registry()


def register(array: Any) -> None:
    """Let kernels of every later launch reach the array's memory by its address, as long as the memory lives.

    Raises LaunchError TFW0330 for what is no array of the host, for what does not start at a multiple of 16 bytes, and for memory
    whose end nobody could notice: a bytearray's, or a copy.
    """
    memory = host_array(array, "the registered array")
    if memory.start % ALIGNMENT:
        raise LaunchError(
            f"memory at {memory.start:#x} cannot be registered: it does not start at a multiple of {ALIGNMENT}", code="TFW0330",
            help="copy it into a new array",
        )
    if memory.nbytes:
        owner = memory.keep[1]
        which = getattr(owner, "_cdata", id(owner))  # of PyTorch's storage, which has many Python objects in turn
        if hasattr(array, "__dlpack__") and not isinstance(array, np.ndarray) and isinstance(owner, np.ndarray):
            raise _unnoticed(array, "only a copy of what it holds can be had")
        _REGISTRY.parts[memory.start, which] = _Registered(replace(memory, keep=None), _owner(owner, memory))


def _unnoticed(array: Any, why: str) -> LaunchError:
    return LaunchError(
        f"a {type(array).__name__} cannot be registered: {why}", code="TFW0330", help="register a NumPy array or a PyTorch tensor"
    )


def registered() -> list[tuple[str, HostArray]]:
    """The memory that is registered and lives, each part with a label for messages. It lives as long as it is held here: a launch
    may run long, and what it writes is copied back at its end."""
    found = []
    for key, part in list(_REGISTRY.parts.items()):
        owner = part.owner()
        if owner is None:
            if _REGISTRY.parts.get(key) is part:  # else another thread has dropped it
                _REGISTRY.parts.pop(key, None)
        else:
            found.append((_LABEL, replace(part.memory, keep=(owner, owner))))
    return found


def _owner(owner: Any, memory: HostArray) -> Callable[[], Any]:
    """What gives the memory's owner while it lives. PyTorch's storage outlives the Python objects that stand for it."""
    if type(owner).__module__.partition(".")[0] == "torch":
        weak = importlib.import_module("torch.multiprocessing.reductions").StorageWeakRef(owner)
        return functools.partial(_storage, type(owner), weak, owner.data_ptr(), owner.nbytes())
    try:
        weak = weakref.ref(owner)
    except TypeError:
        raise _unnoticed(owner, "nothing tells when its memory is freed") from None
    if isinstance(owner, np.ndarray):
        return weak
    found = functools.partial(_shown, weak, memory.start, memory.nbytes)
    if found() is None:
        raise _unnoticed(owner, "nothing tells when its memory is elsewhere")
    return found


def _storage(kind: Any, weak: Any, start: int, nbytes: int) -> Any:
    """PyTorch's storage, unless it has been freed, or resized and is elsewhere."""
    found = kind._new_with_weak_ptr(weak.cdata)
    return found if found is not None and (found.data_ptr(), found.nbytes()) == (start, nbytes) else None


def _shown(weak: weakref.ref[Any], start: int, nbytes: int) -> Any:
    """What shows its memory, unless it has been freed, or shows other memory by now, as an `array.array` that has grown does."""
    owner = weak()
    if owner is None:
        return None
    try:
        memory = host_array(owner)
    except (LaunchError, BufferError, RuntimeError, TypeError, ValueError):  # it has given its memory up
        return None
    return owner if memory.start <= start and start + nbytes <= memory.start + memory.nbytes else None
