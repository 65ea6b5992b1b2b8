"""From a kernel to an artifact: front end, tile passes, the target's pipeline, emission, assembly; or found in a cache."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tilefw.api.artifact import Artifact, decode, encode
from tilefw.api.backend import CompileOptions
from tilefw.api.collector import paused
from tilefw.api.errors import CodeError, CompileError, InternalError, IRError, KernelError
from tilefw.api.launch import Launch
from tilefw.runtime import config, options, reproducer
from tilefw.runtime.bound_launch import stated_launch
from tilefw.runtime.cache import digest, disk_cache
from tilefw.runtime.diagnostics import with_text
from tilefw.runtime.fingerprint import fingerprint
from tilefw.runtime.loader import Target, find, registry
from tilefw.runtime.plugin import Plugin
from tilefw.runtime.stages import stage

if TYPE_CHECKING:
    from tilefw.api.ir import ModuleOp, ModulePass

MEMORY_LIMIT = 512  # artifacts of one target kept in memory; the oldest goes first


@dataclass(frozen=True, slots=True)
class Source:
    """Where tile IR comes from. `key` says all that decides it, or is None where that cannot be said (never cached)."""

    name: str
    key: str | None
    build: Callable[[], ModuleOp]


@dataclass(frozen=True, slots=True)
class Compiled:
    """An artifact, seconds by stage, and where it was found: `memory`, `disk`, or `` when it was made now."""

    artifact: Artifact
    times: Mapping[str, float]
    found: str = ""


@dataclass(slots=True)
class Watch:
    """What a caller wants to see of the passes: each pass's name, seconds and, when `dump` is set, the module after it."""

    dump: Callable[[str, ModuleOp], None] | None = None
    passes: list[tuple[str, float]] = field(default_factory=list)


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
    """Machine code of a jit function, without arrays or a device.

    `signature` gives each run-time parameter its type in Triton's way (`*fp32`, `i32:16`, `fp32`); pointers are taken to
    be 16-byte aligned unless they say otherwise (`*fp32:1`). `keywords` are launch keywords that shape code (`num_warps`, …)
    and the target's own options. `grid`, `scalars` by name and `extents` (bytes behind each pointer) say what will be launched,
    to a target that compiles for one launch; others do not use them. Raises CompileError, LaunchError,
    UsageError, PluginError.
    """
    chosen = find(config.resolve(config.settings(target)).target)
    stated = ahead_of_time(signature or {})
    launch = stated_launch(chosen.info, stated, grid, scalars or {}, extents or {})
    request = options.resolve(keywords, chosen.info, launch=launch, keep_levels=True)
    source = from_jit(kernel, stated, constexprs or {})
    return compile_source(source, chosen, request, assemble=True).artifact


def from_jit(kernel: Any, signature: Mapping[str, str], constexprs: Mapping[str, Any]) -> Source:
    """A jit function with its specialisation."""
    if not hasattr(kernel, "cache_key_source"):
        raise CompileError(
            f"{_called(kernel)} is no jit function", code="TFW0640", help="decorate the kernel with @tilefw.jit"
        )

    def build() -> ModuleOp:
        from tilefw.frontend import build_module

        return build_module(kernel, dict(signature), dict(constexprs))

    try:
        key = digest(kernel.cache_key_source(), tuple(signature.items()), tuple((n, stable(v)) for n, v in constexprs.items()))
    except Unstable:
        key = None
    return Source(getattr(kernel, "__name__", "kernel"), key, build)


def _called(value: Any) -> str:
    return f"`{value.__name__}`" if hasattr(value, "__name__") else f"a {type(value).__name__}"


def from_text(text: str, name: str) -> Source:
    """Tile IR text."""

    def build() -> ModuleOp:
        from tilefw.tile.text.module import parse

        return parse(text, name)

    return Source(name, digest("text", text), build)


def ahead_of_time(signature: Mapping[str, str]) -> dict[str, str]:
    """A signature as a user states it, as the front end reads it: pointers are aligned (`:16`) unless they end in `:1`."""
    stated: dict[str, str] = {}
    if not isinstance(signature, Mapping):
        message = f"a signature is a dict of parameter names to types, not a {type(signature).__name__}"
        raise CompileError(message, code="TFW0641", help='write signature={"x_ptr": "*fp32", "n": "i32"}')
    for name, kind in signature.items():
        if not isinstance(kind, str):
            raise CompileError(f"the type of parameter '{name}' is a string such as '*fp32' or 'i32', not {kind!r}", code="TFW0641")
        pointer = kind.startswith("*")
        plain, _, hint = kind.partition(":")
        stated[name] = kind if not pointer else plain if hint == "1" else f"{plain}:{hint or '16'}"
    return stated


