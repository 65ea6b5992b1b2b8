"""Machine code, or other compilers' IR, as a module: `tilefw.load(path_or_bytes, target)["name"].launch(grid, args)`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

from tilefw.api.artifact import Artifact, Entry, decode, is_artifact
from tilefw.api.errors import CodeError, LaunchError
from tilefw.api.target import BOUND_FACTS
from tilefw.runtime import config
from tilefw.runtime.arguments.binding import Bound, bind, block_of, grid_of
from tilefw.runtime.arguments.bound_launch import launch_of
from tilefw.runtime.bounded_file import read_bounded
from tilefw.runtime.bug_guard import guarded
from tilefw.runtime.compilation import options
from tilefw.runtime.compilation.compiler import CompiledArtifact, compile_source
from tilefw.runtime.compilation.kernel_source import ModuleSource, from_data, is_bytecode, is_imported
from tilefw.runtime.launch import LaunchResult, execute
from tilefw.runtime.names import suggest
from tilefw.runtime.plugins.loader import Target, find_target

FILE_LIMIT = 256 << 20  # bytes


@dataclass(frozen=True, slots=True)
class LoadedKernel:
    """One entry of a module, ready to be launched."""

    module: Module
    entry: Entry

    def launch(
        self, grid: Any, args: Sequence[Any], *, block: Any = None, dynamic_shared: int | None = None, executor: str | None = None,
        checks: config.Checks = None, budget: int | None = None, numerics: str | None = None, seed: int | None = None,
        timeline: bool = False, stream: Any = None,
    ) -> LaunchResult:
        """Execute over `grid` workgroups; arrays are written in place, None is a null pointer.

        `args` names every parameter in order; hidden ones that are null pointers, or extents and strides of an array, may be left
        out. A struct by value is `bytes`, a NumPy structured scalar or array, or a `ctypes.Structure`. `block` is needed when
        the machine code does not say it; `timeline` asks for `LaunchResult.timeline`; `stream` is a card's. Raises LaunchError, and
        CheckError when a check found a fault.
        """
        resolved = config.resolve(config.settings(self.module.target.name, executor, checks, budget, numerics, seed, stream))
        if dynamic_shared is not None and (not isinstance(dynamic_shared, int) or dynamic_shared < 0):
            raise LaunchError(f"dynamic_shared is a number of bytes, not {dynamic_shared!r}", code="TFW0325")
        bound = bind(self.entry, args)
        target, name = self.module.target, self.entry.name
        block, shape = block_of(block), grid_of(grid)
        compiled = self.module.compiled(self.entry, bound, shape)
        return execute(target, resolved, compiled, self.entry, shape, bound, name, block, dynamic_shared, timeline)


@dataclass(frozen=True, slots=True)
class Module:
    """Machine code with its entries by name. On a target that compiles for one launch, IR is kept as `source`, and each launch
    compiles it."""

    artifact: Artifact
    target: Target
    source: ModuleSource | None = None

    def compiled(self, entry: Entry, bound: Sequence[Bound], grid: tuple[int, int, int]) -> CompiledArtifact:
        """The machine code for a launch of `entry`."""
        if self.source is None:
            return CompiledArtifact(self.artifact, {}, "file")
        values = {parameter.name: value for parameter, value in zip(entry.parameters, bound, strict=True)}
        request = options.resolve({}, self.target.info, launch=launch_of(self.target.info, values, grid))
        return compile_source(self.source, self.target, request, assemble=True)

    def __getitem__(self, name: str) -> LoadedKernel:
        """The entry called `name`; raises LaunchError TFW0327 with the nearest one."""
        for entry in self.artifact.entries:
            if entry.name == name:
                return LoadedKernel(self, entry)
        helped = suggest(name, list(self), what="entries")
        raise LaunchError(f"the module has no entry '{name}'", code="TFW0327", help=helped)

    def __iter__(self) -> Iterator[str]:
        return iter(entry.name for entry in self.artifact.entries)

    def __len__(self) -> int:
        return len(self.artifact.entries)

    def only(self, name: str | None = None) -> LoadedKernel:
        """The entry called `name`, or the only one there is; raises LaunchError TFW0327."""
        if name is not None:
            return self[name]
        if len(self) != 1:
            found = ", ".join(self) or "none"
            raise LaunchError(f"the module has {len(self)} entries, so one must be named", code="TFW0327", note=f"entries: {found}")
        return self[next(iter(self))]


def load(source: str | PathLike[str] | bytes, target: str | None = None, name: str | None = None) -> Module:
    """Machine code from a file or from bytes: an artifact that tilefw saved, or what the target's own parser reads. Triton's IR (a
    file `*.ttir`) and bytecode of Tile IR are compiled for the target.

    Without `target`, a saved artifact says its own, and other code belongs to the current target. `name` stands for the
    file's name in messages. Raises CodeError when the file cannot be read, is malformed, or is another target's code, and what
    `tilefw.compile` raises for IR.
    """
    data, shown = _bytes_and_name(source)
    shown = name or shown
    if is_bytecode(data) or (isinstance(source, str | PathLike) and is_imported(os.fspath(source))):
        chosen = find_target(config.resolve(config.settings(target)).target)
        return _imported(from_data(data, shown), chosen)
    if is_artifact(data):
        return _saved(decode(data, shown), target, shown)
    chosen = find_target(config.resolve(config.settings(target)).target)
    with guarded(f"reading {shown} for {chosen.name}", chosen.facts, lambda: data.decode("utf-8", "backslashreplace")):
        artifact = chosen.backend.parse(data, shown)
    return Module(replace(artifact, metadata={**artifact.metadata, "source_name": shown}), chosen)


def _imported(source: ModuleSource, target: Target) -> Module:
    """IR, compiled now, or by each launch where the target wants to know it."""
    if target.info.wants & BOUND_FACTS:
        from xdsl.dialects.func import FuncOp

        from tilefw.tile.dialect.kernel_info import entry_of

        with guarded(f"the front end of {source.name} for {target.name}", target.facts, lambda: ""):
            made = source.build()
        (function,) = (op for op in made.body.block.ops if isinstance(op, FuncOp))
        return Module(Artifact(target.name, "tile", str(made), (entry_of(function),)), target, source)
    return Module(compile_source(source, target, options.resolve({}, target.info), assemble=True).artifact, target)


def _saved(artifact: Artifact, target: str | None, shown: str) -> Module:
    chosen = find_target(target or artifact.target)
    if chosen.name != artifact.target:
        message = f"{shown} is machine code for {artifact.target}, not for {chosen.name}"
        raise CodeError(message, code="TFW0781", help=f"load it with target='{artifact.target}'")
    return Module(artifact, chosen)


def _bytes_and_name(source: str | PathLike[str] | bytes) -> tuple[bytes, str]:
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), "<bytes>"
    try:
        path = os.fspath(source)
    except TypeError:
        raise CodeError(f"machine code is a path or bytes, not a {type(source).__name__}", code="TFW0930") from None
    return read_bounded(path, FILE_LIMIT, "a machine-code file"), path
