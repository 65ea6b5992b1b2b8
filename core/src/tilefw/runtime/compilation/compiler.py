"""From a kernel to an artifact: front end, tile passes, the target's pipeline, emission, assembly; or found in a cache."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

from tilefw.api.artifact import Artifact
from tilefw.api.backend import CompileOptions
from tilefw.api.capabilities import missing
from tilefw.api.errors import CapacityError, CompileError, KernelError
from tilefw.api.garbage_collection import paused
from tilefw.api.remark import Remark
from tilefw.runtime import config
from tilefw.runtime.arguments.bound_launch import stated_launch
from tilefw.runtime.bug_guard import guarded
from tilefw.runtime.compilation import artifact_cache, options
from tilefw.runtime.compilation.kernel_source import ModuleSource, ahead_of_time, from_file, from_jit
from tilefw.runtime.compilation.pass_run import Watch, run_passes
from tilefw.runtime.diagnostics import with_text
from tilefw.runtime.plugins.loader import Target, find_target
from tilefw.runtime.stage_clock import StageClock

if TYPE_CHECKING:
    from tilefw.api.ir import ModuleOp
    from tilefw.tile.dialect.multicast_op import MulticastOp


@dataclass(frozen=True, slots=True)
class CompiledArtifact:
    """An artifact, seconds by stage, and where it was found: `memory`, `disk`, or `` when it was made now."""

    artifact: Artifact
    times: Mapping[str, float]
    found: str = ""


def compile(
    kernel: Any,
    target: str | None = None,
    signature: Mapping[str, str] | None = None,
    constexprs: Mapping[str, Any] | None = None,
    *,
    grid: Any = None,
    scalars: Mapping[str, int | float] | None = None,
    extents: Mapping[str, int] | None = None,
    **keywords: Any,
) -> Artifact:
    """Machine code of a jit function, or of a file of IR by its path (`kernel.ttir` of Triton, bytecode of Tile IR,
    `kernel.mlir` of tile IR), without arrays or a device.

    `signature` gives each run-time parameter its type in Triton's way (`*fp32`, `i32:16`, `fp32`); pointers are taken to
    be 16-byte aligned unless they say otherwise (`*fp32:1`). A file of IR says its own types. `keywords` are launch keywords that
    shape code (`num_warps`, …) and the target's own options. `grid`, `scalars` by name and `extents` (bytes behind each pointer)
    describe the launch to a target that compiles for one launch; others do not use them. Raises CompileError, LaunchError,
    UsageError, PluginError, and for a file IRError and CodeError.
    """
    chosen = find_target(config.resolve(config.settings(target)).target)
    types = ahead_of_time(signature or {})
    launch = stated_launch(chosen.info, types, grid, scalars or {}, extents or {})
    request = options.resolve(keywords, chosen.info, launch=launch, keep_levels=True)
    if isinstance(kernel, str | PathLike):
        return compile_source(_file(os.fspath(kernel), types, constexprs), chosen, request, assemble=True).artifact
    source = from_jit(kernel, types, constexprs or {}, warps=options.warps(request, chosen.info))
    return compile_source(source, chosen, request, assemble=True).artifact


def _file(path: str, types: Mapping[str, str], constexprs: Mapping[str, Any] | None) -> ModuleSource:
    if types or constexprs:
        raise CompileError(f"{path} says the types of its own parameters", "TFW0641", help="leave signature and constexprs out")
    return from_file(path)


def compile_source(
    source: ModuleSource, target: Target, request: CompileOptions, *, assemble: bool = False, watch: Watch | None = None,
    key: str | None = None,
) -> CompiledArtifact:
    """The artifact of `source` on `target`; with `watch`, the caches are not read, so that every pass runs. `key` is that of the
    artifact cache, where the caller knows it."""
    work = Compilation(source, target, watch or Watch())
    if watch is None:
        with work.clock.stage("cache"):
            key = key or artifact_cache.key_of(source, target, request, assemble)
            found = artifact_cache.find(key, target)
        if found is not None:
            return CompiledArtifact(found[0], work.clock.seconds, found[1])
    with paused():
        return work.finish(work.simplify(work.build(), request), request, assemble, key)


class Lowered(NamedTuple):
    """A module that the backend emits, the options under which it was lowered, and the text of each IR level that was asked for."""

    module: ModuleOp
    request: CompileOptions
    levels: dict[str, str]


@dataclass(frozen=True, slots=True)
class Compilation:
    """One kernel on its way to one target's artifact, stage by stage: `build`, `simplify`, then `lower` or `finish`.

    `clock` has the seconds of each stage, and after an error the stage that failed.
    """

    source: ModuleSource
    target: Target
    watch: Watch = field(default_factory=Watch)
    clock: StageClock = field(default_factory=StageClock)

    def build(self) -> ModuleOp:
        """The front end's tile IR, anew at each call."""
        with self.clock.stage("front end"), self._guarded("the front end"):
            return self.source.build()

    def simplify(self, module: ModuleOp, request: CompileOptions) -> ModuleOp:
        """The same module as the default passes leave it, for one launch only where the request has it; no pass of the target's
        runs."""
        with self.clock.stage("passes"), self._guarded("a pass", module):
            from tilefw.passes.pipeline import default_passes

            takes = partial(self.target.backend.takes_scaled_dot, options=request)
            prints = not missing(["print"], self.target.info.capabilities)

            def serves(op: MulticastOp) -> bool:
                return not missing([op.capability], self.target.info.capabilities)

            run_passes(module, default_passes(request.launch, takes, prints, serves), self.target.name, self.watch)
        return module

    def lower(self, module: ModuleOp, request: CompileOptions) -> dict[str, str]:
        """Make a simplified module one that the target's backend emits. Returns the text of each IR level by its name where the
        request asks for them."""
        levels: dict[str, str] = {}
        with self.clock.stage("lowering"):
            if request.keep_levels:
                levels["tile"] = str(module)
            with self._guarded("pipeline", module):
                passes = list(self.target.backend.pipeline(request))
            with self._guarded("a pass", module):
                run_passes(
                    module, passes, self.target.name, self.watch, levels if request.keep_levels else None, verified=True
                )
        return levels

    def lowered(self, module: ModuleOp, request: CompileOptions) -> Lowered:
        """The module lowered; where the chip has too little memory for that, one that is made anew to take less of it. Raises the
        first error where nothing suffices."""
        try:
            return Lowered(module, request, self.lower(module, request))
        except CapacityError as error:
            found = self._lowered_with_less(request, error)
            if found is None:
                raise
            return found

    def _lowered_with_less(self, request: CompileOptions, error: CapacityError) -> Lowered | None:
        while True:
            module = self.simplify(self.build(), request)
            smaller = self.target.backend.with_less_memory(module, request, error)
            if smaller is None:
                return None
            request = smaller
            try:
                return Lowered(module, request, self.lower(module, request))
            except CapacityError as again:
                error = again

    def finish(self, module: ModuleOp, request: CompileOptions, assemble: bool, key: str | None = None) -> CompiledArtifact:
        """The artifact of a simplified module, which is used up; it is kept in the caches, under `key` where the caller has it."""
        from tilefw.tile.dialect.kernel_info import prints_of

        backend = self.target.backend
        prints = prints_of(module)
        module, taken, levels = self.lowered(module, request)
        with self.clock.stage("emit"), self._guarded("emit", module):
            artifact = backend.emit(module, taken)
        if assemble:
            with self.clock.stage("assemble"), self._guarded("assemble", module):
                artifact = backend.assemble(artifact, taken)
        if taken.most_stages is not None:
            artifact = replace(artifact, remarks=(*artifact.remarks, _fewer_stages(taken.most_stages)))
        module.erase()  # most of it is freed at once then, and never seen by the cyclic collector
        if levels:
            artifact = replace(artifact, levels={**levels, **artifact.levels})
        if prints is not None:
            artifact = replace(artifact, metadata={**artifact.metadata, "prints": prints})
        with self.clock.stage("cache"):
            key = key or artifact_cache.key_of(self.source, self.target, request, assemble)
            artifact_cache.keep(key, self.target, artifact)
        return CompiledArtifact(artifact, self.clock.seconds)

    @contextmanager
    def _guarded(self, doing: str, module: ModuleOp | None = None) -> Iterator[None]:
        """What the block raises that is not a KernelError is a bug, with the module as its reproducer."""
        name, target = self.source.name, self.target.name
        try:
            with guarded(f"{doing} of {name} for {target}", {"kernel": name, **self.target.facts}, lambda: _text(module)):
                yield
        except KernelError as error:
            error.place = with_text(error.place)  # IR keeps the number of a line, not its text
            raise


def _fewer_stages(most: int) -> Remark:
    return Remark(
        "TFW0653", f"shared memory does not hold the wanted stages of the kernel's loops: they have {most} at most",
        "fewer num_stages, a smaller block along K, or smaller tiles take less",
    )


def _text(module: ModuleOp | None) -> str:
    try:
        return "" if module is None else str(module)
    except Exception as error:  # a module that is too broken to print must not hide the first error
        return f"// the module cannot be printed: {error!r}\n"
