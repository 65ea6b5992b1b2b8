"""ProcessorDevice: a device whose code runs in this process, on the host's memory as it is, with programs of the grid over threads.

A plugin says how an artifact's code is loaded. Each entry is a C function

    int32 entry(block, scratch, next, all, grid_x, grid_y, grid_z)

that takes numbers of programs from the 64-bit count at `next`, in order, as long as they are below `all`, and runs them: `block`
points to the arguments, `scratch` to memory of the thread's own. It gives 0, or the number of the trap that a program met; then it
sets the count to `all`, so that nobody begins another. Number i is program (i % x, i / x % y, i / x / y).
"""

from __future__ import annotations

import ctypes
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, Protocol

import numpy as np

from tilefw.api.artifact import Artifact
from tilefw.api.device import Argument, BufferView, LaunchOptions, LaunchReport
from tilefw.api.errors import LaunchError
from tilefw.argument_block import BlockLayout
from tilefw.hardware.traps import finding_of

ALIGNMENT = 64  # bytes: a cache line, and the widest vector
TRAPS = "traps"
"""The key of an artifact's metadata under which its traps stand (`traps.metadata_of`)."""
_FUNCTION = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_uint32] * 3
)


class ProcessorCode(Protocol):
    """Code in this process's memory, which is there as long as the object is."""

    def address(self, name: str) -> int:
        """Where the function of an entry begins."""
        ...


@dataclass(frozen=True, slots=True)
class _Entry:
    call: Any
    layout: BlockLayout
    scratch_bytes: int


@dataclass(frozen=True, slots=True)
class ProcessorModule:
    """A loaded artifact: its code, and how each entry is called."""

    artifact: Artifact
    code: ProcessorCode
    entries: Mapping[str, _Entry]


@dataclass(frozen=True, slots=True)
class _Held:
    """Memory that a handle names: what was allocated keeps its array alive."""

    address: int
    nbytes: int
    array: Any = None


