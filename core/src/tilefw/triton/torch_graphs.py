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
# Arguments that an operation writes and its schema in PyTorch's native_functions.yaml does not mark.
_WRITTEN_UNSAID = {"aten::native_batch_norm": ("running_mean", "running_var")}


class HostGraph:
    """Launches and operations in order, each as a function that carries it out."""

    def __init__(self, keep_graph: bool = False) -> None:
        self._steps: list[Callable[[], Any]] = []
        self._capture: Any = None
        self._captured = False

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Raises RuntimeError while another graph is captured, as a GPU refuses it."""
        if capturing():
            raise RuntimeError("a graph is being captured: another cannot be begun")
        self.reset()
        self._capture = _recording(self._steps)
        self._capture.__enter__()

    def capture_end(self) -> None:
        capture, self._capture = self._capture, None
        if capture is None:
            raise RuntimeError("no capture of this graph was begun")
        capture.__exit__(None, None, None)
        self._captured = True

    def replay(self) -> None:
        """Carry all of it out. Raises RuntimeError where nothing was captured."""
        if not self._captured:
            raise RuntimeError("the graph cannot be played: nothing was captured in it")
        for step in self._steps:
            step()

    def reset(self) -> None:
        self._captured = False
        self._steps.clear()

    def pool(self) -> tuple[int, int]:
        return (0, 0)

    def instantiate(self) -> None: ...
    def enable_debug_mode(self) -> None: ...
    def debug_dump(self, debug_path: str) -> None: ...
    def register_generator_state(self, generator: Any) -> None: ...


@contextmanager
def graph(
    cuda_graph: HostGraph, pool: Any = None, stream: Any = None, capture_error_mode: str = "global",
    enable_annotations: bool = False, check_input_liveness: bool = False,
) -> Iterator[None]:
    """`torch.cuda.graph`: capture what the block does. Its inputs live as long as the graph, so none needs to be looked after."""
    cuda_graph.capture_begin(pool, capture_error_mode)
    try:
        yield
    finally:
        cuda_graph.capture_end()


def capturing() -> bool:
    """`torch.cuda.is_current_stream_capturing`."""
    return _CAPTURING.get()


@contextmanager
def _recording(steps: list[Callable[[], Any]]) -> Iterator[None]:
    def launched(kernel: Any, values: Sequence[Any], grid: Any, options: Mapping[str, Any]) -> Any:
        extents = kernel.launcher.extents(grid, values)  # now: a grid that is a function may see other numbers later
        steps.append(functools.partial(_launch, kernel, values, extents, options))
        return kernel.launcher.warm_up(values, extents, options)

    debugger, under_way = DEBUGGER.set(launched), _CAPTURING.set(True)
    try:
        with _operations(steps):
            yield
    finally:
        DEBUGGER.reset(debugger)
        _CAPTURING.reset(under_way)


def _launch(kernel: Any, values: Sequence[Any], extents: tuple[int, int, int], options: Mapping[str, Any]) -> None:
    debugger = DEBUGGER.get()
    if debugger is None:
        kernel.launcher.launch(values, extents, options)
    else:
        debugger(kernel, values, extents, options)


def _operations(steps: list[Callable[[], Any]]) -> Any:
    """The dispatch mode that records PyTorch's operations, of a class made here because its base is PyTorch's."""
    torch = importlib.import_module("torch")
    base = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode

    class OperationRecorder(base):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
        ) -> Any:
            keywords = dict(kwargs or {})
            if _asks(torch, func, args, keywords):
                raise RuntimeError(
                    f"operation not permitted when stream is capturing: {func._schema.name} asks for numbers that the GPU has"
                )
            if torch.Tag.inplace_view in func.tags:  # a tensor's shape, not its numbers: that is the host's
                return func(*args, **keywords)
            written = _written(torch, func, args, keywords)
            before = [tensor.clone() for tensor in written]
            made = func(*args, **keywords)
            for tensor, kept in zip(written, before, strict=True):
                tensor.copy_(kept)
            if not func.is_view and not func._schema.name.startswith(_UNFILLED):
                steps.append(functools.partial(_carry_out, torch, func, args, keywords, made))
            return made

    return OperationRecorder()


def _asks(torch: Any, func: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    """Whether a GPU's operation makes the host wait for a number, or for how many numbers there are."""
    if torch.Tag.data_dependent_output in func.tags:
        return True
    if torch.Tag.dynamic_output_shape not in func.tags:
        return False
    if func._schema.name == "aten::index":  # whose shape is known where no index is a mask
        return any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in args[1])
    return keywords.get("output_size") is None  # which `repeat_interleave` is told


def _written(torch: Any, func: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> list[Any]:
    """The tensors among the arguments that an operation writes."""
    found = list[Any]()
    unsaid = _WRITTEN_UNSAID.get(func._schema.name, ())
    for index, argument in enumerate(func._schema.arguments):
        if argument.name in unsaid or (argument.alias_info is not None and argument.alias_info.is_write):
            value = args[index] if index < len(args) else keywords.get(argument.name)
            found.extend(tensor for tensor in _each(value) if isinstance(tensor, torch.Tensor))
    return found


def _carry_out(torch: Any, func: Any, args: Sequence[Any], keywords: Mapping[str, Any], made: Any) -> None:
    """An operation once more, of which gradients know nothing; its results go where those of the capture are."""
    with torch.no_grad():
        for old, new in zip(_each(made), _each(func(*args, **keywords)), strict=False):
            if isinstance(old, torch.Tensor) and old is not new:
                old.detach().copy_(new)


def _each(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else (value,)


ANSWERS: Mapping[str, Any] = {  # of `torch.cuda`
    "CUDAGraph": HostGraph, "graph": graph, "graph_pool_handle": lambda: (0, 0), "is_current_stream_capturing": capturing,
}
