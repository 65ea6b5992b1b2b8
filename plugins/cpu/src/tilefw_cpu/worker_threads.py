"""Threads of the system's own that share a launch with its caller: they look out for the next one for a moment, and then sleep.

A thread has a slot of memory, with a word that says how it stands. The caller fills the slots and offers them, works itself, takes
back what nobody has begun by then, and waits for the rest: all in one call of machine code, so that nothing of Python's comes
between, Ctrl-C neither. Whoever waits sleeps by futex(2) after some tens of microseconds, about what a thread takes to wake up.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from tilefw_cpu.compile import NativeCode, keep, object_of
from tilefw_cpu.fault_guard import FAULT_SIGNALS
from tilefw_cpu.processor import Processor

_IDLE, _OFFERED, _RUNS, _AWAITED, _ASLEEP = range(5)
"""How a thread stands. `_AWAITED`: it runs, and the caller sleeps until it has ended."""
_SLOT_BYTES = 128  # two cache lines: processors fetch them in pairs
_TURNS_AT = 68  # of a slot: how often its thread looks before it sleeps
_ATTRIBUTE_BYTES, _DETACHED = 256, 1  # more than any pthread_attr_t; PTHREAD_CREATE_DETACHED of Linux' C libraries
_TOGETHER = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 7, ctypes.c_int64, *[ctypes.c_uint32] * 4)
"""`tilefw.together` as a function of Python's: the slots, whether a call uses them, how an entry is entered, the entry, its block,
the scratch of each thread, the count, the programs, the grid and how many threads there are with the caller."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """How a processor waits a moment: the system call of futex(2), the intrinsic that lets the processor rest, and how often that
    makes about 50 microseconds."""

    system_call: int
    declaration: str
    rest: str
    turns: int


_PROCESSORS = {
    # asm/unistd_64.h. PAUSE takes some 140 cycles since Skylake (Intel's optimization manual, 2.7.4).
    "x86_64": _Waiting(202, "declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()", 1000),
    # asm-generic/unistd.h. YIELD, which is hint 1 of the Arm Architecture Reference Manual, takes about a cycle.
    "aarch64": _Waiting(98, "declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)", 50000),
}
_WAIT, _WAKE = 128, 129  # FUTEX_WAIT and FUTEX_WAKE, of one process (FUTEX_PRIVATE_FLAG)

# A slot: how its thread stands, what it answered, and the call that it makes.
_TEXT = """target triple = "{triple}"
%job = type {{ i32, i32, ptr, ptr, ptr, ptr, ptr, i64, i32, i32, i32, i32 }}
declare i64 @syscall(i64, ...)
{declaration}

; Until the word is other than `now`, or for some turns: what it is then.
define internal i32 @look(ptr %word, i32 %now, i32 %turns) {{
begin:
  br label %turn
turn:
  %i = phi i32 [ 0, %begin ], [ %i1, %rest ]
  %found = load atomic i32, ptr %word seq_cst, align 4
  %same = icmp eq i32 %found, %now
  %few = icmp ult i32 %i, %turns
  %on = and i1 %same, %few
  br i1 %on, label %rest, label %end
rest:
  {rest}
  %i1 = add i32 %i, 1
  br label %turn
end:
  ret i32 %found
}}

; A thread: it never ends.
define ptr @"tilefw.member"(ptr %slot) {{
begin:
  %turns.at = getelementptr %job, ptr %slot, i64 0, i32 11
  %turns = load i32, ptr %turns.at
  br label %wait
wait:
  %found = call i32 @look(ptr %slot, i32 {idle}, i32 %turns)
  %offered = cmpxchg ptr %slot, i32 {offered}, i32 {runs} seq_cst seq_cst
  %begins = extractvalue {{ i32, i1 }} %offered, 1
  br i1 %begins, label %run, label %sleep
sleep:
  %tired = cmpxchg ptr %slot, i32 {idle}, i32 {asleep} seq_cst seq_cst
  %woken = call i64 (i64, ...) @syscall(i64 {futex}, ptr %slot, i32 {wait}, i32 {asleep}, ptr null)
  br label %wait
run:
  %answer.at = getelementptr %job, ptr %slot, i64 0, i32 1
  %enter.at = getelementptr %job, ptr %slot, i64 0, i32 2
  %enter = load ptr, ptr %enter.at
  %function.at = getelementptr %job, ptr %slot, i64 0, i32 3
  %function = load ptr, ptr %function.at
  %block.at = getelementptr %job, ptr %slot, i64 0, i32 4
  %block = load ptr, ptr %block.at
  %scratch.at = getelementptr %job, ptr %slot, i64 0, i32 5
  %scratch = load ptr, ptr %scratch.at
  %next.at = getelementptr %job, ptr %slot, i64 0, i32 6
  %next = load ptr, ptr %next.at
  %all.at = getelementptr %job, ptr %slot, i64 0, i32 7
  %all = load i64, ptr %all.at
  %x.at = getelementptr %job, ptr %slot, i64 0, i32 8
  %x = load i32, ptr %x.at
  %y.at = getelementptr %job, ptr %slot, i64 0, i32 9
  %y = load i32, ptr %y.at
  %z.at = getelementptr %job, ptr %slot, i64 0, i32 10
  %z = load i32, ptr %z.at
  %answer = call i32 %enter(ptr %function, ptr %block, ptr %scratch, ptr %next, i64 %all, i32 %x, i32 %y, i32 %z)
  store i32 %answer, ptr %answer.at
  %before = atomicrmw xchg ptr %slot, i32 {idle} seq_cst
  %awaited = icmp eq i32 %before, {awaited}
  br i1 %awaited, label %tell, label %wait
tell:
  %told = call i64 (i64, ...) @syscall(i64 {futex}, ptr %slot, i32 {wake}, i32 1)
  br label %wait
}}

