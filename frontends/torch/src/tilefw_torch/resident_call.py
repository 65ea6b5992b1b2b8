"""A call of a compiled graph: what its kernels read and write stays on the device from launch to launch.

A tensor is copied in before the first kernel that has it, and back where the host looks at it: an operator that PyTorch runs, or
the call's end. What PyTorch frees meanwhile is not copied back. Weights stay from call to call where that is asked for; PyTorch's
count of a tensor's versions says whether one has changed, and an optimizer's step that it has: fused optimizers count nothing.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.hooks import RemovableHandle

from tilefw.runtime import config
from tilefw.runtime.debugged import DEBUGGER
from tilefw.runtime.executor import Executor, executor_for
from tilefw.runtime.plugins.loader import find_target
from tilefw.runtime.residence import RESIDENCE, Residence, keeps
from tilefw_torch.report import CompileReport

Versions = dict[tuple[int, int], tuple[int, ...]]  # by the start of a tensor's memory and its number of bytes


class ResidentCall:
    """A compiled graph as a function of its inputs, which it empties as PyTorch's own does. Inputs of type `kept` at the places
    `weights` stay on the device after a call."""

    def __init__(
        self, call: Callable[[Any], Any], target: str, keywords: Mapping[str, Any], weights: Sequence[int],
        kept: type[torch.Tensor], report: CompileReport,
    ) -> None:
        self.call, self.report = call, report
        self._target, self._keywords, self._weights, self._kept = target, dict(keywords), tuple(weights), kept
        self._between: list[Residence] = []  # at most one; none while a call has it
        self._lock = threading.Lock()
        hook = register_optimizer_step_post_hook(_forgetting(weakref.ref(self))) if weights else None
        weakref.finalize(self, _closed, self._between, hook)

    def __call__(self, inputs: Any) -> Any:
        resolved = config.resolve(config.settings(self._target, **self._keywords))
        executor = executor_for(find_target(self._target), resolved.executor)
        if not keeps(executor.device) or DEBUGGER.get() is not None:
            return self.call(inputs)
        versions = _versions([one for place in self._weights if isinstance(one := inputs[place], self._kept)])
        with self._residence(executor, versions) as residence, residence.opened(), _HostOperators(residence):
            return self.call(inputs)

    def forget(self, written: Set[tuple[int, int]]) -> None:
        """These stretches of memory, by their starts and numbers of bytes, do not stay: they have been written."""
        found = self._taken()
        if found is not None:
            found.keep({key: held for key, held in found.marks().items() if key not in written})
            self._give_back(found)

    @contextmanager
    def _residence(self, executor: Executor, versions: Versions) -> Iterator[Residence]:
        """The one of the call before, with those weights that are as they were, or a new one."""
        found = self._taken()
        if found is not None and found.device is not executor.device:  # launches run elsewhere since
            found.close()
            found = None
        if found is None:
            found = Residence(executor.device, executor.lock, _watched)
        found.keep({key: held for key, held in found.marks().items() if versions.get(key) == held})
        written, read = found.written_bytes, found.read_bytes
        try:
            yield found
        except BaseException:
            found.close()
            raise
        finally:
            self.report.written_bytes += found.written_bytes - written
            self.report.read_bytes += found.read_bytes - read
        found.keep(versions)
        self._give_back(found)

    def _taken(self) -> Residence | None:
        with self._lock:
            return self._between.pop() if self._between else None

    def _give_back(self, residence: Residence) -> None:
        with self._lock:
            if not self._between:
                self._between.append(residence)
                return
        residence.close()


class _HostOperators(TorchDispatchMode):
    """Operators that PyTorch runs see the newest of what they are given, and may write it. Kernels that they launch copy."""

    supports_higher_order_operators = True  # such as one that keeps the state of random numbers for what is computed again

    def __init__(self, residence: Residence) -> None:
        super().__init__()
        self._residence = residence

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for leaf in tree_leaves((args, kwargs)):
            if isinstance(leaf, torch.Tensor) and leaf.device.type == "cpu" and leaf.layout == torch.strided:
                self._residence.leave(*_memory(leaf))
        token = RESIDENCE.set(None)
        try:
            return func(*args, **(kwargs or {}))
        finally:
            RESIDENCE.reset(token)


def _versions(tensors: Sequence[torch.Tensor]) -> Versions:
    """How often each has been written. One without a count, made in inference mode, is not known to stay as it is."""
    found: Versions = {}
    for tensor in tensors:
        if not tensor.is_inference():
            key = _memory(tensor)
            found[key] = (*found.get(key, ()), tensor._version)
    return found


def _memory(tensor: torch.Tensor) -> tuple[int, int]:
    """Where a tensor's memory starts, and its number of bytes."""
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.nbytes()


def _forgetting(reference: weakref.ref[ResidentCall]) -> Callable[..., None]:
    """What PyTorch calls behind each optimizer's step, a compiled one too: a fused one counts no versions there either."""

    def hook(optimizer: torch.optim.Optimizer, args: Any, keywords: Any) -> None:
        if (call := reference()) is not None:
            parameters = (one for group in optimizer.param_groups for one in group["params"])
            # Others, such as those split over a system, may have no memory that one can ask for.
            call.forget({_memory(one) for one in parameters if type(one) in (torch.Tensor, torch.nn.Parameter)})

    return cast("Callable[..., None]", torch.compiler.disable(hook))


def _watched(storage: torch.UntypedStorage) -> Callable[[], bool]:
    """Whether PyTorch still has the memory."""
    reference = StorageWeakRef(storage)
    return lambda: not reference.expired()


def _closed(between: list[Residence], hook: RemovableHandle | None) -> None:
    if hook is not None:
        hook.remove()
    for residence in between:
        residence.close()
