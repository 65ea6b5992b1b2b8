"""Source to machine code in a warm process: tilefw and Triton on the same kernels, for sm_80, no cache on either side."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
import types
from pathlib import Path

from measure import Ratio, alternate, table

TARGET = "nvidia-sm80"


def measure(rounds: int = 9) -> str:
    """Two tables: to PTX text, and to an assembled cubin (both run the same ptxas 12.9)."""
    os.environ["TRITON_ALWAYS_COMPILE"] = "1"
    os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="tilefw-bench-")
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    os.environ["TILEFW_CACHE"] = "0"
    ours, theirs = _tilefw(), _triton()
    to_text, to_binary = [], []
    for name in ours.COMPILES:
        taken = alternate(
            {
                "ours": lambda name=name: _ours(ours, name, assemble=False),
                "peer": lambda name=name: _peer(theirs, name, assemble=False),
                "ours_binary": lambda name=name: _ours(ours, name, assemble=True),
                "peer_binary": lambda name=name: _peer(theirs, name, assemble=True),
            },
            rounds,
        )
        to_text.append(Ratio(name, taken["ours"], taken["peer"], 1.0))
        to_binary.append(Ratio(name, taken["ours_binary"], taken["peer_binary"]))
    return "\n\n".join(
        [
            table(
                "Source to PTX, warm process",
                "Triton 3.9",
                to_text,
                "Both from the Python function to PTX text; neither runs ptxas. Both compiled the kernel once before.",
            ),
            table("Source to cubin, warm process", "Triton 3.9", to_binary, "The same with ptxas at the end of both."),
        ]
    )


def _module(name: str, jit: object, tl: object) -> types.ModuleType:
    """`kernels.py` loaded once more, with this `dialect`."""
    dialect = types.ModuleType("dialect")
    dialect.jit, dialect.tl = jit, tl
    sys.modules["dialect"] = dialect
    spec = importlib.util.spec_from_file_location(f"kernels_{name}", Path(__file__).with_name("kernels.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _tilefw() -> types.ModuleType:
    import tilefw
    import tilefw.language

    return _module("tilefw", tilefw.jit, tilefw.language)


def _triton() -> types.ModuleType:
    import triton
    import triton.language

    return _module("triton", triton.jit, triton.language)


def _ours(module: types.ModuleType, name: str, assemble: bool) -> None:
    """What a launch that misses the cache does."""
    from tilefw.runtime import compiler, config, loader, options

    signature, constexprs = module.COMPILES[name]
    target = loader.find(config.resolve(config.settings(TARGET)).target)
    request = options.resolve({}, target.info, keep_levels=False)
    source = compiler.from_jit(getattr(module, name), compiler.ahead_of_time(signature), constexprs)
    compiled = compiler.compile_source(source, target, request, assemble=assemble)
    if compiled.found:
        raise SystemExit(f"{name} came from the {compiled.found} cache: nothing was measured")


def _peer(module: types.ModuleType, name: str, assemble: bool) -> None:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = getattr(module, name)
    given, constexprs = module.COMPILES[name]
    signature, hints = {}, {}
    for index, parameter in enumerate(kernel.arg_names):
        spelled, _, hint = given.get(parameter, "constexpr").partition(":")
        signature[parameter] = spelled
        if hint:
            hints[(index,)] = [["tt.divisibility", int(hint)]]
    _stop_at_ptx(not assemble)
    triton.compile(ASTSource(kernel, signature, constexprs, hints), target=GPUTarget("cuda", 80, 32))


def _stop_at_ptx(stop: bool) -> None:
    """Triton's own hook for its stages: the cubin stage hands back nothing, where we measure text."""
    from triton import knobs

    def inspect(backend=None, stages=None, options=None, language=None, capability=None):
        if stages is None:
            return "text", "text"
        stages["cubin"] = lambda source, metadata: b""
        return None

    knobs.runtime.add_stages_inspection_hook = inspect if stop else None
