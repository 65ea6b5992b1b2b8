"""Primitives that were recorded, as one LLVM function over arrays of registers.

Registers are arrays [workgroups, waves, lanes] of size 1 on every axis where values agree. The `Axes` of a value say on which it
has its own; they are those of its operands together. Values of like axes are computed in one nest of loops over these axes, the
innermost over lanes, as many at once as fill a register of the processor. Nests with fewer axes come first, so that operands
are there: what one nest gives another lies in memory, as the function's results do. Masks of lanes, which `ballot` makes of all
lanes of a wave, are there when the nest has ended: what follows from them is of a later stage.

    i32 run(ptr addresses, i64 workgroups, i64 waves)      0: done; 1: refused, nothing that it has written counts
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tilefw.sim.algebra.recording import RecordedStep, RecordedValue
from tilefw.sim.compiled.floats import PrintedFloats
from tilefw.sim.compiled.integers import PrintedIntegers
from tilefw.sim.compiled.lines import Lines, NotPrinted, Printed

Axes = int
"""Of a value: 1 where lanes differ, 2 where waves do, 4 where workgroups do."""
LANES, WAVES, GROUPS = 1, 2, 4
NAME = "tilefw.run"
MASK_LANES = 64
"""Lanes of a wave whose masks have lines: two words of 32 bits."""
Nest = tuple[int, Axes]
"""A stage, and the axes of its loops."""


class PrintedLanes(PrintedIntegers, PrintedFloats):
    """The printing form of the lane algebra: primitives that have lines. Any other raises NotPrinted."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines


def printed(lines: Lines, step: RecordedStep, operands: Sequence[Any]) -> tuple[Printed, ...]:
    """The lines of one primitive, on operands that are printed. Raises NotPrinted."""
    method = getattr(PrintedLanes, step.name, None)
    if method is None:
        raise NotPrinted(step.name)
    result = method(PrintedLanes(lines), *operands, **dict(step.keywords))
    return result if isinstance(result, tuple) and not isinstance(result, Printed) else (result,)


def _values_of(operands: Iterable[Any]) -> list[RecordedValue]:
    """The recorded values among operands, those in lists too."""
    found: list[RecordedValue] = []
    for operand in operands:
        if isinstance(operand, RecordedValue):
            found.append(operand)
        elif isinstance(operand, (list, tuple)):
            found += _values_of(operand)
    return found


def values_taken(step: RecordedStep) -> list[RecordedValue]:
    """The values that a step takes."""
    return _values_of((*step.operands, *(value for _, value in step.keywords)))


def has_lines(step: RecordedStep, masks: bool = False) -> bool:
    """Whether a primitive with these widths has lines; those that make masks of lanes, or take them apart, only with `masks`."""
    if step.name in ("ballot", "unballot"):
        return masks
    if any(value.bits > 64 for value in (*step.results, *values_taken(step))):
        return False
    return _has_lines(step.name, tuple(map(_any_printed, step.operands)), tuple((k, _any_printed(v)) for k, v in step.keywords))


def _any_printed(operand: Any) -> Any:
    """An operand that stands for any with its widths; it can be a key."""
    found = _mapped(operand, lambda value: Printed("%x", f"i{value.bits}"))
    return tuple(found) if type(found) is list else found


@lru_cache(maxsize=16384)
def _has_lines(name: str, operands: tuple[Any, ...], keywords: tuple[tuple[str, Any], ...]) -> bool:
    try:
        printed(Lines(8), RecordedStep(name, operands, keywords, ()), operands)
    except NotPrinted:
        return False
    return True


def _mapped(operand: Any, change: Any) -> Any:
    if isinstance(operand, RecordedValue):
        return change(operand)
    if isinstance(operand, (list, tuple)):
        return type(operand)(_mapped(o, change) for o in operand)
    return operand


@dataclass(frozen=True, slots=True)
class Recorded:
    """Steps on `inputs`, of which `outputs` are wanted."""

    steps: tuple[RecordedStep, ...]
    inputs: tuple[RecordedValue, ...]
    outputs: tuple[RecordedValue, ...]
    wave_size: int