define i32 @"tilefw.together"(ptr %slots, ptr %busy, ptr %enter, ptr %function, ptr %block, ptr %scratches, ptr %next, i64 %all,
  i32 %x, i32 %y, i32 %z, i32 %workers) {{
begin:
  %scratch = load ptr, ptr %scratches
  %others = sub i32 %workers, 1
  %shared = icmp ugt i32 %workers, 1
  br i1 %shared, label %claim, label %alone
claim:
  %used = cmpxchg ptr %busy, i32 0, i32 1 seq_cst seq_cst
  %free = extractvalue {{ i32, i1 }} %used, 1
  br i1 %free, label %offer, label %alone
alone:  ; there is no other thread, or they run another launch
  %lone = call i32 %enter(ptr %function, ptr %block, ptr %scratch, ptr %next, i64 %all, i32 %x, i32 %y, i32 %z)
  ret i32 %lone
offer:
  %i = phi i32 [ 0, %claim ], [ %i1, %offered ]
  %slot = getelementptr [{slot_bytes} x i8], ptr %slots, i32 %i
  %i1 = add i32 %i, 1
  %own.at = getelementptr ptr, ptr %scratches, i32 %i1
  %own = load ptr, ptr %own.at
  %enter.at = getelementptr %job, ptr %slot, i64 0, i32 2
  store ptr %enter, ptr %enter.at
  %function.at = getelementptr %job, ptr %slot, i64 0, i32 3
  store ptr %function, ptr %function.at
  %block.at = getelementptr %job, ptr %slot, i64 0, i32 4
  store ptr %block, ptr %block.at
  %scratch.at = getelementptr %job, ptr %slot, i64 0, i32 5
  store ptr %own, ptr %scratch.at
  %next.at = getelementptr %job, ptr %slot, i64 0, i32 6
  store ptr %next, ptr %next.at
  %all.at = getelementptr %job, ptr %slot, i64 0, i32 7
  store i64 %all, ptr %all.at
  %x.at = getelementptr %job, ptr %slot, i64 0, i32 8
  store i32 %x, ptr %x.at
  %y.at = getelementptr %job, ptr %slot, i64 0, i32 9
  store i32 %y, ptr %y.at
  %z.at = getelementptr %job, ptr %slot, i64 0, i32 10
  store i32 %z, ptr %z.at
  %stood = atomicrmw xchg ptr %slot, i32 {offered} seq_cst
  %slept = icmp eq i32 %stood, {asleep}
  br i1 %slept, label %wake, label %offered
wake:
  %woken = call i64 (i64, ...) @syscall(i64 {futex}, ptr %slot, i32 {wake}, i32 1)
  br label %offered
offered:
  %more = icmp ult i32 %i1, %others
  br i1 %more, label %offer, label %work
work:
  %first = call i32 %enter(ptr %function, ptr %block, ptr %scratch, ptr %next, i64 %all, i32 %x, i32 %y, i32 %z)
  br label %end
end:
  %j = phi i32 [ 0, %work ], [ %j1, %ended ]
  %result = phi i32 [ %first, %work ], [ %joint, %ended ]
  %member = getelementptr [{slot_bytes} x i8], ptr %slots, i32 %j
  %j1 = add i32 %j, 1
  %back = cmpxchg ptr %member, i32 {offered}, i32 {idle} seq_cst seq_cst
  %unbegun = extractvalue {{ i32, i1 }} %back, 1
  br i1 %unbegun, label %ended, label %await
await:
  %turns.at = getelementptr %job, ptr %member, i64 0, i32 11
  %turns = load i32, ptr %turns.at
  %seen = call i32 @look(ptr %member, i32 {runs}, i32 %turns)
  %still = cmpxchg ptr %member, i32 {runs}, i32 {awaited} seq_cst seq_cst
  %stands = load atomic i32, ptr %member seq_cst, align 4
  %busies = icmp eq i32 %stands, {awaited}
  br i1 %busies, label %rest, label %answered
rest:
  %rested = call i64 (i64, ...) @syscall(i64 {futex}, ptr %member, i32 {wait}, i32 {awaited}, ptr null)
  br label %await
answered:
  %answer.at = getelementptr %job, ptr %member, i64 0, i32 1
  %answer = load i32, ptr %answer.at
  %fine = icmp eq i32 %result, 0
  %chosen = select i1 %fine, i32 %answer, i32 %result
  br label %ended
ended:
  %joint = phi i32 [ %result, %end ], [ %chosen, %answered ]
  %left = icmp ult i32 %j1, %others
  br i1 %left, label %end, label %done
done:
  store atomic i32 0, ptr %busy seq_cst, align 4
  ret i32 %joint
}}
"""


class WorkerThreads:
    """Threads beside the caller's, begun as they are asked for. They and their slots live as long as the process."""

    def __init__(self, code: NativeCode, count: int, turns: int) -> None:
        self._code = code  # which the threads run
        self._memory = ctypes.create_string_buffer((count + 1) * _SLOT_BYTES)
        self._slots = -(-ctypes.addressof(self._memory) // _SLOT_BYTES) * _SLOT_BYTES
        self._used = ctypes.c_uint32()
        self._busy = ctypes.addressof(self._used)
        self._together = _TOGETHER(code.address("together"))
        self._begun, self._turns = 0, turns
        self._beginning = threading.Lock()

    def run(
        self, enter: int, entry: int, block: bytes, scratch: Sequence[int], count: int, programs: int, grid: tuple[int, int, int]
    ) -> int:
        """What one of the threads answered, other than 0 where any did: the caller's, and others as far as there are any."""
        # While another launch begins threads, or the one that a signal's handler interrupts, this one has those that there are.
        if self._begun < len(scratch) - 1 and self._beginning.acquire(blocking=False):
            try:
                self._begin(len(scratch) - 1)
            finally:
                self._beginning.release()
        workers = min(len(scratch), self._begun + 1)
        places = (ctypes.c_void_p * workers)(*scratch[:workers])
        return self._together(self._slots, self._busy, enter, entry, block, places, count, programs, *grid, workers)

    def _begin(self, count: int) -> None:
        """Threads up to so many, as far as the system begins them. They leave signals to Python's threads, but for faults."""
        if not self._begun:
            keep(self)
        libc = ctypes.CDLL(None)
        attributes, thread = ctypes.create_string_buffer(_ATTRIBUTE_BYTES), ctypes.c_size_t()
        libc.pthread_attr_init(attributes)
        libc.pthread_attr_setdetachstate(attributes, _DETACHED)
        if threading.stack_size():
            libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(threading.stack_size()))
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - set(FAULT_SIGNALS))
            while self._begun < count:
                slot = self._slots + self._begun * _SLOT_BYTES
                ctypes.c_uint32.from_address(slot + _TURNS_AT).value = self._turns
                start = ctypes.c_void_p(self._code.address("member"))
                self._begun += 1  # before Ctrl-C may come: a slot without a thread is taken back, one with two waits for ever
                if libc.pthread_create(ctypes.byref(thread), attributes, start, ctypes.c_void_p(slot)):
                    self._begun -= 1
                    return
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            libc.pthread_attr_destroy(attributes)


@cache
def worker_threads(processor: Processor, count: int, process: int) -> WorkerThreads | None:
    """Those of a process, up to `count` of them, for a launch at a time; None on a system whose calls are not known."""
    waiting = _waiting(processor)
    if waiting is None:
        return None
    spare = len(os.sched_getaffinity(0)) > count  # else whoever looks out has the processor of one that works
    return WorkerThreads(_code(processor), count, waiting.turns if spare else 0)


def _waiting(processor: Processor) -> _Waiting | None:
    return _PROCESSORS.get(processor.triple.split("-")[0]) if "linux" in processor.triple else None


@cache
def _code(processor: Processor) -> NativeCode:
    waiting = _waiting(processor)
    assert waiting is not None
    text = _TEXT.format(
        triple=processor.triple, declaration=waiting.declaration, rest=waiting.rest, futex=waiting.system_call, wait=_WAIT,
        wake=_WAKE, slot_bytes=_SLOT_BYTES, idle=_IDLE, offered=_OFFERED, runs=_RUNS, awaited=_AWAITED, asleep=_ASLEEP,
    )
    return NativeCode(object_of(text, processor, level=0), processor)
