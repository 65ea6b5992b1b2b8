"""A launch like one before on a device that takes addresses: its arguments are read and packed in one pass, and put there at once.

Nothing is kept of a launch but what the general way (launcher.py) has decided for one of the same types, constants and settings;
where anything of that may have changed, the launch goes the general way again.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Container, Hashable, Sequence
from operator import itemgetter
from typing import Any, cast

from tilefw.api.artifact import Entry
from tilefw.argument_block import BlockLayout
from tilefw.hardware.card import Card
from tilefw.runtime.arguments.array_facts import facts_of_storages
from tilefw.runtime.arguments.device_arrays import stream_question
from tilefw.runtime.arguments.single_pass import Form, Readings
from tilefw.runtime.compiled_kernel import WarmKernel
from tilefw.runtime.device_times import EXECUTE, DeviceTimes
from tilefw.runtime.executor import PreparedEntry, guarded_launch
from tilefw.runtime.known_launches import KnownLaunch, MadeLaunch
from tilefw.runtime.launch import LaunchResult
from tilefw.runtime.launch_site import LaunchSite, keep
from tilefw.runtime.process_state import ProcessState

_HIDDEN_NULL = "null_pointer"
_AT_ONCE = {"load": 0.0, "copy in": 0.0, EXECUTE: 0.0, "copy back": 0.0}


class DirectLaunch:
    """What is kept of a launch: `known` and `made` as the general way found them, the `prepared` entry, `pack`, which makes its
    block of the run-time values, `ask`, which gives the stream that a tensor's library works on now, and the `kernel`, which is
    launched again with the keywords of this launch."""

    __slots__ = ("ask", "kernel", "known", "made", "pack", "prepared")

    def __init__(
        self, known: KnownLaunch, made: MadeLaunch, prepared: PreparedEntry, pack: Callable[[Sequence[Any]], bytes],
        ask: Callable[[Any], int | None] | None, kernel: WarmKernel,
    ) -> None:
        self.known, self.made, self.prepared, self.pack, self.ask, self.kernel = known, made, prepared, pack, ask, kernel


class DirectLaunches:
    """Those of one kernel."""

    def __init__(self, readings: Readings) -> None:
        self._readings = readings
        self._kept: dict[Hashable, DirectLaunch] = {}

    def launch(
        self, site: LaunchSite, form: Form, process: ProcessState, given: Sequence[Any], grid: tuple[int, int, int],
        warm: Container[int],
    ) -> LaunchResult | None:
        """Launch as before; None where it has to go the general way, as where the artifact is none of the `warm` ones by their
        identities. Raises as that does."""
        reading = self._readings.find(form, (*map(type, given),))
        found = None if reading is None else reading(given)
        if found is None:
            return None
        key, values, starts, ends, device, addresses, streams = found
        kept = self._kept.get((site, reading, facts_of_storages(site.target.info, starts, ends), key))
        if kept is None or kept.known.kept(process) is not kept.made or not kept.known.watched.unchanged():
            return None
        if id(kept.made.compiled.artifact) not in warm:
            return None
        if addresses and not cast(Card, site.executor.device).holds(addresses):
            return None
        asked = site.options.stream
        stream = asked or 0
        if kept.ask is not None or streams:
            said = [other for other in (*streams, kept.ask(device) if kept.ask else None) if other is not None]
            stream = asked if asked is not None else said[0] if said else 0
            if said.count(stream) != len(said):
                return None  # streams have to be ordered
        try:
            block = kept.pack(values)
        except (struct.error, OverflowError):
            return None
        return _launched(site, kept, grid, block, stream)

    def learn(
        self, site: LaunchSite, form: Form, process: ProcessState, known: KnownLaunch, made: MadeLaunch, given: Sequence[Any],
        kernel: WarmKernel,
    ) -> None:
        """Keep a launch that has gone the general way, if the next one like it need not."""
        reading = self._readings.find(form, (*map(type, given),))
        found = None if reading is None else reading(given)
        if found is None or made.prints or known.kept(process) is None:
            return
        key, values, starts, ends, device, _, _ = found
        entry = made.arguments.entry
        ask = None if device is None else _stream_of(site, device)
        prepared = site.executor.prepared(made.compiled.artifact, entry, site.options)
        if prepared is None or (device is not None and ask is None):
            return
        pack = _packing(entry, prepared.layout, known.passed, len(values))
        if pack is not None:
            words = (site, reading, facts_of_storages(site.target.info, starts, ends), key)
            keep(self._kept, words, DirectLaunch(known, cast(MadeLaunch, known.kept(process)), prepared, pack, ask, kernel))


def _launched(
    site: LaunchSite, kept: DirectLaunch, grid: tuple[int, int, int], block: bytes, stream: int
) -> LaunchResult | None:
    artifact, name = kept.made.compiled.artifact, site.target.name
    executor = kept.prepared.executor
    try:
        report = executor.run_prepared(kept.prepared, grid, block, stream)
    except BaseException:
        with guarded_launch(site.target, artifact, kept.made.arguments.entry, grid, ("packed", block.hex()), site.options):
            raise
    if report is None:
        return None
    completion = report.completion
    times = {**_AT_ONCE, EXECUTE: report.seconds} if completion is None else DeviceTimes(_AT_ONCE, completion)
    return LaunchResult(
        kept.known.source.name, name, executor.device.executor, artifact, grid, report.findings, report.counters, times,
        kept.made.compiled.found, report.utilisation, report.timeline, site.checks, completion, kept.kernel,
    )


def _packing(entry: Entry, layout: BlockLayout, passed: Sequence[int], count: int) -> Callable[[Sequence[Any]], bytes] | None:
    """What makes a block of a launch's run-time values, of which the code takes those `passed`; None where one is no number."""
    pack = layout.of_numbers
    hidden = [parameter.hidden for parameter in entry.parameters]
    taken = [word for word in hidden if word is None]
    if pack is None or len(taken) != len(passed) or any(word not in (None, _HIDDEN_NULL) for word in hidden):
        return None
    places = iter(passed)
    order = [count if word is not None else next(places) for word in hidden]  # a null pointer stands behind the values
    if order == list(range(count)):
        return lambda values: pack(*values)
    if len(order) < 2:
        return lambda values: pack(*[(*values, 0)[place] for place in order])
    pick = itemgetter(*order)
    if count in order:
        return lambda values: pack(*pick((*values, 0)))
    return lambda values: pack(*pick(values))


def _stream_of(site: LaunchSite, device: Any) -> Callable[[Any], int | None] | None:
    """What gives the stream that is current for a tensor's device; None where its memory is not that of the site's card."""
    card = cast(Card, site.executor.device)
    if card.owners([(0, device)])[0] != card.number:
        return None
    return stream_question(sys.modules.get("torch"), device.type)
