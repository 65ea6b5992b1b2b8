"""Runs of instructions in compiled form: they begin as the plain steps of their instructions, and are compiled when that pays.

NumPy's form is the definition. The compiled one gives the same bits or refuses (a NaN that arithmetic makes): then the plain
steps do it all again, as nothing has been written. Where registers are undefined the plain steps run from the start.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

import numpy as np

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.compiled.kept_code import object_for
from tilefw.sim.compiled.lines import NotPrinted
from tilefw.sim.compiled.native import NativeFunction, available, processor
from tilefw.sim.compiled.nests import Axes, FunctionText, function_text
from tilefw.sim.compiled.pricing import Spent, load_seconds, mode
from tilefw.sim.compiled.traced import MERGE, Guarded, Part, Slots, Traced, TracedLanes, primitives, trace_run
from tilefw.sim.engine.frame import Frame
from tilefw.sim.floats import UNSIGNED, Array
from tilefw.sim.steps.careful import Step

# What compiling costs an instruction of a run, in seconds (llvmlite 0.50, one thread of a server's CPU: 0.2 to 0.5 ms in runs of 5
# to 524).
COMPILE_SECONDS = 5e-4
TRACE_SECONDS = 1e-4
"""What an instruction costs to trace, each time that a program is loaded."""
FEWEST = 3
"""Primitives: shorter runs cost more around the call than in NumPy."""
REFUSALS = 8
"""After so many, if they are most calls, a function is given up."""
FORMS = 16
"""So many forms has a run, by the guards that all lanes meet and the axes of its inputs; any other is run in plain steps. Few runs
of Triton's and nvcc's kernels have more than one, none of those that were counted more than three."""
_ALIGNED = 64


@lru_cache(maxsize=1024)
def _native(text: str) -> NativeFunction:
    return NativeFunction(object_for(text))


class Compiled:
    """A function for inputs of some axes, and where in one buffer its results stand."""

    def __init__(self, traced: Traced, axes: Sequence[Axes], wave_size: int) -> None:
        numbers = {value.number: each for value, each in zip(traced.recorded.inputs, axes, strict=True)}
        vector = gcd(max(8, processor().vector_bits // 32), wave_size)
        self._function: FunctionText = function_text(traced.recorded, numbers, vector)
        self._native = _native(self._function.text)  # its code is freed with it, whoever has the address
        self._wanted = len(traced.recorded.outputs)
        self._layouts: dict[tuple[int, ...], tuple[int, list[tuple[tuple[int, ...], type, int]]]] = {}
        self._pointers = ctypes.c_int64 * (len(axes) + len(self._function.axes))
        self.calls = self.refused = 0

    def _layout(self, shape: tuple[int, int, int]) -> tuple[int, list[tuple[tuple[int, ...], type, int]]]:
        """The size of the buffer, and of each value shape, type and offset."""
        found = self._layouts.get(shape)
        if found is None:
            offset, places = 0, []
            for axes, bits in zip(self._function.axes, self._function.widths, strict=True):
                own = tuple(size if axes & 4 >> i else 1 for i, size in enumerate(shape))
                places.append((own, UNSIGNED[bits], offset))
                size = own[0] * own[1] * own[2] * max(1, bits // 8)
                offset += size + -size % _ALIGNED
            found = self._layouts[shape] = offset, places
        return found

    def run(self, inputs: Sequence[Array], shape: tuple[int, int, int]) -> list[Array] | None:
        """The results; None where it refuses."""
        size, places = self._layout(shape)
        buffer = np.empty(size, dtype=np.uint8)
        base = buffer.__array_interface__["data"][0]
        addresses = [a.__array_interface__["data"][0] for a in inputs]
        addresses += [base + offset for _, _, offset in places]
        self.calls += 1
        if self._native.call(self._pointers(*addresses), shape[0], shape[1]):
            self.refused += 1
            return None
        return [np.ndarray(own, dtype, buffer, offset) for own, dtype, offset in places[: self._wanted]]

    @property
    def useless(self) -> bool:
        """It refuses most of the time."""
        return self.refused > REFUSALS and 2 * self.refused > self.calls


@dataclass(slots=True)
class _Guard:
    """Whether all lanes meet a guard, as found for the predicate that was there `last`: one pair, as launches of other threads, and
    of signals' handlers, run the same code."""

    register: Guarded
    last: tuple[Array | None, bool] = None, False

    def holds(self, frame: Frame) -> bool:
        predicate = frame.registers[self.register[0]]
        known, met = self.last
        if predicate is not known:
            met = not predicate.any() if self.register[1] else bool(predicate.all())
            self.last = predicate, met
        return met


