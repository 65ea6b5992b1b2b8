"""The processor at hand as a device."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial

from tilefw.api import Argument, Artifact, Finding, LaunchOptions, LaunchReport, UsageError
from tilefw.api.hardware import ProcessorCode, ProcessorDevice, ProcessorModule, ReadyEntry
from tilefw_cpu.compile import NativeCode
from tilefw_cpu.fault_guard import GUARDED, fault_guard
from tilefw_cpu.launch_checks import CHECKS, LaunchChecks, refuse_checked
from tilefw_cpu.line_table import ObjectLines
from tilefw_cpu.processor import Processor
from tilefw_cpu.worker_threads import worker_threads

THREADS = "TILEFW_CPU_THREADS"
_PROBED = 4096
"""Bytes beside the stack pointer that count as the stack: code touches a larger frame in steps of this size (`probe-stack`), so it
meets the end of the stack no further away."""


class NativeDevice(ProcessorDevice):
    """Runs object files that LLVM has made for a processor. The checks are made by code that was compiled for them."""

    checks = CHECKS

    def __init__(self, name: str, processor: Processor) -> None:
        super().__init__(name, _threads())
        self._processor = processor

    def load_code(self, artifact: Artifact) -> NativeCode:
        assert artifact.binary is not None
        return NativeCode(artifact.binary, self._processor)

    def entered(self, code: ProcessorCode, name: str) -> Callable[..., int]:
        """By the guard, where the system has one."""
        guard = fault_guard(self._processor)
        if guard is None:
            return super().entered(code, name)
        guard.stand()
        return partial(GUARDED(guard.enter), code.address(name))

    def launch(
        self, module: ProcessorModule, entry: str, grid: Sequence[int], args: Sequence[Argument], options: LaunchOptions
    ) -> LaunchReport:
        if not options.checks:
            refuse_checked(module, entry)
        self._stand_again()
        return super().launch(module, entry, grid, args, options)

    def ready(self, module: ProcessorModule, entry: str, options: LaunchOptions) -> ReadyEntry:
        refuse_checked(module, entry)
        run, guard = super().ready(module, entry, options), fault_guard(self._processor)
        if guard is None:
            return run
        passed, stand = guard.passed, guard.stand

        def guarded(grid: tuple[int, int, int], block: bytes, stream: int) -> LaunchReport:
            if passed.value:  # as `_stand_again`
                stand()
            return run(grid, block, stream)

        return guarded

    def share_out(
        self, module: ProcessorModule, entry: str, block: bytes, scratch: Sequence[int], count: int, programs: int,
        grid: tuple[int, int, int], stop: Callable[[], None],
    ) -> int:
        """Over threads that are begun once, where the system is known."""
        guard = fault_guard(self._processor)
        workers = worker_threads(self._processor, self.threads - 1, os.getpid())
        if guard is None or workers is None:
            return super().share_out(module, entry, block, scratch, count, programs, grid, stop)
        return workers.run(guard.enter, module.code.address(entry), block, scratch, count, programs, grid)

    def _stand_again(self) -> None:
        """The guard stands, also after a signal that has gone to others."""
        guard = fault_guard(self._processor)
        if guard is not None and guard.passed.value:
            guard.stand()

    def stopped(self, module: ProcessorModule, entry: str, answer: int, told: Sequence[int]) -> Finding:
        _, address, instruction, stack = told
        code, artifact = module.code, module.artifact
        assert isinstance(code, NativeCode) and artifact.binary is not None
        table = ObjectLines(artifact.binary)
        place = table.place(instruction - code.address(entry) + table.symbols[f"tilefw.{entry}"])
        if abs(stack - address) <= _PROBED:
            return Finding(
                "fault", "TFW0355", "the kernel needs more of the thread's stack than there is", source=place,
                note="what does not fit into registers stands there; smaller tiles need less, and `ulimit -s` and "
                "`threading.stack_size` say how much there is",
            )
        return Finding(
            "fault", "TFW0355", f"the processor stopped the kernel at an access to address {address:#x}", source=place,
            note="an access that changes memory of others goes unseen where the processor does not stop it",
        )

    def begin_checks(self, module: ProcessorModule, entry: str, grid: Sequence[int], options: LaunchOptions) -> LaunchChecks:
        return LaunchChecks(module, entry, grid, self.memory, options)


def _threads() -> int:
    asked = os.environ.get(THREADS)
    if not asked:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not (asked.isascii() and asked.isdigit() and len(asked) < 5 and int(asked)):
        raise UsageError(f"{THREADS} is a number of threads below 10,000, not {asked!r}", code="TFW0902")
    return int(asked)
