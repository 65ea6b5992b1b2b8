"""The chips that the plugin serves, by compute capability: each page of this folder that has a `CHIP`.

Nothing outside this folder names a generation. A new one is a page here, and rows of `isa.rows` with `since`, `until` or `only`.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from tilefw.api import TargetInfo
from tilefw_nvidia.chips.chip import Architecture, Chip, SumPrecision, Version
from tilefw_nvidia.chips.versions import FIRST_VERSIONS

__all__ = ["Architecture", "Chip", "SumPrecision", "chip_of", "chips", "first_version", "named"]


@functools.cache
def chips() -> Mapping[str, Chip]:
    """Every page's chip by its name (`sm_80`), in the order of the generations."""
    modules = (importlib.import_module(f"{__name__}.{page.name}") for page in pkgutil.iter_modules(__path__))
    found: list[Chip] = [module.CHIP for module in modules if hasattr(module, "CHIP")]
    return MappingProxyType({chip.name: chip for chip in sorted(found, key=lambda chip: chip.architecture.number)})


def named(name: str) -> Chip:
    """The chip of that name; raises KeyError for one that has no page."""
    return chips()[name]


def chip_of(target: TargetInfo) -> Chip:
    """The chip of a target."""
    return named(target.chip)


def first_version(target: Architecture) -> Version | None:
    """The first `.version` that has the `.target`; None where nothing here tells."""
    page = chips().get(str(target))
    return FIRST_VERSIONS.get(target.number) if page is None else page.first_version
