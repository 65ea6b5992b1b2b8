"""A run whose every launch is judged: the reference interpreter has the same inputs that the launch really had, and its bounds hold
for what the launch left in memory.

A bound that is carried from launch to launch says nothing soon: behind one masked softmax it is infinite. From end to end a second
run on the interpreter alone, a shadow, tells how far the outputs are from it. That is measured, no bound. The shadow keeps float64
from launch to launch, and in a launch in whatever is not one correctly rounded operation, such as the sum of two numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tilefw.api.device import Scalar
from tilefw.api.dtypes import dtype as dtype_named
from tilefw.graph.kernel_graph import ModelTensor
from tilefw.graph.plan import ModelPlan, PlanStep
from tilefw.graph.sampling import LaunchSample
from tilefw.graph.session import Arrays, Session, fitting
from tilefw.kernels.reference import comparable
from tilefw.runtime.diagnostics import check_error
from tilefw.tile.dialect.atomic_ops import AtomicOp
from tilefw.tile.reference.accuracy import Comparison, compare
from tilefw.tile.reference.interpret import RefBuffer, RefMemory, RefPointer, run
from tilefw.tile.reference.value import EvaluatedValue
from tilefw.tile.text.module import parse

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

_BUDGET = 1 << 62  # whoever asks for a judgement waits for it
_NOBODY = -1  # wrote a byte
Bytes = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class LaunchJudgement:
    """One launch: the verdict on each buffer that it was given, by the buffer's name: what it only reads must be as it was.
    `programs` of `all_programs` ran on the device."""

    label: str
    kernel: str
    comparisons: Mapping[str, Comparison]
    all_programs: int = 1
    programs: int = 1

    @property
    def sampled(self) -> bool:
        """Whether some of its programs ran alone."""
        return self.programs < self.all_programs

    @property
    def ok(self) -> bool:
        return all(comparison.ok for comparison in self.comparisons.values())

    @property
    def worst(self) -> float:
        """The largest error over its bound."""
        return max((comparison.worst for comparison in self.comparisons.values()), default=0.0)


Progress = Callable[[LaunchJudgement], None]


@dataclass(frozen=True, slots=True)
class MeasuredError:
    """How far an output is from the shadow's: the largest difference, and the largest magnitude there."""

    absolute: float
    magnitude: float


