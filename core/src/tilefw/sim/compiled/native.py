"""LLVM, by llvmlite: the processor at hand, a module's text to machine code for it, and machine code to a function of this process.

llvmlite is an extra (`tilefw-core[jit]`). Nothing imports it before something is compiled.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

from tilefw.api.errors import InternalError
from tilefw.sim.compiled.nests import NAME


@cache
def available() -> bool:
    """Whether llvmlite is installed, and machines of this kind are served."""
    return sys.byteorder == "little" and find_spec("llvmlite") is not None


@dataclass(frozen=True)
class HostProcessor:
    """The processor at hand as LLVM names it; `flags` are the features that it has, and those that it has not."""

    triple: str
    name: str
    flags: str
    vector_bits: int
    fused: bool
    """Whether products are added with one rounding, and halves converted, by instructions; LLVM calls a library where not."""


@cache
def processor() -> HostProcessor:
    """The one that this process runs on."""
    import llvmlite.binding as llvm

    found = llvm.get_host_cpu_features()
    triple = llvm.get_process_triple()
    # Tile registers need a permission of the system; vectors do without.
    flags = ",".join(f"{'+' if there and not name.startswith('amx') else '-'}{name}" for name, there in sorted(found.items()))
    bits = 512 if found.get("avx512bw") and found.get("avx512dq") else 256 if found.get("avx2") else 128
    return HostProcessor(
        triple, llvm.get_host_cpu_name(), flags, bits,
        triple.startswith("aarch64") or bool(found.get("fma") and found.get("f16c") and found.get("avx2")),
    )


@cache
def _started() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _target_machine(level: int = 0) -> Any:
    import llvmlite.binding as llvm

    _started()
    here = processor()
    # Code may stand far from its constants: addresses of 64 bits, as LLVM's loader ends the process where 32 do not reach.
    return llvm.Target.from_triple(here.triple).create_target_machine(
        here.name, here.flags, opt=level, jit=True, reloc="static", codemodel="large"
    )


def object_of(text: str, loops: bool = False) -> bytes:
    """The object file of a module's text. It has vectors already, and only what is said twice goes; or `loops`, that LLVM
    optimises."""
    import llvmlite.binding as llvm

    machine = _target_machine(2 if loops else 0)
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"LLVM refuses the module's text: {error}") from None
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
    passes = builder.getModulePassManager() if loops else llvm.create_new_module_pass_manager()
    if not loops:
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
    passes.run(module, builder)
    return machine.emit_object(module)


class NativeFunction:
    """The function of an object file, in this process's memory as long as this object is."""

    def __init__(self, data: bytes) -> None:
        import llvmlite.binding as llvm

        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(data))
        self._engine.finalize_object()
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        self.call = kind(self._engine.get_function_address(NAME))
        """Called without the interpreter's lock."""
