"""Who makes the checks that a launch asks for: the device those that it has, observers of plugins those that they registered."""

from __future__ import annotations

from collections.abc import Iterable

from tilefw.api.checks import ALL_CHECKS, DEFAULT_CHECKS, PROGRAM_CHECKS, CheckInfo
from tilefw.api.device import Device
from tilefw.api.errors import PluginError, UsageError
from tilefw.runtime.names import suggest
from tilefw.runtime.plugins.loader import registry


def made_by(device: Device, asked: frozenset[str], named: frozenset[str] = frozenset()) -> frozenset[str]:
    """Those of the checks `asked` that `device` makes; a device that declares none makes none. No device makes checks of programs:
    whoever launches with a kernel's tile IR at hand makes them (program_checks.py) and does not ask here.

    Of the default ones a device may leave some out (`Device.unasked_checks`), but for those that were asked for by name, `named`.
    Checks of plugins (`PLUGIN:NAME`) are made by every device that is `observable`, as those of the simulator kit are. Raises
    UsageError TFW0903 where a check is asked for by name, beyond `all` or `default`, that the device does not make.
    """
    observable: bool = getattr(device, "observable", False)
    makes = of_device(device)
    whole = next((some for some in (ALL_CHECKS, DEFAULT_CHECKS) if some <= asked), frozenset())
    of_programs = sorted(asked & PROGRAM_CHECKS)
    if of_programs:
        raise UsageError(
            f"the check{'s' if len(of_programs) > 1 else ''} {', '.join(of_programs)} cannot be made of machine code",
            code="TFW0903", note="checks of programs follow the values of tile IR",
            help="launch the kernel that the code was made of",
        )
    missing = sorted(name for name in asked - whole - makes if not (observable and ":" in name))
    if missing:
        raise UsageError(
            f"{device.name} does not make the check{'s' if len(missing) > 1 else ''} {', '.join(missing)}", code="TFW0903",
            note=f"it makes: {', '.join(sorted(makes)) or 'none'}", help="`--checks all` means all that the device makes",
        )
    if whole is DEFAULT_CHECKS:
        makes &= getattr(device, "unasked_checks", makes) | (asked - whole) | named
    return frozenset(name for name in asked if name in makes or (observable and ":" in name))


def of_device(device: Device) -> frozenset[str]:
    """The checks that a device declares."""
    return getattr(device, "checks", frozenset())


def observers(checks: Iterable[str]) -> tuple[str, ...]:
    """The classes of those of `checks` that plugins have, as `"module:attribute"`, in the order of the checks' names.

    Raises UsageError for a name that no plugin has, PluginError where what a plugin registers is not a `CheckInfo`.
    """
    return tuple(name for check in sorted(checks) if ":" in check for name in _registered(check).observers)


def _registered(check: str) -> CheckInfo:
    brought_by, _, short = check.partition(":")
    plugin = registry().plugin(brought_by)
    answers = plugin.manager.hook.tilefw_checks() if plugin.manager is not None and "tilefw_checks" in plugin.hooks else ()
    known = {key: info for answer in answers for key, info in dict(answer).items()}
    if short not in known:
        helped = suggest(short, known, what="its checks")
        raise UsageError(f"plugin '{brought_by}' has no check called {short!r}", code="TFW0901", help=helped)
    if not isinstance(known[short], CheckInfo):
        raise PluginError(f"check {check!r}: {known[short]!r} is not a tilefw.api.CheckInfo", code="TFW0514")
    return known[short]
