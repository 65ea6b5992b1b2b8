"""One plugin loaded apart from all others: version first, then its hook module, then what its hooks say.

Whatever a plugin does wrong ends up as a status and a sentence; only KeyboardInterrupt passes through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from tilefw.api.target import TargetInfo, TritonNames
from tilefw.api.version import TILEFW_API, accepts
from tilefw.runtime.bug_guard import is_bug
from tilefw.runtime.config import trace_plugins
from tilefw.runtime.plugins.entry_points import PluginCandidate, VersionNotStated, stated_version
from tilefw.runtime.plugins.hook_trace import trace
from tilefw.runtime.plugins.target_check import BadTarget, check_targets

Status = Literal["ok", "broken", "incompatible", "disabled", "shadowed", "hung", "crashed"]


@dataclass(frozen=True, slots=True)
class Plugin:
    """What is known of an installed plugin. `error` is one sentence, `code` names the page that explains it.

    `manager` is pluggy's, holding this plugin alone; it is None unless the plugin was loaded in this process.
    """

    name: str
    distribution: str
    version: str
    module: str
    status: Status
    api: tuple[int, int] | None = None
    targets: tuple[TargetInfo, ...] = ()
    hooks: tuple[str, ...] = ()
    error: str | None = None
    code: str | None = None
    manager: Any = field(default=None, compare=False, repr=False)

    @property
    def off_switch(self) -> str:
        return f"TILEFW_DISABLE_PLUGINS={self.name} goes on without it"

    @property
    def failed(self) -> bool:
        """Whether something is wrong with it; a plugin that the user disabled is as the user wants it."""
        return self.status not in ("ok", "disabled")


def load_plugin(candidate: PluginCandidate, disabled: frozenset[str]) -> Plugin:
    """Load a plugin; what comes back always has a status, and targets only when that is `ok`."""
    known = seen(candidate, disabled)
    return _run_hooks(known, candidate) if known.status == "ok" else known


def seen(candidate: PluginCandidate, disabled: frozenset[str]) -> Plugin:
    """What is known of a plugin of which no line has run; its status is `ok` where nothing speaks against importing it."""
    known = Plugin(candidate.name, candidate.distribution, candidate.version, candidate.module, "ok")
    if candidate.name in disabled or "*" in disabled:
        return replace(known, status="disabled", error="switched off by TILEFW_DISABLE_PLUGINS", code="TFW0505")
    if candidate.shadowed_by is not None:
        message = f"distribution {candidate.shadowed_by} brings a plugin of the same name; uninstall one of the two"
        return replace(known, status="shadowed", error=message, code="TFW0506")
    try:
        version = stated_version(candidate.module)
    except VersionNotStated as error:
        return replace(known, status="broken", error=str(error), code="TFW0503")
    known = replace(known, api=version)
    if not accepts(version):
        return replace(known, status="incompatible", error=_incompatible(candidate, version), code="TFW0504")
    return known


def _incompatible(candidate: PluginCandidate, version: tuple[int, int]) -> str:
    written, ours = (".".join(map(str, v)) for v in (version, TILEFW_API))
    newer = version > TILEFW_API
    upgrade = "tilefw-core" if newer else candidate.distribution
    return f"it was written against interface {written}, this core serves {ours}; try: pip install --upgrade {upgrade}"


def _run_hooks(known: Plugin, candidate: PluginCandidate) -> Plugin:
    import pluggy

    from tilefw.api import hooks

    manager = pluggy.PluginManager("tilefw")
    manager.add_hookspecs(hooks)
    if trace_plugins():
        trace(manager, known.name)
    try:
        module = candidate.load()
        manager.register(module, known.name)
        manager.check_pending()
        implemented = tuple(sorted(caller.name for caller in manager.get_hookcallers(module) or ()))
        answers = manager.hook.tilefw_targets()
        targets = check_targets(known.name, answers[0] if answers else ())
    except BadTarget as error:
        return replace(known, status="broken", error=str(error), code="TFW0507")
    except BaseException as error:  # SystemExit too: a plugin must not end the program
        if not is_bug(error):
            raise
        return replace(known, status="broken", error=f"{type(error).__name__}: {_first_line(error)}", code="TFW0503")
    return replace(known, targets=targets, hooks=implemented, manager=manager)


def _first_line(error: BaseException) -> str:
    try:
        lines = str(error).strip().splitlines()
    except KeyboardInterrupt:
        raise
    except BaseException:  # an exception whose own __str__ raises
        return "(its message cannot be shown)"
    return lines[0][:300] if lines else "(no message)"


def to_json(plugin: Plugin) -> dict[str, Any]:
    """Plain JSON values of a plugin, as `tilefw plugins --json` prints them."""
    raw = {name: getattr(plugin, name) for name in ("name", "distribution", "version", "module", "status", "error", "code")}
    api = list(plugin.api) if plugin.api else None
    return {**raw, "api": api, "hooks": list(plugin.hooks), "targets": [target_to_json(t) for t in plugin.targets]}


def from_json(raw: Mapping[str, Any]) -> Plugin:
    """The inverse; raises ValueError, KeyError or TypeError for anything else, and BadTarget."""
    if raw["status"] not in Status.__args__:
        raise ValueError(f"status {raw['status']!r}")
    words = {name: raw[name] for name in ("name", "distribution", "version", "module", "status", "error", "code")}
    if not all(value is None or isinstance(value, str) for value in words.values()):
        raise TypeError("a field is not a string")
    api = raw["api"]
    targets = tuple(target_from_json(t) for t in raw["targets"])
    return Plugin(
        **words, api=None if api is None else (int(api[0]), int(api[1])), hooks=tuple(str(h) for h in raw["hooks"]),
        targets=check_targets(words["name"], targets),
    )


def target_to_json(info: TargetInfo) -> dict[str, Any]:
    """Plain JSON values of a target; sets become sorted lists."""
    raw = {name: getattr(info, name) for name in TargetInfo.__dataclass_fields__}
    return {
        name: sorted(value) if isinstance(value, frozenset) else list(value) if isinstance(value, tuple)
        else dict(value) if isinstance(value, Mapping) else asdict(value) if isinstance(value, TritonNames) else value
        for name, value in raw.items()
    }


def target_from_json(raw: Mapping[str, Any]) -> TargetInfo:
    sets = {name: frozenset(raw[name]) for name in ("provides", "capabilities", "wants")}
    triton = None if raw["triton"] is None else TritonNames(**raw["triton"])
    return TargetInfo(**{**raw, **sets, "aliases": tuple(raw["aliases"]), "triton": triton})