class ProcessorDevice(ABC):
    """`tilefw.api.Device` in this process. It makes no checks: what a kernel does out of bounds, it does."""

    executor: Literal["hw"] = "hw"
    assembled: bool = True
    checks: frozenset[str] = frozenset()

    def __init__(self, name: str, threads: int = 1) -> None:
        self.name = name
        self._threads = threads
        self._memory: dict[int, _Held] = {}
        self._next = 1
        self._scratch: dict[int, _Held] = {}  # by thread
        self._pool: ThreadPoolExecutor | None = None

    @abstractmethod
    def load_code(self, artifact: Artifact) -> ProcessorCode:
        """The artifact's code, ready to be called. Raises CodeError where it cannot be loaded."""

    # -- memory

    def allocate(self, nbytes: int, *, label: str = "", readonly: bool = False, element: str = "") -> int:
        """Memory of the device's own, for what cannot be shared."""
        array = np.empty(nbytes + ALIGNMENT, np.uint8)
        return self._keep(_Held(_aligned(array), nbytes, array))

    def share(self, address: int, nbytes: int) -> int:
        """The handle of memory of this process, which is used as it is."""
        return self._keep(_Held(address, nbytes))

    def _keep(self, held: _Held) -> int:
        handle = self._next
        self._next += 1
        self._memory[handle] = held
        return handle

    def free(self, handle: int) -> None:
        """End an allocation; shared memory stays its owner's."""
        self._memory.pop(handle, None)

    def write(self, handle: int, data: Any, offset: int = 0) -> None:
        """Copy `data` in. Raises LaunchError TFW0441 beyond the allocation."""
        view = np.frombuffer(memoryview(data).cast("B"), np.uint8)
        ctypes.memmove(self._inside(handle, offset, view.nbytes), view.ctypes.data, view.nbytes)

    def read(self, handle: int, nbytes: int, offset: int = 0) -> bytes:
        """Copy `nbytes` bytes out. Raises LaunchError TFW0441 beyond the allocation."""
        return ctypes.string_at(self._inside(handle, offset, nbytes), nbytes)

    def memory_info(self) -> Mapping[str, int]:
        """How many allocations there are, and their bytes, shared memory among them."""
        return {"allocations": len(self._memory), "allocated_bytes": sum(held.nbytes for held in self._memory.values())}

    def _found(self, handle: int) -> _Held:
        found = self._memory.get(handle)
        if found is None:
            raise LaunchError(f"handle {handle} names no allocation of {self.name}", "TFW0440")
        return found

    def _inside(self, handle: int, offset: int, nbytes: int) -> int:
        held = self._found(handle)
        if offset < 0 or offset + nbytes > held.nbytes:
            raise LaunchError(f"bytes {offset} to {offset + nbytes} are not in an allocation of {held.nbytes}", "TFW0441")
        return held.address + offset

    def _address(self, view: BufferView) -> int:
        return self._found(view.handle).address + view.offset

    # -- code

    def load(self, artifact: Artifact) -> ProcessorModule:
        """An artifact's code in this process."""
        code = self.load_code(artifact)
        entries = {e.name: _Entry(_FUNCTION(code.address(e.name)), BlockLayout(e, 64), e.scratch_bytes) for e in artifact.entries}
        return ProcessorModule(artifact, code, entries)

    def launch(
        self, module: ProcessorModule, entry: str, grid: Sequence[int], args: Sequence[Argument], options: LaunchOptions
    ) -> LaunchReport:
        """Run a grid; an assertion of the kernel that fails is a finding. Raises LaunchError TFW0347 for arguments that do not fit.
        """
        found = module.entries[entry]
        block = found.layout.pack(args, self._address, 64, self.name)
        counter = ctypes.c_int64(0)
        programs = prod(grid)
        if programs >= 1 << 63:
            raise LaunchError(f"a grid of {'x'.join(map(str, grid))} has more programs than a count of 64 bits", "TFW0323")
        workers = max(1, min(self._threads, programs))
        if workers == 1:
            begin = time.perf_counter()
            answer = found.call(block, self._scratch_of(0, found.scratch_bytes), ctypes.addressof(counter), programs, *grid)
            return self._report(module, entry, answer, time.perf_counter() - begin)
        # A list for all threads before any begins: a place of its own for each.
        scratch = [self._scratch_of(number, found.scratch_bytes) for number in range(workers)]

        def work(number: int) -> int:
            return found.call(block, scratch[number], ctypes.addressof(counter), programs, *grid)

        begin = time.perf_counter()
        others: list[Future[int]] = []
        try:
            others += [self._others().submit(work, number) for number in range(1, workers)]
            answers = [work(0)]
        except BaseException:
            counter.value = programs  # nobody begins another program
            raise
        finally:
            # Whoever has not begun by now would find no program left; whoever has works on memory that is there until it ends.
            begun = [other for other in others if not other.cancel()]
            wait(begun)
        answers += [other.result() for other in begun]
        seconds = time.perf_counter() - begin
        return self._report(module, entry, next((answer for answer in answers if answer), 0), seconds)

    def _report(self, module: ProcessorModule, entry: str, trap: int, seconds: float) -> LaunchReport:
        findings = (finding_of(module.artifact.metadata[TRAPS], entry, trap),) if trap else ()
        return LaunchReport(findings, seconds=seconds)

    def _others(self) -> ThreadPoolExecutor:
        """The threads beside the caller's."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads - 1, "tilefw")
        return self._pool

    def _scratch_of(self, thread: int, nbytes: int) -> int:
        held = self._scratch.get(thread)
        if held is None or held.nbytes < nbytes:
            array = np.empty(nbytes + ALIGNMENT, np.uint8)
            held = self._scratch[thread] = _Held(_aligned(array), nbytes, array)
        return held.address


def _aligned(array: np.ndarray[Any, Any]) -> int:
    return -(-array.ctypes.data // ALIGNMENT) * ALIGNMENT
