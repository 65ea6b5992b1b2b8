"""Wait states around products whose formats modifiers name, as llc asks for them: the passes are those of the formats."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from served import CHIPS

from hazards import llc
from hazards.pairs import MODE, Line, Pair, move, registers
from tilefw.api.sim import Instruction
from tilefw.sim.checks.hazards import HazardTracker
from tilefw_amd.isa.meaning.formats import SCALED_SHAPES, SHAPES, FormatShape
from tilefw_amd.isa.set import instruction_set
from tilefw_amd.isa.text.parser import parse
from tilefw_amd.machine.hazards import straight_hazards

CHIP = next(chip for chip in CHIPS if chip.generation >= 4)
ISA = instruction_set(CHIP)
_REGISTERS = {"fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4}
_FORMATS = [("fp8", "bf8"), ("fp4", "fp8"), ("fp6", "fp4"), ("fp4", "fp4")]
_CHOSEN = [shape for shape in (*SHAPES, *SCALED_SHAPES) if (shape.a, shape.b) in _FORMATS]


def line(shape: FormatShape, d: int, a: int = 200, b: int = 212, c: int = 100, scale: int = 90) -> Line:
    sizes = (shape.sums, _REGISTERS[shape.a], _REGISTERS[shape.b], shape.sums)
    names = [registers("v", first, size) for first, size in zip((d, a, b, c), sizes, strict=True)]
    cbsz, blgp = shape.codes
    written = "".join(f" {word}:{code}" for word, code in (("cbsz", cbsz), ("blgp", blgp)) if code)
    text = f"{shape.mnemonic} {', '.join(name for name, _ in names)}"
    (_, d_), *rest = names
    kinds = "_".join(f"f{element[2]}" for element in (shape.a, shape.b))
    machine = f"{shape.mnemonic.upper()}_{kinds}_vgprcd_e64 {', '.join(n for _, n in rest)}, {cbsz}, {blgp}"
    if not shape.scaled:
        return Line(f"{text}{written}", f"{d_} = {machine}, {MODE}")
    return Line(f"{text}, v{scale}, v91 op_sel_hi:[0,0,0]{written}", f"{d_} = {machine}, $vgpr{scale}, $vgpr91, 0, 0, {MODE}")


def pairs() -> Iterator[Pair]:
    for shape in _CHOSEN:
        name, passes = shape.name, shape.passes
        yield Pair(f"{name}, VALU reads", passes + 4, line(shape, 0), move(180, 1))
        yield Pair(f"{name}, VALU overwrites", passes + 4, line(shape, 0), move(1, 180))
        yield Pair(f"{name}, C overwritten", passes - 1, line(shape, 0), move(101, 180))
        yield Pair(f"{name}, A of the same", passes + 4, line(shape, 0), line(shape, 40, a=0))
        yield Pair(f"{name}, overlapping C of the same", passes + 2, line(shape, 40), line(shape, 60, c=42))
        yield Pair(f"{name}, chain", 0, line(shape, 0, c=0), line(shape, 0, c=0))
        yield Pair(f"{name}, VALU result as B", 2, move(212, 1), line(shape, 0))
        if shape.scaled:
            yield Pair(f"{name}, VALU result as a scale", 2, move(90, 1), line(shape, 0))
            yield Pair(f"{name}, a scale of the same", passes + 4, line(shape, 40), line(shape, 0, scale=41))


PAIRS = tuple(pairs())


def missing(first: str, second: str, states: int) -> list[str]:
    lines = [first, *(f"s_nop {min(left, 16) - 1}" for left in range(states, 0, -16)), second]
    program = [Instruction(i, text, text.split()[0], "", row=parse(ISA, text)) for i, text in enumerate(lines)]
    _, found = HazardTracker(straight_hazards(CHIP), program, ()).through(program, ())
    return [str(fault) for fault in found]


@pytest.mark.parametrize("pair", PAIRS, ids=[pair.name for pair in PAIRS])
def test_the_rules_ask_for_exactly_these_wait_states(pair: Pair) -> None:
    assert missing(pair.first.text, pair.second.text, pair.states) == []
    assert pair.states == 0 or missing(pair.first.text, pair.second.text, pair.states - 1)


@pytest.mark.skipif(llc.LLC is None, reason="needs llc-22")
def test_llvm_puts_exactly_these_wait_states() -> None:
    answers = llc.ask(PAIRS, CHIP)
    wanted = [(pair.states, [pair.first.text, pair.second.text]) for pair in PAIRS]
    assert [(p.name, w, a) for p, w, a in zip(PAIRS, wanted, answers, strict=True) if a != w] == []
