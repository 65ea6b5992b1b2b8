"""Kernels of ours by Triton's own front end, where it is installed: the same functions over its language, and the IR they make."""

from __future__ import annotations

import linecache
import types
from collections.abc import Mapping
from typing import Any

import tilefw.language as tl
from tilefw.kernels.reference import typed
from tilefw.runtime.jit import JITFunction, specialize


def translated(value: Any) -> Any:
    """`value` of a kernel's module as Triton knows it: functions, constants, element types, the language itself."""
    import triton
    import triton.language  # type: ignore[import-not-found]
    from triton.language.extra import libdevice  # type: ignore[import-not-found]

    if isinstance(value, JITFunction):
        names = (*value.fn.__code__.co_names, "tl")  # Triton looks for its language in functions that do without it too
        scope = {name: translated(value.fn.__globals__[name]) for name in names if name in value.fn.__globals__}
        copy = types.FunctionType(value.fn.__code__, {**value.fn.__globals__, **scope}, value.fn.__name__, value.fn.__defaults__)
        copy.__annotations__ = value.fn.__annotations__
        known = with_source(copy, value.source.text) if copy.__code__.co_filename == "<string>" else copy
        return triton.jit(known)  # type: ignore[attr-defined]
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


def specialised(kernel: JITFunction, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[Any, Any], dict[Any, Any]]:
    """Triton's signature, compile-time values and hints for a launch with these arguments, constexprs among them."""
    bound = {name: typed(value) for name, value in arguments.items()}
    signature, constexprs, _ = specialize(kernel, {p.name: bound[p.name] for p in kernel.params})
    spelled, fixed, hints = dict[str, Any](), dict[Any, Any](), dict[Any, Any]()
    for index, parameter in enumerate(kernel.params):
        kind, _, hint = signature.get(parameter.name, "constexpr").partition(":")
        if hint == "1":
            kind, fixed[(index,)] = "constexpr", 1
        elif hint:
            hints[(index,)] = [["tt.divisibility", int(hint)]]
        if parameter.name in constexprs:
            fixed[(index,)] = translated(constexprs[parameter.name])
        spelled[parameter.name] = kind
    return spelled, fixed, hints


def triton_text(
    kernel: JITFunction, arguments: Mapping[str, Any], target: tuple[str, int | str, int],
    keywords: Mapping[str, Any] | None = None, *, optimised: bool = True,
) -> str:
    """Triton's IR, verified, for a launch of `kernel` on a target in Triton's words (back end, architecture, lanes of a warp): as
    its front end makes it, or as its first passes leave it (the stage `ttir`)."""
    from triton._C.libtriton import ir  # type: ignore[import-not-found]
    from triton.backends.compiler import GPUTarget  # type: ignore[import-not-found]
    from triton.compiler import ASTSource  # type: ignore[import-not-found]
    from triton.compiler.compiler import make_backend  # type: ignore[import-not-found]

    chip = GPUTarget(*target)
    backend: Any = make_backend(chip)
    options = backend.parse_options(dict(keywords or {}))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    source = ASTSource(translated(kernel), *specialised(kernel, arguments))
    code, stages = backend.get_codegen_implementation(options), dict[str, Any]()
    module = source.make_ir(chip, options, code, backend.get_module_map(), context)
    if optimised:
        backend.add_stages(stages, options, source.language)
        module = stages["ttir"](module, {})
    assert module.verify()
    return str(module)
