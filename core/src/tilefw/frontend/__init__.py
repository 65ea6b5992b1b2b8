"""Python source to tile IR. `build_module` is the whole of it; nothing heavy is imported before it is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from inspect import Signature
    from types import FunctionType

    from xdsl.dialects.builtin import ModuleOp

    from tilefw.frontend.source import KernelSource


class KernelFunction(Protocol):
    """What the front end reads of a jit function; `tilefw.runtime.jit.JITFunction` is one."""

    __name__: str
    fn: FunctionType
    signature: Signature
    debug: bool

    @property
    def source(self) -> KernelSource: ...


def build_module(
    kernel: KernelFunction,
    signature: Mapping[str, str],
    constexprs: Mapping[str, Any],
    *,
    context: object = None,
    warps: tuple[int, int] | None = None,
) -> ModuleOp:
    """The tile IR of `kernel` for one signature: a module with one public `func.func` of the kernel's name.

    `signature` gives every run-time parameter its type in Triton's spelling: `*fp32` or `*fp32:16` (pointer, to an address
    divisible by 16), `i32`, `i32:16`, `u8`, `fp32`; `i32:1` is the constant 1 and no parameter of the function. Pointers
    carry no fact but the one written. Parameters absent from it are in `constexprs` (None arguments too) or have defaults. Items
    of tuples stand under dotted names (`parameters.py`).
    `warps` are how many a program has, and lanes of one, where they are known: `tl.extra.<vendor>.num_warps()` asks.
    Raises CompileError with the place in the user's source. `context` is accepted for callers that keep an xDSL context;
    building needs none.
    """
    from tilefw.frontend.module import build

    return build(kernel, signature, constexprs, warps)
