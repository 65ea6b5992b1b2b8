"""Source to machine code in a warm process: tilefw and Triton on the same kernels, for each chip, no cache on either side."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
import types
from collections.abc import Callable
from functools import partial
from pathlib import Path

from library import GFX942, SM80, Chip, Work, facts, stop_at_text, tilefw_artifact, triton_compiled
from measure import Ratio, alternate, table
from works import attention, matmul

SMALL_GOAL, LARGE_GOAL = 1.0, 0.35
# Library kernels, each with its goal: those with matrices are what the larger promise is about.
LIBRARY: tuple[tuple[Work, float], ...] = (
    (Work("softmax", {"columns": 1024}), SMALL_GOAL),
    (Work("layernorm", {"columns": 1024}), SMALL_GOAL),
    (matmul((128, 128, 32), 4), LARGE_GOAL),
    (matmul((128, 128, 64), 8), LARGE_GOAL),
    (attention(64, (128, 64), 4, causal=True), LARGE_GOAL),
)
Side = Callable[[bool], object]


def measure(rounds: int = 5) -> str:
    """Two tables a chip: to assembly text, and to what a driver loads."""
    os.environ["TRITON_ALWAYS_COMPILE"] = "1"
    os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="tilefw-bench-")
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    os.environ["TILEFW_CACHE"] = "0"
    said = (
        "Both from the Python function to PTX text; neither runs ptxas. Both compiled the kernel once before. The first five are "
        f"small kernels of this directory, the others the library's own. Medians of {rounds} alternating rounds, processor time."
    )
    tables = [
        table("Source to PTX, warm process", "Triton 3.9", _ratios(SM80, rounds, assemble=False, judged=True), said),
        table(
            "Source to cubin, warm process", "Triton 3.9", _ratios(SM80, 3, assemble=True, judged=False),
            "The same with ptxas at the end of both, three rounds.",
        ),
        table(
            "Source to gfx942 code object, warm process", "Triton 3.9", _ratios(GFX942, rounds, assemble=True, judged=True),
            "The same kernels for gfx942: assembled by ourselves, and by LLVM and lld.",
        ),
        table(
            "Source to gfx942 assembly text, warm process", "Triton 3.9", _ratios(GFX942, 3, assemble=False, judged=False),
            "The same without assembling, three rounds.",
        ),
    ]
    del os.environ["TRITON_ALWAYS_COMPILE"]
    return "\n\n".join(tables)


def _ratios(chip: Chip, rounds: int, *, assemble: bool, judged: bool) -> list[Ratio]:
    sides = _sides(chip)
    return [_ratio(name, ours, peer, goal if judged else None, rounds, assemble) for name, ours, peer, goal in sides]


def _ratio(name: str, ours: Side, peer: Side, goal: float | None, rounds: int, assemble: bool) -> Ratio:
    ours(assemble), peer(assemble)  # what is made once in a process is no part of a warm one
    taken = alternate({"ours": partial(_run, ours, assemble), "peer": partial(_run, peer, assemble)}, rounds)
    return Ratio(name, taken["ours"], taken["peer"], goal)


def _run(side: Side, assemble: bool) -> None:
    side(assemble)


def _sides(chip: Chip) -> list[tuple[str, Side, Side, float]]:
    """Name, our compile, Triton's compile, goal."""
    ours, theirs = _tilefw(), _triton()
    small = [(name, partial(_ours, chip, ours, name), partial(_peer, chip, theirs, name), SMALL_GOAL) for name in ours.COMPILES]
    both = partial(tilefw_artifact, chip=chip), partial(triton_compiled, chip=chip)
    return [*small, *((work.shown, *(partial(side, work) for side in both), goal) for work, goal in LIBRARY)]


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


def _ours(chip: Chip, module: types.ModuleType, name: str, assemble: bool) -> None:
    """What a launch that misses the cache does."""
    from tilefw.runtime import config
    from tilefw.runtime.compilation import compiler, kernel_source, options
    from tilefw.runtime.plugins import loader

    signature, constexprs = module.COMPILES[name]
    target = loader.find_target(config.resolve(config.settings(chip.target)).target)
    request = options.resolve({}, target.info, facts=facts(chip, target.info), keep_levels=False)
    source = kernel_source.from_jit(getattr(module, name), kernel_source.ahead_of_time(signature), constexprs)
    compiled = compiler.compile_source(source, target, request, assemble=assemble)
    if compiled.found:
        raise SystemExit(f"{name} came from the {compiled.found} cache: nothing was measured")


def _peer(chip: Chip, module: types.ModuleType, name: str, assemble: bool) -> None:
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
        if spelled.startswith("*"):
            hints.setdefault((index,), []).extend([name, value] for name, value in chip.hints)
    stop_at_text(not assemble, chip)
    triton.compile(ASTSource(kernel, signature, constexprs, hints), target=GPUTarget(*chip.triton))
