"""PyTorch's groups of processes where the GPU is the host: `nccl` is `gloo`, and processes that PyTorch starts go on from this one.

A process that `torch.multiprocessing.spawn` starts would begin without what stands in for Triton; one that is forked has it. Each
has one device, which its program calls by the process's number on the machine (`LOCAL_RANK`), or by 0.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from tilefw.triton.one_device import LOCAL_RANK, LOCAL_WORLD_SIZE


def replaced(torch: ModuleType) -> list[tuple[ModuleType, Mapping[str, Any]]]:
    """The modules with the names that mean something else; none where PyTorch is built without them."""
    start = torch.multiprocessing.start_processes
    found: list[tuple[ModuleType, Mapping[str, Any]]] = [
        (torch.multiprocessing, {"spawn": functools.partial(_spawn, start), "start_processes": functools.partial(_start, start)}),
    ]
    if torch.distributed.is_available():
        found.append((torch.distributed, {"init_process_group": _on_host(torch.distributed.init_process_group)}))
    return found


def _on_host(plain: Callable[..., Any]) -> Callable[..., Any]:
    """`init_process_group` over the host's memory: tensors are there. A device that it names is this process's own."""

    @functools.wraps(plain)
    def init_process_group(backend: str | None = None, *args: Any, device_id: Any = None, **keywords: Any) -> Any:
        named = backend is not None and ("nccl" in backend or ":" in backend)
        return plain("gloo" if named or backend is None else backend, *args, **keywords)

    return init_process_group


def _spawn(
    start: Callable[..., Any], fn: Any, args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn",
) -> Any:
    return _start(start, fn, args, nprocs, join, daemon)


def _start(
    start: Callable[..., Any], fn: Any, args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn",
) -> Any:
    return start(functools.partial(_numbered, fn, nprocs), args, nprocs, join, daemon, start_method="fork")


def _numbered(fn: Any, processes: int, number: int, *args: Any) -> None:
    # The threads of PyTorch's operations are not there in a process that was forked, whose operations would wait for them for ever.
    importlib.import_module("torch").set_num_threads(1)
    os.environ[LOCAL_RANK], os.environ[LOCAL_WORLD_SIZE] = str(number), str(processes)
    fn(number, *args)
