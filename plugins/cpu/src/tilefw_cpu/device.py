"""The processor at hand as a device."""

from __future__ import annotations

import os

from tilefw.api import Artifact, UsageError
from tilefw.api.hardware import ProcessorDevice
from tilefw_cpu.compile import NativeCode
from tilefw_cpu.processor import Processor

THREADS = "TILEFW_CPU_THREADS"


class NativeDevice(ProcessorDevice):
    """Runs object files that LLVM has made for a processor."""

    def __init__(self, name: str, processor: Processor) -> None:
        super().__init__(name, _threads())
        self._processor = processor

    def load_code(self, artifact: Artifact) -> NativeCode:
        assert artifact.binary is not None
        return NativeCode(artifact.binary, self._processor)


def _threads() -> int:
    asked = os.environ.get(THREADS)
    if not asked:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not (asked.isascii() and asked.isdigit() and int(asked)):
        raise UsageError(f"{THREADS} is a number of threads, not {asked!r}", code="TFW0902")
    return int(asked)
