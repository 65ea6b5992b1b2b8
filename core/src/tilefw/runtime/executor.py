"""One launch over the device protocol: allocate, copy in, execute, then raise what the checks found or copy back what changed.

Arrays in a card's memory are launched on as they are. A launch on nothing but those is asynchronous on a device that is."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, cast

import numpy as np

from tilefw.api.artifact import Artifact, Entry, Parameter
from tilefw.api.device import (
    Argument,
    ArrayDescriptor,
    BufferView,
    Device,
    DeviceAddress,
    LaunchOptions,
    LaunchReport,
    Scalar,
    Struct,
)
from tilefw.api.errors import LaunchError, UnsupportedError
from tilefw.api.target import TargetInfo
from tilefw.argument_block import BlockLayout
from tilefw.hardware.card import Card
from tilefw.hardware.ready_entry import ReadyEntry
from tilefw.runtime.arguments.arrays import HostArray, Storage, in_device_memory, storages
from tilefw.runtime.arguments.binding import Bound
from tilefw.runtime.arguments.device_arrays import DeviceArray, streams_of
from tilefw.runtime.arguments.registered import registered
from tilefw.runtime.arguments.unwritten import unwritten as unwritten_bytes
from tilefw.runtime.bug_guard import guarded
from tilefw.runtime.device_abilities import ForgettingDevice, PlacingDevice, ReadyingDevice, SharingDevice
from tilefw.runtime.device_times import EXECUTE
from tilefw.runtime.diagnostics import check_error
from tilefw.runtime.plugins.loader import Target
from tilefw.runtime.residence import staying
from tilefw.runtime.stage_clock import StageClock

# Artifacts that stay loaded on one device; the oldest goes first.
MODULES_LIMIT = 128
_COPY_BYTES = 8 << 20  # at a time: what comes back of a large array is compared with what was there
CODE_LIMIT = 1 << 20  # bytes of their code: decoded for a simulator, each takes a hundred or two
_STAYS = "what it had stored by then stays in the arrays"
ADDRESS_BITS = 64  # of a device that takes addresses


@dataclass(frozen=True, slots=True, eq=False)
class PreparedEntry:
    """An entry of a loaded artifact with the options of its launches."""

    executor: Executor
    loaded: tuple[Artifact, Any]
    run: ReadyEntry
    layout: BlockLayout


class Executor:
    """A device and the artifacts loaded on it; launches on one device wait for each other."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._shares = isinstance(device, SharingDevice)
        addressing = self._shares and isinstance(device, ReadyingDevice)
        self._addressed = DeviceArray if isinstance(device, Card) else HostArray if addressing else None
        # Held by the thread that loads or launches on the device; a signal's handler may launch within a launch of its thread.
        self.lock = threading.RLock()
        # What owners have given back that were dropped and not closed, in whichever thread and amid whatever that happened.
        self._dropped: deque[Callable[[], None]] = deque()
        # By identity, holding the artifact so that the identity stays its own.
        self._modules: dict[int, tuple[Artifact, Any]] = {}
        self._ready: dict[Hashable, PreparedEntry] = {}

    def when_dropped(self, owner: Any, give_back: Callable[[], None]) -> weakref.finalize[..., Any]:
        """When `owner` is dropped, `give_back` is for `free_dropped` to call; it must not know the owner. Who closes detaches."""
        found = weakref.finalize(owner, self._dropped.append, give_back)
        found.atexit = False
        return found

    def free_dropped(self) -> None:
        """Give the device what dropped owners had of it; with the lock held, between launches."""
        while self._dropped:
            self._dropped.popleft()()

    def run(
        self, artifact: Artifact, entry: Entry, grid: tuple[int, int, int], args: Sequence[Bound], options: LaunchOptions,
        clock: StageClock, unwritten: bool = False,
    ) -> LaunchReport:
        """Execute one launch; `clock` gains the seconds of its steps. Raises CheckError when a check found an error. The device has
        admitted the arrays in a card's memory.

        `unwritten`: what the host has never written of an array (unwritten.py) is as uninitialised on a device that can forget. A
        launch that has arrays of the host among its arguments is complete on return, unless they stay there (residence.py)."""
        addressed = None if unwritten else self.addressed(options)
        plain = None if addressed is None else _plain(args, addressed)
        if plain is not None:
            return self._run_in_place(artifact, entry, grid, plain, self._stream(args, options), options, clock)
        named = [(p.name, a) for p, a in zip(entry.parameters, args, strict=True) if type(a) is HostArray]
        reached = _reached(self.device, options.checks)
        stores = storages([*named, *reached])
        with self.lock, contextlib.ExitStack() as allocated:
            residence = staying(self.device, stores, not (unwritten or reached or _told(entry.parameters, args)))
            with clock.stage("load"):
                module = self.module(artifact)
            with clock.stage("copy in"):
                placed = [any(storage.holds(array) for _, array in reached) for storage in stores]
                if residence is None:
                    handles = self._copied_in(stores, placed, allocated)
                else:
                    handles = residence.enter(stores, {array.start: array.keep[1] for _, array in named})
                if unwritten and isinstance(self.device, ForgettingDevice):
                    _forget_unwritten(self.device, stores, handles)
            arguments = [_argument(a, stores, handles) for a in args]
            with clock.stage(EXECUTE):
                report = self.device.launch(
                    module, entry.name, entry.workgroups_of(grid), arguments, self._on_stream(args, _of_workgroups(options, entry))
                )
                if report.completion is not None and stores and residence is None:
                    report = replace(report, completion=None, seconds=report.completion.wait())
            if stores and self.device.executor == "hw":
                clock.seconds[EXECUTE] = report.seconds  # by the device's own clock
            with clock.stage("copy back"):
                for storage, handle, fixed in zip(stores, handles, placed, strict=True):
                    if report.errors and storage.start not in _told(entry.parameters, args):
                        continue
                    if not (fixed or _may_change(storage, entry.parameters, args)):
                        continue
                    if residence is None:
                        self._copy_back(storage, handle, fixed)
                    else:
                        residence.changed(storage, report.completion)
            if report.errors:
                raise check_error(report.findings, *([_STAYS] if self._shares else []))
        return report

    def addressed(self, options: LaunchOptions) -> type[HostArray | DeviceArray] | None:
        """The arrays that a launch with these options takes where they are, by their addresses; None where it takes none so."""
        return None if self._addressed is HostArray and options.checks else self._addressed

    def _run_in_place(
        self, artifact: Artifact, entry: Entry, grid: tuple[int, int, int], args: Sequence[int | Scalar | Struct | ArrayDescriptor],
        stream: int, options: LaunchOptions, clock: StageClock,
    ) -> LaunchReport:
        """A launch that has nothing to copy; on a card there is nothing to wait for either."""
        seconds = clock.seconds
        with self.lock:
            if id(artifact) not in self._modules:
                with clock.stage("load"):
                    self.module(artifact)
            else:
                seconds["load"] = 0.0
            clock.last = EXECUTE
            prepared = self._prepared(artifact, entry, options)
            report = prepared.run(grid, prepared.layout.pack_plain(args, ADDRESS_BITS, self.device.name), stream)
        seconds["copy in"], seconds[EXECUTE], seconds["copy back"] = 0.0, report.seconds, 0.0
        if report.findings and report.errors:
            raise check_error(report.findings, _STAYS)
        return report

    def prepared(self, artifact: Artifact, entry: Entry, options: LaunchOptions) -> PreparedEntry | None:
        """What launches an entry that is loaded, on packed arguments; None where it is not loaded."""
        with self.lock:
            return None if id(artifact) not in self._modules else self._prepared(artifact, entry, options)

    def _prepared(self, artifact: Artifact, entry: Entry, options: LaunchOptions) -> PreparedEntry:
        loaded = self._modules[id(artifact)]
        key = (id(artifact), entry.name, options.block, options.dynamic_shared)
        found = self._ready.get(key)
        if found is None:
            describe = getattr(self.device, "copy_descriptor", None)
            run = cast(ReadyingDevice, self.device).ready(loaded[1], entry.name, options)
            layout = BlockLayout(entry, ADDRESS_BITS, describe)
            found = self._ready[key] = PreparedEntry(self, loaded, _of_programs(run, entry), layout)
        return found

    def run_prepared(
        self, prepared: PreparedEntry, grid: tuple[int, int, int], block: bytes, stream: int
    ) -> LaunchReport | None:
        """A launch of it; None where its code is no longer loaded. Raises CheckError when a check found an error."""
        loaded = prepared.loaded
        with self.lock:
            if self._modules.get(id(loaded[0])) is not loaded:
                return None
            report = prepared.run(grid, block, stream)
        if report.findings and report.errors:
            raise check_error(report.findings, _STAYS)
        return report

    def admit(self, arrays: Sequence[DeviceArray], owners: Sequence[int | None]) -> None:
        """Let the device, a card, access arrays in the memory of the cards `owners`. Raises LaunchError: TFW0333 where an address
        is not a card's, TFW0335 for the memory of a card that it does not reach."""
        card = cast(Card, self.device)
        for array, number in zip(arrays, owners, strict=True):
            if number is None:
                raise LaunchError(
                    f"{array.what} is at {array.address:#x}, which is in the memory of no card that {card.name} runs on",
                    code="TFW0333", help="pass an array of a library that uses the same driver",
                )
            if number != card.number:
                card.use_peer(number)

    def _on_stream(self, args: Sequence[Bound], options: LaunchOptions) -> LaunchOptions:
        """The options with the stream of the launch."""
        return options if _card(self.device) is None else replace(options, stream=self._stream(args, options))

    def _stream(self, args: Sequence[Bound], options: LaunchOptions) -> int:
        """The stream of the launch: the one that was asked for, else that of the first array in a card's memory, else the
        default one. What other arrays' libraries have under way on other streams comes before the launch."""
        card = _card(self.device)
        if card is None:
            return 0
        streams = streams_of([a for a in args if type(a) is DeviceArray])
        stream = options.stream if options.stream is not None else streams[0] if streams else 0
        if len(streams) > 1 or (streams and streams[0] != stream):
            card.follow(stream, [other for other in streams if other != stream])
        return stream

    def module(self, artifact: Artifact) -> Any:
        """The artifact as the device has loaded it, now or before."""
        kept = self._modules.get(id(artifact))
        if kept is None:
            self._make_room(artifact)
            kept = self._modules[id(artifact)] = (artifact, self.device.load(artifact))
        return kept[1]

    def _make_room(self, artifact: Artifact) -> None:
        held = sum(_code_bytes(other) for other, _ in self._modules.values())
        while self._modules and (len(self._modules) >= MODULES_LIMIT or held + _code_bytes(artifact) > CODE_LIMIT):
            gone, _ = self._modules.pop(next(iter(self._modules)))
            held -= _code_bytes(gone)
            self._ready.clear()

    def _copied_in(self, stores: Sequence[Storage], placed: Sequence[bool], allocated: contextlib.ExitStack) -> list[int]:
        """The handles of all storages; those at fixed addresses come first, so that none of the others takes their place."""
        order = sorted(range(len(stores)), key=lambda index: not placed[index])
        handles = {index: self._copy_in(stores[index], placed[index], allocated) for index in order}
        return [handles[index] for index in range(len(stores))]

    def _copy_in(self, storage: Storage, placed: bool, allocated: contextlib.ExitStack) -> int:
        known = {"label": storage.label, "readonly": storage.readonly, "element": storage.element}
        if self._shared(storage, placed):
            handle = cast(SharingDevice, self.device).share(storage.start, storage.nbytes, **known)
            allocated.callback(self.device.free, handle)
            return handle
        if placed and isinstance(self.device, PlacingDevice):
            handle = self.device.place(storage.start, storage.nbytes, **known)
        else:
            handle = self.device.allocate(storage.nbytes, **known)
        allocated.callback(self.device.free, handle)
        if storage.nbytes:
            self.device.write(handle, storage.view())
        return handle

    def _shared(self, storage: Storage, placed: bool) -> bool:
        """Whether a launch works on the storage itself. What is read-only is copied, so that a store to it can be told, unless it
        is at a fixed address."""
        return self._shares and (placed or not storage.readonly)

    def _copy_back(self, storage: Storage, handle: int, placed: bool) -> None:
        if self._shared(storage, placed):
            return
        before = storage.view()
        for start in range(0, storage.nbytes, _COPY_BYTES):
            part = before[start : start + _COPY_BYTES]
            self._copy_part_back(storage, part, np.frombuffer(self.device.read(handle, part.size, start), np.uint8))

    def _copy_part_back(self, storage: Storage, before: np.ndarray, now: np.ndarray) -> None:
        changed = now != before
        if not changed.any():
            return
        if storage.readonly:
            raise LaunchError(
                f"the kernel stored to the array of argument '{storage.label}', which is read-only; nothing was written to it",
                code="TFW0334", help="pass an array that may be written, or a copy",
            )
        np.copyto(before, now, where=changed)