class Unstable(Exception):
    """A compile-time value whose text does not tell it from another one."""


def stable(value: Any) -> object:
    """What a compile-time value is, in a form whose `repr` is the same in every process; raises Unstable."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return type(value).__qualname__, value
    if isinstance(value, tuple | list):
        return type(value).__qualname__, tuple(stable(v) for v in value)
    if hasattr(value, "cache_key_source"):
        return "jit", value.cache_key_source()
    if hasattr(value, "value") and type(value).__name__ == "constexpr":
        return "constexpr", stable(value.value)
    text = repr(value)
    if " at 0x" in text or type(value).__module__ in ("builtins", "__main__"):
        raise Unstable
    return type(value).__module__, type(value).__qualname__, text


def compile_source(
    source: Source, target: Target, request: CompileOptions, *, assemble: bool = False, watch: Watch | None = None,
    times: dict[str, float] | None = None, simple: ModuleOp | None = None,
) -> Compiled:
    """The artifact of `source` on `target`; with `watch`, the caches are not read, so that every pass runs.

    A caller's own `times` is filled stage by stage: after an error, its last key names the stage that failed. `simple` is what
    `simplify` made of the source, where the caller has looked at it already; it is used up.
    """
    times = {} if times is None else times
    with stage("cache", times):
        key = _key(source, target, request, assemble)
        found = _find(key, target) if watch is None else None
    if found is not None:
        return Compiled(found[0], times, found[1])
    with paused():
        artifact = _make(source, target, request, assemble, watch or Watch(), times, simple)
    if key is not None:
        _keep(key, target, artifact)
    return Compiled(artifact, times)


def _key(source: Source, target: Target, request: CompileOptions, assemble: bool) -> str | None:
    """Everything that can change the artifact; None when the source's own key is not known."""
    if source.key is None:
        return None
    info = target.info
    said = {**{n: getattr(request, n) for n in CompileOptions.__dataclass_fields__}, "facts": sorted(request.facts)}
    try:
        said["extra"] = [(name, stable(value)) for name, value in sorted(request.extra.items())]
    except Unstable:
        return None
    facts = (info.name, info.backend, sorted(info.capabilities), sorted(info.limits.items()))
    tools = _guard("toolchain_digest", target, source.name, target.backend.toolchain_digest) if assemble else ""
    return digest(source.key, source.name, facts, sorted(said.items()), assemble, tools, fingerprint(target.plugin))


def _find(key: str | None, target: Target) -> tuple[Artifact, str] | None:
    """An artifact kept in memory or on disk. TILEFW_CACHE=0 turns both off: compile every time."""
    if key is None or not config.cache_enabled():
        return None
    if (kept := target.memory.get(key)) is not None:
        return kept, "memory"
    disk = disk_cache()
    data = None if disk is None else disk.get(key)
    if data is None:
        return None
    try:
        artifact = decode(data, "cache entry")
    except CodeError:
        return None
    _remember(key, target, artifact)
    return artifact, "disk"


def _keep(key: str, target: Target, artifact: Artifact) -> None:
    if config.cache_enabled():
        _remember(key, target, artifact)
    if (disk := disk_cache()) is not None:
        disk.put(key, encode(artifact))


def _remember(key: str, target: Target, artifact: Artifact) -> None:
    with target.lock:
        while len(target.memory) >= MEMORY_LIMIT:
            del target.memory[next(iter(target.memory))]
        target.memory[key] = artifact


def _make(
    source: Source, target: Target, request: CompileOptions, assemble: bool, watch: Watch, times: dict[str, float],
    simple: ModuleOp | None,
) -> Artifact:
    backend = target.backend
    levels: dict[str, str] = {}
    if (module := simple) is None:
        module = simplify(build(source, target, times), source.name, target, request.launch, watch, times)
    lower(module, source.name, target, request, watch, times, levels)
    with stage("emit", times):
        artifact = _guard("emit", target, source.name, lambda: backend.emit(module, request), module)
    if assemble:
        with stage("assemble", times):
            artifact = _guard("assemble", target, source.name, lambda: backend.assemble(artifact, request), module)
    return replace(artifact, levels={**levels, **artifact.levels}) if levels else artifact


