"""`torch.cuda` for a host that stands in for the GPU: queries answer from the chosen target, streams and events are always done.

A launch on a simulator is complete when it returns, and so is every operation of PyTorch on the host: there is nothing to wait for.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from tilefw.triton import chip, torch_autocast, torch_graphs, torch_memory
from tilefw.triton.one_device import devices, require_first

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

    cuda_stream = stream_id = priority = 0
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

    def is_capturing(self) -> bool:
        return torch_graphs.capturing()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostStream)

    def __hash__(self) -> int:
        return hash(HostStream)

    def __enter__(self) -> HostStream:
        return self

    def __exit__(self, *raised: object) -> None: ...


@dataclass(frozen=True)
class DeviceProperties:
    """`torch.cuda.get_device_properties`: sizes in bytes. Memory is the host's."""

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
    total_memory: int = field(default_factory=torch_memory.total)
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


class DeviceContext:
    """`with torch.cuda.device(0)`, `torch.cuda.device_of(tensor)`: the only device is the current one."""

    def __init__(self, device: Any = None) -> None:
        require_first(getattr(device, "device", device))
        self.idx = self.prev_idx = 0

    def __enter__(self) -> None: ...
    def __exit__(self, *raised: object) -> None: ...


@contextmanager
def stream_context(stream: Any = None) -> Iterator[None]:
    yield


def current_stream(device: Any = None) -> HostStream:
    return HostStream(device)


def _nothing(*args: Any, **keywords: Any) -> None: ...


def _always(value: Any) -> Any:
    return lambda *args, **keywords: value


@contextmanager
def _unrecorded(*args: Any, **keywords: Any) -> Iterator[None]:
    yield


_REPLACED: Mapping[str, Any] = {
    "Event": HostEvent, "ExternalStream": HostStream, "Stream": HostStream, "_lazy_init": _nothing,
    "can_device_access_peer": _always(False), "current_device": _always(0), "current_stream": current_stream,
    "default_stream": current_stream, "device": DeviceContext, "device_count": devices, "device_of": DeviceContext,
    "_DeviceGuard": DeviceContext, "_exchange_device": _always(0), "_maybe_exchange_device": _always(0),
    "get_device_capability": get_device_capability, "get_device_name": get_device_name,
    "get_device_properties": get_device_properties, "init": _nothing, "ipc_collect": _nothing,
    "is_available": _always(True), "is_bf16_supported": _always(True),
    "is_initialized": _always(True), "set_device": require_first, "set_stream": _nothing, "set_sync_debug_mode": _nothing,
    "get_sync_debug_mode": _always(0), "stream": stream_context, "synchronize": _nothing,
}
_RANGES: Mapping[str, Any] = {  # of `torch.cuda.nvtx`: nobody records them
    "mark": _nothing, "range": _unrecorded, "range_end": _nothing, "range_pop": _nothing, "range_push": _nothing,
    "range_start": _always(0),
}
_ACCELERATOR: Mapping[str, Any] = {
    "current_device_idx": _always(0), "current_device_index": _always(0), "current_stream": current_stream,
    "device_count": devices, "is_available": _always(True), "set_device_idx": require_first,
    "set_device_index": require_first, "set_stream": _nothing, "synchronize": _nothing,
}


_ABSENT = object()


class Replaced:
    """What stood in PyTorch's modules before."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def put(self, owner: Any, name: str, value: Any) -> None:
        self._before.append((owner, name, getattr(owner, name, _ABSENT)))
        setattr(owner, name, value)

    def put_all(self, owner: Any, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            self.put(owner, name, value)

    def restore(self) -> None:
        for owner, name, value in reversed(self._before):
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


def replace(torch: ModuleType) -> Replaced:
    """Put our answers into `torch.cuda` and `torch.version`; `restore` of what comes back takes them out."""
    replaced = Replaced()
    for owner, answers in (
        (torch.cuda, {**_REPLACED, **torch_memory.ANSWERS, **torch_graphs.ANSWERS}), (torch.cuda.memory, torch_memory.ANSWERS),
        (torch.cuda.graphs, torch_graphs.ANSWERS), (torch.cuda.nvtx, _RANGES),
        (torch.accelerator, {**_ACCELERATOR, "current_accelerator": _always(torch.device("cuda"))}),
        (torch._C, {"_cuda_getCurrentRawStream": _always(0)}),
    ):
        replaced.put_all(owner, answers)
    for name, value in _BUILT_WITH.get(chip.current_target().backend, {}).items():
        replaced.put(torch.version, name, value)
    replaced.put(torch, "Generator", _generator(torch))
    replaced.put(torch, "compile", functools.wraps(torch.compile)(functools.partial(_as_it_is, torch.compile)))
    replaced.put_all(*torch_autocast.entering_and_leaving(torch))
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
        "initial_seed": lambda: host.initial_seed(), "default_generators": (host,),
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

        @property
        def device(self) -> Any:
            return torch.device("cuda", 0)

    return Generator
