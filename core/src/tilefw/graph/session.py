"""A plan on a device: constants stay there, launches follow each other without copies between them.

    with Session(plan) as session:
        outputs = session.run({"x": x})
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any

import numpy as np

from tilefw.api.device import BufferView, Completion, Device, LaunchOptions, LaunchReport
from tilefw.api.errors import CheckError, LaunchError, UsageError
from tilefw.graph.device_memory import ArenaMemory, ConstantMemory, DeviceMemory, SeparateMemory, needs, write
from tilefw.graph.kernel_graph import ModelTensor, stored
from tilefw.graph.plan import ModelPlan, PlanLaunch
from tilefw.graph.ready_launches import ReadyLaunches
from tilefw.hardware.processor_device import ProcessorDevice
from tilefw.kernels.formats import array_dtype
from tilefw.runtime import config
from tilefw.runtime.diagnostics import check_error
from tilefw.runtime.executor import Executor
from tilefw.runtime.launch_site import site
from tilefw.runtime.names import suggest
from tilefw.runtime.plugins.loader import find_target

_TRAPPED = "TFW0812"
_ASSERTED = re.compile(r'tile\.trap "([^"]*)"')
Arrays = Mapping[str, np.ndarray[Any, Any]]


class Session:
    """A plan that is ready to run. Several may be open on one device; runs of one session wait for each other.

    `written_bytes` counts what was copied to the device, `read_bytes` what was copied from it. `counters` are the last run's:
    those of its launches, added up.
    """

    def __init__(self, plan: ModelPlan, **execution: Any) -> None:
        """Put the constants and the machine code on a device; `execution` are the settings of a launch (executor, checks, budget,
        numerics, seed). Raises LaunchError TFW0361 where the device has not enough memory."""
        resolved = config.resolve(config.settings(plan.target, **execution))
        where = site(find_target(plan.target), resolved)
        if plan.on_node:
            raise UsageError(
                f"the model is for a node of {plan.ranks} devices", code="TFW0367",
                help="tilefw.graph.node_session.NodeSession(plan) runs it",
            )
        self._open(plan, execution, where.executor, where.executor.device, where.options)

    def _open(
        self, plan: ModelPlan, execution: dict[str, Any], executor: Executor, device: Device, options: LaunchOptions,
        modules: dict[int, Any] | None = None,
    ) -> None:
        """Take a device. `modules` has the code that is there already, by the artifact's identity, and is given the rest."""
        self.plan, self.execution = plan, execution
        self.read_bytes = 0
        self.counters: dict[str, int] = {}
        self._lock = threading.RLock()
        self._running = False
        self._options, self._executor, self._device = options, executor, device
        self._last: Completion | None = None
        self._closed = False
        with self._executor.lock:
            self._executor.free_dropped()
            self.launches = plan.launches()
            loaded: dict[int, Any] = {} if modules is None else modules
            for one in self.launches:
                if id(one.artifact) not in loaded:
                    loaded[id(one.artifact)] = device.load(one.artifact)
            self._modules = [loaded[id(one.artifact)] for one in self.launches]
            strategy = ArenaMemory if device.executor == "hw" and not options.checks else SeparateMemory
            with _telling_needs(plan), ExitStack() as undone:
                self._constants = ConstantMemory(device, plan)
                undone.callback(self._constants.close)
                self._memory: DeviceMemory = strategy(device, plan, self._constants.views)
                undone.callback(self._memory.close)
                self._ready = self._made_ready()
                self._output_bytes = sum(tensor.nbytes for tensor in plan.outputs.values())
                self._dropped = self._executor.when_dropped(self, undone.pop_all().close)
            self.written_bytes = self._constants.written_bytes

    @property
    def executor(self) -> str:
        """What runs it: a simulator (`sim`), the chip (`hw`) or the reference interpreter (`ref`)."""
        return self._device.executor

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give the device its memory back; nothing runs from then on."""
        with self._lock, self._executor.lock:
            self._refuse_within_a_run()
            self._closed = True
            self._dropped.detach()
            self._memory.close()
            self._constants.close()

    def run(
        self, inputs: Mapping[str, Any], progress: Callable[[str], None] | None = None
    ) -> dict[str, np.ndarray[Any, Any]]:
        """The outputs by name, for arrays by the names of the inputs; `progress` is told the label of each launch that is over, or,
        on a device that does not wait, on its way. Raises UsageError TFW0360 for inputs that do not fit, CheckError when a check of
        the device found a fault in a launch."""
        with self.alone():
            if self._ready is not None and progress is None:
                return self._run_ready(self._ready, inputs)
            self.begin(inputs)
            for number, one in enumerate(self.launches):
                self.launch(number)
                if progress is not None:
                    progress(one.label)
            return self.outputs()

    def _run_ready(self, ready: ReadyLaunches, inputs: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
        """A run whose inputs are read where they lie, and that nobody looks into."""
        self._refuse_closed()
        arrays = fitting(self.plan, inputs)
        self.counters = {}
        with self._executor.lock:
            self.written_bytes += ready.take(arrays)
        for number in range(len(self.launches)):
            self.launch(number)
        if self._last is not None:
            self._last.wait()
            self._last = None
        self.read_bytes += self._output_bytes
        return ready.outputs()

    def _refuse_within_a_run(self) -> None:
        """Only a signal's handler can be within a run that its own thread makes; others wait for the lock."""
        if self._running:
            raise LaunchError(
                "a run of the session is under way in this thread", code="TFW0361",
                help="let the signal's handler leave a note for after the run, or open another session",
            )

    # A run launch by launch, for whoever looks at memory between launches (certificate.py) or at the clock (profile.py).

    @contextmanager
    def alone(self) -> Iterator[None]:
        """What within it happens to the session is one run: others wait for its end, which frees what it allocated. Raises
        LaunchError TFW0361 within another run of the same thread."""
        with self._lock:
            self._refuse_within_a_run()
            self._running = True
            try:
                yield
            finally:
                try:
                    self._end()
                finally:
                    self._running = False

    def begin(self, inputs: Mapping[str, Any]) -> None:
        """Copy the inputs in. Raises LaunchError TFW0361 in a session that is closed."""
        self._refuse_closed()
        arrays = fitting(self.plan, inputs)
        with self._executor.lock:
            self._memory.begin()
            if self._ready is not None:
                self._ready.give_back()
            self.counters = {}
            for name, array in arrays.items():
                write(self._device, self._memory.view(self.plan.inputs[name].buffer), array)
                self.written_bytes += array.nbytes
            for number, buffer in enumerate(self.plan.buffers):
                if buffer.zeroed:
                    write(self._device, self._memory.view(number), np.zeros(buffer.nbytes, np.uint8))

    def _refuse_closed(self) -> None:
        if self._closed:
            raise LaunchError("the session is closed", code="TFW0361", help="open another one: Session(plan)")

    @property
    def samples(self) -> bool:
        """Whether the device runs some programs of a launch alone."""
        return bool(getattr(self._device, "samples", False))

    def launch(self, number: int, programs: tuple[int, ...] | None = None, *, trace: bool = False) -> LaunchReport:
        """Launch what has this number in the plan, or those of its programs that are named, where the device `samples`; with
        `trace` a device that `traces` writes down what it executes. Raises CheckError for what the device's checks found."""
        with self._executor.lock:
            report = self._launched(number, programs, trace) if self._ready is None else self._ready.calls[number]()
        self._last = report.completion
        self.take(number, report)
        return report

    def take(self, number: int, report: LaunchReport) -> None:
        """Count what a launch did. Raises CheckError for what the device's checks found."""
        for name, count in report.counters.items():
            self.counters[name] = self.counters.get(name, 0) + count
        if report.findings and report.errors:
            raise _in_launch(check_error(report.findings), self.plan, self.launches[number])

    def _launched(self, number: int, programs: tuple[int, ...] | None, trace: bool) -> LaunchReport:
        one, arguments = self.launches[number], self._memory.before(number)
        entry = one.artifact.entry()
        options = self._options if programs is None and not trace else replace(self._options, programs=programs, trace=trace)
        return self._device.launch(self._modules[number], entry.name, entry.workgroups_of(one.grid), arguments, options)

    def _made_ready(self) -> ReadyLaunches | None:
        """The launches with their arguments packed, for a device in this process whose memory stays where it is."""
        device, memory = self._device, self._memory
        if not isinstance(device, ProcessorDevice) or not isinstance(memory, ArenaMemory):
            return None
        return ReadyLaunches(device, self.plan, self.launches, self._modules, memory, self._options)

    def write(self, tensor: ModelTensor, data: np.ndarray[Any, Any]) -> None:
        """Replace the elements of a tensor, for whoever knows what they are."""
        with self._executor.lock:
            view = self._memory.view(tensor.buffer)
            write(self._device, BufferView(view.handle, view.offset + tensor.offset), data)

    def outputs(self) -> dict[str, np.ndarray[Any, Any]]:
        """What the outputs hold now."""
        return {name: self.array(tensor) for name, tensor in self.plan.outputs.items()}

    def _end(self) -> None:
        """Free what a run allocated."""
        with self._executor.lock:
            self._memory.end()

    def array(self, tensor: ModelTensor) -> np.ndarray[Any, Any]:
        """A copy of a tensor's elements in storage form."""
        data = b""
        with self._executor.lock:
            if self._last is not None:
                self._last.wait()
                self._last = None
            if tensor.nbytes:
                view = self._memory.view(tensor.buffer)
                data = self._device.read(view.handle, tensor.nbytes, view.offset + tensor.offset)
        self.read_bytes += tensor.nbytes
        return np.frombuffer(bytearray(data), array_dtype(tensor.dtype)).reshape(tensor.shape)