def build(source: Source, target: Target, times: dict[str, float]) -> ModuleOp:
    """The front end's tile IR, anew at each call."""
    with stage("front end", times):
        return _guard("the front end", target, source.name, source.build)


def simplify(
    module: ModuleOp, name: str, target: Target, launch: Launch | None, watch: Watch, times: dict[str, float]
) -> ModuleOp:
    """The same module as the default passes leave it; nothing of the target's runs."""
    with stage("passes", times):
        from tilefw.passes.pipeline import default_passes

        run_passes(module, default_passes(launch), target, name, watch)
    return module


def lower(
    module: ModuleOp, name: str, target: Target, request: CompileOptions, watch: Watch, times: dict[str, float],
    levels: dict[str, str],
) -> None:
    """Makes a simplified module one that the target's backend emits; `levels` gets the text of each IR level where the request
    wants it."""
    with stage("lowering", times):
        if request.keep_levels:
            levels["tile"] = str(module)
        passes = _guard("pipeline", target, name, lambda: list(target.backend.pipeline(request)), module)
        run_passes(module, passes, target, name, watch, levels if request.keep_levels else None)


def run_passes(
    module: ModuleOp, passes: list[ModulePass], target: Target, name: str, watch: Watch, levels: dict[str, str] | None = None
) -> None:
    """Run passes with the watchers of the caller and of plugins; `levels` gathers the last text at each IR level.

    A module that a pass breaks is a bug of the pass: it becomes an InternalError, as does whatever else a pass raises.
    """
    from tilefw.passes.manager import PassManager

    def after(name: str, changed: ModuleOp) -> None:
        if watch.dump is not None:
            watch.dump(name, changed)
        if levels is not None:
            levels[level_of(changed)] = str(changed)

    manager = PassManager(
        passes, target.name, observers=observers(), dump=after if watch.dump or levels is not None else None,
        timer=lambda name, seconds: watch.passes.append((name, seconds)),
    )

    def work() -> None:
        try:
            manager.run(module)
        except IRError as error:
            if error.code == "TFW0403":
                raise RuntimeError(str(error)) from error
            raise

    _guard("a pass", target, name, work, module)


def level_of(module: ModuleOp) -> str:
    """The level that a module is at: that of the lowest dialect in it (`machine`, `lane`), else `tile`."""
    dialects = {op.name.partition(".")[0] for op in module.walk()}
    return next((level for level in ("machine", "lane") if level in dialects), "tile")


@dataclass(frozen=True, slots=True)
class _PluginObserver:
    """A plugin's pass hooks as an observer; one that raises is reported once and switched off."""

    plugin: Plugin

    def before_pass(self, target: str, pass_name: str, index: int, module: ModuleOp) -> None:
        self._call("tilefw_before_pass", target=target, pass_name=pass_name, index=index, module=module)

    def after_pass(self, target: str, pass_name: str, index: int, module: ModuleOp, seconds: float) -> None:
        self._call("tilefw_after_pass", target=target, pass_name=pass_name, index=index, module=module, seconds=seconds)

    def _call(self, hook: str, **arguments: Any) -> None:
        try:
            getattr(self.plugin.manager.hook, hook)(**arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.plugin.manager.unregister(name=self.plugin.name)
            text = f"{hook} of plugin '{self.plugin.name}' raised {type(error).__name__}: {error}; {self.plugin.off_switch}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)


def observers() -> list[_PluginObserver]:
    """The loaded plugins that watch passes."""
    return [_PluginObserver(plugin) for plugin in registry().observers()]


def _guard(doing: str, target: Target, name: str, work: Callable[[], Any], module: ModuleOp | None = None) -> Any:
    """`work()`; whatever it raises that is no KernelError is a bug, and becomes an InternalError with a reproducer."""
    try:
        return work()
    except KernelError as error:
        error.place = with_text(error.place)  # IR keeps a line's number, not what stands there
        raise
    except (InternalError, KeyboardInterrupt):
        raise
    except BaseException as error:
        facts = {"target": target.name, "kernel": name, "plugin": target.plugin.distribution if target.plugin else "core"}
        reproducer.internal(f"{doing} of {name} for {target.name}", error, facts, _text(module))


def _text(module: ModuleOp | None) -> str:
    try:
        return "" if module is None else str(module)
    except Exception as error:  # a module that is too broken to print must not hide the first error
        return f"// the module cannot be printed: {error!r}\n"
