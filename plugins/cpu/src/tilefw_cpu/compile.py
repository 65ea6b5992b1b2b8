"""LLVM IR text to an object file for the processor at hand, and object files to functions of this process: LLVM, by llvmlite."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from tilefw.api import InternalError
from tilefw_cpu.processor import Processor


@cache
def _started() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def target_machine(processor: Processor, level: int = 2) -> Any:
    """LLVM's code generator for a processor; on level 0 it takes a third of the time, for code that runs once a launch."""
    _started()
    found = llvm.Target.from_triple(processor.triple)
    # Code and its constants may stand further apart than an offset of 32 bits reaches, so addresses have 64 bits:
    # MCJIT ends the process (an assertion of RuntimeDyldELF) where a narrower one does not reach.
    return found.create_target_machine(processor.name, processor.flags, opt=level, jit=True, reloc="static", codemodel="large")


def optimised(text: str, machine: Any) -> Any:
    """The module of a text, simplified: variables in registers, and no instruction or block that says nothing. Vectors are written
    as such, in blocks that fill the registers, so that loops are left to the code generator: LLVM's level 1 takes ten times as
    long, for code that is no faster."""
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"LLVM refuses the module's text: {error}") from None
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    return module


def object_of(text: str, processor: Processor, level: int = 2) -> bytes:
    """The object file of a module's text."""
    machine = target_machine(processor, level)
    return machine.emit_object(optimised(text, machine))


def assembly_of(text: str, processor: Processor) -> str:
    """The processor's assembly of a module's text."""
    machine = target_machine(processor)
    return machine.emit_assembly(optimised(text, machine))


def keep(found: object) -> None:
    """Never free it: the system has addresses of its code or its memory from here on, also when Python has ended."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(found))


class NativeCode:
    """An object file in this process's memory; its functions are there as long as the object is."""

    def __init__(self, data: bytes, processor: Processor) -> None:
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine(processor))
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(data))
        self._engine.finalize_object()
        self._addresses: dict[str, int] = {}

    def address(self, name: str) -> int:
        """Where the function of an entry begins; its symbol is no name of C's."""
        found = self._addresses.get(name)
        if found is None:
            found = self._addresses[name] = self._engine.get_function_address(f"tilefw.{name}")
        return found

    def variable(self, name: str) -> int:
        """Where a variable of the code stands; 0 where it has none of this name."""
        return self._engine.get_global_value_address(name)
