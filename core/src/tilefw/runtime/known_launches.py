"""A launch like one before: its source and options are known by its arguments' types and constants and its site, as long as nothing
has changed that the kernel reads. Then nothing is read, hashed or checked again.

    add[grid](x, y, out, n, BLOCK=1024)     # the first one: the kernel's key, the options, the artifact's key
    add[grid](y, x, out, m, BLOCK=1024)     # found, if `m` is specialised as `n` was
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilefw.api.backend import CompileOptions
from tilefw.runtime.compilation import artifact_cache, options
from tilefw.runtime.compilation.kernel_source import ModuleSource, from_jit
from tilefw.runtime.launch_site import LaunchSite, keep, words_of
from tilefw.runtime.plugins.loader import Target

if TYPE_CHECKING:
    from tilefw.frontend.watched import Watched


@dataclass(frozen=True, slots=True)
class KnownLaunch:
    """What is compiled for a launch, and its keys in the artifact cache by the digest of the tools that assemble it."""

    source: ModuleSource
    request: CompileOptions
    watched: Watched
    keys: dict[str, str | None] = field(default_factory=dict)

    def key(self, target: Target, assemble: bool) -> str | None:
        """As `artifact_cache.key_of`, which is asked once."""
        tools = artifact_cache.tools_of(target, assemble)
        if tools not in self.keys:
            self.keys[tools] = artifact_cache.key_of(self.source, target, self.request, assemble)
        return self.keys[tools]


def known_launch(
    kernel: Any, site: LaunchSite, signature: Mapping[str, str], constexprs: Mapping[str, Any], facts: frozenset[str],
    kept: dict[Hashable, KnownLaunch],
) -> KnownLaunch:
    """The source and the options of a launch, from `kept` or made now. Raises LaunchError for a keyword that is unknown or out of
    range."""
    words = words_of(constexprs.items())
    if words is None or site.words is None:
        return _made(kernel, site, signature, constexprs, facts)
    key = (site.target, kernel.debug, facts, *site.words, *signature, *signature.values(), *words)
    found = kept.get(key)
    if found is None or not found.watched.unchanged():
        found = _made(kernel, site, signature, constexprs, facts)
        keep(kept, key, found)
    return found


def _made(
    kernel: Any, site: LaunchSite, signature: Mapping[str, str], constexprs: Mapping[str, Any], facts: frozenset[str]
) -> KnownLaunch:
    from tilefw.frontend.watched import Watched  # which saved machine code is run without

    watched = Watched()
    source = from_jit(kernel, signature, constexprs, watched)
    return KnownLaunch(source, options.resolve(site.shaping, site.target.info, facts=facts), watched)
