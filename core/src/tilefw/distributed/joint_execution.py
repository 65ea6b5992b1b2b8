"""Launches of several ranks at once on one simulated device: memory is put in place, all run by turns, what changed comes back."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilefw.api.device import (
    Argument,
    ArrayDescriptor,
    BufferView,
    JointDevice,
    JointLaunch,
    LaunchOptions,
    LaunchReport,
    Scalar,
    Struct,
)
from tilefw.api.errors import LaunchError, UnsupportedError, UsageError
from tilefw.distributed.findings import joint_error
from tilefw.distributed.rank_launch import RankLaunch
from tilefw.distributed.residence import check_co_residence, residence_of
from tilefw.distributed.symmetric_heap import SymmetricHeap
from tilefw.multicast_window import MulticastingDevice
from tilefw.node_context import IN_FRONT, WORD_BYTES
from tilefw.runtime.arguments.arrays import HostArray, storages
from tilefw.runtime.arguments.binding import Bound
from tilefw.runtime.arguments.unwritten import unwritten
from tilefw.runtime.bug_guard import guarded
from tilefw.runtime.checks.program_checks import UNINITIALISED
from tilefw.runtime.device_abilities import ForgettingDevice, PlacingDevice
from tilefw.runtime.executor import Executor
from tilefw.runtime.launch_site import LaunchSite, site
from tilefw.runtime.launchable import Launchable
from tilefw.runtime.prints import printing


@dataclass(frozen=True, slots=True)
class _PlacedMemory:
    """Memory of the host from `start` on, and what stands for it on the device."""

    start: int
    nbytes: int
    handle: int
    host: np.ndarray

    def holds(self, array: HostArray) -> bool:
        return self.start <= array.start and array.start + array.nbytes <= self.start + self.nbytes


def run(
    launches: Sequence[RankLaunch], heap: SymmetricHeap, seed: int, resident: int | None, trace: bool = False
) -> tuple[tuple[LaunchReport, ...], frozenset[str]]:
    """Run all launches to their ends; one report each, and the checks that were made. `resident`: programs of a launch that a
    device holds at once, None where the target says it. `trace`: reports have records of what was executed. Raises CheckError where
    a check finds an error or nobody can go on (then nothing is copied back), UnsupportedError TFW0873 for a target whose executor
    cannot, UsageError TFW0903 for a check that it cannot make."""
    sites = [_site(one.made) for one in launches]
    executor = sites[0].executor
    device = joint_device(executor, launches[0].made.target.name, heap)
    options = [
        replace(_options(where, device, seed, number), resident=resident or residence_of(one.made), trace=trace)
        for number, (one, where) in enumerate(zip(launches, sites, strict=True))
    ]
    check_co_residence(launches, [wanted.resident for wanted in options])
    target, artifact = launches[0].made.target, launches[0].made.compiled.artifact
    titles = [f"{one.made.name} on rank {one.rank}, grid {one.made.grid}" for one in launches]
    crash = guarded(
        f"executing {len(launches)} launches at once on {target.name}", {**target.facts, "launches": titles, "seed": seed},
        lambda: artifact.text, target.executors.clear,
    )
    heap.given((name, array.start) for name, array in _arrays(launches))
    with executor.lock, contextlib.ExitStack() as allocated, crash:
        symmetric = _symmetric(executor, heap, allocated)
        if isinstance(executor.device, MulticastingDevice):
            executor.device.map_multicast(heap.multicast)
            allocated.callback(executor.device.map_multicast, None)
        placed = [*symmetric, *_ordinary(executor, launches, heap, symmetric, allocated)]
        joint = [
            JointLaunch(
                one.rank, one.made.name, executor.module(one.made.compiled.artifact), one.made.entry.name,
                one.made.entry.workgroups_of(one.made.grid), [_argument(a, placed) for a in one.made.args], wanted,
            )
            for one, wanted in zip(launches, options, strict=True)
        ]
        for one in filter(lambda one: one.prints, launches):
            allocated.enter_context(printing(one.made.compiled.artifact, one.made.entry, one.made.args))
        reports = tuple(device.launch_jointly(joint, seed))
        failed = any(report.errors for report in reports)
        for part in placed:
            if not failed or _told(part, launches):
                _copy_back(executor, part)
    if failed:
        raise joint_error(launches, reports, heap)
    return reports, frozenset().union(*(wanted.checks for wanted in options))


def _site(made: Launchable) -> LaunchSite:
    return site(made.target, made.resolved, block=made.block, dynamic_shared=made.dynamic_shared)


def joint_device(executor: Executor, target: str, heap: SymmetricHeap) -> JointDevice:
    """The executor's device as one of a node. Raises UnsupportedError TFW0873."""
    device = executor.device
    if not isinstance(device, JointDevice) or not isinstance(device, PlacingDevice):
        raise UnsupportedError(
            f"the {device.executor} executor of {target} does not run several launches at once in one memory", code="TFW0873",
            note="it lacks `launch_jointly` (tilefw.api.device.JointDevice) or `place`",
        )
    if not device.reaches(heap.end):
        raise UnsupportedError(f"the addresses of {target} are too narrow for the heaps of {len(heap.bases)} ranks", code="TFW0873")
    return device


