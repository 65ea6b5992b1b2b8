"""Memory rows as rows: meanings trace on symbols, opcodes are LLVM's, every memory mnemonic of the chips has one."""

from __future__ import annotations

import re
from functools import partial

import pytest
from served import ISA, ISAS

from cdna3.lacking import lacking
from cdna3.llvm import Answer, disassemble, needs_llvm
from tilefw.api.sim import PRIMITIVES, trace
from tilefw_amd.isa.encoding.forms import assembled
from tilefw_amd.isa.row import Mode, Modifiers, Row
from tilefw_amd.isa.rows.accesses import visibility
from tilefw_amd.isa.rows.cache import buffer_inv, buffer_wbl2
from tilefw_amd.isa.set import InstructionSet

ENCODINGS = ("ds", "flat", "mtbuf", "mubuf")


def memory_rows(isa: InstructionSet) -> list[Row]:
    return [row for row in isa.rows.values() if not set(row.opcodes).isdisjoint(ENCODINGS)]


ROWS = list({id(row): row for isa in ISAS for row in memory_rows(isa)}.values())
_WAYS: tuple[dict[str, int], ...] = ({}, {"sc0": 1}, {"sc1": 1}, {"sc0": 1, "sc1": 1, "nt": 1}, {"offset": 12}, {"offset": 0xC425})
_IMPLICIT = {"m0": 32}


def modifiers(given: dict[str, int]) -> Modifiers:
    found = Modifiers(given)
    found.mode, found.form, found.chip = Mode(), None, ISA.chip
    return found


def widths_of(bits: int) -> int | tuple[int, ...]:
    return bits if bits <= 64 else (32,) * (bits // 32)


def sources(row: Row) -> list[int | tuple[int, ...]]:
    """Widths as the meaning gets them; an address of a buffer is a pair, as that of two offsets."""
    found: list[int | tuple[int, ...]] = []
    for operand in row.operands:
        if operand.role == "address":
            found.append(_address(row))
        elif operand.role == "source":
            found.append(widths_of(operand.type.bits))
        elif operand.role == "implicit source":
            found.append(_IMPLICIT[operand.name])
    return found + [widths_of(o.type.bits) for o in row.destinations if o.read]


def _address(row: Row) -> int | tuple[int, ...]:
    if "two offsets" in row.facts:
        return (32, 32)
    return 32 if row.unit == "lds" or "scratch" in row.facts else 64


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_a_meaning_traces_on_symbols(row: Row) -> None:
    """Of every row in every way: only primitives are asked for, and results have the widths of the pattern."""
    apart = {"offset1": 1} if "two offsets" in row.facts else {}
    for way in _WAYS:
        given = sources(row)
        flat = [bits for width in given for bits in (width if isinstance(width, tuple) else (width,))]
        extra = [1] * _predicates(row) if "buffer" in row.facts else []
        meaning = partial(_called, row.build(modifiers(way | apart)), row, given)
        steps, results = trace(meaning, [*flat, *extra], 64)
        assert {step.name for step in steps} <= set(PRIMITIVES)
        wanted = [bits for o in row.destinations for bits in _flat(widths_of(o.type.bits))]
        assert list(results) == wanted, (row.pattern, way)


def _flat(width: int | tuple[int, ...]) -> tuple[int, ...]:
    return width if isinstance(width, tuple) else (width,)


def _predicates(row: Row) -> int:
    data = next((o.type.registers for o in row.operands if o.role in ("source", "destination")), 1)
    return data // 2 if "compares" in row.facts else data


def _called(meaning, row, given, lanes, *values):
    """The meaning on symbols put together as its arguments are: tuples for wide operands, pairs for buffers."""
    values, arguments = list(values), []
    for width in given:
        taken = [values.pop(0) for _ in range(len(_flat(width)))]
        arguments.append(tuple(taken) if isinstance(width, tuple) else taken[0])
    if "buffer" in row.facts:
        place = [o.role for o in row.operands if o.role in ("address", "source", "implicit source")].index("address")
        arguments[place] = (arguments[place], tuple(values))
    return meaning(lanes, *arguments)


@needs_llvm
@pytest.mark.parametrize("isa", ISAS, ids=str)
def test_opcodes_are_llvms(isa: InstructionSet) -> None:
    """The plainest word of every form, read by LLVM: it must have our mnemonic."""
    forms = [form for row in memory_rows(isa) for form in assembled(row, isa.chip)]
    answers: list[Answer] = disassemble([form.value.to_bytes(8, "little") for form in forms], isa.chip)
    wrong = [(f.mnemonic, a.text or a.error) for f, a in zip(forms, answers, strict=True) if a.text.split(" ")[0] != f.mnemonic]
    assert wrong == []


@needs_llvm
@pytest.mark.parametrize("isa", ISAS, ids=str)
def test_no_memory_opcode_of_llvm_is_missing(isa: InstructionSet) -> None:
    """All opcodes of DS, FLAT, GLOBAL, SCRATCH and MUBUF that LLVM reads as code of the chip, with the fields that each wants zero;
    what is lacking is known."""
    ours = {form.mnemonic for row in memory_rows(isa) for form in assembled(row, isa.chip)}
    starts = [0xD8000000 | op << 17 for op in range(256)] + [0xE0000000 | op << 18 for op in range(128)]
    starts += [0xDC000000 | segment << 14 | op << 18 for op in range(128) for segment in range(3)]
    seconds = [0, 0x007F0000, 0x00010000, 0x04020000]
    words = [(first | second << 32).to_bytes(8, "little") for first in starts for second in seconds]
    theirs = {a.text.split(" ")[0] for a in disassemble(words, isa.chip) if a.text}
    missing = {m for m in theirs - ours if not re.match(r"ds_gws_", m)}
    assert missing == {m for m in lacking(isa.chip) if m.startswith(("ds_", "global_", "buffer_")) and " " not in m}
    assert len(theirs) > 300


def test_every_row_says_what_it_means_and_where_that_stands() -> None:
    assert [row.name for row in ROWS if not row.doc or not row.section] == []


@pytest.mark.parametrize(
    ("way", "order", "scope"),
    [({}, "weak", "workgroup"), ({"sc0": 1}, "relaxed", "workgroup"), ({"sc1": 1}, "relaxed", "device"),
     ({"sc0": 1, "sc1": 1}, "relaxed", "system"), ({"nt": 1}, "weak", "workgroup")],
)  # fmt: skip
def test_cache_bits_say_scope(way: dict[str, int], order: str, scope: str) -> None:
    assert visibility(modifiers(way)) == {"order": order, "scope": scope}


@pytest.mark.parametrize(("build", "order"), [(buffer_wbl2, "release"), (buffer_inv, "acquire")])
@pytest.mark.parametrize(
    ("way", "scope"), [({}, "wave"), ({"sc0": 1}, "workgroup"), ({"sc1": 1}, "device"), ({"sc0": 1, "sc1": 1}, "system")]
)
def test_cache_control_is_a_fence(build, order: str, way: dict[str, int], scope: str) -> None:
    steps, _ = trace(build(modifiers(way)), [], 64)
    assert [(step.name, step.operands) for step in steps] == [("fence", (order, scope))]


@pytest.mark.parametrize("name", ["ds_add_f32", "ds_min_rtn_f64", "ds_pk_add_f16", "ds_cmpst_f32"])
def test_local_float_atomics_that_would_flush_subnormals_are_refused(name: str) -> None:
    given = modifiers({})
    given.mode = Mode(flush32=True, flush64=True)
    with pytest.raises(ValueError, match="flushes subnormals is not simulated"):
        ISA.rows[name].build(given)