@dataclass(frozen=True, slots=True)
class FunctionText:
    """An LLVM module with the function. Its addresses are those of the inputs, the outputs and the `kept` values between nests, in
    this order; `axes` are those of outputs and kept values, `widths` their bits."""

    text: str
    axes: tuple[Axes, ...]
    widths: tuple[int, ...]


class _Function:
    def __init__(self, recorded: Recorded, axes: Mapping[int, Axes], vector: int) -> None:
        self.recorded, self.vector = recorded, vector
        self.axes = dict(axes)
        self.stages = dict.fromkeys(axes, 0)
        self.nests: dict[Nest, list[RecordedStep]] = {}
        self.nest_of: dict[int, Nest] = {}
        for step in recorded.steps:
            self._place(step)
        made = {result.number: step for step in recorded.steps for result in step.results}
        self.constants = {number: step for number, step in made.items() if step.name == "const"}
        self.places = {value.number: i for i, value in enumerate(recorded.inputs)}
        for value in recorded.outputs:
            self.places.setdefault(value.number, len(self.places))
        self.memory = [*recorded.inputs, *recorded.outputs]
        assert len(self.places) == len(self.memory), "an input is no output, and no output is named twice"
        for nest, steps in self.nests.items():
            for step in steps:
                for value in (*values_taken(step), *(step.results if step.name == "ballot" else ())):
                    elsewhere = self.nest_of.get(value.number) != nest or made[value.number].name == "ballot"
                    if elsewhere and value.number not in self.places and value.number not in self.constants:
                        self.places[value.number] = len(self.memory)
                        self.memory.append(value)
        self.body: list[str] = []
        self.last = "entry"
        self.declared: set[str] = set()

    def _place(self, step: RecordedStep) -> None:
        """The nest of a step, and of its results their axes and stage."""
        mine = stage = 0
        for value in values_taken(step):
            mine |= self.axes[value.number]
            stage = max(stage, self.stages[value.number])
        if step.name == "unballot":
            if mine & LANES:
                raise NotPrinted("a mask for each lane")
            mine |= LANES
        self.nests.setdefault((stage, mine), []).append(step)
        masks = step.name == "ballot"
        for result in step.results:
            self.axes[result.number] = mine & ~LANES if masks else mine
            self.stages[result.number] = stage + masks
            self.nest_of[result.number] = stage, mine

    def text(self) -> FunctionText:
        for stage, mine in sorted(self.nests, key=lambda nest: (nest[0], nest[1].bit_count(), nest[1])):
            steps = self.nests[stage, mine]
            if any(step.name != "const" or step.results[0].number in self.places for step in steps):
                self._nest(stage, mine, steps)
        head = [f'define i32 @"{NAME}"(ptr noalias readonly %addresses, i64 %groups, i64 %waves) {{', "entry:"]
        for place in range(len(self.memory)):
            head.append(f"%a{place} = getelementptr ptr, ptr %addresses, i64 {place}")
            head.append(f"%p{place} = load ptr, ptr %a{place}")
        tail = ["ret i32 0", "refused:", "ret i32 1", "}", *sorted(self.declared)]
        made = self.memory[len(self.recorded.inputs):]
        return FunctionText(
            "\n".join([*head, *self.body, *tail]) + "\n", tuple(self.axes[v.number] for v in made), tuple(v.bits for v in made)
        )

    def _nest(self, stage: int, axes: Axes, steps: Sequence[RecordedStep]) -> None:
        """One nest of loops with its steps."""
        lanes = axes & LANES and min(self.vector, self.recorded.wave_size)
        tag = f"{stage}.{axes}."
        body = _Body(self, (stage, axes), lanes, tag)
        for step in steps:
            body.step(step)
        body.finish(f"kept{tag}")
        counts = [("g", "%groups" if axes & GROUPS else "1", 1), ("w", "%waves" if axes & WAVES else "1", 1)]
        if lanes:
            counts.append(("l", str(self.recorded.wave_size), lanes))
        previous = self.last
        for letter, _, _ in counts:
            self.body += [
                f"br label %{letter}{tag}", f"{letter}{tag}:",
                f"%{letter}{tag}.i = phi i64 [ 0, %{previous} ], [ %{letter}{tag}.n, %{letter}{tag}.end ]",
            ]
            previous = f"{letter}{tag}"
            if letter == "w":
                self.body += body.head
        self.body += body.lines.text
        for letter, count, step in reversed(counts):
            self.body += [
                f"br label %{letter}{tag}.end", f"{letter}{tag}.end:",
                f"%{letter}{tag}.n = add nuw nsw i64 %{letter}{tag}.i, {step}",
                f"%{letter}{tag}.c = icmp ult i64 %{letter}{tag}.n, {count}",
                f"br i1 %{letter}{tag}.c, label %{letter}{tag}, label %{letter}{tag}.done", f"{letter}{tag}.done:",
            ]
        self.last = f"g{tag}.done"
        self.declared |= body.lines.declared


