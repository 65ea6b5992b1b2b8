"""Passes run over a module with those who watch: the caller, who may want times and dumps, and plugins that observe passes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilefw.api.errors import IRError
from tilefw.runtime.bug_guard import is_bug
from tilefw.runtime.plugins.loader import registry
from tilefw.runtime.plugins.plugin import Plugin

if TYPE_CHECKING:
    from tilefw.api.ir import ModuleOp, ModulePass


@dataclass(slots=True)
class Watch:
    """What a caller sees of the passes: the name and seconds of each, and, through `dump`, the module after it."""

    dump: Callable[[str, ModuleOp], None] | None = None
    passes: list[tuple[str, float]] = field(default_factory=list)


def run_passes(
    module: ModuleOp, passes: Sequence[ModulePass], target: str, watch: Watch, levels: dict[str, str] | None = None,
    *, verified: bool = False,
) -> None:
    """Run `passes` on `module`, for the target of that name; `levels` gets the last text at each IR level.
    `verified`: the module is as other passes left it.

    A module that a pass breaks (TFW0403) is a bug of the pass, and raises RuntimeError.
    """
    from tilefw.passes.manager import PassManager

    def after(name: str, changed: ModuleOp) -> None:
        if watch.dump is not None:
            watch.dump(name, changed)
        if levels is not None:
            levels[level_of(changed)] = str(changed)

    manager = PassManager(
        list(passes), target, observers=observers(), dump=after if watch.dump or levels is not None else None,
        timer=lambda name, seconds: watch.passes.append((name, seconds)), verified=verified,
    )
    try:
        manager.run(module)
    except IRError as error:
        if error.code == "TFW0403":
            raise RuntimeError(str(error)) from error
        raise


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
        except BaseException as error:
            if not is_bug(error):
                raise
            self.plugin.manager.unregister(name=self.plugin.name)
            text = f"{hook} of plugin '{self.plugin.name}' raised {type(error).__name__}: {error}; {self.plugin.off_switch}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)


def observers() -> list[_PluginObserver]:
    """The loaded plugins that watch passes."""
    return [_PluginObserver(plugin) for plugin in registry().observers()]