def _plain(args: Sequence[Bound], addressed: type[HostArray | DeviceArray]) -> list[int | Scalar | Struct | ArrayDescriptor] | None:
    """The arguments of a launch that works on such arrays as they are, an address as a number; None where one of them is another
    array, or may not be written by the host."""
    found: list[int | Scalar | Struct | ArrayDescriptor] = []
    for argument in args:
        kind = type(argument)
        if kind is addressed and not (kind is HostArray and argument.readonly):  # type: ignore[union-attr]
            found.append(argument.address)  # type: ignore[union-attr]
        elif kind is Scalar or kind is Struct or kind is ArrayDescriptor:
            found.append(argument)  # type: ignore[arg-type]
        elif argument is None:
            found.append(0)
        else:
            return None
    return found


def _told(parameters: Sequence[Parameter], args: Sequence[Bound]) -> set[int]:
    """The starts of memory where a kernel tells the runtime itself something, as it may also when it fails."""
    return {a.start for p, a in zip(parameters, args, strict=True) if p.hidden and isinstance(a, HostArray)}


def _forget_unwritten(device: ForgettingDevice, stores: Sequence[Storage], handles: Sequence[int]) -> None:
    for storage, handle in zip(stores, handles, strict=True):
        left = unwritten_bytes(storage.view()) if storage.nbytes else None
        if left is not None:
            device.forget(handle, left)


