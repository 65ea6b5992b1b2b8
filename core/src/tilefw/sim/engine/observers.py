"""What the active checks of a launch observe: by event, the methods to call. An event that nobody observes is an empty tuple."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Observer = Callable[..., None]
Called = tuple[Observer, ...]


@dataclass(frozen=True, slots=True)
class Observers:
    """The events of a launch; each is a method of `tilefw.sim.checks.check.Check` with the same name, which has its parameters.

    `follows_undefined`: registers and memory carry undefined bits beside their values. `follows_offsets`: registers carry the exact
    integers that offsets are made of. `orders_accesses`: waves keep the clocks that order their accesses. `bytes_per_byte` is what
    the checks keep for each byte of a workgroup's memory.
    """

    begin: Called = ()
    end: Called = ()
    finish: Called = ()
    close: Called = ()
    block: Called = ()
    step: Called = ()
    undefined: Called = ()
    undefined_memory: Called = ()
    out_of_bounds: Called = ()
    write_to_readonly: Called = ()
    address: Called = ()
    wrapped: Called = ()
    access: Called = ()
    access_in_flight: Called = ()
    accessed: Called = ()
    loaded: Called = ()
    stored: Called = ()
    fence: Called = ()
    copy_read: Called = ()
    copy_started: Called = ()
    copy_landed: Called = ()
    copy_left: Called = ()
    arrived: Called = ()
    barrier: Called = ()
    barrier_all: Called = ()
    barrier_made: Called = ()
    barrier_used: Called = ()
    barrier_passed: Called = ()
    cluster_met: Called = ()
    engine_started: Called = ()
    engine_landed: Called = ()
    engine_left: Called = ()
    view_fence: Called = ()
    descriptor: Called = ()
    follows_undefined: bool = False
    follows_offsets: bool = False
    orders_accesses: bool = False
    bytes_per_byte: int = 0
