"""What Triton's programs read of a compiled kernel: `asm`, `hash`, `metadata`, `n_regs`, `n_spills`.

`kernel.warmup(…)` gives one, and so does every launch: a LaunchResult is one that has run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tilefw.api.artifact import Artifact, Entry

if TYPE_CHECKING:
    from tilefw.runtime.plugins.loader import Target


class CompiledKernel:
    """Facts of an artifact with one entry, under Triton's names."""

    __slots__ = ()
    __iter__ = None  # `kernel[grid]` is no sequence: without this Python would ask for grid after grid

    artifact: Artifact

    @property
    def entry(self) -> Entry:
        return self.artifact.entry()

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def hash(self) -> str:
        """What tells this code from every other: a digest of its target, text and bytes."""
        found = hashlib.sha256(f"{self.artifact.target}\n{self.artifact.text}".encode())
        found.update(self.artifact.binary or b"")
        return found.hexdigest()

    @property
    def asm(self) -> Mapping[str, str | bytes]:
        """Text and bytes by Triton's names for this target, or by the target's own; levels of IR where they were kept."""
        artifact, names = self.artifact, _target(self.artifact).info.triton
        found: dict[str, str | bytes] = {**artifact.levels, (names.text if names else artifact.format): artifact.text}
        if artifact.binary is not None:
            found[names.binary if names else "binary"] = artifact.binary
        return found

    @property
    def metadata(self) -> SimpleNamespace:
        """`name`, `shared` in bytes, `num_warps`, `warp_size`, `num_ctas`, `target` by name. On a machine without shared memory
        `shared` is 1: programs divide by it."""
        entry, limits = self.entry, _target(self.artifact).info.limits
        lanes, shared = limits.get("lanes", 1), self.entry.shared_bytes if "shared_bytes" in limits else 1
        x, y, z = entry.workgroup
        return SimpleNamespace(
            name=entry.name, shared=shared, num_warps=max(1, x * y * z // lanes), warp_size=lanes, num_ctas=entry.workgroups,
            target=self.artifact.target,
        )

    @property
    def n_regs(self) -> int:
        """Registers of a lane, of the kind that the target lists first. Where nobody knows (`artifact.resources`), the most that
        the chip gives a lane; 1 on a machine without registers. Programs divide by it."""
        return registers_of(self.artifact)

    @property
    def n_spills(self) -> int | None:
        """Values that are kept in memory for want of registers; None where nobody knows."""
        return self.artifact.resources.spills

    @property
    def n_max_threads(self) -> int | None:
        """Threads of the largest workgroup that the chip takes; None for a target without lanes."""
        return _target(self.artifact).info.limits.get("threads_per_workgroup")

    def _init_handles(self) -> None:
        """Nothing: programs call this before they ask for `n_regs`."""


class WarmKernel(CompiledKernel):
    """What `kernel.warmup(…)` gives: compiled, in the caches, and not launched."""

    __slots__ = ("_constants", "_names", "_run", "artifact")

    def __init__(self, artifact: Artifact, run: Callable[..., Any], names: Sequence[str], constants: Mapping[str, Any]) -> None:
        """`names` are those of all parameters, or those before `*args`, `constants` the values of the constexprs among them."""
        self.artifact = artifact
        self._run, self._names, self._constants = run, names, constants

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """A launch of the same kernel with the launch keywords of `warmup`: all its arguments in order, constexprs too or, as
        programs for some releases of Triton do, without these."""
        return lambda *args, **keywords: self._run(*self._whole(args, keywords), grid=grid, **keywords)

    def _whole(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> tuple[Any, ...]:
        named = any(name in keywords for name in self._names)
        if named or len(args) + len(self._constants) != len(self._names):
            return args
        given = iter(args)
        return tuple(self._constants[name] if name in self._constants else next(given) for name in self._names)

    def __repr__(self) -> str:
        return f"<{self.name} compiled for {self.artifact.target}>"


def registers_of(artifact: Artifact) -> int:
    """See `CompiledKernel.n_regs`."""
    known = next(iter((artifact.resources.registers or {}).values()), 0)
    return known or _target(artifact).info.limits.get("registers_per_thread", 1)


def _target(artifact: Artifact) -> Target:
    from tilefw.runtime.plugins.loader import find_target

    return find_target(artifact.target)
