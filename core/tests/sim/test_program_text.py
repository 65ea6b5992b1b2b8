"""Programs of the kit's text: what they compute, and that each thing they must not do is found at its line."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from tilefw.api.artifact import Artifact, Entry
from tilefw.api.device import BufferView, LaunchOptions, LaunchReport
from tilefw.api.errors import CodeError
from tilefw.sim.program_copies import COPY_ACTIONS, CopyingProgram, copy_shapes
from tilefw.sim.program_device import ProgramCall, ProgramDevice, SimulatedEntry
from tilefw.sim.program_steps import simulated_entry
from tilefw.sim.program_text import ARITIES, TextTable, parse_programs
from tilefw.sim.row_meanings import ROW_MEANINGS
from tilefw.tile.elementwise import ROWS

TABLE = TextTable("the machine", ROW_MEANINGS, copy_shapes(1), 16, 256)
HEAD = ".kernel k 256\n.param x pointer int32 0 8 -\nr1:i64 = param 0:i64\n"


class _Simulator(ProgramDevice):
    format = "text"

    def decode(self, artifact: Artifact, name: str) -> Mapping[str, SimulatedEntry]:
        def begin(call: ProgramCall, entry: Entry, registers: list) -> CopyingProgram:
            return CopyingProgram(call, entry, registers, 256, 2)

        kernels = parse_programs(artifact.text, name, TABLE)
        return {kernel.entry.name: simulated_entry(kernel, ROW_MEANINGS, COPY_ACTIONS, begin) for kernel in kernels}


def launched(body: str, written: bool = True, readonly: bool = False, programs: int = 1) -> tuple[LaunchReport, list[int]]:
    """What a launch tells, and the sixteen numbers of its buffer, which begin as 0, 1, 2, …"""
    device = _Simulator("machine")
    text = f"{HEAD}{body}.end\n"
    entries = tuple(kernel.entry for kernel in parse_programs(text, "k.text", TABLE))
    handle = device.allocate(64, label="x", readonly=readonly)
    if written:
        device.write(handle, np.arange(16, dtype=np.int32))
    module = device.load(Artifact("machine", "text", text, entries, metadata={"source_name": "k.text"}))
    report = device.launch(module, "k", (programs,), [BufferView(handle)], LaunchOptions(budget=1000))
    return report, np.frombuffer(device.read(handle, 64), np.int32).tolist()


def test_loops_variables_branches_and_masks_compute() -> None:
    body = """r2:i32 = var
set r2, 0:i32
r3:i64 = loop 0:i64, 10:i64, 3:i64
  r4:i32 = load.global r1, r3, 0:i64, 4:i64
  r5:i32 = copy r2
  r6:i32 = addi r5, r4
  set r2, r6
end
r7:i1 = ltu 1:i32, 2:i32
if r7
  r8:i32 = copy r2
  store.global r1, 0:i64, 0:i64, 4:i64, r8
