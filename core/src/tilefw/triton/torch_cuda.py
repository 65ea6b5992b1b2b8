"""`torch.cuda` for a host that stands in for the GPU: queries answer from the chosen target, streams and events are always done.

A launch on a simulator is complete when it returns, and so is every operation of PyTorch on the host: there is nothing to wait for.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from tilefw.api.errors import UnsupportedError
from tilefw.triton import chip, torch_autocast
from tilefw.triton.one_device import require_first

# What PyTorch says that it was built with, by Triton's name of the chip's backend: releases of the time of Triton 3.9.
_BUILT_WITH = {"cuda": {"cuda": "12.8", "hip": None}, "hip": {"cuda": None, "hip": "7.0.0"}}


class HostEvent:
    """`torch.cuda.Event`: a moment of the host's clock."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._at: float | None = None

    def record(self, stream: Any = None) -> None:
        self._at = time.perf_counter()

    def elapsed_time(self, end: HostEvent) -> float:
        """Milliseconds of the host between two recorded events: those of a simulator, not of a chip."""
        if self._at is None or end._at is None:
            raise RuntimeError("both events must be recorded before the time between them is asked for")
        return 1000 * (end._at - self._at)

    def synchronize(self) -> None: ...
    def wait(self, stream: Any = None) -> None: ...

    def query(self) -> bool:
        return True


class HostStream:
    """`torch.cuda.Stream`: everything given to it is done already. As a context it changes nothing."""

    cuda_stream = 0
    device_index = 0

    def __init__(self, device: Any = None, priority: int = 0, **keywords: Any) -> None:
        require_first(device)

    def synchronize(self) -> None: ...
    def wait_stream(self, stream: Any) -> None: ...
    def wait_event(self, event: HostEvent) -> None: ...

    def record_event(self, event: HostEvent | None = None) -> HostEvent:
        event = HostEvent() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        return True

    def __enter__(self) -> HostStream:
        return self

    def __exit__(self, *raised: object) -> None: ...


@dataclass(frozen=True)
class DeviceProperties:
    """`torch.cuda.get_device_properties`: sizes in bytes. Memory is the host's: none is counted (0)."""

    name: str
    major: int
    minor: int
    multi_processor_count: int
    warp_size: int
    regs_per_multiprocessor: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    max_threads_per_block: int
    max_threads_per_multi_processor: int
    gcnArchName: str  # noqa: N815  (PyTorch's spelling)
    total_memory: int = 0
    L2_cache_size: int = 0
    is_integrated: int = 0
    is_multi_gpu_board: int = 0


def get_device_properties(device: Any = None) -> DeviceProperties:
    require_first(device)
    found, (major, minor) = chip.limits(), chip.capability()
    threads = found["threads_per_workgroup"]
    shared = found["shared_bytes"]
    return DeviceProperties(
        chip.summary(), major, minor, found["processors"], found["lanes"], found["registers_per_processor"],
        min(shared, 48 << 10), shared, found.get("shared_bytes_per_processor", shared), threads,
        chip.threads_per_processor(), str(chip.current_target().arch),
    )


def get_device_capability(device: Any = None) -> tuple[int, int]:
    require_first(device)
    return chip.capability()


def get_device_name(device: Any = None) -> str:
    require_first(device)
    return chip.summary()


@contextmanager
def device_context(device: Any = None) -> Iterator[None]:
    """`with torch.cuda.device(0)`: the only device is the current one."""
    require_first(device)
    yield


@contextmanager
def stream_context(stream: Any = None) -> Iterator[None]:
    yield


def current_stream(device: Any = None) -> HostStream:
    return HostStream(device)


