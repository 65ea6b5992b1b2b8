"""The registered targets and the installed plugins as data: what `tilefw targets` and `tilefw plugins` print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilefw.api.target import PROVIDES, TargetInfo
from tilefw.runtime.plugins.loader import REFERENCE, registry
from tilefw.runtime.plugins.plugin import Plugin


@dataclass(frozen=True, slots=True)
class ListedTarget:
    """A target as a listing shows it; `status` is `ok`, or `shadowed` when an earlier one has its name."""

    info: TargetInfo
    plugin: str
    status: str

    @property
    def provides(self) -> tuple[str, ...]:
        """What it provides, in the order in which a kernel meets it."""
        return tuple(word for word in PROVIDES if word in self.info.provides)


def plugins() -> list[Plugin]:
    """Every installed plugin with its status; each is asked in a child process with a time limit."""
    return registry().plugins()


def targets(known: Sequence[Plugin] | None = None) -> list[ListedTarget]:
    """Every target of every usable plugin, and `reference`, which needs none."""
    listed = [ListedTarget(REFERENCE, "tilefw-core", "ok")]
    asked = plugins() if known is None else known
    # Of two plugins that claim a target the one with the longer name has it, which is asked first when the target is named. A name
    # is found before any alias, so an alias takes nothing from the target that has the word as its name.
    claims = sorted((len(plugin.name), info.name, plugin.name) for plugin in asked for info in plugin.targets)
    owners = {name: plugin for _, name, plugin in claims}
    aliases = {REFERENCE.name, *owners}
    for plugin in asked:
        for info in plugin.targets:
            taken = owners[info.name] != plugin.name or set(info.aliases) & aliases
            listed.append(ListedTarget(info, plugin.name, "shadowed" if taken else "ok"))
            aliases |= set(info.aliases)
    return listed