end
r9:i64x16 = number
r10:i1x16 = eqi r9, 5:i64
store.global r1, 0:i64, 1:i64, 4:i64, 99:i32, r10
"""
    report, found = launched(body)
    assert not report.findings and found == [0 + 3 + 6 + 9, 1, 2, 3, 4, 99, *range(6, 16)]


def test_each_program_has_its_number_and_the_memory_that_those_before_left() -> None:
    body = "r2:i32 = id 0:i64\nr3:i64 = extu r2\nr4:i32 = load.global r1, 0:i64, 0:i64, 4:i64\nr5:i32 = addi r4, r2\n"
    report, found = launched(body + "store.global r1, 0:i64, 0:i64, 4:i64, r5\n", programs=5)
    assert not report.findings and found[0] == 0 + 1 + 2 + 3 + 4


def test_the_arities_of_rows_are_the_tables() -> None:
    assert {name: ARITIES.get(name, 2) for name in ROWS if "ptr" not in name} == {
        name: len(row.operands) for name, row in ROWS.items() if "ptr" not in name
    }


FAULTS = {
    "bounds": ("r2:i32x16 = load.global r1, 1:i64, 1:i64, 4:i64\n", {}, 4),
    "readonly": ("store.global r1, 0:i64, 0:i64, 4:i64, 1:i32\n", {"readonly": True}, 4),
    "initialisation": ("r2:i32 = load.global r1, 0:i64, 0:i64, 4:i64\n", {"written": False}, 4),
    "pending": ("dma.in.1 1:i64, 4:i64, r1, 0:i64, 4:i64, 4:i64, 4:i64\nstore.local 0:i64, 0:i64, 0:i64, 4:i64, 1:i32\n", {}, 5),
    "leftovers": ("dma.in.1 1:i64, 4:i64, r1, 0:i64, 4:i64, 4:i64, 4:i64\n", {}, 4),
    "budget": ("forever\nr2:i32 = addi 1:i32, 1:i32\nend\n", {}, 4),
}


@pytest.mark.parametrize("check", FAULTS)
def test_a_fault_is_a_finding_at_its_line(check: str) -> None:
    body, options, line = FAULTS[check]
    (finding,) = launched(body, **options)[0].findings
    assert finding.check == check and finding.code_place is not None and finding.code_place.file == "k.text"
    assert finding.code_place.line in (line, line + 2 * (check == "budget"))


@pytest.mark.parametrize(("body", "message"), [
    ("r2:i32 = addi 1:i32\n", "takes 2 operands, not 1"),
    ("r2:i32 = eqi 1:i32, 2:i32\n", "gives i1, not i32"),
    ("r2:i64 = addi 1:i32, 2:i32\n", "gives i32, not i64"),
    ("r2:i64 = copy 1:i32\n", "two types"),
    ("r2:i32 = tanh 1:f32\n", "no 'tanh.f32'"),
    ("r1:i32 = copy 1:i32\n", "r1 is there already"),
    ("leave 1:i1\n", "no 'forever'"),
    ("end\n", "no block to end"),
    ("set 1:i32\n", "takes 2 operands"),
    ("r2:i64 = param 1:i64\n", "has 1 parameters"),
    ("if 1:i32\nend\n", "takes i1 where i32 is"),
    ("r2:i32 = id 3:i64\n", "axes of a grid"),
    ("r2:i32 = id 0:i8\n", "takes i64 where i8 is"),
    ("r2:i32 = param 0:i64\n", "parameter x has 8 bytes, i32 has 4"),
    ("r2:i32 = loop 0:i64, 1:i64, 1:i64\nend\n", "two types"),
    ("r2:f32 = loop 0:f32, 1:f32, 1:f32\nend\n", "no loop counts in f32"),
    ("r2:i32 = select 1:i32, 1:i32, 1:i32\n", "takes i1 where i32 is"),
    ("r2:i64x16 = copy 1:i64\n", "as many as the result"),
    ("r2:i64x8 = number\nr3:i64x8 = part r2, 1:i64\n", "8 lanes to take a part of"),
    ("r2:i64x8 = number\ndma.in.1 1:i64, 4:i64, r2, 0:i64, 4:i64, 4:i64, 4:i64\n", "takes one lane where 8 are"),
    ("r2:i32 = bits 1:i64\n", "takes at most 32 bits where i64 is"),
    ("set 1:i32, 2:i32\n", "takes a variable"),
    ("r99999999999:i32 = copy 1:i32\n", "expected an instruction"),
    (".end\n.kernel k 0\n", "k is there already"),
])
def test_what_is_no_code_is_refused_at_its_line(body: str, message: str) -> None:
    with pytest.raises(CodeError, match=message) as told:
        launched(body)
    assert told.value.place is not None and told.value.place.line == 4 + (body.startswith(("r2:i64x8", ".end")))


def test_copies_of_elements_that_lie_between_one_another_are_in_flight_together() -> None:
    local = "r2:i64x16 = number\nr3:i32x16 = trunci r2\nstore.local 0:i64, 0:i64, 1:i64, 4:i64, r3\n"
    even = "dma.out.1 1:i64, 4:i64, r1, 0:i64, 8:i64, 8:i64, 4:i64\n"
    odd = "r4:i64 = addi r1, 4:i64\ndma.out.1 1:i64, 4:i64, r4, 32:i64, 8:i64, 8:i64, 4:i64\n"
    report, found = launched(local + even + odd + "wait 1:i64\n")
    assert not report.findings and found == [number // 2 + 8 * (number % 2) for number in range(16)]
    (finding,) = launched(local + even + odd.replace("4:i64\n", "2:i64\n", 1) + "wait 1:i64\n")[0].findings
    assert finding.check == "pending"


@pytest.mark.parametrize(("operands", "message"), [
    ("1:i64, 3:i64, r1, 0:i64, 4:i64", "1, 2, 4 or 8 bytes, not of 3"),
    ("1:i64, 4:i64, r1, 0:i64, 300:i64", "counts to 256"),
    ("2:i64, 4:i64, r1, 0:i64, 4:i64", "2 tags, no 2"),
])
def test_what_the_engine_cannot_do_is_a_finding(operands: str, message: str) -> None:
    (finding,) = launched(f"dma.in.1 {operands}, 4:i64, 4:i64\n")[0].findings
    assert finding.check == "bounds" and message in finding.message


def test_a_wait_for_a_tag_that_is_none_and_a_trap_without_a_message_are_findings() -> None:
    (finding,) = launched("wait 2:i64\n")[0].findings
    assert finding.check == "bounds"
    (finding,) = launched("trap 0:i64\n")[0].findings
    assert finding.check == "trap"


def test_an_address_below_0_is_in_no_buffer() -> None:
    """One lane is at the buffer's begin, the other 2^42 bytes before it."""
    lanes = f"r2:i64x2 = number\nr3:i64x2 = muli r2, {2**64 - 2**40}:i64\n"
    (finding,) = launched(lanes + "r4:i32x2 = load.global r1, r3, 0:i64, 4:i64\n")[0].findings
    assert finding.check == "bounds" and finding.code_place is not None and finding.code_place.line == 6
