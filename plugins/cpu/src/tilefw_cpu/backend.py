"""The cpu backend: tile IR to LLVM IR by the kit's loops, to an object file by LLVM, and the device that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tilefw.api import Artifact, Backend, CompileOptions, Device, Resources

if TYPE_CHECKING:
    from tilefw.api.ir import ModuleOp, ModulePass
    from tilefw_cpu.processor import Processor


class CpuBackend(Backend):
    """Compiles for the processor that this process runs on."""

    binary_suffix = ".o"
    toolchain_variables = ()
    program_steps = (
        ("emit", "Writes each program as loops over vectors of elements, in LLVM IR."),
        ("assemble", "Has LLVM simplify it and make native code."),
    )

    @property
    def processor(self) -> Processor:
        """The processor at hand."""
        from tilefw_cpu.processor import processor

        return processor()

    def toolchain_digest(self) -> str:
        """The processor and LLVM: code of one processor is none for an older one."""
        import llvmlite

        return f"{self.processor.digest} llvmlite {llvmlite.__version__}"

    def pipeline(self, options: CompileOptions) -> Sequence[ModulePass]:
        """Simplified tile IR is what `emit` takes."""
        return ()

    def emit(self, module: ModuleOp, options: CompileOptions) -> Artifact:
        from tilefw.api.hardware import LOOKING, TRAPS, metadata_of
        from tilefw.api.ir import FuncOp, entry_of
        from tilefw_cpu.checked_writer import CheckedWriter, metadata_of_checks
        from tilefw_cpu.emit import functions_text

        functions = [(op, entry_of(op)) for op in module.body.block.ops if isinstance(op, FuncOp)]
        checked = "checks" in options.facts
        text, emitted = functions_text(functions, self.processor, "disjoint" in options.facts, checked)
        metadata = {
            TRAPS: metadata_of({name: one.writer.traps for name, one in emitted.items()}),
            LOOKING: [name for name, one in emitted.items() if one.writer.looks],
        }
        if checked:
            metadata |= metadata_of_checks({n: one.writer for n, one in emitted.items() if isinstance(one.writer, CheckedWriter)})
        return Artifact(
            target=self.target.name, format="llvm", text=text,
            entries=tuple(replace(entry, scratch_bytes=emitted[entry.name].scratch_bytes) for _, entry in functions),
            resources=Resources(scratch_bytes=max((one.scratch_bytes for one in emitted.values()), default=0)),
            metadata=metadata,
        )

    def assemble(self, artifact: Artifact, options: CompileOptions) -> Artifact:
        from tilefw_cpu.compile import object_of

        return replace(artifact, binary=object_of(artifact.text, self.processor))

    def assembly(self, artifact: Artifact) -> str:
        """Of LLVM IR, which the artifact's text is."""
        from tilefw_cpu.compile import assembly_of

        return assembly_of(artifact.text, self.processor)

    def device(self, number: int | None = None) -> Device:
        from tilefw_cpu.device import NativeDevice

        return NativeDevice(self.target.name, self.processor)
