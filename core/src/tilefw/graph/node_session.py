"""A plan on a node of simulated devices: each rank has its constants and its memory, and collectives are launched on all at once.

    with NodeSession(plan) as session:
        outputs = session.run({"x": x})          # a mapping for each rank

All ranks allocate alike, so that a buffer is at the same place of every rank's heap, as collectives need.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Literal

import numpy as np

from tilefw.api.artifact import Artifact
from tilefw.api.device import Argument, BufferView, Device, JointDevice, JointLaunch, LaunchOptions, LaunchReport
from tilefw.api.errors import CheckError, LaunchError
from tilefw.distributed.joint_execution import joint_device
from tilefw.distributed.symmetric_heap import BASE_STEP, DEFAULT_BYTES, KEPT_BASE, LAST_BASE, SymmetricHeap, place_behind
from tilefw.graph.kernel_graph import stored
from tilefw.graph.plan import ModelPlan
from tilefw.graph.session import Session, require_inputs
from tilefw.node_context import BARRIER, HIDDEN, IN_FRONT, WORD_BYTES
from tilefw.runtime import config
from tilefw.runtime.device_abilities import PlacingDevice
from tilefw.runtime.executor import Executor
from tilefw.runtime.launch_site import site
from tilefw.runtime.plugins.loader import find_target

_TAKEN = "TFW0340"  # where other memory is
RankArrays = list[dict[str, np.ndarray[Any, Any]]]


class NodeSession:
    """A plan that is ready to run on as many devices as it has ranks; `ranks` are their sessions. Runs wait for each other."""

    def __init__(self, plan: ModelPlan, **execution: Any) -> None:
        """Put every rank's constants and the machine code on a node; `execution` are the settings of a launch (checks, budget,
        numerics, seed). Raises UnsupportedError TFW0873 for a target that cannot be a node, LaunchError TFW0361 where a heap is too
        small."""
        resolved = config.resolve(config.settings(plan.target, **execution))
        where = site(find_target(plan.target), resolved)
        self.plan, self.options = plan, where.options
        self._lock = threading.RLock()
        self._executor = where.executor
        modules: dict[int, Any] = {}
        with where.executor.lock, ExitStack() as undone:
            where.executor.free_dropped()
            self._device, self.heap, devices = _rank_devices(where.executor, plan)
            for one in devices:
                undone.callback(one.close)
            self.ranks: list[RankSession] = []
            for one in devices:
                self.ranks.append(RankSession(plan, one, execution, where.executor, where.options, modules))
                undone.callback(self.ranks[-1].close)
            undone.pop_all()

    @property
    def executor(self) -> str:
        """What runs it: a simulator (`sim`) or the reference interpreter (`ref`)."""
        return self.ranks[0].executor

    @property
    def counters(self) -> dict[str, int]:
        """Those of the last run, added up over all ranks."""
        total: dict[str, int] = {}
        for one in self.ranks:
            for name, count in one.counters.items():
                total[name] = total.get(name, 0) + count
        return total

    def __enter__(self) -> NodeSession:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give the devices their memory back."""
        with self._lock:
            for one in self.ranks:
                one.close()

    def run(self, inputs: Mapping[str, Any], progress: Callable[[str], None] | None = None) -> RankArrays:
        """The outputs of each rank by name, for arrays by the names of the inputs, those in parts whole; `progress` is told each
        launch that all ranks have made. Raises as `Session.run` does."""
        with self.alone():
            self.begin(inputs)
            for number, one in enumerate(self.ranks[0].launches):
                self.launch(number)
                if progress is not None:
                    progress(one.label)
            return [one.outputs() for one in self.ranks]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """What within it happens to the session is one run."""
        with self._lock, ExitStack() as running:
            for one in self.ranks:
                running.enter_context(one.alone())
            yield

    def begin(self, inputs: Mapping[str, Any]) -> None:
        """Copy the inputs in, of those in parts each rank's."""
        for one, given in zip(self.ranks, self.rank_inputs(inputs), strict=True):
            one.begin(given)

    def rank_inputs(self, inputs: Mapping[str, Any]) -> RankArrays:
        """The arrays that each rank is given, in storage form. Raises UsageError TFW0360 as `Session.run` does."""
        require_inputs(self.plan, inputs)
        whole = {name: stored(name, self.plan.whole_input(name), inputs[name]) for name in self.plan.inputs}
        return [{name: self._of_rank(name, array, rank) for name, array in whole.items()} for rank in range(self.plan.ranks)]

    def _of_rank(self, name: str, array: np.ndarray[Any, Any], rank: int) -> np.ndarray[Any, Any]:
        axis = self.plan.divided.get(name)
        return array if axis is None else np.ascontiguousarray(np.split(array, self.plan.ranks, axis)[rank])

    @property
    def traces(self) -> bool:
        """Whether the device writes down what launches execute."""
        return bool(getattr(self._device, "traces", False))

    def launch(self, number: int, *, trace: bool = False) -> list[LaunchReport]:
        """Launch what has this number in the plan on every rank, whose reports these are; with `trace` a device that `traces`
        writes down what it executes. Raises CheckError for what the device's checks found."""
        if self.ranks[0].launches[number].steps[0].transfer is None:
            return [one.launch(number, trace=trace) for one in self.ranks]
        with self._executor.lock:
            joint = [one.joint(number, self._device, trace) for one in self.ranks]
            reports = self._device.launch_jointly(joint, self.options.seed)
        for one, report in zip(self.ranks, reports, strict=True):
            one.take(number, report)
        return list(reports)


