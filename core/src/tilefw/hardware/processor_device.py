"""ProcessorDevice: a device whose code runs in this process, on the host's memory as it is, with programs of the grid over threads.

A plugin says how an artifact's code is loaded. Each entry is a C function

    int32 entry(block, scratch, next, all, grid_x, grid_y, grid_z)

that takes numbers of programs from the 64-bit count at `next`, in order, as long as they are below `all`, and runs them: `block`
points to the arguments, `scratch` to memory of the thread's own. It gives 0, or the number of the trap that a program met; then it
sets the count to `all`, so that nobody begins another. Number i is program (i % x, i / x % y, i / x / y). A 32-bit word behind the
count is 0 until the launch is to end early: a loop that may run for long looks at it, and answers any negative number. Negative
numbers are the plugin's own beside (`stopped`). The next 32-bit word says how many numbers a thread does well to take at a time.
`TOLD` words of 64 bits behind it are for what such an answer means. They are 0 at first, and the launch's own.
"""

from __future__ import annotations

import ctypes
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from tilefw.api.artifact import Artifact
from tilefw.api.device import Argument, BufferView, Finding, LaunchOptions, LaunchReport
from tilefw.api.errors import LaunchError
from tilefw.argument_block import BlockLayout
from tilefw.hardware.interruption import interrupt_watch
from tilefw.hardware.ready_entry import ReadyEntry
from tilefw.hardware.traps import finding_of

ALIGNMENT = 64  # bytes: a cache line, and the widest vector
TOLD = 4
TRAPS = "traps"
"""The key of an artifact's metadata under which its traps stand (`traps.metadata_of`)."""
LOOKING = "looking"
"""The key of an artifact's metadata under which the entries stand whose programs look at the word that ends a launch early. An
artifact without it may have such programs anywhere."""
PROCESSOR_ENTRY = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_uint32] * 3
)
"""An entry as a function of Python's."""

_NOTHING: Mapping[str, int] = MappingProxyType({})
_PARTS = 32
"""A thread takes its programs in this many parts or a few more: the last to end keeps the others waiting for no longer than one.
Each taking waits until what was stored before is in memory."""
_MOST_TAKEN = (1 << 31) - 1


class _Counter(ctypes.Structure):
    """Of programs, and the words behind it."""

    _fields_: ClassVar = [
        ("next", ctypes.c_int64), ("ended", ctypes.c_uint32), ("part", ctypes.c_uint32), ("told", ctypes.c_int64 * TOLD)
    ]


