"""The table of commands: verb, module, summary. `tilefw --help` and completion read nothing else."""

from __future__ import annotations

COMMANDS: dict[str, tuple[str, str]] = {
    "targets": ("tilefw.cli.targets", "the registered targets and what each provides"),
    "plugins": ("tilefw.cli.plugins", "the installed plugins with their status"),
    "kernels": ("tilefw.cli.kernels", "the kernel library: names, parameters, what each computes"),
    "run": ("tilefw.cli.run", "compile, run and check a library kernel; run a Python script or a whole model on a target"),
    "compile": ("tilefw.cli.compile", "compile a kernel and stop at a level, or a whole model to a file"),
    "passes": ("tilefw.cli.passes", "the passes of a target in order, from tile IR to bytes"),
    "opt": ("tilefw.cli.opt", "run passes over IR text"),
    "simulate": ("tilefw.cli.simulate", "execute machine code from anywhere on a target's simulator"),
    "trace": ("tilefw.cli.trace", "a launch as a timeline: for Perfetto, or as a picture"),
    "profile": ("tilefw.cli.profile", "how long a launch takes on a chip by the model of time, and what limits it"),
    "links": ("tilefw.cli.links", "how long a collective takes on a system of devices by the model of links"),
    "tune": ("tilefw.cli.tune", "the fastest configuration of a kernel on a chip by the model of time, kept for its launches"),
    "asm": ("tilefw.cli.asm", "assembly text to binary, for targets whose encoding a plugin knows"),
    "disasm": ("tilefw.cli.disasm", "binary to assembly text, for targets whose encoding a plugin knows"),
    "conformance": ("tilefw.cli.conformance", "run the conformance suite on a target"),
    "new-backend": ("tilefw.cli.new_backend", "a working plugin project in a folder"),
    "doctor": ("tilefw.cli.doctor", "what is installed and usable here"),
    "explain": ("tilefw.cli.explain", "an error code in full"),
}

# Verbs of the design that are still to be written, each with what it will do.
ABSENT: dict[str, str] = {
    "bench": "measure against peers",
    "report": "pictures and pages",
}
