"""PyTorch's GPU is the host's memory: a torch function mode puts the host in the place of every `device="cuda"`.

A tensor of the host says that it is on the GPU (`device`, `is_cuda`), since launchers ask before they launch. Its memory is the
host's, so operations of PyTorch itself run there. The mode is of the thread that imports PyTorch or calls `install`.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from types import FrameType, ModuleType
from typing import Any

from tilefw.runtime.arguments.registered import ALIGNMENT, register
from tilefw.runtime.arguments.unwritten import mark_memory
from tilefw.runtime.checks.program_checks import UNINITIALISED
from tilefw.triton import torch_autocast, torch_cuda, torch_distributed, torch_library, torch_saved
from tilefw.triton.one_device import require_first

_GPU = "cuda"  # as PyTorch calls the GPUs of every vendor


def enter(torch: ModuleType) -> None:
    """Begin; nothing happens where the executor is a card, whose memory PyTorch's GPU is. Called once `torch` is imported."""
    from tilefw.runtime.config import resolve

    if resolve().executor != "hw" and _active() is None:
        mode = _mode(torch)
        mode.__enter__()
        _also_in_backward(torch, mode)
        _put_beside(torch, mode)


def _also_in_backward(torch: ModuleType, mode: Any) -> None:
    """A mode is off while one of PyTorch's functions runs, `backward` too, which calls the program's functions and hooks."""
    plain = torch.autograd.graph._engine_run_backward

    def with_mode(*args: Any, **keywords: Any) -> Any:
        with nullcontext() if _active() is not None else mode:
            return plain(*args, **keywords)

    for module in (torch.autograd, torch.autograd.graph):
        mode.replaced.put(module, "_engine_run_backward", with_mode)


def _put_beside(torch: ModuleType, mode: Any) -> None:
    """What a function mode does not see."""
    put = mode.replaced.put_all
    put(*torch_library.registering(torch, lambda: nullcontext() if _active() is not None else mode))
    put(*torch_saved.checks_of_recomputed(torch))
    put(torch.Tensor, {"record_stream": lambda tensor, stream: None})  # a stream of ours is none of PyTorch's
    put(torch, _default_device(torch))
    for module, names in torch_distributed.replaced(torch):
        put(module, names)
    for module, load in torch_saved.loading(torch).items():
        put(module, {"load": load})


def _default_device(torch: ModuleType) -> dict[str, Any]:
    """`set_default_device` puts a mode below ours, which the host's device must reach; what it was set to is told. It is
    each thread's."""
    choose, chosen = torch.set_default_device, torch.get_default_device
    in_thread = threading.local()

    def set_default_device(device: Any) -> None:
        moved = _on_host(torch, device, device is not None)
        choose(moved)
        in_thread.on_gpu = moved is not device

    def get_default_device() -> Any:
        return torch.device(_GPU, 0) if getattr(in_thread, "on_gpu", False) else chosen()

    return {"set_default_device": set_default_device, "get_default_device": get_default_device}


def leave() -> None:
    """End what `enter` began; modes that were entered since stay."""
    mode, stack = _active(), importlib.import_module("torch._C")
    if mode is None:
        return
    above = []
    while (top := stack._pop_torch_function_stack()) is not mode:
        above.append(top)
    mode.replaced.restore()
    for other in reversed(above):
        stack._push_on_torch_function_stack(other)


def _active() -> Any:
    modes = importlib.import_module("torch.overrides")._get_current_function_mode_stack()
    return next((mode for mode in modes if hasattr(mode, "__tilefw_host_device__")), None)


