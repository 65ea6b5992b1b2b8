"""Kernels that plugins bring, by the hook `tilefw_register_kernels`: `PLUGIN:NAME` names one."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tilefw.api.errors import PluginError, UsageError
from tilefw.runtime.loader import registry
from tilefw.runtime.names import suggest

if TYPE_CHECKING:
    from tilefw.kernels.spec import KernelSpec


def load(name: str) -> KernelSpec:
    """The kernel `PLUGIN:NAME`.

    Raises UsageError for a name that no plugin has, PluginError TFW0959 where the plugin is not usable or what it names is no
    KernelSpec with an `info` of its own.
    """
    from tilefw.kernels.spec import KernelSpec

    brought_by, _, short = name.partition(":")
    plugin = registry().plugin(brought_by)
    answers = plugin.manager.hook.tilefw_register_kernels() if "tilefw_register_kernels" in plugin.hooks else ()
    known = {key: location for answer in answers for key, location in dict(answer).items()}
    if short not in known:
        message = f"plugin '{brought_by}' brings no kernel called {short!r}"
        raise UsageError(message, code="TFW0940", help=suggest(short, known, what="its kernels"))
    module, _, attribute = str(known[short]).partition(":")
    try:
        spec = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise _broken(name, f"{known[short]!r} cannot be had: {type(error).__name__}: {error}") from error
    if not isinstance(spec, KernelSpec) or spec.own is None:
        raise _broken(name, f"{known[short]!r} is no KernelSpec that says its own `KernelInfo`")
    if spec.name != name:
        raise _broken(name, f"its KernelSpec is called {spec.name!r}")
    return spec


def _broken(name: str, why: str) -> PluginError:
    return PluginError(f"kernel {name!r}: {why}", code="TFW0959")