@dataclass(frozen=True, slots=True)
class Certificate:
    """The outputs of a run, the judgement of each launch, and the errors of the outputs as measured. `linked` compares the outputs
    with those of the run in which the steps of links were judged: they are to be equal, bit by bit."""

    outputs: Arrays
    launches: tuple[LaunchJudgement, ...]
    measured: Mapping[str, MeasuredError]
    linked: Mapping[str, Comparison] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether every launch is within its bounds, and linking changed nothing."""
        return all(launch.ok for launch in self.launches) and all(comparison.ok for comparison in self.linked.values())


def certified(
    session: Session, inputs: Mapping[str, Any], sample: LaunchSample | None = None, progress: Progress | None = None
) -> Certificate:
    """Run a session's plan on `inputs`, and judge it; with a `sample`, launches by the programs that it chooses, where the device
    runs some programs alone. `progress` is told each judgement.

    What passes between the steps of a link never leaves the chip: they are judged in a run of the links that do the same and store
    it, and the outputs of both runs must be equal, bit by bit."""
    if not session.plan.links:
        return _certified(session, inputs, sample, progress)
    outputs = session.run(inputs)
    with Session(session.plan.observed(), **session.execution) as other:
        found = _certified(other, inputs, sample, progress)
    equal = {name: _equal(session.plan.outputs[name], array, found.outputs[name]) for name, array in outputs.items()}
    return replace(found, outputs=outputs, linked=equal)


def _equal(tensor: ModelTensor, array: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> Comparison:
    """Whether an output is exactly that of another run."""
    due = comparable(other, tensor.dtype)
    return compare(comparable(array, tensor.dtype), EvaluatedValue(due.astype(np.float64) if due.dtype.kind == "f" else due))


def _certified(
    session: Session, inputs: Mapping[str, Any], sample: LaunchSample | None, progress: Progress | None
) -> Certificate:
    interpreter = PlanInterpreter(session.plan)
    written: dict[int, Bytes | None] = dict.fromkeys(tensor.buffer for tensor in session.plan.inputs.values())
    launches: list[LaunchJudgement] = []
    with session.alone():
        session.begin(inputs)
        for number in range(len(session.launches)):
            for judgement in judged(session, interpreter, number, written, sample):
                launches.append(judgement)
                if progress is not None:
                    progress(judgement)
        outputs = session.outputs()
    exact = shadow(session.plan, inputs)
    measured = {name: measured_error(session.plan.outputs[name], outputs[name], exact[name]) for name in outputs}
    return Certificate(outputs, tuple(launches), measured)


def shadow(plan: ModelPlan, inputs: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """The outputs of a run on the reference interpreter that rounds nothing it stores: float64, or exact integers."""
    run = ShadowRun(plan, fitting(plan, inputs))
    for step in plan.steps:
        run.step(step)
    return run.outputs()


class ShadowRun:
    """A run on the interpreter that rounds nothing it stores."""

    def __init__(self, plan: ModelPlan, inputs: Arrays) -> None:
        self._plan, self._interpreter, self._memory = plan, PlanInterpreter(plan), RefMemory()
        self._buffers = [self._memory.allocate(buffer.nbytes, buffer.name) for buffer in plan.buffers]
        for made, buffer in zip(self._buffers, plan.buffers, strict=True):
            if buffer.constant is not None:
                made.write_bytes(buffer.constant)
        for name, array in inputs.items():
            self._buffers[plan.inputs[name].buffer].write_bytes(array.reshape(-1).view(np.uint8))

    def step(self, step: PlanStep) -> None:
        """One launch. Raises CheckError when a check of the interpreter found a fault."""
        self._interpreter.run(step, self._memory, {tensor.buffer: self._buffers[tensor.buffer] for tensor in step.tensors()})
        for tensor in step.tensors():
            self._buffers[tensor.buffer].err = self._buffers[tensor.buffer].free = None

    def values(self, tensor: ModelTensor) -> np.ndarray[Any, Any]:
        """The elements of a tensor now."""
        return reference_elements(self._buffers[tensor.buffer], tensor)

    def replace(self, tensor: ModelTensor, values: np.ndarray[Any, Any]) -> None:
        """Let a buffer hold these elements, which others have computed, and no more."""
        self._buffers[tensor.buffer].hold(values, dtype_named(tensor.dtype))

    def outputs(self) -> dict[str, np.ndarray[Any, Any]]:
        """What the outputs hold now."""
        return {name: self.values(tensor) for name, tensor in self._plan.outputs.items()}


class PlanInterpreter:
    """The kernels of a plan as tile IR, each parsed once."""

    def __init__(self, plan: ModelPlan) -> None:
        self._plan = plan
        self._modules: dict[int, ModuleOp] = {}

    def module(self, step: PlanStep) -> ModuleOp:
        """The kernel of a step."""
        if step.kernel not in self._modules:
            self._modules[step.kernel] = parse(self._plan.kernels[step.kernel].source, step.label)
        return self._modules[step.kernel]

    def run(self, step: PlanStep, memory: RefMemory, buffers: Mapping[int, RefBuffer]) -> None:
        """Execute a step on buffers by their numbers. Raises CheckError when a check of the interpreter found a fault."""
        kernel, module = self._plan.kernels[step.kernel], self.module(step)
        args: list[Any] = []
        for parameter, argument in zip(kernel.entry.parameters, step.arguments, strict=True):
            if parameter.hidden is not None:
                continue
            if isinstance(argument, ModelTensor):
                args.append(RefPointer(buffers[argument.buffer], argument.offset))
            else:
                args.append(argument.value if isinstance(argument, Scalar) else 0)
        report = run(module, None, step.grid, args, memory=memory, fusion=kernel.fusion, budget=_BUDGET)
        if any(finding.severity == "error" for finding in report.findings):
            raise check_error(report.findings)


def judged(
    session: Session, interpreter: PlanInterpreter, number: int, written: dict[int, Bytes | None], sample: LaunchSample | None
) -> Iterator[LaunchJudgement]:
    """Launch what has this number and judge its steps, each on what it really had: buffers as they were before the launch, or as an
    earlier step of it left them. `written` has for each buffer which bytes have been written; None stands for all."""
    launch = session.launches[number]
    before = {tensor.buffer: _content(session, tensor.buffer, written) for step in launch.steps for tensor in step.tensors()}
    programs = _chosen(session, interpreter, number, sample)
    session.launch(number, programs)
    made: list[Mapping[int, RefBuffer]] = []
    for step in launch.steps:
        memory = RefMemory()
        found = {
            tensor.buffer: _content(session, tensor.buffer, written)
            if any(tensor.buffer in one for one in made) else before[tensor.buffer]
            for tensor in step.tensors()
        }
        made.append({buffer: _as_it_is(session.plan, memory, buffer, data, written) for buffer, data in found.items()})
        interpreter.run(step, memory, made[-1])
        written.update((buffer, _written(one)) for buffer, one in made[-1].items())
    parts = _before_later_steps(made) if programs is None else [_of_programs(made[0], programs)]
    for step, buffers, part in zip(launch.steps, made, parts, strict=True):
        yield _step_judgement(session, step, buffers, part, programs)
    if programs is not None:
        for buffer, own in parts[0].items():
            _complete(session, buffer, made[0][buffer], own)


def _of_programs(made: Mapping[int, RefBuffer], programs: tuple[int, ...]) -> dict[int, Bytes]:
    """The bytes of the buffers to which a launch stored that some of its programs wrote last, or none at all."""
    writers = {buffer: _writers(one) for buffer, one in made.items() if one.record is not None}
    return {
        buffer: _by_byte(made[buffer], np.isin(found, (*programs, _NOBODY)))
        for buffer, found in writers.items() if (found != _NOBODY).any()
    }


def _before_later_steps(made: Sequence[Mapping[int, RefBuffer]]) -> list[dict[int, Bytes]]:
    """For each step the bytes of its buffers in which memory still shows what it left: no later step of the launch wrote there."""
    later: dict[int, Bytes] = {}
    found: list[dict[int, Bytes]] = []
    for buffers in reversed(made):
        found.append({buffer: ~later[buffer] for buffer in buffers if buffer in later})
        for buffer, one in buffers.items():
            if one.record is not None and len(made) > 1:
                stored = _by_byte(one, _writers(one) != _NOBODY)
                later[buffer] = later[buffer] | stored if buffer in later else stored
    return found[::-1]


def _chosen(session: Session, interpreter: PlanInterpreter, number: int, sample: LaunchSample | None) -> tuple[int, ...] | None:
    """The programs of a launch that run; None for all. With atomics, what a program leaves in memory depends on the others."""
    launch = session.launches[number]
    if sample is None or not session.samples or len(launch.steps) > 1:
        return None
    if any(isinstance(op, AtomicOp) for step in launch.steps for op in interpreter.module(step).walk()):
        return None
    return sample.of(launch.grid, number)


def _step_judgement(
    session: Session, step: PlanStep, made: Mapping[int, RefBuffer], parts: Mapping[int, Bytes], programs: tuple[int, ...] | None
) -> LaunchJudgement:
    """The buffers of a step on the device against those that the interpreter made of them, of some of them `parts`."""
    plan = session.plan
    pairs = zip(plan.kernels[step.kernel].entry.parameters, step.arguments, strict=True)
    stored = [a for parameter, a in pairs if isinstance(a, ModelTensor) and parameter.readonly is not True]
    kept = [a for a in step.tensors() if a.buffer not in {other.buffer for other in stored}]
    verdicts: dict[int, Comparison] = {}
    for tensor in (*stored, *kept):
        verdict = _compared(session, tensor, made[tensor.buffer], parts.get(tensor.buffer))
        if not verdict.ok or tensor.buffer not in verdicts:
            verdicts[tensor.buffer] = verdict
    comparisons: dict[str, Comparison] = {}
    for buffer, verdict in verdicts.items():
        name = plan.buffers[buffer].name
        comparisons[f"{name} (buffer {buffer})" if name in comparisons else name] = verdict
    count = prod(step.grid)
    ran = count if programs is None else len(programs)
    return LaunchJudgement(step.label, plan.kernels[step.kernel].entry.name, comparisons, count, ran)


def _writers(buffer: RefBuffer) -> np.ndarray[Any, Any]:
    """For each element of a buffer the program that wrote it last in this launch, or _NOBODY."""
    return buffer.recorded().writer(np.arange(buffer.x.size))


def _by_byte(buffer: RefBuffer, elements: Bytes) -> Bytes:
    """What is said of a buffer's elements, of its bytes; no bytes behind the last whole element are meant."""
    found = np.repeat(elements, max(1, buffer.nbytes // max(1, elements.size)))
    return np.concatenate([found, np.zeros(buffer.nbytes - found.size, np.bool_)])


def _complete(session: Session, number: int, buffer: RefBuffer, own: Bytes) -> None:
    """Give the device what the interpreter has of a buffer where programs wrote that did not run; what nobody wrote stays so."""
    data = np.frombuffer(buffer.read_bytes(buffer.nbytes), np.uint8)
    if (known := _written(buffer)) is None:
        whole = ModelTensor(number, "uint8", (buffer.nbytes,))
        session.write(whole, np.where(own, session.array(whole), data))
        return
    missing = known & ~own
    edges = np.flatnonzero(np.diff(missing, prepend=False, append=False))
    for first, last in edges.reshape(-1, 2):
        session.write(ModelTensor(number, "uint8", (int(last - first),), int(first)), data[first:last])


def _content(session: Session, number: int, written: Mapping[int, Bytes | None]) -> np.ndarray[Any, Any] | None:
    """The bytes that a buffer of the plan has on the device now; None where nobody has written it, or it is constant."""
    buffer = session.plan.buffers[number]
    if buffer.constant is not None or number not in written:
        return None
    return session.array(ModelTensor(number, "uint8", (buffer.nbytes,)))


def _as_it_is(
    plan: ModelPlan, memory: RefMemory, number: int, data: np.ndarray[Any, Any] | None, written: Mapping[int, Bytes | None]
) -> RefBuffer:
    """A buffer of the plan with the bytes that it had."""
    buffer = plan.buffers[number]
    made = memory.allocate(buffer.nbytes, buffer.name, buffer.constant is not None)
    if buffer.constant is not None:
        made.write_bytes(buffer.constant)
    elif data is not None:
        made.write_bytes(data)
        made.initialised = written[number]
    return made


def _written(buffer: RefBuffer) -> Bytes | None:
    """Which bytes of a buffer have been written, in this launch or before."""
    return None if buffer.initialised is None else _by_byte(buffer, buffer.initialised)


def _compared(session: Session, tensor: ModelTensor, buffer: RefBuffer, own: Bytes | None = None) -> Comparison:
    """All that has been written of a buffer, or of it the bytes `own`, against the interpreter's."""
    size = dtype_named(tensor.dtype).storage_bits // 8
    found = session.array(ModelTensor(tensor.buffer, tensor.dtype, (buffer.nbytes // size,)))
    due = buffer.read_reference(dtype_named(tensor.dtype))
    known = None if buffer.initialised is None else buffer.initialised[: found.size]
    if own is not None:
        known = own[::size][: found.size] if known is None else known & own[::size][: found.size]
    if known is not None:
        index = np.flatnonzero(known)
        found, due = found[index], due.apply(lambda part: part[index])
    return compare(comparable(found, tensor.dtype), due)


def reference_elements(buffer: RefBuffer, tensor: ModelTensor) -> np.ndarray[Any, Any]:
    size = dtype_named(tensor.dtype).storage_bits // 8
    first = tensor.offset // size
    values = buffer.read_reference(dtype_named(tensor.dtype)).x
    return values[first : first + tensor.nbytes // size].reshape(tensor.shape)


def measured_error(tensor: ModelTensor, found: np.ndarray[Any, Any], exact: np.ndarray[Any, Any]) -> MeasuredError:
    if not found.size:
        return MeasuredError(0.0, 0.0)
    with np.errstate(invalid="ignore"):
        got, due = comparable(found, tensor.dtype).astype(np.float64), exact.astype(np.float64)
        apart = np.where((got == due) | (np.isnan(got) & np.isnan(due)), 0.0, np.abs(got - due))
    return MeasuredError(float(np.nan_to_num(apart, nan=np.inf, posinf=np.inf).max()), float(np.abs(due).max()))