class CapturedGraph:
    """`torch.cuda.CUDAGraph`: a recorded sequence of launches cannot be played again by a simulator."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        raise UnsupportedError(
            "launches cannot be captured in a graph here", "TFW0103", help="run the program without graph capture",
        )


def _nothing(*args: Any, **keywords: Any) -> None: ...


def _always(value: Any) -> Any:
    return lambda *args, **keywords: value


_REPLACED: Mapping[str, Any] = {
    "CUDAGraph": CapturedGraph, "Event": HostEvent, "ExternalStream": HostStream, "Stream": HostStream, "_lazy_init": _nothing,
    "can_device_access_peer": _always(False), "current_device": _always(0), "current_stream": current_stream,
    "default_stream": current_stream, "device": device_context, "device_count": _always(1), "device_of": device_context,
    "empty_cache": _nothing, "get_device_capability": get_device_capability, "get_device_name": get_device_name,
    "get_device_properties": get_device_properties, "graph": CapturedGraph, "init": _nothing, "ipc_collect": _nothing,
    "is_available": _always(True), "is_bf16_supported": _always(True), "is_current_stream_capturing": _always(False),
    "is_initialized": _always(True), "max_memory_allocated": _always(0), "max_memory_reserved": _always(0),
    "mem_get_info": _always((0, 0)), "memory_allocated": _always(0), "memory_reserved": _always(0),
    "reset_max_memory_allocated": _nothing, "reset_peak_memory_stats": _nothing, "set_device": require_first,
    "set_stream": _nothing,
    "stream": stream_context, "synchronize": _nothing,
}


class Replaced:
    """What stood in PyTorch's modules before."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def put(self, owner: Any, name: str, value: Any) -> None:
        self._before.append((owner, name, getattr(owner, name, None)))
        setattr(owner, name, value)

    def restore(self) -> None:
        for owner, name, value in reversed(self._before):
            setattr(owner, name, value)


def replace(torch: ModuleType) -> Replaced:
    """Put our answers into `torch.cuda` and `torch.version`; `restore` of what comes back takes them out."""
    replaced = Replaced()
    for name, value in _REPLACED.items():
        replaced.put(torch.cuda, name, value)
    for name, value in _BUILT_WITH.get(chip.current_target().backend, {}).items():
        replaced.put(torch.version, name, value)
    replaced.put(torch, "Generator", _generator(torch))
    replaced.put(torch, "compile", functools.wraps(torch.compile)(functools.partial(_as_it_is, torch.compile)))
    autocast, methods = torch_autocast.entering_and_leaving(torch)
    for name, value in methods.items():
        replaced.put(autocast, name, value)
    for name, value in _random(torch).items():
        replaced.put(torch.cuda, name, value)
        replaced.put(torch.cuda.random, name, value)
    return replaced


def _as_it_is(compile: Any, model: Any = None, **keywords: Any) -> Any:
    """`torch.compile` that leaves the function as it is: a tracer would look into the mode that stands for the GPU, and the code
    that it makes would be the host's."""
    return compile(model, **{**keywords, "disable": True})


def _random(torch: ModuleType) -> dict[str, Any]:
    """The random numbers of `torch.cuda`: there is one generator, the host's. Each is a function of our own: PyTorch's compiler
    looks names up by the object that they mean, and knows those of the host by other rules."""
    host = torch.default_generator

    def seed_with(seed: int) -> None:
        host.manual_seed(int(seed))

    def seed() -> None:
        host.seed()

    def state(device: Any = None) -> Any:
        require_first(device)
        return host.get_state()

    def set_state(new_state: Any, device: Any = None) -> None:
        require_first(device)
        host.set_state(new_state)

    def set_states(new_states: Any) -> None:
        for new_state in new_states:
            host.set_state(new_state)

    return {
        "manual_seed": seed_with, "manual_seed_all": seed_with, "seed": seed, "seed_all": seed,
        "initial_seed": lambda: host.initial_seed(),
        "get_rng_state": state, "get_rng_state_all": lambda: [host.get_state()], "set_rng_state": set_state,
        "set_rng_state_all": set_states,
    }


def _generator(torch: ModuleType) -> type:
    """`torch.Generator` whose device is the host whatever is asked for."""
    plain = torch.Generator

    class Generator(plain):  # type: ignore[misc, valid-type]
        def __new__(cls, device: Any = "cpu") -> Any:
            require_first(device)
            return plain.__new__(cls, "cpu")

    return Generator
