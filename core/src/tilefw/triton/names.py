"""Which modules Triton 3.9 has, and what each of their names is here: `module:name`, or a module as a whole.

A name leads to the object itself, so that `isinstance`, `except` and identity mean the same under both spellings.
"""

from __future__ import annotations

from collections.abc import Mapping

VERSION = "3.9.0"

# Where programs look for Gluon's names, of which tilefw has none to use; what is below it is the same module.
GLUON = "triton.experimental.gluon"

# Triton's module -> the one of ours that takes its place.
WHOLE: Mapping[str, str] = {
    "triton.language": "tilefw.language",
    "triton.language.core": "tilefw.language",
    "triton.language.math": "tilefw.language.math",
    "triton.language.random": "tilefw.language.random",
    "triton.language.standard": "tilefw.language",
    "triton.language.target_info": "tilefw.triton.target_info",
    "triton.language.extra": "tilefw.language.extra",
    "triton.language.extra.libdevice": "tilefw.language.extra.libdevice",
    "triton.language.extra.cuda.libdevice": "tilefw.language.extra.libdevice",
    "triton.language.extra.hip.libdevice": "tilefw.language.extra.libdevice",
    "triton.testing": "tilefw.triton.testing",
    "triton.tools.tensor_descriptor": "tilefw.tools.tensor_descriptor",
    "triton.tools.mxfp": "tilefw.triton.mxfp",
    "triton.knobs": "tilefw.triton.knobs",
    "triton.profiler": "tilefw.triton.profiler",
    "triton.profiler.viewer": "tilefw.triton.profiler.viewer",
    GLUON: "tilefw.triton.gluon",
    "triton._C.libtriton.gluon_ir": "tilefw.triton.gluon",
}

_ERRORS = {
    "TritonError": "tilefw.api.errors:KernelError",
    "CompilationError": "tilefw.api.errors:CompileError",
    "OutOfResources": "tilefw.api.errors:CapacityError",
    "InterpreterError": "tilefw.api.errors:CheckError",
}
_JIT = {
    "JITFunction": "tilefw.runtime.jit:JITFunction",
    "KernelInterface": "tilefw.triton.kernels:KernelInterface",
    "TensorWrapper": "tilefw.triton.kernels:TensorWrapper",
    "MockTensor": "tilefw.triton.kernels:MockTensor",
    "constexpr_function": "tilefw.runtime.jit:constexpr_function",
    "jit": "tilefw.runtime.jit:jit",
    "reinterpret": "tilefw.triton.kernels:reinterpret",
}
_TUNING = {
    "Autotuner": "tilefw.runtime.autotune:Autotuner",
    "Config": "tilefw.runtime.autotune:Config",
    "Heuristics": "tilefw.runtime.heuristics:Heuristics",
    "autotune": "tilefw.runtime.autotune:autotune",
    "heuristics": "tilefw.runtime.heuristics:heuristics",
}
_ALLOCATION = {"NullAllocator": "tilefw.triton.kernels:NullAllocator", "set_allocator": "tilefw.triton.kernels:set_allocator"}
_WARPS = {name: f"tilefw.language.extra:{name}" for name in ("num_warps", "num_threads")}
_DRIVER = {"driver": "tilefw.triton.driver:DRIVER"}
_FILES = {
    name: f"tilefw.triton.cache_files:{name}"
    for name in ("CacheManager", "FileCacheManager", "get_cache_manager", "get_dump_manager", "get_override_manager")
}
_WAITING = {name: f"tilefw.language.extra:{name}" for name in ("gdc_wait", "gdc_launch_dependents")}
_CUDA = {
    **{name: f"tilefw.language.extra:{name}" for name in ("globaltimer", "smid")}, **_WARPS,
    "convert_custom_float8_sm70": "tilefw.language.extra:convert_custom_float8",
    "convert_custom_float8_sm80": "tilefw.language.extra:convert_custom_float8",
}
_COMPILER = {
    "CompilationError": _ERRORS["CompilationError"], "CompiledKernel": "tilefw.runtime.compiled_kernel:CompiledKernel",
    "max_shared_mem": "tilefw.triton.chip:max_shared_mem", "ASTSource": "tilefw.triton.compiling:ASTSource",
    "compile": "tilefw.triton.compiling:compile", "make_backend": "tilefw.triton.compiling:make_backend",
}

# Triton's module -> its names. What is no name here is one of the module's own submodules, or absent.
NAMES: Mapping[str, Mapping[str, str]] = {
    "triton": {
        **_ERRORS, **_JIT, **_TUNING, **_ALLOCATION,
        "aggregate": "tilefw.language.aggregates:aggregate",
        "cdiv": "tilefw.runtime.jit:cdiv",
        "compile": _COMPILER["compile"],
        "must_use_result": "tilefw.triton.kernels:must_use_result",
        "next_power_of_2": "tilefw.runtime.jit:next_power_of_2",
    },
    "triton.errors": {"TritonError": _ERRORS["TritonError"]},
    # `jit` is the module here, as in Triton, not the function.
    "triton.runtime": {**{name: ours for name, ours in _JIT.items() if name != "jit"}, **_TUNING, **_ERRORS, **_DRIVER},
    "triton.runtime._allocation": _ALLOCATION,
    "triton.runtime.autotuner": {
        **_TUNING, "OutOfResources": _ERRORS["OutOfResources"], "PTXASError": _ERRORS["CompilationError"],
        "AutotunerError": "tilefw.api.errors:LaunchError",
    },
    "triton.runtime.cache": {**_FILES, "triton_key": "tilefw.triton.kernels:triton_key"},
    "triton.runtime.driver": _DRIVER,
    "triton.runtime.errors": {
        "AutotunerError": "tilefw.api.errors:LaunchError", "InterpreterError": _ERRORS["InterpreterError"],
        "OutOfResources": _ERRORS["OutOfResources"], "PTXASError": _ERRORS["CompilationError"],
        "TritonError": _ERRORS["TritonError"],
    },
    "triton.runtime.jit": {
        **_JIT, "JITCallable": _JIT["JITFunction"], "KernelParam": "tilefw.runtime.jit:KernelParameter",
        "type_canonicalisation_dict": "tilefw.triton.kernels:type_canonicalisation_dict",
    },
    "triton.compiler": _COMPILER,
    "triton.compiler.compiler": _COMPILER,
    "triton.compiler.errors": {
        **dict.fromkeys(
            ("CompilationError", "CompileTimeAssertionFailure", "UnsupportedLanguageConstruct"), _ERRORS["CompilationError"]
        ),
        "TritonError": _ERRORS["TritonError"],
    },
    "triton.backends": {"backends": "tilefw.triton.driver:BACKENDS"},
    "triton.backends.compiler": {"GPUTarget": "tilefw.triton.chip:GPUTarget"},
    "triton.language.extra.cuda": {**_WAITING, **_CUDA, "libdevice": "tilefw.language.extra.libdevice"},
    "triton.language.extra.cuda.gdc": _WAITING,
    "triton.language.extra.cuda.utils": _CUDA,
    "triton.language.extra.hip": {
        "memrealtime": "tilefw.language.extra:memrealtime", "smid": "tilefw.language.extra:smid", **_WARPS,
        "libdevice": "tilefw.language.extra.libdevice",
    },
    "triton.experimental": {},
    "triton.tools": {},
    "triton._C": {},
    "triton._C.libtriton": {},
    "triton._C.libtriton.nvidia": {"cublas": "tilefw.triton.host_blas:CUBLAS"},
    "triton._C.libtriton.amd": {"hipblas": "tilefw.triton.host_blas:HIPBLAS"},
}
