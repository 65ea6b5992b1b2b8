"""All that a plugin may import. Plain data comes with this module; the heavy facades are modules of their own:

`tilefw.api.ir` (tile dialect, passes), `tilefw.api.simt`, `tilefw.api.machine`, `tilefw.api.sim`.
"""

from tilefw.api.artifact import Artifact, Entry, Parameter, Resources
from tilefw.api.backend import Backend, CompileOptions
from tilefw.api.device import (
    ALL_CHECKS,
    CHECKS,
    DEFAULT_BUDGET,
    DEFAULT_CHECKS,
    Argument,
    BufferView,
    Device,
    Finding,
    LaunchOptions,
    LaunchReport,
    Scalar,
)
from tilefw.api.dtypes import DTYPES, DType, dtype
from tilefw.api.errors import (
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
from tilefw.api.hooks import TILEFW_API, hookimpl
from tilefw.api.target import TargetInfo

__all__ = [
    "ALL_CHECKS", "CHECKS", "DEFAULT_BUDGET", "DEFAULT_CHECKS", "DTYPES", "TILEFW_API", "Argument", "Artifact", "Backend",
    "BufferView", "CheckError", "CodeError", "CompileError", "CompileOptions", "DType", "Device", "Entry", "Finding", "IRError",
    "InternalError", "KernelError", "LaunchError", "LaunchOptions", "LaunchReport", "Parameter", "Place", "PluginError", "Resources",
    "Scalar", "TargetInfo", "UnsupportedError", "UsageError", "dtype", "hookimpl",
]