def _options(where: LaunchSite, device: JointDevice, seed: int, number: int) -> LaunchOptions:
    # Nobody follows the values of programs that run at once; what the host has not written is found as memory not initialised.
    followed = where.of_program - ({UNINITIALISED} if "initialisation" in where.checks & device.joint_checks else frozenset())
    named = where.resolved.named_checks & where.checks - device.joint_checks | followed
    if named:
        raise UsageError(
            f"the check `{min(named)}` is not made of launches at once by the {where.executor.device.executor} executor of "
            f"{where.target.name}", code="TFW0903", note=f"it makes {', '.join(sorted(device.joint_checks))}",
        )
    return replace(where.options, checks=where.options.checks & device.joint_checks, seed=seed + number if seed else 0)


def _arrays(launches: Sequence[RankLaunch]) -> list[tuple[str, HostArray]]:
    """Those that the launches are given, by the names of their parameters."""
    return [
        (p.name, a) for one in launches for p, a in zip(one.made.entry.parameters, one.made.args, strict=True)
        if isinstance(a, HostArray)
    ]


def _symmetric(executor: Executor, heap: SymmetricHeap, allocated: contextlib.ExitStack) -> list[_PlacedMemory]:
    """Every array of every heap, at its address."""
    device, placed = executor.device, list[_PlacedMemory]()
    assert isinstance(device, PlacingDevice)
    for array in (heap.barrier, *heap.arrays):
        for rank, (base, host) in enumerate(zip(heap.bases, array.arrays, strict=True)):
            label = f"{heap.called(array)} of rank {rank}"
            handle = device.place(base + array.offset, host.nbytes, label=label, element=host.dtype.name)
            placed.append(_filled(executor, handle, host.ctypes.data, host.reshape(-1).view(np.uint8), allocated))
    return placed


def _ordinary(
    executor: Executor, launches: Sequence[RankLaunch], heap: SymmetricHeap, symmetric: Sequence[_PlacedMemory],
    allocated: contextlib.ExitStack,
) -> list[_PlacedMemory]:
    """The other arrays of the launches: one that several ranks are given is one memory. What lies within a symmetric array, as a
    buffer of a part of it does, is there already. Node contexts have their place, which tells a rank that is none."""
    device = executor.device
    assert isinstance(device, PlacingDevice)
    contexts = {one.context.start: heap.context_address(one.rank) - IN_FRONT * WORD_BYTES for one in launches}
    named = [(name, a) for name, a in _arrays(launches) if not any(part.holds(a) for part in symmetric)]
    placed = []
    for storage in storages(named):
        about = {"label": storage.label, "readonly": storage.readonly, "element": storage.element}
        place = contexts.get(storage.start)
        handle = device.allocate(storage.nbytes, **about) if place is None else device.place(place, storage.nbytes, **about)
        placed.append(_filled(executor, handle, storage.start, storage.view(), allocated))
    return placed


def _filled(executor: Executor, handle: int, start: int, host: np.ndarray, allocated: contextlib.ExitStack) -> _PlacedMemory:
    device = executor.device
    allocated.callback(device.free, handle)
    if host.size:
        device.write(handle, host)
        left = unwritten(host)
        if left is not None and isinstance(device, ForgettingDevice):
            device.forget(handle, left)
    return _PlacedMemory(start, host.size, handle, host)


def _argument(argument: Bound, placed: Sequence[_PlacedMemory]) -> Argument:
    if argument is None:
        return BufferView(0)
    if isinstance(argument, Scalar | Struct | ArrayDescriptor):
        return argument
    if not isinstance(argument, HostArray):
        raise LaunchError(f"{argument.what} is in a card's memory; a simulated node has memory of its own", code="TFW0333")
    part = next(part for part in placed if part.holds(argument))
    return BufferView(part.handle, argument.address - part.start)


def _told(part: _PlacedMemory, launches: Sequence[RankLaunch]) -> bool:
    """Whether a kernel tells the runtime itself something there, as it may also when it fails."""
    return any(
        p.hidden and isinstance(a, HostArray) and part.start == a.start
        for one in launches for p, a in zip(one.made.entry.parameters, one.made.args, strict=True)
    )


def _copy_back(executor: Executor, part: _PlacedMemory) -> None:
    if not part.nbytes:
        return
    now = np.frombuffer(executor.device.read(part.handle, part.nbytes, 0), np.uint8)
    changed = now != part.host
    if changed.any():
        np.copyto(part.host, now, where=changed)