def _reached(device: Device, checks: frozenset[str]) -> list[tuple[str, HostArray]]:
    """Registered memory that the device can have at its own addresses. A card's kernels have memory of the card alone; a device
    that uses the host's as it is hears of it for its checks."""
    held = registered()
    if checks and isinstance(device, SharingDevice):
        # What is read-only stays where it is, too, where the device tells of stores to it before they are made.
        return [(label, array) for label, array in held if not array.readonly or "bounds" in checks]
    if not held or not isinstance(device, PlacingDevice):
        return []
    return [(label, array) for label, array in held if device.reaches(array.start + array.nbytes)]


def _code_bytes(artifact: Artifact) -> int:
    return len(artifact.text) + len(artifact.binary or b"")


def _card(device: Device) -> Card | None:
    """The device as one with streams and peers, where it is one."""
    return device if isinstance(device, Card) else None


def executor_for(target: Target, kind: str, number: int | None = None) -> Executor:
    """The target's simulator (`sim`), its chip (`hw`), the chip where there is one (`auto`), or where nobody has said which
    (`default`) the simulator where the target has one; made once a process. `number` is the card's, where it must be a certain one.
    """
    if kind == "auto":
        return _automatic(target)
    kind = unsaid(target.info) if kind == "default" else kind
    key = kind if number is None else f"{kind} {number}"
    with target.lock:
        if key not in target.executors:
            make = target.backend.simulator if kind == "sim" else target.backend.device
            target.executors[key] = Executor(_made_device(make if number is None else partial(make, number), target, kind))
        return target.executors[key]


