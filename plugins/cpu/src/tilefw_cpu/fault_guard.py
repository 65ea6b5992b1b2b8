"""A kernel that the processor stops ends its launch and not the process: a handler of signals, made by LLVM, that jumps back.

Code is entered through `tilefw.guarded`, which notes its thread. A fault of that thread comes back from there; a fault of any other
goes to whoever handled it before, and the guard stands again with the next launch. The handler touches nothing of Python's. It runs
on a stack of its own, since a kernel may have left none of the thread's.
"""

from __future__ import annotations

import ctypes
import os
import signal
from dataclasses import dataclass
from functools import cache
from typing import Any

from tilefw_cpu.compile import NativeCode, keep, object_of
from tilefw_cpu.floating_modes import floating_modes
from tilefw_cpu.processor import Processor

FAULT = -2
"""What `tilefw.guarded` answers where the code was stopped. The words behind the count then say, of the first thread that was: 1,
the address that it accessed, the instruction, and where its stack ended then."""
GUARDED = ctypes.CFUNCTYPE(
    ctypes.c_int32, *[ctypes.c_void_p] * 4, ctypes.c_int64, *[ctypes.c_uint32] * 3
)
"""`tilefw.guarded` as a function of Python's."""
_THREADS = 256  # that may be in kernels at the same time; one more is not guarded
FAULT_SIGNALS = tuple(getattr(signal, name) for name in ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL") if hasattr(signal, name))
_SIGINFO, _ONSTACK, _NODEFER = 4, 0x08000000, 0x40000000  # sigaction(2), Linux
_ACTION_BYTES = 152  # struct sigaction of Linux' C libraries on 64-bit processors
_FLAGS_AT = 136
# Where a handler's third argument has the instruction's address: ucontext_t of <sys/ucontext.h>. The stack pointer is right before.
_INSTRUCTION_AT = {"x86_64": 168, "aarch64": 440}
_JUMP_BYTES = 1024  # more than any jmp_buf
_RECORD_BYTES = 48  # of a thread before its jmp_buf: thread, address, instruction, place in @tilefw.active, stack pointer
_STACK_BYTES = 1 << 16  # of a handler: a signal's frame has all registers, of tiles 8 KiB

_TEXT = """target triple = "{triple}"
@"tilefw.active" = global [{threads} x ptr] zeroinitializer
@stacks = internal global [{threads} x ptr] zeroinitializer
@"tilefw.passed" = global i32 0
@"tilefw.before" = global [65 x ptr] zeroinitializer
@"tilefw.first" = global [65 x ptr] zeroinitializer
declare i64 @pthread_self()
declare i32 @{setjmp}(ptr, i32) returns_twice
declare void @siglongjmp(ptr, i32) noreturn
declare i32 @sigaction(i32, ptr, ptr)
declare i32 @sigaltstack(ptr, ptr)
declare ptr @malloc(i64)
declare i32 @raise(i32)
{declared}

define i32 @"tilefw.guarded"(ptr %function, ptr %block, ptr %scratch, ptr %next, i64 %all, i32 %x, i32 %y, i32 %z) {{
begin:
  %record = alloca [{record} x i8], align 16
  %new = alloca [24 x i8], align 8
  %old = alloca [24 x i8], align 8
  %stays = alloca i32
{keep}  %thread = call i64 @pthread_self()
  store volatile i64 %thread, ptr %record
  br label %slot
slot:
  %i = phi i64 [ 0, %begin ], [ %i1, %taken ]
  %full = icmp eq i64 %i, {threads}
  br i1 %full, label %open, label %claim
open:
  %plain = call i32 %function(ptr %block, ptr %scratch, ptr %next, i64 %all, i32 %x, i32 %y, i32 %z)
  ret i32 %plain
claim:
  %place = getelementptr ptr, ptr @"tilefw.active", i64 %i
  %pair = cmpxchg ptr %place, ptr null, ptr %record seq_cst seq_cst
  %mine = extractvalue {{ ptr, i1 }} %pair, 1
  br i1 %mine, label %enter, label %taken
taken:
  %i1 = add i64 %i, 1
  br label %slot
enter:
  %slot.at = getelementptr i8, ptr %record, i64 24
  store volatile ptr %place, ptr %slot.at
  %kept = getelementptr ptr, ptr @stacks, i64 %i
  %had = load ptr, ptr %kept
  %lacks = icmp eq ptr %had, null
  br i1 %lacks, label %make, label %stack
make:
  %made = call ptr @malloc(i64 {stack})
  %none = icmp eq ptr %made, null
  br i1 %none, label %without, label %keep
keep:
  store ptr %made, ptr %kept
  br label %stack
without:  ; a handler on the thread's own stack, which tells of all but its end
  store volatile i32 1, ptr %stays
  br label %mark
stack:
  %own = phi ptr [ %had, %enter ], [ %made, %keep ]
  store ptr %own, ptr %new
  %new.flags = getelementptr i8, ptr %new, i64 8
  store i32 0, ptr %new.flags
  %new.size = getelementptr i8, ptr %new, i64 16
  store i64 {stack}, ptr %new.size
  %set = call i32 @sigaltstack(ptr %new, ptr %old)
  %refused = icmp ne i32 %set, 0
  %refused.word = zext i1 %refused to i32
  store volatile i32 %refused.word, ptr %stays
  br label %mark
mark:
  %buffer = getelementptr i8, ptr %record, i64 {buffer}
  %again = call i32 @{setjmp}(ptr %buffer, i32 0) returns_twice
  %first = icmp eq i32 %again, 0
  br i1 %first, label %run, label %fault
run:
  %answer = call i32 %function(ptr %block, ptr %scratch, ptr %next, i64 %all, i32 %x, i32 %y, i32 %z)
  br label %leave
fault:  ; out of a signal's handler, which has modes of its own
{back}  store atomic i64 %all, ptr %next seq_cst, align 8
  %claimed = getelementptr i64, ptr %next, i64 2
  %claim.pair = cmpxchg ptr %claimed, i64 0, i64 1 seq_cst seq_cst
  %tells = extractvalue {{ i64, i1 }} %claim.pair, 1
  br i1 %tells, label %tell, label %leave
tell:
  %address.at = getelementptr i8, ptr %record, i64 8
  %address = load volatile i64, ptr %address.at
  %first.word = getelementptr i64, ptr %next, i64 3
  store i64 %address, ptr %first.word
  %instruction.at = getelementptr i8, ptr %record, i64 16
  %instruction = load volatile i64, ptr %instruction.at
  %second.word = getelementptr i64, ptr %next, i64 4
  store i64 %instruction, ptr %second.word
  %pointer.at = getelementptr i8, ptr %record, i64 32
  %stack.top = load volatile i64, ptr %pointer.at
  %third.word = getelementptr i64, ptr %next, i64 5
  store i64 %stack.top, ptr %third.word
  br label %leave
leave:
  %result = phi i32 [ %answer, %run ], [ {fault}, %fault ], [ {fault}, %tell ]
  %kept.stack = load volatile i32, ptr %stays
  %restores = icmp eq i32 %kept.stack, 0
  br i1 %restores, label %restore, label %gone
restore:
  %restored = call i32 @sigaltstack(ptr %old, ptr null)
  br label %gone
gone:
  %held = load volatile ptr, ptr %slot.at
  store atomic ptr null, ptr %held seq_cst, align 8
  ret i32 %result
}}

define void @"tilefw.handler"(i32 %signal, ptr %info, ptr %context) {{
begin:
  %me = call i64 @pthread_self()
  br label %slot
slot:
  %i = phi i64 [ 0, %begin ], [ %i1, %next ]
  %none = icmp eq i64 %i, {threads}
  br i1 %none, label %other, label %look
look:
  %place = getelementptr ptr, ptr @"tilefw.active", i64 %i
  %record = load atomic ptr, ptr %place seq_cst, align 8
  %empty = icmp eq ptr %record, null
  br i1 %empty, label %next, label %compare
compare:
  %thread = load volatile i64, ptr %record
  %mine = icmp eq i64 %thread, %me
  br i1 %mine, label %back, label %next
next:
  %i1 = add i64 %i, 1
  br label %slot
back:
  %from = getelementptr i8, ptr %info, i64 16
  %address = load i64, ptr %from
  %address.at = getelementptr i8, ptr %record, i64 8
  store volatile i64 %address, ptr %address.at
  %pc.from = getelementptr i8, ptr %context, i64 {instruction}
  %pc = load i64, ptr %pc.from
  %pc.at = getelementptr i8, ptr %record, i64 16
  store volatile i64 %pc, ptr %pc.at
  %sp.from = getelementptr i8, ptr %pc.from, i64 -8
  %sp = load i64, ptr %sp.from
  %sp.at = getelementptr i8, ptr %record, i64 32
  store volatile i64 %sp, ptr %sp.at
  %buffer = getelementptr i8, ptr %record, i64 {buffer}
  call void @siglongjmp(ptr %buffer, i32 1)
  unreachable
other:
  store atomic i32 1, ptr @"tilefw.passed" seq_cst, align 4
  %number = sext i32 %signal to i64
  %old.at = getelementptr ptr, ptr @"tilefw.before", i64 %number
  %old = load ptr, ptr %old.at
  %first.at = getelementptr ptr, ptr @"tilefw.first", i64 %number
  %first = load ptr, ptr %first.at
  store ptr %first, ptr %old.at
  %restored = call i32 @sigaction(i32 %signal, ptr %old, ptr null)
  ; A fault comes again; what a process has sent (si_code is not above 0) does not.
  %code.at = getelementptr i8, ptr %info, i64 8
  %code = load i32, ptr %code.at
  %fault = icmp sgt i32 %code, 0
  br i1 %fault, label %end, label %again
again:
  %raised = call i32 @raise(i32 %signal)
  br label %end
end:
  ret void
}}
"""


@dataclass(frozen=True, slots=True, eq=False)
class FaultGuard:
    """The guard of this process, as long as that lives, with what it has `kept`: `enter` is the address of `tilefw.guarded`."""

    enter: int
    handler: int
    before: int
    first: int
    active: int
    """Where the records of threads in kernels are told."""
    passed: ctypes.c_uint32
    """Not 0 once a signal that was no kernel's has gone to who was there before, and the guard with it."""
    kept: Any

    def forget(self) -> None:
        """In a fork: threads of its parent are in no kernel here, and a new thread may have the identity of one of them."""
        ctypes.memset(self.active, 0, 8 * _THREADS)

    def stand(self) -> None:
        """Handle the signals from here on, unless it is so: whoever handled them before hears of what is no kernel's."""
        self.passed.value = 0
        libc = ctypes.CDLL(None)
        for number in FAULT_SIGNALS:
            old = ctypes.create_string_buffer(_ACTION_BYTES)
            libc.sigaction(int(number), None, old)
            if ctypes.c_uint64.from_buffer(old).value == self.handler:
                continue
            self.kept.append(old)
            before, first = (ctypes.c_uint64.from_address(table + 8 * int(number)) for table in (self.before, self.first))
            before.value = ctypes.addressof(old)
            # Who came on top of this guard may give a signal back to it: then it goes to who was there before both.
            first.value = first.value or before.value
            new = ctypes.create_string_buffer(_ACTION_BYTES)
            ctypes.c_uint64.from_buffer(new).value = self.handler
            ctypes.c_uint32.from_buffer(new, _FLAGS_AT).value = _SIGINFO | _ONSTACK | _NODEFER
            libc.sigaction(int(number), new, None)


@cache
def fault_guard(processor: Processor) -> FaultGuard | None:
    """The process's guard; None on a system whose signals it does not know."""
    text = guard_text(processor)
    return None if text is None else guard_of(text, processor)


def guard_text(processor: Processor) -> str | None:
    """The guard in LLVM IR."""
    instruction = _INSTRUCTION_AT.get(processor.triple.split("-")[0])
    if "linux" not in processor.triple or instruction is None:
        return None
    modes = floating_modes(processor)
    return _TEXT.format(
        triple=processor.triple, threads=_THREADS, setjmp="__sigsetjmp" if "gnu" in processor.triple else "sigsetjmp",
        record=_RECORD_BYTES + _JUMP_BYTES, buffer=_RECORD_BYTES, stack=_STACK_BYTES, instruction=instruction, fault=FAULT,
        declared="\n".join(modes.declarations().values()), keep=modes.keep, back=modes.back,
    )


def guard_of(text: str, processor: Processor) -> FaultGuard:
    """A guard of such a text."""
    code = NativeCode(object_of(text, processor, level=0), processor)
    before, first, active = (code.variable(f"tilefw.{name}") for name in ("before", "first", "active"))
    passed = ctypes.c_uint32.from_address(code.variable("tilefw.passed"))
    found = FaultGuard(code.address("guarded"), code.address("handler"), before, first, active, passed, [code])
    keep(found)
    os.register_at_fork(after_in_child=found.forget)
    return found
