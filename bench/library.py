"""A library kernel of tilefw, compiled by tilefw and by Triton 3.9 from its one source, for one set of parameters and a chip."""

from __future__ import annotations

import linecache
import types
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import tilefw.language
from tilefw.api import TargetInfo
from tilefw.api.target import UNDER_2_GIB
from tilefw.kernels import spec as library
from tilefw.kernels.reference import typed
from tilefw.kernels.spec import KernelSpec, Launch
from tilefw.language.extra import libdevice
from tilefw.runtime import config
from tilefw.runtime.arguments.array_facts import facts_of
from tilefw.runtime.arguments.arrays import host_array
from tilefw.runtime.compilation import compiler, kernel_source, options
from tilefw.runtime.jit import JITFunction, specialize
from tilefw.runtime.plugins import loader


@dataclass(frozen=True)
class Chip:
    """A target as Triton calls it: what its code for it is, in `asm`, as text and as a binary. `hints` are those that its launcher
    gives with every pointer to a tensor of less than 2 GiB, `options` those of its compiler beside a launch's."""

    target: str
    triton: tuple[str, int | str, int]
    text: str
    binary: str
    hints: tuple[tuple[str, int], ...] = ()
    options: tuple[tuple[str, int], ...] = ()


SM80 = Chip("nvidia-sm80", ("cuda", 80, 32), "ptx", "cubin")
SM90A = Chip("nvidia-sm90a", ("cuda", 90, 32), "ptx", "cubin", options=(("ptx_version", 88),))  # what ptxas 12.9 reads
GFX942 = Chip("amd-cdna3", ("hip", "gfx942", 64), "amdgcn", "hsaco", (("tt.pointer_range", 32),))
GFX950 = Chip("amd-cdna4", ("hip", "gfx950", 64), "amdgcn", "hsaco", (("tt.pointer_range", 32),))
TARGET = SM80.target


@dataclass(frozen=True)
class Work:
    """A library kernel with parameters: what is compiled and launched. `workgroups` of a cluster make a program (`num_ctas`)."""

    name: str
    parameters: Mapping[str, Any]
    seed: int = 0
    label: str = ""
    workgroups: int = 1

    @cached_property
    def spec(self) -> KernelSpec:
        return library.load(self.name)

    def launch(self) -> Launch:
        """A launch with fresh arrays; equal seeds give equal inputs."""
        launch = self.spec.prepare(self.spec.resolve(self.parameters), np.random.default_rng(self.seed))
        return launch if self.workgroups == 1 else replace(launch, keywords={**launch.keywords, "num_ctas": self.workgroups})

    @cached_property
    def bound(self) -> tuple[dict[str, str], dict[str, Any], dict[str, Any], Launch]:
        """Signature, compile-time values and run-time values of one launch, and the launch."""
        launch = self.launch()
        given = {**{name: typed(value) for name, value in launch.arguments.items()}, **launch.constexprs}
        return (*specialize(self.spec.kernel, {p.name: given[p.name] for p in self.spec.kernel.params}), launch)

    def arguments(self, launch: Launch) -> list[Any]:
        """The run-time arguments of a launch, in the order of the entry's parameters."""
        signature = self.bound[0]
        return [typed(launch.arguments[name]) for name, kind in signature.items() if not kind.endswith(":1")]

    @property
    def shown(self) -> str:
        return self.label or f"{self.name} " + ", ".join(f"{k} {v}" for k, v in self.parameters.items())


def tilefw_artifact(work: Work, assemble: bool = False, chip: Chip = SM80) -> compiler.CompiledArtifact:
    """Compiled anew by tilefw, without its cache."""
    signature, constexprs, _, launch = work.bound
    target = loader.find_target(config.resolve(config.settings(chip.target)).target)
    source = kernel_source.from_jit(work.spec.kernel, signature, constexprs)
    request = options.resolve(launch.keywords, target.info, facts=facts(chip, target.info, work), keep_levels=False)
    compiled = compiler.compile_source(source, target, request, assemble=assemble)
    if compiled.found:
        raise SystemExit(f"{work.name} came from the {compiled.found} cache: set TILEFW_CACHE=0")
    return compiled