class _Body:
    """What one nest does for some lanes of a wave, or once where it has no lanes of its own."""

    def __init__(self, function: _Function, nest: Nest, lanes: int, tag: str) -> None:
        self.function, self.nest, self.axes, self.tag = function, nest, nest[1], tag
        self.lines = Lines(lanes, f"n{tag}")
        self.known: dict[int, Printed] = {}
        self.head: list[str] = []

    def step(self, step: RecordedStep) -> None:
        if step.name == "const" and step.results[0].number not in self.function.places:
            return
        if step.name == "ballot":
            self._ballot(step)
            return
        if step.name == "unballot":
            self.known[step.results[0].number] = self._unballot(*step.operands)
            return
        operands = [_mapped(o, self.value) for o in step.operands]
        step = RecordedStep(step.name, step.operands, tuple((k, _mapped(v, self.value)) for k, v in step.keywords), step.results)
        for value, result in zip(step.results, printed(self.lines, step, operands), strict=True):
            self.known[value.number] = result

    def _ballot(self, step: RecordedStep) -> None:
        """Each lanes' bits go to their place in the words of their wave."""
        lines, count, tag = self.lines, self.lines.lanes, self.tag
        p = self.value(step.operands[0])
        for result, first in zip(step.results, (0, 32), strict=True):
            place = self.function.places[result.number]
            name = f"%word{tag}{place}"
            if not count:  # all lanes agree
                word = lines.put("i32", f"sext i1 {p.text} to i32")
                self._address(name, place, self.axes, "i32")
                lines.text.append(f"store i32 {word.text}, ptr {name}.p")
                continue
            self._address(name, place, self.axes & ~LANES, "i32")
            bits = lines.put(f"i{count}", f"bitcast <{count} x i1> {p.text} to i{count}")
            lines.text += [
                f"{name}.f = sub i64 %l{tag}.i, {first}", f"{name}.c = icmp ult i64 {name}.f, 32",
                f"br i1 {name}.c, label %put{tag}{place}, label %past{tag}{place}", f"put{tag}{place}:",
                f"{name}.y = lshr i64 {name}.f, 3", f"{name}.q = getelementptr i8, ptr {name}.p, i64 {name}.y",
                f"store i{count} {bits.text}, ptr {name}.q, align {count // 8}",
                f"br label %past{tag}{place}", f"past{tag}{place}:",
            ]

    def _unballot(self, low: RecordedValue, high: RecordedValue) -> Printed:
        """The bits of these lanes, of words that one wave has."""
        lines, count, tag = self.lines, self.lines.lanes, self.tag
        words = [self._number(word) for word in (low, high)]
        name = lines.name()
        lines.text += [
            f"{name}.c = icmp ult i64 %l{tag}.i, 32", f"{name}.w = select i1 {name}.c, i32 {words[0]}, i32 {words[1]}",
            f"{name}.t = trunc i64 %l{tag}.i to i32", f"{name}.m = and i32 {name}.t, 31",
            f"{name}.s = lshr i32 {name}.w, {name}.m", f"{name}.b = trunc i32 {name}.s to i{count}",
        ]
        return lines.put("i1", f"bitcast i{count} {name}.b to <{count} x i1>")

    def _number(self, value: RecordedValue) -> str:
        """A value that is one for the wave, as one number."""
        constant = self.function.constants.get(value.number)
        if constant is not None:
            return str(constant.operands[0] & 0xFFFFFFFF)
        self.value(value)
        return f"%in{self.tag}.{self.function.places[value.number]}"

    def value(self, value: RecordedValue) -> Printed:
        """A value in this nest: made here, a constant, or read from memory."""
        found = self.known.get(value.number)
        if found is None:
            constant = self.function.constants.get(value.number)
            if constant is not None:
                (found,) = printed(self.lines, constant, constant.operands)
            else:
                found = self._read(value)
            self.known[value.number] = found
        return found

    def _read(self, value: RecordedValue) -> Printed:
        place, axes = self.function.places[value.number], self.function.axes[value.number]
        stored = "i8" if value.bits == 1 else f"i{value.bits}"
        name = f"%in{self.tag}.{place}"
        if axes & LANES:
            kind = self.lines.type(stored)
            self.lines.text += [
                *self._address(name, place, axes, stored), f"{name} = load {kind}, ptr {name}.p, align {max(1, value.bits // 8)}",
            ]
            found = Printed(name, stored)
        else:  # one for the wave: read before the lanes
            self._address(name, place, axes, stored)
            self.head.append(f"{name} = load {stored}, ptr {name}.p")
            found = Printed(self._spread(name, stored), stored)
        return found if value.bits > 1 else self.lines.cast("trunc", found, "i1")

    def _spread(self, name: str, element: str) -> str:
        """One number in every lane."""
        if not self.lines.lanes:
            return name
        kind = self.lines.type(element)
        self.head.append(f"{name}.1 = insertelement {kind} poison, {element} {name}, i32 0")
        self.head.append(f"{name}.s = shufflevector {kind} {name}.1, {kind} poison, <{self.lines.lanes} x i32> zeroinitializer")
        return f"{name}.s"

    def _address(self, name: str, place: int, axes: Axes, element: str) -> list[str]:
        """Lines that give {name}.p, where the value of these lanes stands; that of the wave is found before its lanes."""
        tag, size = self.tag, self.function.recorded.wave_size if axes & LANES else 1
        group, wave = (f"%{letter}{tag}.i" if axes & bit else "0" for letter, bit in (("g", GROUPS), ("w", WAVES)))
        start = f"{name}.b" if axes & LANES else f"{name}.p"
        self.head += [
            f"{name}.g = mul i64 {group}, {'%waves' if axes & WAVES else '1'}", f"{name}.w = add i64 {name}.g, {wave}",
            f"{name}.i = mul i64 {name}.w, {size}", f"{start} = getelementptr {element}, ptr %p{place}, i64 {name}.i",
        ]
        return [f"{name}.p = getelementptr {element}, ptr {start}, i64 %l{tag}.i"] if axes & LANES else []

    def finish(self, kept: str) -> None:
        """Leave the function where a predicate of a lane refuses; else put into memory what is wanted of this nest's values."""
        if self.lines.refusals:
            self._refuse(kept)
        for number, place in self.function.places.items():
            value = self.known.get(number)
            if place >= len(self.function.recorded.inputs) and value is not None and self.function.nest_of[number] == self.nest:
                self._store(value, place)

    def _refuse(self, kept: str) -> None:
        lines, kind = self.lines, self.lines.type("i1")
        bad = lines.refusals[0]
        for other in lines.refusals[1:]:
            bad = lines.either(bad, other)
        if lines.lanes:
            name = f"@llvm.vector.reduce.or.v{lines.lanes}i1"
            lines.declared.add(f"declare i1 {name}({kind})")
            bad = lines.put("i1", f"call i1 {name}({kind} {bad.text})")
        lines.text += [f"br i1 {bad.text}, label %refused, label %{kept}", f"{kept}:"]

    def _store(self, value: Printed, place: int) -> None:
        if value.bits == 1:
            value = self.lines.cast("zext", value, "i8")
        name, stored = f"%out{self.tag}.{place}", value.element
        self.lines.text += self._address(name, place, self.axes, stored)
        kind = self.lines.type(stored)
        self.lines.text.append(f"store {kind} {value.text}, ptr {name}.p, align {max(1, value.bits // 8)}")


def function_text(recorded: Recorded, axes: Mapping[int, Axes], vector: int) -> FunctionText:
    """The function, for inputs (by number) with these axes, `vector` lanes at once. Raises NotPrinted."""
    return _Function(recorded, axes, vector).text()
