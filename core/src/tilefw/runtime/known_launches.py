"""A launch like one before: its source and options are known by its arguments' types and constants and its site, as long as nothing
has changed that the kernel reads. Then nothing is read, hashed or checked again.

    add[grid](x, y, out, n, BLOCK=1024)     # the first one: the kernel's key, the options, the artifact's key
    add[grid](y, x, out, m, BLOCK=1024)     # found, if `m` is specialised as `n` was
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilefw.api.backend import CompileOptions
from tilefw.api.launch import LaunchArguments
from tilefw.runtime.arguments.array_facts import facts_of_checks
from tilefw.runtime.arguments.binding import EntryArguments
from tilefw.runtime.compilation import artifact_cache, options
from tilefw.runtime.compilation.compiler import CompiledArtifact, compile_source
from tilefw.runtime.compilation.kernel_source import ModuleSource, from_jit
from tilefw.runtime.launch_site import LaunchSite
from tilefw.runtime.process_state import ProcessState

if TYPE_CHECKING:
    from tilefw.frontend.watched import Watched
    from tilefw.runtime.compiled_kernel import WarmKernel


class KnownLaunch:
    """What is compiled for a launch: `source` by the options of `request`. `names` are those of the run-time values, `passed` the
    places of those that the code takes; it has the others as constants. `launched` is the kernel as its last launch had it."""

    __slots__ = ("_keys", "_made", "launched", "names", "passed", "request", "site", "source", "watched")

    def __init__(
        self, site: LaunchSite, source: ModuleSource, request: CompileOptions, watched: Watched, signature: Mapping[str, str]
    ) -> None:
        self.site, self.source, self.request, self.watched = site, source, request, watched
        self.names = tuple(signature)
        self.passed = [index for index, kind in enumerate(signature.values()) if not kind.endswith(":1")]  # what is folded
        self._keys: dict[str, str | None] = {}  # in the artifact cache, by the digest of the tools that assemble the code
        self._made: tuple[ProcessState, str, MadeLaunch] | None = None
        self.launched: WarmKernel | None = None

    def made(self, process: ProcessState) -> MadeLaunch:
        """The artifact, from memory where nothing of the process has changed since the last launch, or from the cache or the
        compiler."""
        kept = self.kept(process)
        if kept is not None:
            return kept
        target, assemble = self.site.target, self.site.executor.device.assembled
        key = self._key(assemble)
        made = MadeLaunch(compile_source(self.source, target, self.request, assemble=assemble, key=key), self.passed)
        if key is not None and target.memory.get(key) is made.compiled.artifact:
            self._made = process, key, MadeLaunch(replace(made.compiled, times={}, found="memory"), self.passed)
        return made

    def kept(self, process: ProcessState) -> MadeLaunch | None:
        """The artifact where it is in memory and nothing of the process has changed since the last launch."""
        kept = self._made
        if kept is not None and kept[0] is process and self.site.target.memory.get(kept[1]) is kept[2].compiled.artifact:
            return kept[2]
        return None

    def made_for(self, launch: LaunchArguments) -> MadeLaunch:
        """The artifact for one launch only, on a target that compiles so."""
        target, assemble = self.site.target, self.site.executor.device.assembled
        return MadeLaunch(compile_source(self.source, target, replace(self.request, launch=launch), assemble=assemble), self.passed)

    def key(self, launch: LaunchArguments | None) -> str | None:
        """The artifact's in the caches, of the code for one launch where that is given."""
        assemble = self.site.executor.device.assembled
        if launch is None:
            return self._key(assemble)
        return artifact_cache.key_of(self.source, self.site.target, replace(self.request, launch=launch), assemble)

    def _key(self, assemble: bool) -> str | None:
        """As `artifact_cache.key_of`, which is asked once."""
        tools = artifact_cache.tools_of(self.site.target, assemble)
        if tools not in self._keys:
            self._keys[tools] = artifact_cache.key_of(self.source, self.site.target, self.request, assemble)
        return self._keys[tools]

    def by_name(self, values: Sequence[Any]) -> dict[str, Any]:
        """The run-time values that the code takes."""
        return {self.names[index]: values[index] for index in self.passed}


class MadeLaunch:
    """An artifact, and how the run-time values of a launch become the arguments of its entry."""

    __slots__ = ("arguments", "compiled", "prints")

    def __init__(self, compiled: CompiledArtifact, passed: Sequence[int]) -> None:
        self.compiled = compiled
        self.arguments = EntryArguments(compiled.artifact.entry(), passed)
        self.prints = "prints" in compiled.artifact.metadata


def made_known(
    kernel: Any, site: LaunchSite, signature: Mapping[str, str], constexprs: Mapping[str, Any], facts: frozenset[str]
) -> KnownLaunch:
    """The source and the options of a launch. Raises LaunchError for a keyword that is unknown or out of range."""
    from tilefw.frontend.watched import Watched  # which saved machine code is run without

    watched = Watched()
    info = site.target.info
    request = options.resolve(site.shaping, info, facts=facts | facts_of_checks(info, site.checks))
    source = from_jit(kernel, signature, constexprs, watched, options.warps(request, info))
    return KnownLaunch(site, source, request, watched, signature)
