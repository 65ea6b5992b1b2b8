"""Iris's host object in a process of a group: what programs get by `import iris`, over `tilefw.init_process_group`.

Programs of Iris are started as N processes, each with a card of its own. Its object of the host needs MPI and a driver's library,
and so is ours; its device functions, and the rest of what it has for the host, are the checkout's.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import tilefw
from tilefw.api.errors import UnsupportedError
from tilefw.runtime.arguments.arrays import torch_element
from tilefw.triton.absent import Absent, StandInModule
from tilefw.triton.iris import device_functions

_UTILITIES = Path("iris", "util.py")
_SERVED = ("do_bench", "memset_tensor")  # of them
_ANYWHERE = ("device", "layout", "memory_format", "pin_memory")  # keywords of PyTorch's that say nothing of the host's memory
_PLAIN = {"out": None, "requires_grad": False}  # and those that are served where they say nothing


class IrisProcess:
    """`iris.iris(heap_size)`: this process as a rank of a node. Allocations are PyTorch's tensors in the symmetric heap, and plain
    launches are the rank's, from here on."""

    def __init__(self, heap_size: int = 1 << 30) -> None:
        self.node = tilefw.init_process_group(heap_bytes=heap_size)
        self.cur_rank, self.num_ranks, self.heap_size = self.node.rank, self.node.num_ranks, heap_size
        self.device = "cuda:0"
        self._launching = self.node.as_device()
        self._launching.__enter__()

    # --- the group -------------------------------------------------------------------------------------------------------------

    def get_rank(self) -> int:
        """This rank's number."""
        return self.cur_rank

    def get_num_ranks(self) -> int:
        """How many ranks there are."""
        return self.num_ranks

    def get_heap_bases(self) -> Any:
        """The address of each rank's heap, uint64."""
        return _torch().from_numpy(self.node.heap_bases.astype(np.uint64))

    def get_device(self) -> Any:
        """Where tensors say that they are."""
        return _torch().device(self.device)

    def get_cu_count(self) -> int:
        """How many processors the target's chip has."""
        return _torch().cuda.get_device_properties(0).multi_processor_count

    def barrier(self) -> None:
        """All ranks have come here, and their launches are done."""
        self.node.barrier()

    def broadcast(self, value: Any, source_rank: int) -> Any:
        """What one rank gives."""
        return self.node.all_gather_object(value)[source_rank]

    def log(self, message: object) -> None:
        """A line that begins with the rank."""
        print(f"[Iris] [{self.cur_rank}/{self.num_ranks}] {message}")

    log_stats = info = warning = error = log

    def debug(self, message: object) -> None:
        """Nothing."""

    log_debug = debug

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"iris.iris().{name}")

    # --- allocations, which every rank makes in the same order -------------------------------------------------------------------

    def allocate(self, num_elements: int, dtype: Any) -> Any:
        """A tensor of one dimension whose elements nobody has written."""
        return self._new((num_elements,), dtype)

    def deallocate(self, pointer: Any) -> None:
        """Nothing: memory is given back when the process ends."""

    def empty(self, *size: Any, dtype: Any = None, **plain: Any) -> Any:
        """A tensor that nobody has written; here and below, other keywords of PyTorch's have the values that change
        nothing."""
        return self._new(_shape(size), dtype, **plain)

    def zeros(self, *size: Any, dtype: Any = None, **plain: Any) -> Any:
        """Zeros, of int32 where nothing is said."""
        return self._new(_shape(size), dtype or _torch().int32, **plain).zero_()

    def zeros_like(self, tensor: Any, **plain: Any) -> Any:
        """Zeros of a tensor's shape and type."""
        return self._new(tuple(tensor.shape), tensor.dtype, **plain).zero_()

    def ones(self, *size: Any, dtype: Any = None, **plain: Any) -> Any:
        """Ones."""
        return self._new(_shape(size), dtype, **plain).fill_(1)

    def full(self, size: Any, fill_value: Any, dtype: Any = None, **plain: Any) -> Any:
        """One value everywhere, of int32 where nothing is said."""
        return self._new(_shape((size,)), dtype or _torch().int32, **plain).fill_(fill_value)

    def arange(self, start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None, **plain: Any) -> Any:
        """Numbers in steps."""
        first, last = (0, start) if end is None else (start, end)
        return self._filled(_torch().arange(first, last, step, dtype=dtype), **plain)

    def linspace(self, start: float, end: float, steps: Any, dtype: Any = None, **plain: Any) -> Any:
        """So many numbers at equal distances."""
        return self._filled(_torch().linspace(start, end, math.prod(_shape((steps,))), dtype=dtype), **plain)

    def randn(self, *size: Any, generator: Any = None, dtype: Any = None, **plain: Any) -> Any:
        """Normal numbers of PyTorch's generator."""
        return self._filled(_torch().randn(_shape(size), generator=generator, dtype=dtype), **plain)

    def uniform(self, size: Any, low: float = 0.0, high: float = 1.0, dtype: Any = None, **plain: Any) -> Any:
        """Uniform numbers of PyTorch's generator."""
        return self._new(_shape((size,)), dtype, **plain).uniform_(low, high)

    def randint(self, size: Any, low: int, high: int, dtype: Any = None, **plain: Any) -> Any:
        """Whole numbers of PyTorch's generator."""
        return self._filled(_torch().randint(low, high, _shape((size,)), dtype=dtype or _torch().int32), **plain)

    def _filled(self, values: Any, **plain: Any) -> Any:
        return self._new(tuple(values.shape), values.dtype, **plain).copy_(values)

    def _new(self, shape: Sequence[int], dtype: Any, **plain: Any) -> Any:
        torch = _torch()
        for keyword, value in plain.items():
            if keyword not in _ANYWHERE and (keyword not in _PLAIN or value is not _PLAIN[keyword]):
                raise UnsupportedError(f"a symmetric heap makes no tensor with {keyword}={value!r}", code="TFW0103")
        kind = dtype or torch.get_default_dtype()
        element = torch_element(kind)
        if element is None or element.numpy is None:
            raise UnsupportedError(f"symmetric heaps have no elements of type {kind}", code="TFW0332")
        own = self.node.empty(tuple(shape), element.numpy)[self.cur_rank]
        return torch.from_numpy(own.reshape(-1).view(np.uint8)).view(kind).reshape(tuple(shape))