def _part(programs: int, workers: int) -> int:
    """How many programs each of the workers takes at a time: all, where it is alone."""
    return min(programs if workers == 1 else max(1, programs // (_PARTS * workers)), _MOST_TAKEN)


class ProcessorCode(Protocol):
    """Code in this process's memory, which is there as long as the object is."""

    def address(self, name: str) -> int:
        """Where the function of an entry begins."""
        ...


@dataclass(frozen=True, slots=True)
class _Entry:
    """`looks`: its programs may look at the word that ends a launch early."""

    call: Callable[..., int]
    layout: BlockLayout
    scratch_bytes: int
    looks: bool


@dataclass(frozen=True, slots=True)
class ProcessorModule:
    """A loaded artifact: its code, and how each entry is called."""

    artifact: Artifact
    code: ProcessorCode
    entries: Mapping[str, _Entry]


@dataclass(frozen=True, slots=True)
class HeldMemory:
    """Memory that a handle names: what was allocated keeps its array alive, and has a byte in `defined` for each of its own, 0 as
    long as nobody has written there."""

    address: int
    nbytes: int
    label: str = ""
    readonly: bool = False
    element: str = ""
    array: Any = None
    defined: np.ndarray[Any, Any] | None = None


class ProcessorChecks(Protocol):
    """The checks of one launch, which the code itself makes. `serial`: programs run one after another, in order."""

    serial: bool

    def findings(self) -> Sequence[Finding]:
        """What they have found when the launch has ended."""
        ...


class _NoThreads(Exception):
    """No thread can be begun any more."""


class ProcessorDevice(ABC):
    """`tilefw.api.Device` in this process. What a kernel does out of bounds, it does, unless its code makes the checks that were
    asked for (`begin_checks`); none is made unasked."""

    executor: Literal["hw"] = "hw"
    assembled: bool = True
    checks: frozenset[str] = frozenset()
    unasked_checks: frozenset[str] = frozenset()

    def __init__(self, name: str, threads: int = 1) -> None:
        self.name = name
        self.threads = threads
        self._memory: dict[int, HeldMemory] = {}
        self._next = 1
        self._scratch: dict[int, HeldMemory] = {}  # by thread
        self._first: dict[int, object] = {}  # the launch that has the threads and their memory, by process; others have neither
        self._pool: ThreadPoolExecutor | None = None
        self._pool_of = 0  # the process: a fork has none of its threads

    @abstractmethod
    def load_code(self, artifact: Artifact) -> ProcessorCode:
        """The artifact's code, ready to be called. Raises CodeError where it cannot be loaded."""

    def entered(self, code: ProcessorCode, name: str) -> Callable[..., int]:
        """How an entry is called: as it is, unless a device has a way in of its own."""
        return PROCESSOR_ENTRY(code.address(name))

    def stopped(self, module: ProcessorModule, entry: str, answer: int, told: Sequence[int]) -> Finding:
        """What a negative answer of an entry means, and the words that it has `told`, where no check has found anything."""
        raise NotImplementedError

    def begin_checks(
        self, module: ProcessorModule, entry: str, grid: Sequence[int], options: LaunchOptions
    ) -> ProcessorChecks:
        """What a device whose code makes checks does before a launch that asks for some."""
        raise NotImplementedError

    # -- memory

    def allocate(self, nbytes: int, *, label: str = "", readonly: bool = False, element: str = "") -> int:
        """Memory of the device's own, for what cannot be shared."""
        array = np.empty(nbytes + ALIGNMENT, np.uint8)
        defined = np.zeros(nbytes, np.uint8) if self.checks else None
        return self._keep(HeldMemory(_aligned(array), nbytes, label, readonly, element, array, defined))

    def share(self, address: int, nbytes: int, *, label: str = "", readonly: bool = False, element: str = "") -> int:
        """The handle of memory of this process, which is used as it is."""
        return self._keep(HeldMemory(address, nbytes, label, readonly, element))

    @property
    def memory(self) -> Sequence[HeldMemory]:
        """What the handles name now."""
        return tuple(self._memory.values())

    def _keep(self, held: HeldMemory) -> int:
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
        defined = self._found(handle).defined
        if defined is not None:
            defined[offset : offset + view.nbytes] = 1

    def read(self, handle: int, nbytes: int, offset: int = 0) -> bytes:
        """Copy `nbytes` bytes out. Raises LaunchError TFW0441 beyond the allocation."""
        return ctypes.string_at(self._inside(handle, offset, nbytes), nbytes)

    def memory_info(self) -> Mapping[str, int]:
        """How many allocations there are, and their bytes, shared memory among them."""
        return {"allocations": len(self._memory), "allocated_bytes": sum(held.nbytes for held in self._memory.values())}

    def _found(self, handle: int) -> HeldMemory:
        found = self._memory.get(handle)
        if found is None:
            raise LaunchError(f"handle {handle} names no allocation of {self.name}", "TFW0440")
        return found

    def _inside(self, handle: int, offset: int, nbytes: int) -> int:
        held = self._found(handle)
        if offset < 0 or offset + nbytes > held.nbytes:
            raise LaunchError(f"bytes {offset} to {offset + nbytes} are not in an allocation of {held.nbytes}", "TFW0441")
        return held.address + offset

    def address_of(self, view: BufferView) -> int:
        """Where a place in an allocation is in this process's memory."""
        return self._found(view.handle).address + view.offset

    def _count_as_written(self, args: Sequence[Argument]) -> None:
        """What a launch stores that does not check initialisation is not noted."""
        for handle in [argument.handle for argument in args if isinstance(argument, BufferView) and argument.handle]:
            held = self._found(handle)
            if held.defined is not None:
                self._memory[handle] = replace(held, defined=None)

    # -- code

    def load(self, artifact: Artifact) -> ProcessorModule:
        """An artifact's code in this process."""
        code = self.load_code(artifact)
        looking = artifact.metadata.get(LOOKING, [e.name for e in artifact.entries])
        entries = {
            e.name: _Entry(self.entered(code, e.name), BlockLayout(e, 64), e.scratch_bytes, e.name in looking)
            for e in artifact.entries
        }
        return ProcessorModule(artifact, code, entries)

    def launch(
        self, module: ProcessorModule, entry: str, grid: Sequence[int], args: Sequence[Argument], options: LaunchOptions
    ) -> LaunchReport:
        """Run a grid; an assertion of the kernel that fails is a finding. Raises LaunchError TFW0347 for arguments that do not fit.
        """
        found = module.entries[entry]
        block = found.layout.pack(args, self.address_of, 64, self.name)
        if self._memory and "initialisation" not in options.checks:
            self._count_as_written(args)
        checks = self.begin_checks(module, entry, grid, options) if options.checks else None
        x, y, z = (*grid, 1, 1)[:3]
        return self._run(module, entry, found, (x, y, z), block, checks)

    def ready(self, module: ProcessorModule, entry: str, options: LaunchOptions) -> ReadyEntry:
        """`launch` without checks, of blocks of arguments that are packed."""
        found = module.entries[entry]
        return lambda grid, block, stream: self._run(module, entry, found, grid, block, None)

    def _run(
        self, module: ProcessorModule, entry: str, found: _Entry, grid: tuple[int, int, int], block: bytes,
        checks: ProcessorChecks | None,
    ) -> LaunchReport:
        programs = grid[0] * grid[1] * grid[2]
        if programs >= 1 << 63:
            raise LaunchError(f"a grid of {'x'.join(map(str, grid))} has more programs than a count of 64 bits", "TFW0323")
        process, own = os.getpid(), object()
        try:  # whatever comes between: who is first is told by what stands there
            within = self._first.setdefault(process, own) is not own  # another launch: of a signal's handler, or another thread's
            if programs == 1 and not found.looks:
                return self._run_one(module, entry, found, grid, block, checks, within)
            return self._run_programs(module, entry, found, grid, programs, block, checks, within)
        finally:
            if self._first.get(process) is own:
                del self._first[process]

    def _run_programs(
        self, module: ProcessorModule, entry: str, found: _Entry, grid: tuple[int, int, int], programs: int, block: bytes,
        checks: ProcessorChecks | None, within: bool,
    ) -> LaunchReport:
        """`within` another launch this thread runs all of it, in memory that the other does not use."""
        alone = programs < 2 or within or self.threads == 1 or (checks is not None and checks.serial)
        workers = 1 if alone else min(self.threads, programs)
        counter = _Counter(0, 0, _part(programs, workers))
        at = ctypes.addressof(counter)
        stop = partial(_end_soon, counter, programs)
        # For all threads before any begins: a place of its own for each.
        held = {} if within else self._scratch
        scratch = [_scratch_of(held, number, found.scratch_bytes) for number in range(workers)]
        begin = time.perf_counter()
        with interrupt_watch().watching(stop):
            if workers == 1:
                answer = found.call(block, scratch[0], at, programs, *grid)
            else:
                answer = self.share_out(module, entry, block, scratch, at, programs, grid, stop)
        seconds = time.perf_counter() - begin
        if counter.ended:
            raise KeyboardInterrupt
        if not answer:
            return LaunchReport((), _NOTHING, seconds)
        return self._report(module, entry, answer, checks, [word % (1 << 64) for word in counter.told], seconds)

    def _run_one(
        self, module: ProcessorModule, entry: str, found: _Entry, grid: tuple[int, int, int], block: bytes,
        checks: ProcessorChecks | None, within: bool,
    ) -> LaunchReport:
        """One program that nothing ends early: Ctrl-C waits for it, and nobody has to look out for that."""
        counter, held = _Counter(0, 0, 1), {} if within else self._scratch
        scratch = _scratch_of(held, 0, found.scratch_bytes)
        begin = time.perf_counter()
        answer = found.call(block, scratch, ctypes.addressof(counter), 1, *grid)
        seconds = time.perf_counter() - begin
        if not answer:
            return LaunchReport((), _NOTHING, seconds)
        return self._report(module, entry, answer, checks, [word % (1 << 64) for word in counter.told], seconds)

    def share_out(
        self, module: ProcessorModule, entry: str, block: bytes, scratch: Sequence[int], count: int, programs: int,
        grid: tuple[int, int, int], stop: Callable[[], None],
    ) -> int:
        """What one of the threads answered, other than 0 where any did. There is one for each place of `scratch`, the caller's
        first; `count` is where the count stands, and `stop` ends the launch early. A device may have threads of its own."""
        call = module.entries[entry].call

        def work(number: int) -> int:
            return call(block, scratch[number], count, programs, *grid)

        others: list[Future[int]] = []
        try:
            with suppress(_NoThreads):  # those that there are run all programs
                for number in range(1, len(scratch)):  # one by one: those that run are known where the next does not begin
                    others.append(Future())  # known before it begins: Ctrl-C may come before `submit` is back
                    self._begin(others[-1], work, number)
            answer = work(0)
            # Whoever has not begun by now would find no program left; whoever has works on memory that is there until it ends.
            others = [other for other in others if not other.cancel()]
            wait(others)
        except BaseException:
            _end(others, stop)
            raise
        return next((found for found in (answer, *(other.result() for other in others)) if found), 0)

    def _report(
        self, module: ProcessorModule, entry: str, answer: int, checks: ProcessorChecks | None, told: Sequence[int], seconds: float
    ) -> LaunchReport:
        if answer > 0:
            return LaunchReport((finding_of(module.artifact.metadata[TRAPS], entry, answer),), seconds=seconds)
        found = () if checks is None else tuple(checks.findings())
        return LaunchReport(found or (self.stopped(module, entry, answer, told),), seconds=seconds)

    def _begin(self, answer: Future[int], work: Callable[[int], int], number: int) -> None:
        """Another thread's work. Raises _NoThreads where Python begins no threads any more: it ends."""
        try:
            self._others().submit(_carry_out, answer, work, number)
        except RuntimeError:
            raise _NoThreads from None

    def _others(self) -> ThreadPoolExecutor:
        """The threads beside the caller's."""
        if self._pool is None or self._pool_of != os.getpid():
            self._pool, self._pool_of = ThreadPoolExecutor(self.threads - 1, "tilefw"), os.getpid()
        return self._pool


def _scratch_of(held: dict[int, HeldMemory], thread: int, nbytes: int) -> int:
    """Where a thread's own tiles go, of what is `held` for each."""
    found = held.get(thread)
    if found is None or found.nbytes < nbytes:
        array = _memory_of(nbytes + ALIGNMENT)
        found = held[thread] = HeldMemory(_aligned(array), nbytes, array=array)
    return found.address


def _carry_out(answer: Future[int], work: Callable[[int], int], number: int) -> None:
    """A thread's work, unless the launch has done without it."""
    if not answer.set_running_or_notify_cancel():
        return
    try:
        answer.set_result(work(number))
    except BaseException as error:
        answer.set_exception(error)


def _end_soon(counter: Any, programs: int) -> None:
    """End a launch early."""
    counter.next = programs  # nobody begins another program
    counter.ended = 1


def _end(others: Sequence[Future[int]], stop: Callable[[], None]) -> None:
    """End threads that work in memory which goes with the launch. A second Ctrl-C waits as well: the launch raises the first."""
    while True:
        with suppress(BaseException):
            stop()
            wait([other for other in others if not other.cancel()])
            return


def _memory_of(nbytes: int) -> np.ndarray[Any, Any]:
    """Bytes for a program's own tiles. Raises LaunchError TFW0348 where there are not so many."""
    try:
        return np.empty(nbytes, np.uint8)
    except MemoryError:
        raise LaunchError(f"a thread's tiles take {nbytes:,} bytes, and there are not so many left", "TFW0348") from None


def _aligned(array: np.ndarray[Any, Any]) -> int:
    return -(-array.ctypes.data // ALIGNMENT) * ALIGNMENT
