"""`torch.cuda.CUDAGraph` for a host that stands in for the GPU: what is captured is recorded, not carried out, and played again.

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = layer(x)
    x.copy_(other); graph.replay()             # `out` has the layer's result of `other`

A kernel is compiled while it is captured. An operation of PyTorch that writes what was there before leaves it as it is until the
graph is played; a new tensor has the operation's result at once, of the numbers that stood there, where a GPU's holds none yet.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tilefw.runtime.debugged import DEBUGGER

_CAPTURING: ContextVar[bool] = ContextVar("tilefw_capturing", default=False)
_UNFILLED = ("aten::empty", "aten::new_empty")  # new memory, whatever it holds


class HostGraph:
    """Launches and operations in order, each as a function that carries it out."""

    def __init__(self, keep_graph: bool = False) -> None:
        self._steps: list[Callable[[], None]] = []
        self._capture: Any = None

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Raises RuntimeError while another graph is captured, as a GPU refuses it."""
        if capturing():
            raise RuntimeError("a graph is being captured: another cannot be begun")
        self._steps.clear()
        self._capture = _recording(self._steps)
        self._capture.__enter__()

    def capture_end(self) -> None:
        capture, self._capture = self._capture, None
        if capture is None:
            raise RuntimeError("no capture of this graph was begun")
        capture.__exit__(None, None, None)

    def replay(self) -> None:
        """Carry all of it out."""
        for step in self._steps:
            step()

    def reset(self) -> None:
        self._steps.clear()

    def pool(self) -> tuple[int, int]:
        return (0, 0)

    def instantiate(self) -> None: ...
    def enable_debug_mode(self) -> None: ...
    def debug_dump(self, debug_path: str) -> None: ...
    def register_generator_state(self, generator: Any) -> None: ...


@contextmanager
def graph(cuda_graph: HostGraph, pool: Any = None, stream: Any = None, capture_error_mode: str = "global") -> Iterator[None]:
    """`torch.cuda.graph`: capture what the block does."""
    cuda_graph.capture_begin(pool, capture_error_mode)
    try:
        yield
    finally:
        cuda_graph.capture_end()


def capturing() -> bool:
    """`torch.cuda.is_current_stream_capturing`."""
    return _CAPTURING.get()


@contextmanager
def _recording(steps: list[Callable[[], None]]) -> Iterator[None]:
    def launched(kernel: Any, values: Sequence[Any], grid: Any, options: Mapping[str, Any]) -> Any:
        steps.append(functools.partial(kernel.launcher.launch, values, grid, options))
        return kernel.launcher.warm_up(values, grid, options)

    debugger, under_way = DEBUGGER.set(launched), _CAPTURING.set(True)
    try:
        with _operations(steps):
            yield
    finally:
        DEBUGGER.reset(debugger)
        _CAPTURING.reset(under_way)


def _operations(steps: list[Callable[[], None]]) -> Any:
    """The dispatch mode that records PyTorch's operations, of a class made here because its base is PyTorch's."""
    torch = importlib.import_module("torch")
    base = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode

    class OperationRecorder(base):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
        ) -> Any:
            keywords = dict(kwargs or {})
            if func._schema.name == "aten::_local_scalar_dense":
                raise RuntimeError("operation not permitted when stream is capturing: the program asks for a number of the GPU's")
            written = _written(torch, func, args, keywords)
            before = [tensor.clone() for tensor in written]
            made = func(*args, **keywords)
            for tensor, kept in zip(written, before, strict=True):
                tensor.copy_(kept)
            if not func.is_view and not func._schema.name.startswith(_UNFILLED):
                steps.append(functools.partial(_carry_out, torch, func, args, keywords, () if written else made))
            return made

    return OperationRecorder()


def _written(torch: Any, func: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> list[Any]:
    """The tensors among the arguments that an operation writes."""
    found = list[Any]()
    for index, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[index] if index < len(args) else keywords.get(argument.name)
            found.extend(tensor for tensor in _each(value) if isinstance(tensor, torch.Tensor))
    return found


def _carry_out(torch: Any, func: Any, args: Sequence[Any], keywords: Mapping[str, Any], made: Any) -> None:
    """An operation once more; its results go where those of the capture are."""
    for old, new in zip(_each(made), _each(func(*args, **keywords)), strict=False):
        if isinstance(old, torch.Tensor):
            old.detach().copy_(new)


def _each(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else (value,)


ANSWERS: Mapping[str, Any] = {  # of `torch.cuda`
    "CUDAGraph": HostGraph, "graph": graph, "graph_pool_handle": lambda: (0, 0), "is_current_stream_capturing": capturing,
}