def stand_in(checkout: Path) -> ModuleType:
    """What `import iris` gives a program. Raises CodeError TFW0780 where the checkout has no device functions."""
    jit_functions = {name: value for name, value in vars(device_functions(checkout)).items() if hasattr(value, "arg_names")}
    made = StandInModule("iris", {**jit_functions, "iris": IrisProcess, "Iris": IrisProcess})
    made.__path__ = [str(checkout / _UTILITIES.parent)]
    if (checkout / _UTILITIES).is_file():
        utilities = _utilities(checkout)
        vars(made).update({name: getattr(utilities, name) for name in _SERVED if hasattr(utilities, name)})
    return made


def _utilities(checkout: Path) -> ModuleType:
    """What Iris has for the host beside its object: plain PyTorch and Triton, run as it is."""
    known = sys.modules.get("iris.util")
    if known is not None:
        return known
    spec = importlib.util.spec_from_file_location("iris.util", checkout / _UTILITIES)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules["iris.util"] = made
    spec.loader.exec_module(made)
    return made


def _torch() -> Any:
    """PyTorch, which a program of Iris imports itself."""
    return importlib.import_module("torch")


def _shape(size: Sequence[Any]) -> tuple[int, ...]:
    """A shape as PyTorch takes it: numbers, or one sequence of them."""
    if len(size) == 1 and isinstance(size[0], tuple | list):
        size = size[0]
    return tuple(size)
