"""Every library kernel is Triton's as well, but for block pointers, which Triton 3.9 has no more: its front end takes the functions
as they stand, over a namespace in which only the language is exchanged. Skipped where Triton is not installed.
"""

from __future__ import annotations

import linecache
import types
from typing import Any

import numpy as np
import pytest

import tilefw.language as tl
from tilefw.kernels.index import KERNELS
from tilefw.kernels.reference import typed
from tilefw.kernels.spec import KernelSpec, load
from tilefw.runtime.jit import JITFunction, specialize


def translated(value: Any) -> Any:
    """`value` of a kernel's module as Triton knows it: functions, constants, element types, the language itself."""
    import triton
    import triton.language
    from triton.language.extra import libdevice

    if isinstance(value, JITFunction):
        names = (*value.fn.__code__.co_names, "tl")  # Triton looks for its language in functions that do without it too
        scope = {name: translated(value.fn.__globals__[name]) for name in names if name in value.fn.__globals__}
        copy = types.FunctionType(value.fn.__code__, {**value.fn.__globals__, **scope}, value.fn.__name__, value.fn.__defaults__)
        copy.__annotations__ = value.fn.__annotations__
        return triton.jit(with_source(copy, value.source.text) if copy.__code__.co_filename == "<string>" else copy)
    if isinstance(value, tl.constexpr):
        return triton.language.constexpr(value.value)
    if isinstance(value, tl.dtype):
        return getattr(triton.language, {"fp16": "float16", "fp32": "float32", "fp64": "float64"}.get(value.name, value.name))
    if value is tl:
        return triton.language
    return libdevice if value is tl.extra.libdevice else value


def with_source(function: types.FunctionType, text: str) -> types.FunctionType:
    """`function`, whose text is in no file, where Triton looks for it: under a file name of its own in `linecache`."""
    name = f"<{function.__name__}>"
    function.__code__ = function.__code__.replace(co_filename=name)
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    return function


def source_of(spec: KernelSpec) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Triton's kernel for the default launch of `spec`, with the signature and compile-time values of that launch."""
    launch = spec.prepare(spec.resolve({}), np.random.default_rng(0))
    bound = {**{name: typed(value) for name, value in launch.arguments.items()}, **launch.constexprs}
    signature, constexprs, _ = specialize(spec.kernel, {p.name: bound[p.name] for p in spec.kernel.params})
    kinds = {name: kind.partition(":")[0] for name, kind in signature.items()}
    return (
        translated(spec.kernel), {p.name: kinds.get(p.name, "constexpr") for p in spec.kernel.params},
        {(spec.kernel.params.index(p),): translated(constexprs[p.name]) for p in spec.kernel.params if p.name in constexprs},
    )


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "block_pointer_matmul"])
def test_tritons_front_end_takes_the_kernel(name: str) -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler.compiler import make_backend

    kernel, signature, constexprs = source_of(load(name))
    target = GPUTarget("cuda", 80, 32)
    backend = make_backend(target)
    options = backend.parse_options({})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    source = ASTSource(kernel, signature, constexprs)
    module = source.make_ir(
        target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context,
    )
    assert module.verify()
    assert f"@{name}(" in str(module)
