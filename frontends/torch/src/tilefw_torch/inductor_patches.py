"""Everything that is changed of PyTorch's compiler, in one place, and only while this backend compiles.

A changed function asks whether its own thread compiles for tilefw and is PyTorch's own otherwise, so that another thread's compile
with another backend is not touched. All are undone when the last compile ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._triton
from torch._inductor import async_compile, config, pattern_matcher, scheduler
from torch._inductor.codegen import wrapper
from torch._inductor.kernel import bmm, mm
from torch._inductor.virtualized import V
from torch.fx.experimental.symbolic_shapes import has_free_unbacked_symbols

from tilefw_torch import attention
from tilefw_torch.inductor_kernel import InductorKernel
from tilefw_torch.report import CompiledKernelRecord, CompileReport

_CONFIG: dict[str, Any] = {
    "cpu_backend": "triton", "triton.native_matmul": True, "compile_threads": 1, "force_disable_caches": True,
    "triton.cooperative_reductions": False, "triton.autotune_at_compile_time": False, "combo_kernels": False,
    "cpp_wrapper": False, "cpp.fallback_scatter_reduce_sum": False, "max_autotune": False, "max_autotune_gemm": False,
    "triton.multi_kernel": 0, "triton.use_block_ptr": False, "triton.enable_persistent_tma_matmul": False,
    "benchmark_fusion": False,
}
# What `tl.dot` takes, but bytes: PyTorch's own products of them wrap, and the kernel text makes floats of its sums.
_PRODUCTS = {torch.float16, torch.bfloat16, torch.float32}


@dataclass(frozen=True, slots=True)
class InductorCompile:
    """One compile with this backend: its target, launch keywords that say how it runs there, and where it says what it made."""

    target: str
    keywords: Mapping[str, Any]
    report: CompileReport
    on_fallback: Callable[[str], None]

    def kernel(self, name: str, source: str) -> InductorKernel:
        record = CompiledKernelRecord(name, self.target, source)
        self.report.kernels.append(record)
        return InductorKernel(record, self.keywords)


CURRENT: ContextVar[InductorCompile | None] = ContextVar("tilefw_torch_compile", default=None)


@contextmanager
def compiling(compile: InductorCompile) -> Iterator[None]:
    """PyTorch's compiler writes kernels for tensors of the host, and gives them to `compile`."""
    PATCHES.enter()
    token = CURRENT.set(compile)
    try:
        with config.patch(_CONFIG):
            yield
    finally:
        CURRENT.reset(token)
        PATCHES.leave()


class InductorPatches:
    """The changed functions, in place while at least one compile runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._kept: list[tuple[Any, str, Any]] = []

    def enter(self) -> None:
        with self._lock:
            if not self._running:
                self._install()
            self._running += 1

    def leave(self) -> None:
        with self._lock:
            self._running -= 1
            if not self._running:
                while self._kept:
                    owner, name, original = self._kept.pop()
                    setattr(owner, name, original)

    def _install(self) -> None:
        # All are found before one is changed: a PyTorch that lacks a name stays as it is.
        self._kept = [(owner, name, getattr(owner, name)) for owner, name, _ in _CHANGED]
        for (owner, name, original), (_, _, ours) in zip(self._kept, _CHANGED, strict=True):
            setattr(owner, name, _ours_or(original, ours))


def _ours_or(original: Any, ours: Any) -> Any:
    def chosen(*args: Any, **keywords: Any) -> Any:
        compile = CURRENT.get()
        return original(*args, **keywords) if compile is None else ours(compile, original, *args, **keywords)

    return chosen


def _has_kernels(compile: InductorCompile, original: Any, *args: Any, **keywords: Any) -> bool:
    return True


def _backend_word(compile: InductorCompile, original: Any) -> str:
    return "tilefw"


def _kernel(compile: InductorCompile, original: Any, self: Any, kernel_name: str, source_code: str, *_: Any, **__: Any) -> Any:
    return compile.kernel(kernel_name, source_code)


def _host_header(compile: InductorCompile, original: Any, self: Any) -> None:
    """What the host code imports beside a kernel; it names Triton, and does nothing with it."""
    return original(self) if torch.utils._triton.has_triton_package() else self.write_get_raw_stream_header_once()


def _extern_call(compile: InductorCompile, original: Any, self: Any, scheduler_node: Any) -> Any:
    node = scheduler_node.node
    if type(node).__name__ == "MultiOutput":  # one of the results of a call that is counted
        return original(self, scheduler_node)
    name = getattr(node, "op_overload", None) or getattr(node, "python_kernel_name", None) or type(node).__name__
    compile.on_fallback(str(name))
    return original(self, scheduler_node)


def _product_is_kernel(compile: InductorCompile, original: Any, left: Any, right: Any) -> bool:
    """Whether a product of two nodes is written as a kernel; PyTorch asks this of other devices alone."""
    if left.get_dtype() not in _PRODUCTS or right.get_dtype() not in _PRODUCTS:
        return False
    extents = (*left.get_size()[-2:], right.get_size()[-1])
    if any(map(has_free_unbacked_symbols, extents)):  # the tiling of a product asks for what is known of its extents
        return False
    return not any(V.graph.sizevars.statically_known_leq(extent, 1) for extent in extents)


def _replace(compile: InductorCompile, original: Any, self: Any, match: Any, graph: Any, node: Any) -> None:
    """Attention that a model writes out stays products and a softmax: PyTorch would call its own operator for it."""
    made = getattr(match.replacement_graph, "graph", match.replacement_graph)
    if not any(found.target in attention.DECOMPOSITIONS for found in made.nodes):
        original(self, match, graph, node)


# Where each name is, and what stands for it.
_CHANGED: tuple[tuple[Any, str, Any], ...] = (
    (scheduler, "has_triton", _has_kernels),
    (torch.utils._triton, "triton_hash_with_backend", _backend_word),
    (async_compile.AsyncCompile, "triton", _kernel),
    (wrapper.PythonWrapperCodegen, "write_triton_header_once", _host_header),
    (scheduler.Scheduler, "codegen_extern_call", _extern_call),
    (mm, "use_native_matmul", _product_is_kernel),
    (bmm, "use_native_matmul", _product_is_kernel),
    (pattern_matcher.ReplacementPatternEntry, "apply", _replace),
)
PATCHES = InductorPatches()
