"""tilefw compiles tile kernels to the machine code of any registered chip and runs them on strict simulators.

Nothing is imported here: each public name loads its module when it is first used.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tilefw.api.artifact import Artifact
    from tilefw.api.errors import (
        CapacityError,
        CheckError,
        CodeError,
        CompileError,
        InternalError,
        IRError,
        KernelError,
        LaunchError,
        PluginError,
        UnsupportedError,
        UsageError,
    )
    from tilefw.distributed.node import node
    from tilefw.distributed.process_group.group_node import init_process_group
    from tilefw.language.aggregates import aggregate
    from tilefw.runtime.arguments.arrays import reinterpret
    from tilefw.runtime.arguments.registered import register
    from tilefw.runtime.arguments.unwritten import empty, empty_like
    from tilefw.runtime.compilation.compiler import compile
    from tilefw.runtime.config import set_target, target
    from tilefw.runtime.heuristics import heuristics
    from tilefw.runtime.jit import Config, autotune, cdiv, constexpr_function, jit, next_power_of_2
    from tilefw.runtime.launch import LaunchResult
    from tilefw.runtime.module import load
    from tilefw.runtime.plugins.listings import plugins, targets
    from tilefw.runtime.reference import reference

# Public name -> the module that has it.
_HOMES = {
    "Artifact": "tilefw.api.artifact",
    **dict.fromkeys(
        ("CapacityError", "CheckError", "CodeError", "CompileError", "IRError", "InternalError", "KernelError", "LaunchError",
         "PluginError", "UnsupportedError", "UsageError"),
        "tilefw.api.errors",
    ),
    **dict.fromkeys(
        ("Config", "autotune", "cdiv", "constexpr_function", "jit", "next_power_of_2"), "tilefw.runtime.jit"
    ),
    "LaunchResult": "tilefw.runtime.launch",
    "aggregate": "tilefw.language.aggregates",
    "compile": "tilefw.runtime.compilation.compiler",
    "empty": "tilefw.runtime.arguments.unwritten",
    "empty_like": "tilefw.runtime.arguments.unwritten",
    "heuristics": "tilefw.runtime.heuristics",
    "init_process_group": "tilefw.distributed.process_group.group_node",
    "load": "tilefw.runtime.module",
    "node": "tilefw.distributed.node",
    "plugins": "tilefw.runtime.plugins.listings",
    "reference": "tilefw.runtime.reference",
    "register": "tilefw.runtime.arguments.registered",
    "reinterpret": "tilefw.runtime.arguments.arrays",
    "set_target": "tilefw.runtime.config",
    "target": "tilefw.runtime.config",
    "targets": "tilefw.runtime.plugins.listings",
}

__all__ = [
    "Artifact", "CapacityError", "CheckError", "CodeError", "CompileError", "Config", "IRError", "InternalError",
    "KernelError", "LaunchError", "LaunchResult", "PluginError", "UnsupportedError", "UsageError", "aggregate", "autotune",
    "cdiv", "compile", "constexpr_function", "empty", "empty_like", "heuristics", "init_process_group", "jit", "load",
    "next_power_of_2", "node", "plugins", "reference", "register", "reinterpret", "set_target", "target", "targets",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "debug":  # a module of its own, which needs what compiles
        return import_module("tilefw.debug")
    if name not in _HOMES:
        raise AttributeError(f"module 'tilefw' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)  # a launch may ask for `cdiv` each time
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