def facts(chip: Chip, info: TargetInfo, work: Work | None = None) -> frozenset[str]:
    """What our launcher would know, where Triton's tells its compiler as much: whether all buffers are small, as they are without a
    launch."""
    told = frozenset({"under_2_gib"} if chip.hints else ())
    return told & (info.wants if work is None else facts_of(info, work.bound[2]))


def small(work: Work, name: str) -> bool:
    """Whether an argument's buffer has less than 2 GiB."""
    value = work.bound[2].get(name)
    return value is not None and host_array(value).nbytes <= UNDER_2_GIB


def triton_compiled(work: Work, assemble: bool = False, chip: Chip = SM80) -> Any:
    """Compiled by Triton: its own object, with `asm` and `metadata`; without a binary unless `assemble`."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature, constexprs, _, launch = work.bound
    kernel = in_triton(work.spec.kernel, {})
    spelled, fixed, hints = {}, {}, {}
    for index, parameter in enumerate(work.spec.kernel.params):
        kind, _, hint = signature.get(parameter.name, "constexpr").partition(":")
        if hint == "1":
            kind, fixed[parameter.name] = "constexpr", 1
        elif hint:
            hints[(index,)] = [["tt.divisibility", int(hint)]]
        if kind.startswith("*") and chip.hints and small(work, parameter.name):
            hints.setdefault((index,), []).extend([name, value] for name, value in chip.hints)
        if parameter.name in constexprs:
            fixed[parameter.name] = in_triton_value(constexprs[parameter.name], {})
        spelled[parameter.name] = kind
    source = ASTSource(kernel, spelled, fixed, hints)
    stop_at_text(not assemble, chip)
    return triton.compile(source, target=GPUTarget(*chip.triton), options={**launch.keywords, **dict(chip.options)})


def stop_at_text(stop: bool, chip: Chip = SM80) -> None:
    """Triton's own hook for its stages: the last one hands back nothing, where only the text is wanted."""
    from triton import knobs

    def inspect(backend=None, stages=None, options=None, language=None, capability=None):
        if stages is None:
            return "text", "text"
        stages[chip.binary] = lambda source, metadata: b""
        return None

    knobs.runtime.add_stages_inspection_hook = inspect if stop else None


def in_triton(kernel: JITFunction, made: dict[Any, Any]) -> Any:
    """The same function under `triton.jit`, with Triton's language in place of ours, its helpers too."""
    import triton

    if kernel not in made:
        function = kernel.fn
        names = {name: in_triton_value(value, made) for name, value in function.__globals__.items() if name in _used(function)}
        twin = types.FunctionType(_readable(kernel), names, function.__name__, function.__defaults__, function.__closure__)
        for name in ("__module__", "__qualname__", "__annotations__"):
            setattr(twin, name, getattr(function, name))
        made[kernel] = triton.jit(twin)
    return made[kernel]


def _readable(kernel: JITFunction) -> types.CodeType:
    """The function's code; one that no file holds is put in linecache, from which Triton then reads its text."""
    code, source = kernel.fn.__code__, kernel.source
    if Path(code.co_filename).exists():
        return code
    file = f"<{source.name} of tilefw, {hash(source.text):x}>"
    linecache.cache[file] = (len(source.text), None, source.text.splitlines(keepends=True), file)
    return code.replace(co_filename=file)


def _used(function: Any) -> set[str]:
    return set(function.__code__.co_names) | {"tl"}


def in_triton_value(value: Any, made: dict[Any, Any]) -> Any:
    """A global or compile-time value as Triton spells it: its language, its types, a helper in its own `jit`."""
    import triton.language
    from triton.language.extra import libdevice as functions

    if value is tilefw.language:
        return triton.language
    if value is libdevice:
        return functions
    if isinstance(value, JITFunction):
        return in_triton(value, made)
    if isinstance(value, tilefw.language.constexpr):
        return triton.language.constexpr(in_triton_value(value.value, made))
    if isinstance(value, tilefw.language.dtype):
        return triton.language.dtype(value.name)
    return value