def fitting(plan: ModelPlan, inputs: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """The inputs as arrays in storage form. Raises UsageError TFW0360 for a name too many or too few, a shape, a type."""
    require_inputs(plan, inputs)
    return {name: stored(name, tensor, inputs[name]) for name, tensor in plan.inputs.items()}


def require_inputs(plan: ModelPlan, inputs: Mapping[str, Any]) -> None:
    """Raises UsageError TFW0360 for a name too many or too few."""
    for name in inputs:
        if name not in plan.inputs:
            raise UsageError(
                f"the model has no input '{name}'", code="TFW0360", help=suggest(name, plan.inputs, what="its inputs"),
            )
    lacking = [name for name in plan.inputs if name not in inputs]
    if lacking:
        raise UsageError(f"the model's input '{lacking[0]}' is missing", code="TFW0360", note=f"inputs: {', '.join(plan.inputs)}")


@contextmanager
def _telling_needs(plan: ModelPlan) -> Iterator[None]:
    """Where the device has not enough memory, say what the whole plan takes."""
    try:
        yield
    except LaunchError as error:
        if error.code == "TFW0361":
            error.note = needs(plan) + (f"\n{error.note}" if error.note else "")
        raise


def _in_launch(error: CheckError, plan: ModelPlan, launch: PlanLaunch) -> CheckError:
    note = f"in the model's call {launch.label}"
    if error.code == _TRAPPED:  # a chip's trap does not say which assertion failed
        said = {text for step in launch.steps for text in _ASSERTED.findall(plan.kernels[step.kernel].source)}
        note += "".join(f"\n{text}" for text in sorted(said) if text not in error.message)
    error.note = note + (f"\n{error.note}" if error.note else "")
    return error
