"""The backend: tile IR to C by the kit, a shared library by the system's C compiler, and the device that loads it."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tilefw.api import Artifact, Backend, CodeError, CompileError, CompileOptions, Device, Entry
from tilefw.api.hardware import ProcessorDevice, SharedLibrary

if TYPE_CHECKING:
    from tilefw.api.ir import ModuleOp, ModulePass
    from tilefw_cee.writer import CWriter

COMPILER = "CC"
FLAGS = ("-O3", "-shared", "-fPIC", "-w", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off")
_LAUNCH = """
int32_t tilefw_{name}(
    const char *block, char *scratch, int64_t *next, int64_t all, uint32_t grid0, uint32_t grid1, uint32_t grid2) {{
  for (;;) {{
    uint64_t number = (uint64_t)__atomic_fetch_add(next, 1, __ATOMIC_SEQ_CST);
    if ((int64_t)number >= all) return 0;
    uint64_t row = number / grid0;
    int32_t trap = tilefw_{name}_program(block, scratch, number % grid0, row % grid1, row / grid1, grid0, grid1, grid2);
    if (trap) {{ __atomic_store_n(next, all, __ATOMIC_SEQ_CST); return trap; }}
  }}
}}
"""


class CBackend(Backend):
    """Compiles by the compiler that the variable CC names, else by `cc`."""

    binary_suffix = ".so"
    toolchain_variables = ("PATH", COMPILER)

    @property
    def compiler(self) -> list[str] | None:
        """The compiler's command; None where there is none."""
        words = shlex.split(os.environ.get(COMPILER) or "cc")
        found = shutil.which(words[0]) if words else None
        return None if found is None else [found, *words[1:]]

    def toolchain_digest(self) -> str:
        """The compiler, its flags and the machine that it makes code for."""
        found = self.compiler
        if found is None:
            return ""
        told = subprocess.run([*found, "--version"], capture_output=True, text=True, check=False).stdout
        return f"{platform.machine()} {FLAGS} {told}"

    def pipeline(self, options: CompileOptions) -> Sequence[ModulePass]:
        """Simplified tile IR is what `emit` takes."""
        return ()

    def emit(self, module: ModuleOp, options: CompileOptions) -> Artifact:
        from tilefw.api.tile import loop_artifact, lower_module
        from tilefw_cee.rows import PRELUDE
        from tilefw_cee.writer import CWriter

        programs = lower_module(module, CWriter, options)
        parts = [_program(program.entry, program.machine) + _LAUNCH.format(name=program.entry.name) for program in programs]
        return loop_artifact(self.target.name, "c", "\n".join([PRELUDE, *parts]), programs)

    def assemble(self, artifact: Artifact, options: CompileOptions) -> Artifact:
        found = self.compiler
        if found is None:
            return artifact
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder, "kernel.c"), Path(folder, "kernel.so")
            source.write_text(artifact.text)
            command = [*found, *FLAGS, str(source), "-o", str(library), "-lm"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise CompileError(f"{found[0]} refuses the kernel's C", code="TFW0603", note=done.stderr.strip()[:2000])
            return replace(artifact, binary=library.read_bytes())

    def device(self, number: int | None = None) -> Device:
        return CDevice(self.target.name)


class CDevice(ProcessorDevice):
    """Loads shared libraries into this process."""

    def load_code(self, artifact: Artifact) -> SharedLibrary:
        if artifact.binary is None:
            raise CodeError("there is no C compiler here", code="TFW0601", help=f"install one, or name it by {COMPILER}")
        return SharedLibrary(artifact.binary, "tilefw_")


def _program(entry: Entry, writer: CWriter) -> str:
    from tilefw_cee.rows import c_type

    head = (
        f"static int32_t tilefw_{entry.name}_program(const char *block, char *scratch, uint32_t id0, uint32_t id1, uint32_t id2, "
        "uint32_t grid0, uint32_t grid1, uint32_t grid2) {"
    )
    arguments = [
        f"{c_type(value.type)} {value.text} = *({c_type(value.type)} *)(block + {parameter.offset});"
        for value, parameter in zip(writer.parameters, entry.parameters, strict=True)
    ]
    return "\n".join([head, *arguments, *writer.variables, *writer.lines, "return 0;", "}"])