def _rank_devices(executor: Executor, plan: ModelPlan) -> tuple[JointDevice, SymmetricHeap, list[RankDevice]]:
    """The device, the heaps, and what each rank sees of it, at the first place where no other session has its heaps. Raises
    UnsupportedError TFW0873, LaunchError TFW0361 where all places are taken."""
    for first in range(KEPT_BASE, LAST_BASE - BASE_STEP * plan.ranks + 1, BASE_STEP):
        heap = SymmetricHeap(plan.ranks, DEFAULT_BYTES, first=first)
        joint, devices = joint_device(executor, plan.target, heap), list[RankDevice]()
        try:
            for rank in range(plan.ranks):
                devices.append(RankDevice(executor.device, heap, rank))
        except LaunchError as error:
            for one in devices:
                one.close()
            if error.code != _TAKEN:
                raise
            continue
        return joint, heap, devices
    raise LaunchError(f"too many sessions are open on nodes of {plan.target}", code="TFW0361", help="close others")


class RankSession(Session):
    """One rank's part of a session: its memory lies in its heap."""

    def __init__(
        self, plan: ModelPlan, device: RankDevice, execution: dict[str, Any], executor: Executor, options: LaunchOptions,
        modules: dict[int, Any],
    ) -> None:
        self.rank, self._view = device.rank, device
        self._open(plan.of_rank(device.rank), execution, executor, device, options, modules)
        device.constants_end()
        self._view_dropped = executor.when_dropped(self, device.close)

    def begin(self, inputs: Mapping[str, Any]) -> None:
        """As in `Session`."""
        self._view.begin()
        super().begin(inputs)

    def close(self) -> None:
        """As in `Session`; the rank's node context goes too."""
        super().close()
        self._view_dropped.detach()
        self._view.close()

    def joint(self, number: int, device: JointDevice, trace: bool) -> JointLaunch:
        """What has this number in the plan as the rank's part of a launch of all ranks."""
        one = self.launches[number]
        entry = one.artifact.entry()
        given = self._memory.before(number)
        arguments: list[Argument] = [
            BufferView(self._view.context, IN_FRONT * WORD_BYTES) if parameter.hidden == HIDDEN else argument
            for parameter, argument in zip(entry.parameters, given, strict=True)
        ]
        seed = self._options.seed + self.rank if self._options.seed else 0
        options = replace(self._options, checks=self._options.checks & device.joint_checks, seed=seed, trace=trace)
        return JointLaunch(
            self.rank, one.label, self._modules[number], entry.name, entry.workgroups_of(one.grid), arguments, options
        )

    def take(self, number: int, report: LaunchReport) -> None:
        """As in `Session`; what was found is told with the rank."""
        try:
            super().take(number, report)
        except CheckError as error:
            error.message = f"rank {self.rank}: {error.message}"
            raise


class RankDevice:
    """The device of a node as one rank sees it: what it allocates lies in its heap, each behind the one before."""

    def __init__(self, device: Device, heap: SymmetricHeap, rank: int) -> None:
        assert isinstance(device, PlacingDevice), "joint_device has asked for it"
        self.name = device.name
        self._device, self._placing, self._heap, self.rank = device, device, heap, rank
        self._next = self._first = 0
        self._own: list[int] = []
        begin = heap.context_address(rank) - IN_FRONT * WORD_BYTES
        self.context = self._placed(begin, heap.context_words(rank), "node context")  # by it the heap is taken
        self._placed(heap.bases[rank] + BARRIER, np.zeros(2, np.int64), "words of the node's barrier")

    def _placed(self, address: int, words: np.ndarray[Any, Any], label: str) -> int:
        handle = self._placing.place(address, words.nbytes, label=f"{label} of rank {self.rank}", element="int64")
        self._own.append(handle)
        self._device.write(handle, words)
        return handle

    def constants_end(self) -> None:
        """What is allocated from now on is a run's."""
        self._first = self._next

    def begin(self) -> None:
        """Nothing of the run before is left."""
        self._next = self._first

    def close(self) -> None:
        """Free the rank's words."""
        while self._own:
            self._device.free(self._own.pop())

    # The protocol of devices -------------------------------------------------------------------------------------------

    @property
    def checks(self) -> frozenset[str]:
        return self._device.checks

    @property
    def executor(self) -> Literal["sim", "hw", "ref"]:
        return self._device.executor

    @property
    def assembled(self) -> bool:
        return self._device.assembled

    @property
    def samples(self) -> bool:
        return bool(getattr(self._device, "samples", False))

    def allocate(self, nbytes: int, *, label: str = "", readonly: bool = False, element: str = "") -> int:
        """At the next place of the rank's heap. Raises LaunchError TFW0361 where it is full."""
        offset = self._next
        if offset + nbytes > self._heap.nbytes:
            raise LaunchError(f"the heap of rank {self.rank} has no {nbytes:,} bytes for {label}", code="TFW0361")
        self._next = place_behind(offset, nbytes)
        address = self._heap.bases[self.rank] + offset
        return self._placing.place(address, nbytes, label=f"{label} of rank {self.rank}", readonly=readonly, element=element)

    def free(self, handle: int) -> None:
        self._device.free(handle)

    def write(self, handle: int, data: Any, offset: int = 0) -> None:
        self._device.write(handle, data, offset)

    def read(self, handle: int, nbytes: int, offset: int = 0) -> bytes:
        return self._device.read(handle, nbytes, offset)

    def load(self, artifact: Artifact) -> Any:
        return self._device.load(artifact)

    def launch(
        self, module: Any, entry: str, grid: Sequence[int], args: Sequence[Argument], options: LaunchOptions
    ) -> LaunchReport:
        return self._device.launch(module, entry, grid, args, options)

    def memory_info(self) -> Mapping[str, int]:
        return self._device.memory_info()