class CompiledRun:
    """Parts that all have lines, as one step."""

    def __init__(self, parts: Sequence[Part], block: int, slots: Slots, wave_size: int) -> None:
        self._parts, self._block, self._slots, self._wave_size = tuple(parts), block, slots, wave_size
        self._steps = [part.step for part in parts]
        self._guards = [_Guard(guard) for guard in dict.fromkeys(p.guard for p in parts) if guard is not None]
        self._traced: dict[tuple[frozenset[Guarded], bool], Traced] = {}
        self._compiled: dict[tuple[frozenset[Guarded], bool, tuple[Axes, ...]], Compiled | None] = {}

    def __call__(self, lanes: NumpyLanes, frame: Frame) -> None:
        if not self._try(lanes, frame):
            for step in self._steps:
                step(lanes, frame)

    def _try(self, lanes: NumpyLanes, frame: Frame) -> bool:
        """Run the compiled form; false where it does not apply, and nothing has changed."""
        registers, poison = frame.registers, frame.poison
        merge = frame.merge
        if merge is not frame.wave_merge or any(poison[g.register[0]] is not None for g in self._guards):
            return False
        known = frozenset(g.register for g in self._guards if g.holds(frame))
        variant = known, merge is not None
        traced = self._traced.get(variant)
        if traced is None:
            if len(self._traced) >= FORMS:
                return False
            traced = self._traced[variant] = trace_run(
                self._parts, self._block, self._slots, self._wave_size, *variant
            )
        inputs: list[Array] = []
        for slot in traced.read:
            if slot == MERGE:
                assert merge is not None
                inputs.append(merge)
            elif poison[slot] is not None:
                return False
            else:
                inputs.append(registers[slot])
        inputs += [operand.meaning(lanes) for operand in traced.special]
        axes = tuple([
            (a.shape[0] > 1) << 2 | (a.shape[1] > 1) << 1 | (a.shape[2] > 1) for a in inputs
        ])
        key = *variant, axes
        if key not in self._compiled:
            if len(self._compiled) >= FORMS:
                return False
            self._compiled[key] = self._made(traced, axes)
        compiled = self._compiled[key]
        if compiled is None or compiled.useless:
            return False
        inputs = [a if a.flags.c_contiguous else np.ascontiguousarray(a) for a in inputs]
        made = compiled.run(inputs, frame.shape)
        if made is None:
            return False
        values = [*inputs, *made]
        for slot, place in traced.written:
            registers[slot], poison[slot] = values[place], None
        return True

    def _made(self, traced: Traced, axes: Sequence[Axes]) -> Compiled | None:
        """The function; None where values with these axes have no lines."""
        try:
            return Compiled(traced, axes, self._wave_size)
        except NotPrinted:
            return None


@lru_cache(maxsize=4096)
def _spent_on(instructions: tuple[str, ...], block: int) -> Spent:
    """Of a run by its text, as often as its program is loaded. It decides when to compile, and nothing else."""
    return Spent()


class ColdRun:
    """Neighbouring parts of a block. It counts what they cost, and is compiled when they have cost what compiling does."""

    def __init__(self, parts: Sequence[Part], block: int, slots: Slots, wave_size: int, at_once: bool) -> None:
        self._parts, self._block, self._slots, self._wave_size = parts, block, slots, wave_size
        self.steps: list[Step] = [part.step for part in parts]
        self._here = self._all = Spent(float("inf")) if at_once else Spent()
        if not at_once:
            self._all = _spent_on(tuple(part.instruction.text for part in parts), block)
        self._cold = True

    def __call__(self, lanes: NumpyLanes, frame: Frame) -> None:
        if self._cold:
            self._warm(lanes, frame)
            return
        for step in self.steps:
            step(lanes, frame)

    def _warm(self, lanes: NumpyLanes, frame: Frame) -> None:
        """Count what the plain steps cost. What is spent on them before compiling is at most what compiling costs, about."""
        price = COMPILE_SECONDS * len(self._parts) + load_seconds()
        if self._all.seconds > price and self._here.seconds > TRACE_SECONDS * len(self._parts):
            self._cold = False
            if processor().fused:
                self.steps = self._segments()
        began = time.thread_time()
        for step in self.steps:
            step(lanes, frame)
        taken = time.thread_time() - began
        self._here.seconds += taken
        self._all.seconds += taken

    def _segments(self) -> list[Step]:
        found: list[Step] = []
        group: list[Part] = []
        size, lanes = 0, TracedLanes(self._wave_size)
        for part in (*self._parts, None):
            count = None if part is None else primitives(part, self._slots, lanes)
            if part is not None and count is not None:
                group.append(part)
                size += count
                continue
            found += [CompiledRun(group, self._block, self._slots, self._wave_size)] if size >= FEWEST else [p.step for p in group]
            found += [] if part is None else [part.step]
            group, size = [], 0
        return found


def with_runs(
    steps: Sequence[Step], parts: Sequence[Part | None], block: int, slots: Slots, wave_size: int
) -> list[Step]:
    """The steps of block number `block`, with runs in place of those that have parts."""
    how = mode()
    if how == "0" or not available():
        return list(steps)
    found: list[Step] = []
    group: list[Part] = []
    for step, part in (*zip(steps, parts, strict=True), (None, None)):
        if part is not None:
            group.append(part)
            continue
        found += [ColdRun(group, block, slots, wave_size, how == "always")] if len(group) >= FEWEST else [p.step for p in group]
        found += [] if step is None else [step]
        group = []
    return found