def unsaid(info: TargetInfo) -> Literal["sim", "hw"]:
    """What executes launches of a target where nobody has said it: its simulator, or its chip where it has none."""
    return "hw" if "device" in info.provides and "simulate" not in info.provides else "sim"


def arrays_on_card(args: Sequence[Bound]) -> list[DeviceArray]:
    """Those of the arguments that are in a card's memory, and have any."""
    return [a for a in args if type(a) is DeviceArray and a.nbytes]


def owners_of(device: Device, arrays: Sequence[DeviceArray]) -> list[int | None]:
    """The cards in whose memory the arrays are, by the driver of the device. Raises LaunchError TFW0333 where it is no card."""
    card = _card(device)
    if card is None:
        raise in_device_memory(arrays[0])
    return card.owners([(array.address, array.device) for array in arrays])


def _automatic(target: Target) -> Executor:
    if "device" in target.info.provides:
        with contextlib.suppress(UnsupportedError):  # no driver or no chip here: that is what `auto` is for
            return executor_for(target, "hw")
    return executor_for(target, "sim")


def _made_device(make: Any, target: Target, kind: str) -> Device:
    with guarded(f"making the {kind} executor of {target.name}", target.facts):
        return make()


def _of_workgroups(options: LaunchOptions, entry: Entry) -> LaunchOptions:
    """The options whose chosen programs are numbers of workgroups, one of each program."""
    if entry.workgroups == 1 or options.programs is None:
        return options
    return replace(options, programs=tuple(number * entry.workgroups for number in options.programs))


