"""The artifact's text: each kernel as a function that runs one program, and one that hands programs of the grid to a thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilefw.api import Entry
from tilefw.api.ir import FuncOp, place_of
from tilefw.api.tile import AxisInfoAnalysis, Effects, lower_function
from tilefw_cpu import checked_access
from tilefw_cpu.checked_writer import CheckedWriter
from tilefw_cpu.debug_lines import DebugLines
from tilefw_cpu.floating_modes import floating_modes
from tilefw_cpu.processor import Processor
from tilefw_cpu.spelling import llvm_type
from tilefw_cpu.writer import LlvmWriter

# A frame of more than a page is touched page by page: one that does not fit meets the end of the stack, and not what lies beyond.
_ATTRIBUTES = (
    'attributes #0 = { nounwind "prefer-vector-width"="%d" "min-legal-vector-width"="%d" "probe-stack"="inline-asm" }'
)
# A thread takes the next programs of the grid from a count that all share, in order, so that a program which waits for an earlier
# one does not wait for ever. It takes as many at a time as the launch says. A program's answer other than 0 ends the launch: nobody
# finds programs left.
_LAUNCH = """define i32 @"tilefw.{name}"(ptr %block, ptr %scratch, ptr %next, i64 %all,
  i32 %grid0, i32 %grid1, i32 %grid2) #0{behind} {{
begin:
  %x = zext i32 %grid0 to i64
  %y = zext i32 %grid1 to i64
{keep}{own}{first}  %stopped = getelementptr i64, ptr %next, i64 1
  %part.at = getelementptr i8, ptr %next, i64 12
  %part = load i32, ptr %part.at
  %any = icmp ne i32 %part, 0
  %some = select i1 %any, i32 %part, i32 1
  %step = zext i32 %some to i64
  br label %take
take:
  %first = atomicrmw add ptr %next, i64 %step seq_cst
  %rest = sub i64 %all, %first
  %there = icmp sgt i64 %rest, 0
  br i1 %there, label %go, label %end
go:
  %whole = icmp slt i64 %step, %rest
  %count = select i1 %whole, i64 %step, i64 %rest
  br label %run
run:
  %done = phi i64 [ 0, %go ], [ %more, %on ]
  %number = add i64 %first, %done
  %column = urem i64 %number, %x
  %higher = udiv i64 %number, %x
  %row = urem i64 %higher, %y
  %plane = udiv i64 %higher, %y
  %id0 = trunc i64 %column to i32
  %id1 = trunc i64 %row to i32
  %id2 = trunc i64 %plane to i32
  %answer = call i32 @"tilefw.{name}.program"(
    ptr %block, ptr %scratch, ptr %next, i32 %id0, i32 %id1, i32 %id2, i32 %grid0, i32 %grid1, i32 %grid2){within}
  %went = icmp eq i32 %answer, 0
  br i1 %went, label %on, label %stop
on:
  %more = add i64 %done, 1
  %left = icmp slt i64 %more, %count
  %asked = load atomic i32, ptr %stopped monotonic, align 8
  %free = icmp eq i32 %asked, 0
  %next.one = and i1 %left, %free
  br i1 %next.one, label %run, label %take
stop:
  store atomic i64 %all, ptr %next seq_cst, align 8
  br label %end
end:
  %result = phi i32 [ 0, %take ], [ %answer, %stop ]
{last}{back}  ret i32 %result
}}
"""


@dataclass(frozen=True, slots=True)
class EmittedFunction:
    """An entry beside its text: the bytes of scratch that one program takes, and who wrote it."""

    scratch_bytes: int
    writer: LlvmWriter


def functions_text(
    functions: Sequence[tuple[FuncOp, Entry]], processor: Processor, disjoint: bool, checked: bool = False
) -> tuple[str, dict[str, EmittedFunction]]:
    """The module's text, and of each entry what else there is to know; `checked` code makes the checks of its launch."""
    parts = [f'target triple = "{processor.triple}"\n']
    modes = floating_modes(processor)
    declared = modes.declarations()
    emitted: dict[str, EmittedFunction] = {}
    debug = DebugLines()
    if checked:
        parts.append(checked_access.TEXT)
    for function, entry in functions:
        writer = CheckedWriter(processor, debug) if checked else LlvmWriter(processor, debug)
        place = place_of(function, with_text=False)
        around = debug.function(f"{entry.name} (programs)", place)
        within = debug.within
        behind = debug.function(entry.name, place)
        scratch = lower_function(function, writer, Effects(disjoint), AxisInfoAnalysis(function))
        writer.finished()
        emitted[entry.name] = EmittedFunction(scratch, writer)
        first, last, keep, own, back = (
            text.replace("\n", f"{within}\n") for text in (*writer.tiles.around(), modes.keep, modes.own, modes.back)
        )
        launch = _LAUNCH.format(
            name=entry.name, behind=around, within=within, first=first, last=last, keep=keep, own=own, back=back
        )
        declared |= writer.declarations | writer.tiles.constants()
        parts += [_program(entry, writer, behind), launch]
    parts += [*sorted(declared.values()), _ATTRIBUTES % (processor.vector_bits, processor.vector_bits), debug.text()]
    return "\n".join(parts) + "\n", emitted


def _program(entry: Entry, writer: LlvmWriter, behind: str) -> str:
    loads: list[str] = []
    for number, (value, parameter) in enumerate(zip(writer.parameters, entry.parameters, strict=True)):
        kind = llvm_type(value.type)
        held = "i8" if kind == "i1" else kind
        loads.append(f"  %at{number} = getelementptr i8, ptr %block, i64 {parameter.offset}")
        name = f"%byte{number}" if kind == "i1" else value.text
        loads.append(f"  {name} = load {held}, ptr %at{number}, align {parameter.size}")
        if kind == "i1":
            loads.append(f"  {value.text} = icmp ne i8 {name}, 0")
    head = (
        f'define internal i32 @"tilefw.{entry.name}.program"(ptr noalias readonly %block, ptr noalias align 64 %scratch, '
        f"ptr %next, i32 %id0, i32 %id1, i32 %id2, i32 %grid0, i32 %grid1, i32 %grid2) alwaysinline #0{behind} {{"
    )
    return "\n".join([head, "begin:", *writer.variables, *loads, *writer.prologue, *writer.lines, "  ret i32 0", "}", ""])