def _mode(torch: ModuleType) -> Any:
    """The mode, of a class made here because its base is PyTorch's."""
    base = importlib.import_module("torch.overrides").TorchFunctionMode
    answers, widened = _answers(torch), torch_autocast.widener(torch)
    moving = {torch.Tensor.to, torch.nn.Module.to}
    empty = {
        torch.empty, torch.empty_like, torch.empty_permuted, torch.empty_strided, torch.Tensor.new_empty,
        torch.Tensor.new_empty_strided,
    }

    class HostDevice(base):
        __tilefw_host_device__ = True
        replaced = torch_cuda.replace(torch)

        def __torch_function__(
            self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
        ) -> Any:
            args, kwargs = widened(func, args, kwargs or {})
            answer = answers.get(func)
            if answer is not None:
                return answer(func, args, kwargs)
            moved = [_on_host(torch, value, func in moving and index > 0) for index, value in enumerate(args)]
            keywords = _keywords(torch, kwargs)
            return _unwritten(func, moved, keywords) if func in empty else func(*moved, **keywords)

    return HostDevice()


def _on_host(torch: ModuleType, value: Any, names_device: bool) -> Any:
    """The host in the place of the GPU. A string or a number is a device only where the function takes one there."""
    if isinstance(value, torch.device):
        if value.type != _GPU:
            return value
    elif not names_device or isinstance(value, bool) or (not isinstance(value, int) and not _names_gpu(value)):
        return value
    require_first(value)
    return torch.device("cpu")


def _names_gpu(value: Any) -> bool:
    return isinstance(value, str) and value.partition(":")[0] == _GPU


def _keywords(torch: ModuleType, keywords: Mapping[str, Any]) -> dict[str, Any]:
    moved = {name: _on_host(torch, value, name == "device") for name, value in keywords.items()}
    if moved.get("pin_memory"):
        moved["pin_memory"] = False  # the host's memory is the device's already
    return moved


def _in_float32(torch: ModuleType, func: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """A function of half-precision tensors whose gradients PyTorch sums in float32 on a GPU, and in half precision on the host."""
    first = args[0]
    if first.dtype not in (torch.float16, torch.bfloat16):
        return func(*args, **keywords)

    def wide(value: Any) -> Any:
        return value.float() if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    return func(*map(wide, args), **{name: wide(value) for name, value in keywords.items()}).to(first.dtype)


def _is_programs(frame: FrameType) -> bool:
    """Whether the frame is the program's: not Triton's, nor of a function that Triton writes, which has no module."""
    module = frame.f_globals.get("__name__")
    return module is not None and module.partition(".")[0] != "triton"


def _unwritten(func: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """A new tensor of the host, unwritten where somebody asks what is read of such memory."""
    from tilefw.runtime import config

    made = func(*args, **keywords)
    if UNINITIALISED in config.resolve().checks and type(made).__name__ == "Tensor" and made.is_cpu:
        storage = made.untyped_storage()
        mark_memory(storage.data_ptr(), storage.nbytes())
    return made


_Answer = Callable[[Any, Sequence[Any], Mapping[str, Any]], Any]


def _answers(torch: ModuleType) -> dict[Any, _Answer]:
    """What a tensor answers by itself, by PyTorch's function."""

    def device(func: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        real = func(*args)
        return torch.device(_GPU, 0) if real.type == "cpu" else real

    def itself(func: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        require_first(args[1] if len(args) > 1 else keywords.get("device"))
        return args[0]

    def address(func: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """A program that asks may put it in a table for a kernel; Triton's launcher asks as well, of its own arguments."""
        if _is_programs(sys._getframe(2)) and args[0].is_cpu and args[0].untyped_storage().data_ptr() % ALIGNMENT == 0:
            register(args[0])
        return func(*args)

    tensor, functional = torch.Tensor, torch.nn.functional
    return {
        **dict.fromkeys((functional.layer_norm, functional.group_norm, functional.rms_norm), functools.partial(_in_float32, torch)),
        tensor.device.__get__: device,
        tensor.is_cuda.__get__: lambda func, args, keywords: args[0].is_cpu,
        tensor.get_device: lambda func, args, keywords: 0,
        tensor.data_ptr: address,
        tensor.cuda: itself,
        tensor.pin_memory: itself,
        tensor.is_pinned: lambda func, args, keywords: False,
    }