def _of_programs(run: ReadyEntry, entry: Entry) -> ReadyEntry:
    """What launches workgroups, for grids of programs."""
    if entry.workgroups == 1:
        return run
    return lambda grid, block, stream: run(entry.workgroups_of(grid), block, stream)


def run(
    target: Target, executor: Executor, artifact: Artifact, entry: Entry, grid: tuple[int, int, int], args: Sequence[Bound],
    options: LaunchOptions, clock: StageClock, unwritten: bool = False,
) -> LaunchReport:
    """One launch on an executor of the target, or where arrays are in the memory of another card, on that of the first array's;
    `unwritten` as in `Executor.run`. A crash of it becomes an InternalError, and the next launch gets a fresh executor."""

    try:
        on_card = arrays_on_card(args) if DeviceArray in map(type, args) else None
        if on_card:
            owners = owners_of(executor.device, on_card)
            if owners[0] is not None and owners[0] != cast(Card, executor.device).number:
                executor = executor_for(target, "hw", owners[0])
            executor.admit(on_card, owners)
        return executor.run(artifact, entry, grid, args, options, clock, unwritten)
    except BaseException:  # the guard takes longer to make than a small kernel runs
        with guarded_launch(target, artifact, entry, grid, _Shown(args), options):
            raise


def guarded_launch(
    target: Target, artifact: Artifact, entry: Entry, grid: tuple[int, int, int], args: object, options: LaunchOptions
) -> guarded:
    """What a crash of a launch goes through: it becomes an InternalError, and the next launch gets a fresh executor."""
    facts = {**target.facts, "entry": entry.name, "grid": grid, "arguments": args, "options": options}
    return guarded(f"executing {entry.name} on {target.name}", facts, lambda: artifact.text, failed=target.executors.clear)


class _Shown:
    """Arguments as a reproducer shows them; made into text only then."""

    def __init__(self, args: Sequence[Bound]) -> None:
        self._args = args

    def __str__(self) -> str:
        return str([_shown(argument) for argument in self._args])


def _shown(argument: Bound) -> str:
    if isinstance(argument, HostArray | DeviceArray):
        shape = f"{list(argument.shape)} strides {argument.strides}" if isinstance(argument, HostArray) else " on a card"
        return f"{argument.dtype}{shape} at {argument.offset} of {argument.nbytes} bytes"
    return str(argument)


def _argument(argument: Bound, stores: Sequence[Storage], handles: Sequence[int]) -> Argument:
    if argument is None:
        return BufferView(0)
    if isinstance(argument, Scalar | Struct | ArrayDescriptor):
        return argument
    if isinstance(argument, DeviceArray):
        return DeviceAddress(argument.address)
    index = _index_of(argument, stores)
    return BufferView(handles[index], argument.address - stores[index].start)


def _index_of(array: HostArray, stores: Sequence[Storage]) -> int:
    return next(i for i, s in enumerate(stores) if s.start <= array.start and array.start + array.nbytes <= s.start + s.nbytes)


def _may_change(storage: Storage, parameters: Sequence[Parameter], args: Sequence[Bound]) -> bool:
    """Whether some parameter below which this storage lies is not known to be read only."""
    return any(
        isinstance(a, HostArray) and p.readonly is not True and storage.start <= a.start < storage.start + max(storage.nbytes, 1)
        for p, a in zip(parameters, args, strict=True)
    )
