"""All that a plugin may import. Plain data comes with this module; the heavy facades are modules of their own:

`tilefw.api.ir` (tile dialect, passes), `tilefw.api.simt`, `tilefw.api.expand`, `tilefw.api.machine`, `tilefw.api.sim`.
"""

from typing import TYPE_CHECKING, Any

from tilefw.api.artifact import Artifact, Entry, Parameter, Resources
from tilefw.api.backend import Backend, CompileOptions
from tilefw.api.capabilities import SIMT_CAPABILITIES
from tilefw.api.checks import CheckInfo
from tilefw.api.cost import CostRates, LaunchSequence, LaunchWork
from tilefw.api.device import (
    ALL_CHECKS,
    CHECKS,
    DEFAULT_BUDGET,
    DEFAULT_CHECKS,
    Argument,
    BufferView,
    Completion,
    Device,
    DeviceAddress,
    Finding,
    LaunchOptions,
    LaunchReport,
    Requirement,
    Scalar,
    Struct,
)
from tilefw.api.dtypes import DTYPES, DType, dtype
from tilefw.api.errors import (
    CapacityError,
    CheckError,
    CodeError,
    CompileError,
    InternalError,
    IRError,
    KernelError,
    LaunchError,
    Place,
    PluginError,
    UnsupportedError,
    UsageError,
)
from tilefw.api.launch import BufferPlacement, LaunchArguments
from tilefw.api.linking import ChainLaunch, LinkedArtifact
from tilefw.api.remark import Remark
from tilefw.api.target import TargetInfo, TritonNames
from tilefw.api.timeline import Span, Timeline, Track, Utilisation
from tilefw.api.version import TILEFW_API

if TYPE_CHECKING:
    from tilefw.api.hooks import hookimpl

__all__ = [
    "ALL_CHECKS", "CHECKS", "DEFAULT_BUDGET", "DEFAULT_CHECKS", "DTYPES", "SIMT_CAPABILITIES", "TILEFW_API", "Argument", "Artifact",
    "Backend", "BufferPlacement", "BufferView", "CapacityError", "ChainLaunch", "CheckError", "CheckInfo", "CodeError",
    "CompileError", "CompileOptions", "Completion", "CostRates", "DType", "Device", "DeviceAddress", "Entry", "Finding", "IRError",
    "InternalError", "KernelError", "LaunchArguments", "LaunchError", "LaunchOptions", "LaunchReport", "LaunchSequence",
    "LaunchWork", "LinkedArtifact", "Parameter", "Place", "PluginError", "Remark", "Requirement", "Resources", "Scalar", "Span",
    "Struct", "TargetInfo", "Timeline", "Track", "TritonNames", "UnsupportedError", "UsageError", "Utilisation", "dtype",
    "hookimpl",
]


def __getattr__(name: str) -> Any:
    # pluggy costs more to import than all the rest of this module, and only plugins' hook modules need it.
    if name == "hookimpl":
        from tilefw.api.hooks import hookimpl

        return hookimpl
    raise AttributeError(f"module 'tilefw.api' has no attribute {name!r}")
