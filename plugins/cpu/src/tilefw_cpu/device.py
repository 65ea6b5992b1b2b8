"""The processor at hand as a device: arrays of the host as they are, programs of the grid over threads."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np

from tilefw.api import Argument, Artifact, BufferView, Finding, LaunchError, LaunchOptions, LaunchReport, Place
from tilefw.api.hardware import BlockLayout
from tilefw_cpu.compile import NativeCode
from tilefw_cpu.processor import Processor

THREADS = "TILEFW_CPU_THREADS"
_FUNCTION = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_uint32] * 3
)
_LINE = 64


@dataclass(frozen=True, slots=True)
class _LoadedCode:
    artifact: Artifact
    code: NativeCode
    functions: Mapping[str, Any]
    layouts: Mapping[str, BlockLayout]


class NativeDevice:
    """`tilefw.api.Device` in this process. It makes no checks: what a kernel does out of bounds, it does."""

    executor: Literal["hw"] = "hw"
    assembled = True
    checks: frozenset[str] = frozenset()

    def __init__(self, name: str, processor: Processor) -> None:
        self.name = name
        self._processor = processor
        self._memory: dict[int, tuple[int, Any, int]] = {}  # address, what keeps it alive, bytes
        self._next = 1
        self._scratch = _Scratch()
        self._threads = _threads()
        self._pool: ThreadPoolExecutor | None = None

    # -- memory

    def allocate(self, nbytes: int, *, label: str = "", readonly: bool = False, element: str = "") -> int:
        held = np.empty(nbytes + _LINE, np.uint8)
        return self._keep(-(-held.ctypes.data // _LINE) * _LINE, held, nbytes)

    def share(self, address: int, nbytes: int) -> int:
        """The handle of memory of this process, which is used as it is."""
        return self._keep(address, None, nbytes)

    def _keep(self, address: int, held: Any, nbytes: int) -> int:
        handle = self._next
        self._next += 1
        self._memory[handle] = (address, held, nbytes)
        return handle

    def free(self, handle: int) -> None:
        self._memory.pop(handle, None)

    def write(self, handle: int, data: Any, offset: int = 0) -> None:
        view = memoryview(data).cast("B")
        address, _, nbytes = self._found(handle)
        _inside(offset, view.nbytes, nbytes)
        ctypes.memmove(address + offset, np.frombuffer(view, np.uint8).ctypes.data, view.nbytes)

    def read(self, handle: int, nbytes: int, offset: int = 0) -> bytes:
        address, _, held = self._found(handle)
        _inside(offset, nbytes, held)
        return ctypes.string_at(address + offset, nbytes)

    def memory_info(self) -> Mapping[str, int]:
        return {"allocations": len(self._memory), "allocated_bytes": sum(nbytes for _, _, nbytes in self._memory.values())}

    def _found(self, handle: int) -> tuple[int, Any, int]:
        found = self._memory.get(handle)
        if found is None:
            raise LaunchError(f"handle {handle} names no allocation of {self.name}", "TFW0440")
        return found

    # -- code

    def load(self, artifact: Artifact) -> _LoadedCode:
        assert artifact.binary is not None
        code = NativeCode(artifact.binary, self._processor)
        functions = {entry.name: _FUNCTION(code.address(entry.name)) for entry in artifact.entries}
        return _LoadedCode(artifact, code, functions, {entry.name: BlockLayout(entry, 64) for entry in artifact.entries})

    def launch(
        self, module: _LoadedCode, entry: str, grid: Sequence[int], args: Sequence[Argument], options: LaunchOptions
    ) -> LaunchReport:
        """Run a grid; an assertion of the kernel that fails is a finding. Raises LaunchError TFW0347 for arguments that do not fit.
        """
        block = module.layouts[entry].pack(args, self._address, 64, self.name)
        scratch_bytes = module.artifact.entry(entry).scratch_bytes
        function = module.functions[entry]
        counter = ctypes.c_int64(0)
        programs = prod(grid)
        workers = max(1, min(self._threads, programs))

        def work(number: int) -> int:
            return function(block, self._scratch.address(number, scratch_bytes), ctypes.addressof(counter), programs, *grid)

        begin = time.perf_counter()
        if workers == 1:
            answers = [work(0)]
        else:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._threads, "tilefw-cpu")
            answers = list(self._pool.map(work, range(workers)))
        seconds = time.perf_counter() - begin
        failed = next((answer for answer in answers if answer), 0)
        findings = (_finding(module.artifact.metadata["traps"][entry][failed - 1]),) if failed else ()
        return LaunchReport(findings, seconds=seconds)

    def _address(self, view: BufferView) -> int:
        return self._found(view.handle)[0] + view.offset


def _finding(trap: Mapping[str, Any]) -> Finding:
    place = Place(trap["file"], trap["line"], trap["column"]) if "file" in trap else None
    return Finding("trap", "TFW0812", trap["message"], source=place)


class _Scratch:
    """The memory of programs' tiles, for each thread; it grows when a kernel needs more."""

    def __init__(self) -> None:
        self._held: dict[int, np.ndarray[Any, Any]] = {}

    def address(self, thread: int, nbytes: int) -> int:
        held = self._held.get(thread)
        if held is None or held.nbytes < nbytes + _LINE:
            held = self._held[thread] = np.empty(nbytes + _LINE, np.uint8)
        return -(-held.ctypes.data // _LINE) * _LINE


def _threads() -> int:
    asked = os.environ.get(THREADS, "")
    return max(1, int(asked)) if asked.isdigit() else max(1, len(os.sched_getaffinity(0)))


def _inside(offset: int, nbytes: int, held: int) -> None:
    if offset < 0 or offset + nbytes > held:
        raise LaunchError(f"bytes {offset} to {offset + nbytes} are not in an allocation of {held}", "TFW0441")
